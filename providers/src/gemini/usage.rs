//! Token counts: cached tokens are **inside** `promptTokenCount`, thoughts **beside**
//! `candidatesTokenCount`.

use serde_json::Value;
use tidegate_types::Usage;

use crate::refusal::count;

/// `None` when there is no count at all; a single absent field is zero, as protobuf leaves zeros
/// out.
pub(super) fn read(body: &Value) -> Option<Usage> {
    let usage = body
        .get("usageMetadata")
        .filter(|usage| usage.as_object().is_some_and(|fields| !fields.is_empty()))?;
    let tokens = |field| count(usage, &[field]).unwrap_or(0);
    let prompt = tokens("promptTokenCount");
    let cache_read = tokens("cachedContentTokenCount").min(prompt);
    Some(Usage {
        uncached_input: (prompt - cache_read).saturating_add(tokens("toolUsePromptTokenCount")),
        cache_read,
        cache_write: 0,
        output: tokens("candidatesTokenCount").saturating_add(tokens("thoughtsTokenCount")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn thoughts_are_output_and_cached_tokens_are_input() {
        let whole = json!({"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,
            "thoughtsTokenCount":5,"toolUsePromptTokenCount":3,"totalTokenCount":115}});
        assert_eq!(
            read(&whole),
            Some(Usage { uncached_input: 43, cache_read: 60, cache_write: 0, output: 12 })
        );
        let blocked = json!({"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100}});
        assert_eq!(read(&blocked), Some(Usage { uncached_input: 100, ..Usage::default() }));
        let odd = json!({"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":9,"thoughtsTokenCount":-1}});
        assert_eq!(read(&odd), Some(Usage { cache_read: 1, ..Usage::default() }));
        for unknown in [
            json!({}),
            json!({"usageMetadata":null}),
            json!({"usageMetadata":{}}),
            json!({"usageMetadata":7}),
        ] {
            assert_eq!(read(&unknown), None, "{unknown}");
        }
    }
}
