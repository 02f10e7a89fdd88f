//! Reads the body of a success, which may hold no answer, and its token counts.

use serde_json::Value;
use tidegate_types::Usage;

use super::super::response::{Fields, normalised};
use crate::{
    call::Completion,
    endings,
    error::{Charged, Error, Kind},
    exchange::Reply,
    finish,
    json::text,
    refusal::Context,
};

/// Output items that ask for a tool's result.
const TOOLS: [&str; 2] = ["function_call", "custom_tool_call"];

pub(super) fn read(body: &Value, reply: &Reply, context: Context<'_>) -> Result<Completion, Error> {
    let Some(output) = body.get("output").and_then(Value::as_array) else {
        return Err(context.unreadable(reply, "it is no Responses response (is base-url right?)"));
    };
    let usage = usage(body);
    // The model wrote the text of a refusal, so it stays out of the message.
    if parts(output).any(|part| part.get("type").and_then(Value::as_str) == Some("refusal")) {
        let (kind, charged) = (Kind::ContentRefused, Charged::from(usage));
        return Err(context.no_answer(reply, kind, "the model refused", charged));
    }
    let mut kinds = output.iter().filter_map(|item| item.get("type").and_then(Value::as_str));
    if kinds.any(|kind| TOOLS.contains(&kind)) {
        let text = "the model asked for a tool, and there is none (function_call)";
        return Err(context.no_answer(reply, Kind::Transient, text, Charged::from(usage)));
    }
    let (status, reason) = (text(body, "/status"), text(body, "/incomplete_details/reason"));
    let word = if status == Some("completed") { status } else { reason.or(status) };
    let (stop_reason, context) =
        finish::read(endings::OPENAI_RESPONSES, word, reply, context, Charged::from(usage))?;
    Ok(Completion {
        answer: parts(output).filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        stop_reason,
        usage,
        observed: context.observed,
    })
}

/// The parts of every message; other items are the model's reasoning and tools, and messages on the
/// way to the answer.
fn parts(output: &[Value]) -> impl Iterator<Item = &Value> {
    let is = |item: &Value, field, word| item.get(field).and_then(Value::as_str) == Some(word);
    let messages = output
        .iter()
        .filter(move |item| is(item, "type", "message") && !is(item, "phase", "commentary"));
    messages.filter_map(|message| message.get("content").and_then(Value::as_array)).flatten()
}

/// Token counts: cached tokens are **inside** `input_tokens`.
///
/// `None` if input or output is missing: unknown is not zero.
pub(crate) fn usage(body: &Value) -> Option<Usage> {
    normalised(
        body,
        &Fields { input: "input_tokens", details: "input_tokens_details", output: "output_tokens" },
    )
}
