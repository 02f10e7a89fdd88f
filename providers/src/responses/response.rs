//! The body of a success, which is not always an answer.

use serde_json::Value;

use super::usage;
use crate::{
    error::{Charged, Error, Kind},
    exchange::Reply,
    provider::{Completion, Request, StopReason},
    refusal::Context,
};

pub(super) fn read(
    request: &Request<'_>,
    body: &Value,
    reply: &Reply,
    context: Context<'_>,
) -> Result<Completion, Error> {
    let Some(output) = body.get("output").and_then(Value::as_array) else {
        return Err(context.unreadable(reply, "it is no Responses response (is base-url right?)"));
    };
    let usage = usage::read(body);
    // The words of a refusal are the model's, so they stay out of the message.
    let refused = |context: Context<'_>, text| {
        Err(context.no_answer(reply, Kind::ContentRefused, text, Charged::from(usage)))
    };
    if parts(output).any(|part| part.get("type").and_then(Value::as_str) == Some("refusal")) {
        return refused(context, "the model refused");
    }
    let text = |path: &str| body.pointer(path).and_then(Value::as_str);
    let stop_reason = match (text("/status"), text("/incomplete_details/reason")) {
        (Some("completed"), _) => StopReason::EndTurn,
        (_, Some("max_output_tokens")) => StopReason::MaxTokens,
        (_, Some("content_filter")) => {
            return refused(context, "the provider's content filter withheld the answer");
        }
        // Cancelled, or still at work: neither can come of what is asked here.
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
        model: text("/model").unwrap_or(request.model).to_owned(),
        observed: context.observed,
    })
}

/// The parts of every message; other items are the model's reasoning and tools.
fn parts(output: &[Value]) -> impl Iterator<Item = &Value> {
    let messages =
        output.iter().filter(|item| item.get("type").and_then(Value::as_str) == Some("message"));
    messages.filter_map(|message| message.get("content").and_then(Value::as_array)).flatten()
}
