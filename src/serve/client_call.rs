//! A client's request.

use std::{sync::Arc, time::Instant};

use axum::{body::Bytes, http::HeaderMap};
use serde_json::Value;
use tidegate_calls::{dialect::account_fields, route::Route};
use tidegate_providers::{Fields, Operation, RequestFacts};

use super::{door::Door, keys::Holder, problem::Problem, wait::Wait};

/// Headers of the client that go on to the vendor.
const HEADERS_FOR_VENDOR: [&str; 4] =
    ["anthropic-version", "anthropic-beta", "traceparent", "tracestate"];

/// A request in one of the dialects, from an authorized caller.
pub(super) struct ClientCall {
    pub(super) holder: Arc<Holder>,
    pub(super) operation: Operation,
    pub(super) headers: HeaderMap,
    /// The unchanged body.
    pub(super) body: Bytes,
    pub(super) fields: Fields,
    /// `provider:model`, or a route's name.
    pub(super) name: String,
    pub(super) route: Route,
    /// The properties of the request that the limiter needs; `None` if it asks no model.
    pub(super) asked: Option<RequestFacts>,
    pub(super) wait: Wait,
}

impl ClientCall {
    /// Reads a request.
    ///
    /// # Errors
    /// The body is no JSON, a field is refused, or the key may not ask the model.
    pub(super) fn read(
        door: &Door,
        holder: Arc<Holder>,
        operation: Operation,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Self, Problem> {
        let wait = Wait::from_headers(&headers, *door.config.serve.max_wait, Instant::now())?;
        let fields = Fields::read(&body).map_err(|error| {
            Problem::new(axum::http::StatusCode::BAD_REQUEST, error.to_string())
        })?;
        let name = match fields.get("model") {
            Some(Value::String(name)) => name,
            _ => return Err(Problem::invalid("model", "must be a model's or a route's name")),
        };
        let route = door.route(&name).filter(|_| holder.may_ask(&name));
        let route = route.ok_or_else(|| Problem::no_model(&name))?;
        let route = route.require_equivalents().map_err(|failure| {
            Problem::invalid("model", &format!("cannot be asked: {}", failure.message))
        })?;
        let asked = RequestFacts::read(operation.path(), &body);
        if asked.is_none() && operation != Operation::CountTokens {
            let (field, why) = fields.unreadable().unwrap_or(("messages", String::new()));
            return Err(Problem::invalid(field, &format!("cannot be read: {why}")));
        }
        if !matches!(fields.get("stream"), None | Some(Value::Null | Value::Bool(_))) {
            return Err(Problem::invalid("stream", "must be true or false"));
        }
        account_fields::check(&fields, &holder.models)?;
        Ok(Self { holder, operation, headers, body, fields, name, route, asked, wait })
    }

    /// The headers that go on to the vendor.
    pub(super) fn headers_for_vendor(&self) -> HeaderMap {
        let named = HEADERS_FOR_VENDOR.iter().filter_map(|name| {
            let value = self.headers.get(*name)?;
            Some((axum::http::HeaderName::from_static(name), value.clone()))
        });
        named.collect()
    }
}
