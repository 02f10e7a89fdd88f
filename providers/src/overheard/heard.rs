//! What an answer says beside its words, in whichever vendor's form.

use serde_json::Value;
use tidegate_types::Usage;

use crate::{anthropic, gemini, json::count, observed::Observed, openai, vendor::Vendor};

/// What an answer says beside its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// What the call used; `None` where the answer does not say.
    pub usage: Option<Usage>,
    /// Limits and remaining quota.
    pub observed: Observed,
}

impl Vendor {
    /// By the form of the vendor's own API, else by that of any other: gateways mix them.
    pub(super) fn usage(self, body: &Value) -> Option<Usage> {
        let of_openai = |body: &Value| {
            openai::usage(body).or_else(|| {
                // Anthropic's has the same names for other things.
                let cached = body.pointer("/usage/input_tokens_details").is_some();
                cached.then(|| openai::usage_of_responses(body)).flatten()
            })
        };
        of_openai(body)
            .or_else(|| anthropic::usage(body))
            .or_else(|| gemini::usage(body))
            .or_else(|| converse(body))
            .or_else(|| vectors(body))
    }
}

/// OpenAI's of vectors, which names no output: all of its tokens are the texts'.
fn vectors(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    let input = count(usage, &["prompt_tokens"])?;
    let is_all = count(usage, &["total_tokens"]) == Some(input);
    is_all.then(|| Usage { uncached_input: input, ..Usage::default() })
}

/// AWS Bedrock's, as on the wire: cached tokens stand beside `inputTokens`
/// (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html).
fn converse(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    Some(Usage {
        uncached_input: count(usage, &["inputTokens"])?,
        cache_read: count(usage, &["cacheReadInputTokens"]).unwrap_or(0),
        cache_write: count(usage, &["cacheWriteInputTokens"]).unwrap_or(0),
        output: count(usage, &["outputTokens"])?,
    })
}
