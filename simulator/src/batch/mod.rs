//! Batches: many calls at once that are answered later, at a lower price, and apart from the limits
//! of a minute.
//!
//! A request's outcome is decided when its batch is taken in, and shows when its time has
//! come: nothing runs in the meantime, the clock alone says how far a batch is. No fault strikes
//! here; [`batches::Batches`] says what goes wrong.

pub(crate) mod anthropic;
pub(crate) mod batches;
mod bounded_store;
pub(crate) mod gemini;
mod item;
mod job;
pub(crate) mod openai;
mod operation;
mod page;
mod progress;
pub(crate) mod store;

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, RawPathParams, rejection::RawPathParamsRejection},
    http::{HeaderMap, request::Parts},
    response::{IntoResponse, Response},
};

use crate::{
    problem::Problem,
    provider::Exchange,
    rng,
    state::State,
    vendor::{self, Style},
};

/// Both vendors' list of batches, but for its name at one.
fn list(batches: Vec<serde_json::Value>, has_more: bool) -> serde_json::Value {
    let id = |batch: Option<&serde_json::Value>| batch.map(|batch| batch["id"].clone());
    let (first_id, last_id) = (id(batches.first()), id(batches.last()));
    serde_json::json!({"data": batches, "first_id": first_id, "last_id": last_id, "has_more": has_more})
}

/// What a request says besides its body.
pub(crate) struct Asked {
    state: Arc<State>,
    headers: HeaderMap,
    /// What stands in the path; empty where the route leaves nothing open.
    id: String,
    query: String,
}

impl FromRequestParts<Arc<State>> for Asked {
    type Rejection = RawPathParamsRejection;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<State>,
    ) -> Result<Self, Self::Rejection> {
        let named = RawPathParams::from_request_parts(parts, state).await?;
        let id = named.iter().last().map_or_else(String::new, |(_, named)| named.to_owned());
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self { state: Arc::clone(state), headers: parts.headers.clone(), id, query })
    }
}

/// A body as it goes out.
enum Body {
    Json(serde_json::Value),
    /// One JSON object a line.
    Lines(String),
}

/// A response under the vendor's headers. Its number is none of the calls', which meet their faults
/// by theirs: how often a client asks after its batch would else be chance in what befalls its
/// calls.
fn respond<S: Style>(state: &State, outcome: Result<Body, Problem>) -> Response {
    let number = state.batches().number();
    let exchange = Exchange::begin(state, rng::draw(&[state.config.seed, number, 0xba7c]));
    let (kind, text) = match outcome {
        Err(problem) => return exchange.rejected::<S>(&problem),
        Ok(Body::Json(value)) => ("application/json", value.to_string()),
        Ok(Body::Lines(lines)) => ("application/x-jsonl", lines),
    };
    let mut headers = exchange.headers::<S>(None);
    vendor::set(&mut headers, "content-type", kind);
    (headers, text).into_response()
}
