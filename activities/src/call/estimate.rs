//! How many tokens a call will have, before anybody has counted.

use tidegate_documents::tokens::estimate;

/// Role markers and separators of one message.
const TOKENS_PER_MESSAGE: u64 = 8;

/// Estimated input tokens of one call.
#[must_use]
pub fn input_tokens(
    instructions: &str,
    document_tokens: u64,
    schema: Option<&serde_json::Value>,
) -> u64 {
    let schema = schema.map_or(0, |schema| estimate(&schema.to_string()));
    estimate(instructions) + document_tokens + schema + 2 * TOKENS_PER_MESSAGE
}
