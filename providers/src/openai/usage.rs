//! Token counts: cached tokens are **inside** `prompt_tokens`.

use serde_json::Value;
use tidegate_types::Usage;

use crate::refusal::count;

/// What the counts are called; the vendor's two APIs differ in that alone.
pub(crate) struct Fields {
    pub(crate) input: &'static str,
    pub(crate) details: &'static str,
    pub(crate) output: &'static str,
}

/// `None` when input or output is missing: unknown is not nothing.
pub(super) fn read(body: &Value) -> Option<Usage> {
    normalised(
        body,
        &Fields {
            input: "prompt_tokens",
            details: "prompt_tokens_details",
            output: "completion_tokens",
        },
    )
}

/// That tokens written to the cache are inside the input's count as well is inferred, not
/// documented. Parts that exceed their whole are cut to it.
pub(crate) fn normalised(body: &Value, fields: &Fields) -> Option<Usage> {
    let usage = body.get("usage")?;
    let input = count(usage, &[fields.input])?;
    let cache_read = count(usage, &[fields.details, "cached_tokens"]).unwrap_or(0).min(input);
    let cache_write =
        count(usage, &[fields.details, "cache_write_tokens"]).unwrap_or(0).min(input - cache_read);
    Some(Usage {
        uncached_input: input - cache_read - cache_write,
        cache_read,
        cache_write,
        output: count(usage, &[fields.output])?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_inside_the_input() {
        let whole = json!({"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,
            "prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},"completion_tokens_details":{"reasoning_tokens":5}}});
        assert_eq!(
            read(&whole),
            Some(Usage { uncached_input: 10, cache_read: 60, cache_write: 30, output: 7 })
        );
        let bare = json!({"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":null}});
        assert_eq!(
            read(&bare),
            Some(Usage { uncached_input: 100, cache_read: 0, cache_write: 0, output: 7 })
        );
        for unknown in [
            json!({}),
            json!({"usage":null}),
            json!({"usage":{"prompt_tokens":1}}),
            json!({"usage":{"prompt_tokens":1.5,"completion_tokens":1}}),
        ] {
            assert_eq!(read(&unknown), None, "{unknown}");
        }
    }

    proptest! {
        #[test]
        fn no_count_goes_below_zero_or_grows(prompt: u64, cached: u64, written: u64, output: u64) {
            let body = json!({"usage":{"prompt_tokens":prompt,"completion_tokens":output,
                "prompt_tokens_details":{"cached_tokens":cached,"cache_write_tokens":written}}});
            prop_assert_eq!(read(&body).unwrap().input(), prompt);
        }
    }
}
