//! Reads the body of a success, which may hold no answer, and its token counts.

use serde_json::Value;
use tidegate_types::Usage;

use crate::{
    call::Completion,
    endings,
    error::{Charged, Error, Kind},
    exchange::Reply,
    finish,
    json::{count, text},
    refusal::Context,
};

pub(super) fn read(body: &Value, reply: &Reply, context: Context<'_>) -> Result<Completion, Error> {
    let usage = usage(body);
    if let Some(reason) = text(body, "/promptFeedback/blockReason") {
        let what = format!("the prompt was blocked ({reason})");
        return Err(context.no_answer(reply, Kind::ContentRefused, &what, Charged::from(usage)));
    }
    let Some(candidate) = body.pointer("/candidates/0").filter(|candidate| candidate.is_object())
    else {
        return Err(
            context.unreadable(reply, "it is no generateContent response (is base-url right?)")
        );
    };
    let word = candidate.get("finishReason").and_then(Value::as_str);
    let (stop_reason, context) =
        finish::read(endings::GEMINI, word, reply, context, Charged::from(usage))?;
    Ok(Completion { answer: answer(candidate), stop_reason, usage, observed: context.observed })
}

/// The text parts without the model's thoughts. An answer without any is empty: all tokens may have
/// gone into thinking.
fn answer(candidate: &Value) -> String {
    let parts = candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten();
    let spoken = parts.filter(|part| part.get("thought").and_then(Value::as_bool) != Some(true));
    spoken.filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
}

/// Token counts: cached tokens are **inside** `promptTokenCount`, thoughts **beside**
/// `candidatesTokenCount`.
///
/// `None` if there is no count at all; a single absent field is zero, because protobuf omits zeros.
pub(crate) fn usage(body: &Value) -> Option<Usage> {
    let usage = body
        .get("usageMetadata")
        .filter(|usage| usage.as_object().is_some_and(|fields| !fields.is_empty()))?;
    let tokens = |field| count(usage, &[field]).unwrap_or(0);
    let prompt = tokens("promptTokenCount");
    let cache_read = tokens("cachedContentTokenCount").min(prompt);
    let input = prompt.saturating_add(tokens("toolUsePromptTokenCount"));
    let stated = tokens("candidatesTokenCount").saturating_add(tokens("thoughtsTokenCount"));
    Some(Usage {
        uncached_input: input - cache_read,
        cache_read,
        cache_write: 0,
        // Some versions count thoughts only in the total.
        output: stated.max(tokens("totalTokenCount").saturating_sub(input)),
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
            usage(&whole),
            Some(Usage { uncached_input: 43, cache_read: 60, cache_write: 0, output: 12 })
        );
        let hidden = json!({"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"totalTokenCount":150}});
        assert_eq!(usage(&hidden).unwrap().output, 50, "thoughts in the total alone");
        let blocked = json!({"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100}});
        assert_eq!(usage(&blocked), Some(Usage { uncached_input: 100, ..Usage::default() }));
        let odd = json!({"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":9,"thoughtsTokenCount":-1}});
        assert_eq!(usage(&odd), Some(Usage { cache_read: 1, ..Usage::default() }));
        for unknown in [
            json!({}),
            json!({"usageMetadata":null}),
            json!({"usageMetadata":{}}),
            json!({"usageMetadata":7}),
        ] {
            assert_eq!(usage(&unknown), None, "{unknown}");
        }
    }
}
