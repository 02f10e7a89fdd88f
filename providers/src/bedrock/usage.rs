//! Token counts: cached tokens are **beside** `inputTokens` (Claude, Nova).

use aws_sdk_bedrockruntime::types::TokenUsage;
use tidegate_types::Usage;

pub(super) fn read(usage: &TokenUsage) -> Usage {
    let tokens =
        |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    Usage {
        uncached_input: tokens(Some(usage.input_tokens())),
        cache_read: tokens(usage.cache_read_input_tokens()),
        cache_write: tokens(usage.cache_write_input_tokens()),
        output: tokens(Some(usage.output_tokens())),
    }
}
