//! Raw payloads: JSON that is read and written by hand, because a decoding error would fail the
//! workflow task again and again, and never the workflow.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use temporalio_common::{
    data_converters::RawValue, error::ApplicationFailure,
    protos::temporal::api::common::v1::Payload,
};
use temporalio_workflow::WorkflowTermination;

const CONTINUED: &str = "continued";

/// Parses the state that the run before passed on; `None` if the input is not such a state.
pub(crate) fn continued<T: DeserializeOwned>(input: &RawValue) -> Option<T> {
    let mut value = value(input).ok()?;
    serde_json::from_value(value.get_mut(CONTINUED)?.take()).ok()
}

/// The input of a run that continues this one.
///
/// # Errors
/// Fails the workflow if the state cannot be written as JSON.
pub(crate) fn continue_with<T: Serialize>(state: &T) -> Result<RawValue, WorkflowTermination> {
    encode(&json!({ CONTINUED: state }))
}

/// A value as one JSON payload.
///
/// # Errors
/// Fails the workflow if the value cannot be written as JSON.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<RawValue, WorkflowTermination> {
    let data = serde_json::to_vec(value).map_err(|error| {
        WorkflowTermination::failed_application(ApplicationFailure::non_retryable(error))
    })?;
    let metadata = [("encoding".to_owned(), b"json/plain".to_vec())].into_iter().collect();
    Ok(RawValue::new(vec![Payload { metadata, data, ..Payload::default() }]))
}

/// Reads the output of [`encode`]; `None` for anything else.
pub(crate) fn decode<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_value(value(raw).ok()?).ok()
}

/// The one JSON value of an input.
///
/// # Errors
/// A sentence that names the JSON found instead.
pub(crate) fn value(input: &RawValue) -> Result<Value, String> {
    let [payload] = input.payloads.as_slice() else {
        return Err(format!(
            "the input must be one JSON object, not {}; for example --input '{{\"source\":\"file:///data/in/\",\"output\":\"file:///data/out/\",\"instructions\":\"Summarise.\",\"model\":\"anthropic:claude-sonnet-5\"}}'",
            if input.payloads.is_empty() {
                "nothing".to_owned()
            } else {
                format!("{} values", input.payloads.len())
            }
        ));
    };
    let encoding =
        payload.metadata.get("encoding").map_or("", |name| std::str::from_utf8(name).unwrap_or(""));
    if !encoding.starts_with("json/") {
        return Err(format!(
            "the input must be a JSON object, and came as \"{}\"; if a codec server encoded it, set TEMPORAL_CODEC_ENDPOINT for the workers too",
            encoding.escape_debug()
        ));
    }
    serde_json::from_slice(&payload.data).map_err(|error| format!("the input is not JSON: {error}"))
}
