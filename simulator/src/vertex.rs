//! Vertex AI: other vendors' models below `/v1/projects/{project}/locations/{location}/publishers/`.
//! Gemini's bodies are its own API's; Claude's are Anthropic's without the model, which stands in
//! the path, and with the version, which does not stand in a header
//! (docs.anthropic.com/en/api/claude-on-vertex-ai).

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use crate::{
    answer::Answer,
    anthropic::Anthropic,
    call::Call,
    limiter::LimitStatus,
    problem::Problem,
    vendor::{self, Style, Vendor},
};

/// Claude at Vertex AI.
#[derive(Debug)]
pub(crate) struct Claude;

const METHOD: &str = ":rawPredict";
const VERSION: &str = "vertex-2023-10-16";

impl Vendor for Claude {
    type Style = Self;

    fn read(named: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        if !vendor::has_bearer(headers) {
            return Err(Problem::NoKey);
        }
        let model = named.and_then(|named| named.strip_suffix(METHOD));
        let model = model
            .ok_or_else(|| Problem::invalid("The simulator knows rawPredict alone.", "model"))?;
        let mut body = vendor::json(body)?;
        if body.get("model").is_some() {
            return Err(Problem::invalid("model: Extra inputs are not permitted", "model"));
        }
        if body.get("anthropic_version").and_then(Value::as_str) != Some(VERSION) {
            return Err(Problem::invalid("anthropic_version: Field required", "anthropic_version"));
        }
        if let Some(fields) = body.as_object_mut() {
            fields.remove("anthropic_version");
            fields.insert("model".to_owned(), model.into());
        }
        let mut headers = headers.clone();
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        Anthropic::read(None, &headers, body.to_string().as_bytes())
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        Anthropic::answer(call, answer, id)
    }
}

impl Style for Claude {
    fn problem(problem: &Problem, model: &str, id: u64) -> (StatusCode, Value) {
        Anthropic::problem(problem, model, id)
    }

    /// None of Anthropic's.
    fn headers(_headers: &mut HeaderMap, _model: &str, _id: u64, _took: Duration) {}

    /// None are stated.
    fn limits(_headers: &mut HeaderMap, _statuses: &[LimitStatus]) {}
}
