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
    schema::TOOL_NAME,
};

pub(super) fn read(body: &Value, reply: &Reply, context: Context<'_>) -> Result<Completion, Error> {
    let Some(blocks) = body.get("content").and_then(Value::as_array) else {
        return Err(context.unreadable(reply, "it is no Messages response (is base-url right?)"));
    };
    let usage = usage(body);
    let word = body.get("stop_reason").and_then(Value::as_str);
    if word == Some("refusal") {
        // A refusal before any output has no content and is not billed.
        let charged = if blocks.is_empty() { Charged::No } else { Charged::from(usage) };
        let category =
            body.pointer("/stop_details/category").and_then(Value::as_str).unwrap_or("unnamed");
        return Err(context.no_answer(
            reply,
            Kind::ContentRefused,
            &format!("the model refused (refusal, category {category})"),
            charged,
        ));
    }
    let blocks_of = |kind: &'static str| {
        let is = move |block: &&Value| block.get("type").and_then(Value::as_str) == Some(kind);
        blocks.iter().filter(is)
    };
    // The only tool is the form of an answer: its call ends the answer.
    let form = blocks_of("tool_use")
        .find(|call| call.get("name").and_then(Value::as_str) == Some(TOOL_NAME));
    let word = if form.is_some() && word == Some("tool_use") { Some("end_turn") } else { word };
    let (stop_reason, context) =
        finish::read(endings::ANTHROPIC, word, reply, context, Charged::from(usage))?;
    let answer = match form.and_then(|call| call.get("input")) {
        Some(input) => input.to_string(),
        None => blocks_of("text")
            .filter_map(|block| block.get("text").and_then(Value::as_str))
            .collect(),
    };
    Ok(Completion { answer, stop_reason, usage, observed: context.observed })
}

/// Token counts: cached tokens are **beside** `input_tokens`, which counts the uncached rest.
///
/// `None` if input or output is missing: unknown is not zero.
pub(crate) fn usage(body: &Value) -> Option<Usage> {
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
        let used = usage(&whole).unwrap();
        assert_eq!(used, Usage { uncached_input: 10, cache_read: 30, cache_write: 20, output: 5 });
        assert_eq!(used.input(), 60);
    }

    #[test]
    fn optional_counts_may_be_missing_and_needed_ones_make_it_unknown() {
        let nulls = json!({"usage":{"input_tokens":10,"cache_creation_input_tokens":null,"output_tokens":5,
            "cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2}}});
        assert_eq!(
            usage(&nulls),
            Some(Usage { uncached_input: 10, cache_read: 0, cache_write: 3, output: 5 })
        );
        for unknown in [
            json!({}),
            json!({"usage":null}),
            json!({"usage":{"input_tokens":1}}),
            json!({"usage":{"input_tokens":-1,"output_tokens":1}}),
        ] {
            assert_eq!(usage(&unknown), None, "{unknown}");
        }
    }
}
