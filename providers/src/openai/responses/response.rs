//! The body of a success, which is not always an answer, and its token counts.

use serde_json::Value;
use tidegate_types::Usage;

use super::super::response::{Fields, normalised};
use crate::{
    call::{Completion, StopReason},
    error::{Charged, Error, Kind},
    exchange::Reply,
    json::text,
    refusal::Context,
};

pub(super) fn read(body: &Value, reply: &Reply, context: Context<'_>) -> Result<Completion, Error> {
    let Some(output) = body.get("output").and_then(Value::as_array) else {
        return Err(context.unreadable(reply, "it is no Responses response (is base-url right?)"));
    };
    let usage = usage(body);
    // The words of a refusal are the model's, so they stay out of the message.
    let refused = |context: Context<'_>, text| {
        Err(context.no_answer(reply, Kind::ContentRefused, text, Charged::from(usage)))
    };
    if parts(output).any(|part| part.get("type").and_then(Value::as_str) == Some("refusal")) {
        return refused(context, "the model refused");
    }
    let stop_reason = match (text(body, "/status"), text(body, "/incomplete_details/reason")) {
        (Some("completed"), _) => StopReason::EndTurn,
        (_, Some("max_output_tokens")) => StopReason::MaxTokens,
        (_, Some("content_filter")) => {
            return refused(context, "the provider's content filter withheld the answer");
        }
        // Cancelled, or still at work: not what a request without `background` leads to.
        (Some("failed" | "cancelled" | "in_progress" | "queued"), _) => {
            return Err(context.no_answer(
                reply,
                Kind::Transient,
                "the response was not finished",
                Charged::from(usage),
            ));
        }
        (status, reason) => StopReason::other(reason.or(status)),
    };
    Ok(Completion {
        answer: parts(output).filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        stop_reason,
        usage,
        observed: context.observed,
    })
}

/// The parts of every message; other items are the model's reasoning and tools.
fn parts(output: &[Value]) -> impl Iterator<Item = &Value> {
    let messages =
        output.iter().filter(|item| item.get("type").and_then(Value::as_str) == Some("message"));
    messages.filter_map(|message| message.get("content").and_then(Value::as_array)).flatten()
}

/// Token counts: cached tokens are **inside** `input_tokens`.
///
/// `None` when input or output is missing: unknown is not nothing.
fn usage(body: &Value) -> Option<Usage> {
    normalised(
        body,
        &Fields { input: "input_tokens", details: "input_tokens_details", output: "output_tokens" },
    )
}
