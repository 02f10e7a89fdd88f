//! The interface that every vendor implements.

use std::{fmt, time::Duration};

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use crate::{answer::Answer, call::Call, limiter::LimitStatus, problem::Problem};

/// The calls of one of a vendor's endpoints.
pub(crate) trait Vendor: 'static {
    type Style: Style;

    /// Reads a call. `named` is what the path says of the model, where it says anything.
    fn read(named: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem>;

    /// The body of a success. `id` differs from call to call.
    fn answer(call: &Call, answer: &Answer, id: u64) -> Value;
}

/// The errors and headers of all of a vendor's endpoints.
pub(crate) trait Style: 'static {
    /// Whether a header says when to come back.
    const TELLS_WAIT: bool = true;

    /// Status and body of an error.
    fn problem(problem: &Problem, model: &str, id: u64) -> (StatusCode, Value);

    /// Tells in an error's body when to come back, where no header does.
    fn advise(_body: &mut Value, _wait: Duration) {}

    /// The headers of an error alone.
    fn problem_headers(_headers: &mut HeaderMap, _problem: &Problem) {}

    /// The headers of every response.
    fn headers(headers: &mut HeaderMap, model: &str, id: u64, took: Duration);

    /// The headers that state the limits.
    fn limits(headers: &mut HeaderMap, statuses: &[LimitStatus]);
}

/// Sets a header; a value that cannot be one (a model name may be anything) is left out.
pub(crate) fn set(headers: &mut HeaderMap, name: &str, value: impl fmt::Display) {
    if let (Ok(name), Ok(value)) =
        (HeaderName::try_from(name), HeaderValue::try_from(value.to_string()))
    {
        headers.insert(name, value);
    }
}

/// The body as JSON.
pub(crate) fn json(body: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice::<Value>(body).ok().filter(Value::is_object).ok_or_else(|| {
        Problem::Invalid {
            message: "We could not parse the JSON body of your request.".into(),
            param: None,
        }
    })
}

/// A bearer token.
pub(crate) fn has_bearer(headers: &HeaderMap) -> bool {
    let value = headers.get("authorization").and_then(|value| value.to_str().ok());
    value.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|key| !key.trim().is_empty())
}
