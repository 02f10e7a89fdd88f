//! What a client asks for.

use std::{sync::Arc, time::Instant};

use axum::{body::Bytes, http::HeaderMap};
use serde_json::Value;
use tidegate_calls::route::Route;
use tidegate_providers::{Asked, Fields, Operation};
use tidegate_types::ModelId;

use super::{door::Door, keys::Holder, problem::Problem, wait::Wait};

/// Headers of a client's that go on to the vendor.
const PASSED: [&str; 4] = ["anthropic-version", "anthropic-beta", "traceparent", "tracestate"];

/// Fields that name what lies in an account: other providers do not have it, and others who use the
/// account may own it.
const OF_AN_ACCOUNT: [&str; 3] = ["file_id", "previous_response_id", "conversation"];

/// A request of one of the dialects, by somebody who may make it.
pub(super) struct ClientCall {
    pub(super) holder: Arc<Holder>,
    pub(super) operation: Operation,
    pub(super) headers: HeaderMap,
    /// As it came.
    pub(super) body: Bytes,
    pub(super) fields: Fields,
    /// `provider:model`, or a route's name.
    pub(super) name: String,
    pub(super) route: Route,
    /// What the limiter is told of it; `None` where no model is asked.
    pub(super) asked: Option<Asked>,
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
        let wait = Wait::of(&headers, door.max_wait, Instant::now())?;
        let fields = Fields::read(&body).map_err(|error| {
            Problem::new(axum::http::StatusCode::BAD_REQUEST, error.to_string())
        })?;
        let name = match fields.get("model") {
            Some(Value::String(name)) => name,
            _ => return Err(Problem::invalid("model", "must be a model's or a route's name")),
        };
        let route = door.route(&name).filter(|_| holder.may_ask(&name));
        let route = route.ok_or_else(|| Problem::no_model(&name))?;
        let route = route.of_no_question().map_err(|failure| {
            Problem::invalid("model", &format!("cannot be asked: {}", failure.message))
        })?;
        let asked = Asked::read(operation.path(), &body);
        if asked.is_none() && operation != Operation::CountTokens {
            return Err(Problem::invalid("messages", "cannot be read: they are too deep"));
        }
        check_fields(&fields, &holder)?;
        Ok(Self { holder, operation, headers, body, fields, name, route, asked, wait })
    }

    /// The headers that go on to the vendor.
    pub(super) fn passed_headers(&self) -> HeaderMap {
        let named = PASSED.iter().filter_map(|name| {
            let value = self.headers.get(*name)?;
            Some((axum::http::HeaderName::from_static(name), value.clone()))
        });
        named.collect()
    }

    /// The same call of these models of its route alone.
    pub(super) fn route_of(&self, takes: impl Fn(&ModelId) -> bool) -> Route {
        let keep = |models: &[ModelId]| models.iter().filter(|it| takes(it)).cloned().collect();
        let Route { models, equivalent, .. } = &self.route;
        Route { models: keep(models), equivalent: keep(equivalent), ..self.route.clone() }
    }
}

fn check_fields(fields: &Fields, holder: &Holder) -> Result<(), Problem> {
    if fields.get("background").is_some_and(|it| it == Value::Bool(true)) {
        let what = "is refused: its answer would lie at the provider, where no turn is kept";
        return Err(Problem::invalid("background", what));
    }
    if holder.only_provider().is_some() {
        return Ok(());
    }
    let found = OF_AN_ACCOUNT.into_iter().find(|name| {
        fields.names().any(|top| fields.get(top).is_some_and(|it| holds(top, &it, name)))
    });
    match found {
        Some(name) => Err(Problem::invalid(
            name,
            "passes only with a key whose models are all of one provider, where it lies",
        )),
        None => Ok(()),
    }
}

/// Whether a field, or one in it, has this name and a value.
fn holds(field: &str, value: &Value, name: &str) -> bool {
    if field == name && !value.is_null() {
        return true;
    }
    match value {
        Value::Array(elements) => elements.iter().any(|it| holds("", it, name)),
        Value::Object(fields) => fields.iter().any(|(field, it)| holds(field, it, name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_an_account_is_found_wherever_it_is_named() {
        let body = |text: &str| Fields::read(text.as_bytes()).unwrap();
        let found = |text: &str, name: &str| {
            let fields = body(text);
            fields.names().any(|top| fields.get(top).is_some_and(|it| holds(top, &it, name)))
        };
        assert!(found(r#"{"previous_response_id":"r"}"#, "previous_response_id"));
        assert!(!found(r#"{"previous_response_id":null}"#, "previous_response_id"));
        let deep = r#"{"messages":[{"content":[{"type":"file","file":{"file_id":"f"}}]}]}"#;
        assert!(found(deep, "file_id"));
        assert!(!found(r#"{"messages":[{"content":"file_id"}]}"#, "file_id"));
    }
}
