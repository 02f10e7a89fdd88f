//! Results and failures of requests in a vendor's own form, as lines in that form.
//!
//! OpenAI's answers and errors are in two files; Anthropic's results are all in one.

use serde_json::{Value, json};
use tidegate_calls::dialect::ClientError;
use tidegate_types::{DocumentId, FailureType};
use tidegate_workflows::contract::{FailureFacts, Lines};

use crate::{
    fingerprint::Fingerprint,
    output::{result::DocumentResult, seal::FailureLine},
};

/// The vendor whose form the lines have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    OpenAi,
    Anthropic,
}

/// A line for a request without an answer, with its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputLine {
    /// The file of answers.
    Answer(Vec<u8>),
    Error(Vec<u8>),
}

impl Form {
    pub(super) fn from_lines(lines: &Lines) -> Self {
        if lines.is_anthropics() { Self::Anthropic } else { Self::OpenAi }
    }

    /// The line of a reply.
    pub(super) fn answer(self, result: &DocumentResult) -> Vec<u8> {
        let custom_id = custom_id(&result.uri);
        // The answer was JSON when it was written.
        let body: Value = serde_json::from_str(&result.answer).unwrap_or_default();
        line(match self {
            Self::OpenAi => json!({
                "id": request_id("batch_req_", &result.id, &result.uri),
                "custom_id": custom_id,
                "response": {
                    "status_code": 200,
                    "request_id": request_id("req_", &result.id, &result.uri),
                    "body": body,
                },
                "error": null,
            }),
            Self::Anthropic => json!({
                "custom_id": custom_id,
                "result": {"type": "succeeded", "message": body},
            }),
        })
    }

    /// The line for a line of `failures.jsonl`; a line that cannot be parsed is copied.
    pub(super) fn failure(self, failure: &[u8]) -> OutputLine {
        let Ok(failure) = serde_json::from_slice::<FailureLine>(failure) else {
            return OutputLine::Error(failure.to_vec());
        };
        let FailureLine { id, uri, facts: FailureFacts { error_type, message, .. } } = &failure;
        let is_expired = FailureType::parse(error_type) == Some(FailureType::Expired);
        let error = ClientError::from_type(error_type);
        match self {
            Self::OpenAi => {
                let body = json!({"error": {
                    "message": message, "type": error.of_openai(), "param": null, "code": error.code,
                }});
                let response = json!({
                    "status_code": error.status,
                    "request_id": request_id("req_", id, uri),
                    "body": body,
                });
                let (response, error) = match is_expired {
                    true => (Value::Null, json!({"code": "batch_expired", "message": message})),
                    false => (response, Value::Null),
                };
                error_line(id, uri, &response, &error)
            }
            Self::Anthropic => {
                let error = json!({"type": "error", "error": {
                    "type": error.of_anthropic(), "message": message,
                }});
                let result = match is_expired {
                    true => json!({"type": "expired"}),
                    false => json!({"type": "errored", "error": error}),
                };
                OutputLine::Answer(line(json!({"custom_id": custom_id(uri), "result": result})))
            }
        }
    }

    /// The line of a request that was not made because its batch was cancelled.
    pub(super) fn cancelled(self, id: &DocumentId, uri: &str) -> OutputLine {
        match self {
            Self::OpenAi => {
                let message = "This request was not made before the batch was cancelled.";
                let error = json!({"code": "batch_cancelled", "message": message});
                error_line(id, uri, &Value::Null, &error)
            }
            Self::Anthropic => {
                let result = json!({"type": "canceled"});
                OutputLine::Answer(line(json!({"custom_id": custom_id(uri), "result": result})))
            }
        }
    }
}

/// A line of OpenAI's error file.
fn error_line(id: &DocumentId, uri: &str, response: &Value, error: &Value) -> OutputLine {
    OutputLine::Error(line(json!({
        "id": request_id("batch_req_", id, uri),
        "custom_id": custom_id(uri),
        "response": response,
        "error": error,
    })))
}

/// The client's id of a request, which follows the URI of its file.
fn custom_id(uri: &str) -> Option<&str> {
    uri.split_once('#').map(|(_, custom_id)| custom_id)
}

/// An id for the line, equal in each writing. It does not depend on `custom_id` alone, because
/// lines may share one by mistake, or have none.
fn request_id(prefix: &str, id: &DocumentId, uri: &str) -> String {
    let name = Fingerprint::of_bytes(format!("{id} {uri}").as_bytes()).to_string();
    format!("{prefix}{}", &name[..32])
}

fn line(value: Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_share_a_custom_id_or_have_none_have_names_of_their_own() {
        let named = |id: &str, uri: &str| {
            let id = DocumentId::from_relative_path(id);
            let OutputLine::Error(line) = Form::OpenAi.cancelled(&id, uri) else { panic!("{id}") };
            let line: Value = serde_json::from_slice(&line).unwrap();
            (line["id"].as_str().unwrap().to_owned(), line["custom_id"].clone())
        };
        let (first, custom_id) = named("0000001", "file:///in.jsonl#a");
        assert_eq!(
            (&custom_id, named("0000001", "file:///in.jsonl#a").0),
            (&json!("a"), first.clone())
        );
        let (second, custom_id) = named("0000002", "file:///in.jsonl#a");
        assert!(custom_id == "a" && second != first);
        assert_ne!(named("0000003", "file:///in.jsonl").0, named("0000004", "file:///in.jsonl").0);
    }
}
