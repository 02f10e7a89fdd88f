//! Results of the activities that any workflow may call. Their inputs are in
//! [`crate::input::call`].

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_types::{Lane, ModelId};

/// What `tidegate.call` returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// The model's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The answer as JSON, if a schema was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The vendor's reply as it came, if a body was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// URI of the whole outcome; set instead of fields that are too large to return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_uri: Option<String>,
    /// Whether the answer is whole: `complete`, `cut` or `unknown`.
    pub finish: String,
    /// The model that answered.
    pub model: ModelId,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Tokens and price are estimated: the provider reported no usage, or an impossible one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_unknown: bool,
    /// US dollars; absent if no price is known.
    pub cost_usd: Option<f64>,
    /// Provider calls, including the last one.
    pub provider_calls: u64,
}

/// What `tidegate.embed` returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedOutcome {
    /// A vector for each input, in their order; all of the same length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<Vec<Vec<f32>>>,
    /// URI of the whole outcome; set instead of vectors that are too large to return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_uri: Option<String>,
    /// The model that gave them.
    pub model: ModelId,
    /// Input tokens.
    pub input_tokens: u64,
    /// Tokens and price are estimated: the provider reported no usage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_unknown: bool,
    /// US dollars; absent if no price is known.
    pub cost_usd: Option<f64>,
    /// Provider calls, including the last one.
    pub provider_calls: u64,
}

/// A call in a workflow of its own: `ProcessCall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedCall {
    /// `tidegate.call` or `tidegate.embed`.
    pub activity: String,
    /// The class of traffic.
    pub lane: Lane,
    /// The activity's input.
    pub input: Value,
}
