//! Requests in a vendor's own form, as clients of the HTTP door send them in batches.

use serde::{Deserialize, Serialize};

/// A batch whose documents are requests: each line of its source has `custom_id`, `method`, `url`
/// and `body`, and the body is sent unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The operation: its path at the vendor's own host, such as `/v1/chat/completions`.
    pub endpoint: String,
    /// Models and routes that the requests name, as far as they were read beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Models and routes that the requests may name; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_ask: Vec<String>,
    /// The time after which no more lines are asked, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Lines {
    /// The endpoint for vectors, whose answers have no output tokens.
    pub const EMBEDDINGS: &str = "/v1/embeddings";

    /// Whether the form is Anthropic's, which returns all results in one file.
    pub fn is_anthropics(&self) -> bool {
        self.endpoint.starts_with("/v1/messages")
    }
}
