//! Requests in a vendor's own form, as clients of the HTTP door send them in batches.

use serde::{Deserialize, Serialize};

/// A batch whose documents are requests: each line of its source has `custom_id`, `method`, `url` and
/// `body`, and the body is sent as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// What each of them asks, by its path at the vendor's own host, such as `/v1/chat/completions`.
    pub endpoint: String,
    /// The models and routes that they name, as far as these were seen beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The models and routes that they may name; all, where there is none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_ask: Vec<String>,
    /// When no line is asked any more, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Lines {
    /// Requests for vectors, whose answers have no output tokens.
    pub const EMBEDDINGS: &str = "/v1/embeddings";

    /// Whether the form is Anthropic's, whose results are all in one file.
    pub fn is_anthropics(&self) -> bool {
        self.endpoint.starts_with("/v1/messages")
    }
}
