//! Usage and limits of an answer, in any vendor's form.

use serde_json::Value;
use tidegate_types::Usage;

use crate::{anthropic, gemini, json::count, observed::Observed, openai, vendor::Vendor};

/// Usage and limits of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyFacts {
    /// Usage of the call; `None` if the answer does not report it.
    pub usage: Option<Usage>,
    /// Limits and remaining quota.
    pub observed: Observed,
}

impl Vendor {
    /// Reads usage in the form of the vendor's own API, or else in any other's: gateways mix them.
    pub(super) fn usage(self, body: &Value) -> Option<Usage> {
        let of_openai = |body: &Value| {
            openai::usage(body).or_else(|| {
                // Anthropic's usage has the same names with other meanings.
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

/// OpenAI's usage for embeddings, which has no output: all of its tokens are input.
fn vectors(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    let input = count(usage, &["prompt_tokens"])?;
    let is_all = count(usage, &["total_tokens"]) == Some(input);
    is_all.then(|| Usage { uncached_input: input, ..Usage::default() })
}

/// AWS Bedrock's usage in raw form: cached tokens are beside `inputTokens`
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
