//! What the activities return that any workflow calls by name. Their inputs are in
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
    /// The same as JSON, where a schema was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The vendor's reply as it came, where a body was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// Where all of this lies, in place of what is too large to be returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_uri: Option<String>,
    /// Whether the answer is all of it: `complete`, `cut` or `unknown`.
    pub finish: String,
    /// The model that answered.
    pub model: ModelId,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Tokens and price are estimated: the provider did not say what it used, or said what cannot be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_unknown: bool,
    /// US dollars; absent where no price is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Provider calls that it took, the last one included.
    pub provider_calls: u64,
}

/// What `tidegate.embed` returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedOutcome {
    /// A vector for each input, in their order; all of the same length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<Vec<Vec<f32>>>,
    /// Where all of this lies, in place of vectors that are too large to be returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_uri: Option<String>,
    /// The model that gave them.
    pub model: ModelId,
    /// Input tokens.
    pub input_tokens: u64,
    /// Tokens and price are estimated: the provider did not say what it used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_unknown: bool,
    /// US dollars; absent where no price is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Provider calls that they took, the last one included.
    pub provider_calls: u64,
}

/// A call that a workflow of its own makes: `ProcessCall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedCall {
    /// `tidegate.call` or `tidegate.embed`.
    pub activity: String,
    /// The class of traffic.
    pub lane: Lane,
    /// The activity's input.
    pub input: Value,
}
