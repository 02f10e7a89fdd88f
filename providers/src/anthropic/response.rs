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
    let Some(blocks) = body.get("content").and_then(Value::as_array) else {
        return Err(context.unreadable(reply, "it is no Messages response (is base-url right?)"));
    };
    let usage = usage::read(body);
    let stop_reason = match body.get("stop_reason").and_then(Value::as_str) {
        Some("end_turn") => StopReason::EndTurn,
        Some("max_tokens") => StopReason::MaxTokens,
        Some("stop_sequence") => StopReason::StopSequence,
        Some("refusal") => {
            // A refusal before any output has no content and is not billed.
            let charged = if blocks.is_empty() { Charged::No } else { Charged::from(usage) };
            let category =
                body.pointer("/stop_details/category").and_then(Value::as_str).unwrap_or("unnamed");
            return Err(context.no_answer(
                reply,
                Kind::ContentRefused,
                &format!("the model refused (category {category})"),
                charged,
            ));
        }
        Some("model_context_window_exceeded") => {
            let text = "the document and its answer do not fit into the model's context";
            return Err(context.no_answer(reply, Kind::TooLarge, text, Charged::from(usage)));
        }
        other => StopReason::other(other),
    };
    let answer =
        blocks.iter().filter(|block| block.get("type").and_then(Value::as_str) == Some("text"));
    Ok(Completion {
        answer: answer.filter_map(|block| block.get("text").and_then(Value::as_str)).collect(),
        stop_reason,
        usage,
        model: body.get("model").and_then(Value::as_str).unwrap_or(request.model).to_owned(),
        observed: context.observed,
    })
}
