//! Reads the body of a success, which may hold no answer, and its token counts.

use serde_json::Value;
use tidegate_types::Usage;

use crate::{
    call::Completion,
    endings,
    error::{Charged, Error, Kind},
    exchange::Reply,
    finish,
    json::count,
    refusal::Context,
};

pub(super) fn read(body: &Value, reply: &Reply, context: Context<'_>) -> Result<Completion, Error> {
    let choice = body.pointer("/choices/0");
    let Some((choice, message)) = choice.and_then(|choice| {
        Some((choice, choice.get("message").filter(|message| message.is_object())?))
    }) else {
        return Err(
            context.unreadable(reply, "it is no Chat Completions response (is base-url right?)")
        );
    };
    let usage = usage(body);
    // The model wrote the text of a refusal, so it stays out of the message.
    if is_refusal(message) {
        let (kind, charged) = (Kind::ContentRefused, Charged::from(usage));
        return Err(context.no_answer(reply, kind, "the model refused", charged));
    }
    let word = choice.get("finish_reason").and_then(Value::as_str);
    let (stop_reason, context) =
        finish::read(endings::OPENAI, word, reply, context, Charged::from(usage))?;
    Ok(Completion { answer: text(message), stop_reason, usage, observed: context.observed })
}

fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    message.get("content").and_then(Value::as_array).into_iter().flatten()
}

fn is_refusal(message: &Value) -> bool {
    let says = |value: &Value| {
        value.get("refusal").and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    };
    says(message) || parts(message).any(says)
}

/// A text, or parts of which some are text; others are the model's reasoning. An absent text is empty: a reasoning model may spend
/// its whole bound on thinking.
fn text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        _ => parts(message).filter_map(text_of_part).collect(),
    }
}

fn text_of_part(part: &Value) -> Option<&str> {
    let kind = part.get("type").and_then(Value::as_str);
    let is_text = kind.is_none_or(|kind| matches!(kind, "text" | "output_text"));
    part.get("text").and_then(Value::as_str).filter(|_| is_text)
}

/// The names of the token counts, in which the vendor's two APIs differ.
pub(super) struct Fields {
    pub(super) input: &'static str,
    pub(super) details: &'static str,
    pub(super) output: &'static str,
}

/// `None` if input or output is missing: unknown is not zero.
pub(crate) fn usage(body: &Value) -> Option<Usage> {
    normalised(
        body,
        &Fields {
            input: "prompt_tokens",
            details: "prompt_tokens_details",
            output: "completion_tokens",
        },
    )
}

/// Adds what the total shows beyond input and output: xAI, and gateways to Gemini, count reasoning
/// outside the answer, all others inside.
fn with_reasoning(usage: &Value, input: u64, output: u64) -> u64 {
    let total = count(usage, &["total_tokens"]).unwrap_or_default();
    output.max(total.saturating_sub(input))
}

/// Token counts: cached tokens are **inside** the input's. That the input's count includes tokens
/// written to the cache is inferred, not documented. Parts that exceed their whole are cut to it.
pub(super) fn normalised(body: &Value, fields: &Fields) -> Option<Usage> {
    let usage = body.get("usage")?;
    let input = count(usage, &[fields.input])?;
    // Beside the details: Moonshot, `DeepSeek`, and gateways to Anthropic.
    let part = |name, others: &[&str]| {
        let beside = || others.iter().find_map(|name| count(usage, &[name]));
        count(usage, &[fields.details, name]).or_else(beside).unwrap_or(0)
    };
    let beside = ["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"];
    let cache_read = part("cached_tokens", &beside).min(input);
    let cache_write = part("cache_write_tokens", &["cache_creation_input_tokens"]);
    let cache_write = cache_write.min(input - cache_read);
    Some(Usage {
        uncached_input: input - cache_read - cache_write,
        cache_read,
        cache_write,
        output: with_reasoning(usage, input, count(usage, &[fields.output])?),
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
            usage(&whole),
            Some(Usage { uncached_input: 10, cache_read: 60, cache_write: 30, output: 7 })
        );
        let bare = json!({"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":null}});
        assert_eq!(
            usage(&bare),
            Some(Usage { uncached_input: 100, cache_read: 0, cache_write: 0, output: 7 })
        );
        let beside = json!({"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":150,
            "completion_tokens_details":{"reasoning_tokens":43}}});
        assert_eq!(usage(&beside).unwrap().output, 50, "xAI's way");
        let hidden =
            json!({"usage":{"prompt_tokens":20,"completion_tokens":98,"total_tokens":523}});
        assert_eq!(usage(&hidden).unwrap().output, 503);
        let written = json!({"usage":{"prompt_tokens":100,"completion_tokens":7,"cache_creation_input_tokens":30}});
        assert_eq!(usage(&written).unwrap().cache_write, 30, "gateways to Anthropic");
        for cached in ["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"] {
            let body = json!({"usage":{"prompt_tokens":100,"completion_tokens":7, cached: 64}});
            assert_eq!(usage(&body).unwrap().cache_read, 64, "{cached}");
        }
        for unknown in [
            json!({}),
            json!({"usage":null}),
            json!({"usage":{"prompt_tokens":1}}),
            json!({"usage":{"prompt_tokens":1.5,"completion_tokens":1}}),
        ] {
            assert_eq!(usage(&unknown), None, "{unknown}");
        }
    }

    proptest! {
        #[test]
        fn no_count_goes_below_zero_or_grows(prompt: u64, cached: u64, written: u64, output: u64) {
            let body = json!({"usage":{"prompt_tokens":prompt,"completion_tokens":output,
                "prompt_tokens_details":{"cached_tokens":cached,"cache_write_tokens":written}}});
            prop_assert_eq!(usage(&body).unwrap().input(), prompt);
        }
    }
}
