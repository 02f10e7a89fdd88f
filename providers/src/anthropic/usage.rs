//! Token counts: cached tokens stand **beside** `input_tokens`, which is only the uncached rest.

use serde_json::Value;
use tidegate_types::Usage;

use crate::refusal::count;

/// `None` when input or output is missing: unknown is not nothing.
pub(super) fn read(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    let by_lifetime = || {
        let written = |name| count(usage, &["cache_creation", name]).unwrap_or(0);
        written("ephemeral_5m_input_tokens").saturating_add(written("ephemeral_1h_input_tokens"))
    };
    Some(Usage {
        uncached_input: count(usage, &["input_tokens"])?,
        cache_read: count(usage, &["cache_read_input_tokens"]).unwrap_or(0),
        cache_write: count(usage, &["cache_creation_input_tokens"]).unwrap_or_else(by_lifetime),
        output: count(usage, &["output_tokens"])?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_beside_the_input() {
        let whole = json!({"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":5,
            "cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":0},"output_tokens_details":{"thinking_tokens":2}}});
        let usage = read(&whole).unwrap();
        assert_eq!(usage, Usage { uncached_input: 10, cache_read: 30, cache_write: 20, output: 5 });
        assert_eq!(usage.input(), 60);
    }

    #[test]
    fn optional_counts_may_be_missing_and_needed_ones_make_it_unknown() {
        let nulls = json!({"usage":{"input_tokens":10,"cache_creation_input_tokens":null,"output_tokens":5,
            "cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2}}});
        assert_eq!(
            read(&nulls),
            Some(Usage { uncached_input: 10, cache_read: 0, cache_write: 3, output: 5 })
        );
        for unknown in [
            json!({}),
            json!({"usage":null}),
            json!({"usage":{"input_tokens":1}}),
            json!({"usage":{"input_tokens":-1,"output_tokens":1}}),
        ] {
            assert_eq!(read(&unknown), None, "{unknown}");
        }
    }
}
