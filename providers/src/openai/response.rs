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
    let choice = body.pointer("/choices/0");
    let Some((choice, message)) = choice.and_then(|choice| {
        Some((choice, choice.get("message").filter(|message| message.is_object())?))
    }) else {
        return Err(
            context.unreadable(reply, "it is no Chat Completions response (is base-url right?)")
        );
    };
    let usage = usage::read(body);
    // The words of a refusal are the model's, so they stay out of the message.
    let refused = |context: Context<'_>, text| {
        Err(context.no_answer(reply, Kind::ContentRefused, text, Charged::from(usage)))
    };
    if is_refusal(message) {
        return refused(context, "the model refused");
    }
    let stop_reason = match choice.get("finish_reason").and_then(Value::as_str) {
        Some("stop") => StopReason::EndTurn,
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => {
            return refused(context, "the provider's content filter withheld the answer");
        }
        other => StopReason::other(other),
    };
    Ok(Completion {
        answer: text(message),
        stop_reason,
        usage,
        model: body.get("model").and_then(Value::as_str).unwrap_or(request.model).to_owned(),
        observed: context.observed,
    })
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

/// A text, or parts of which some are text. Absent is empty: a reasoning model may spend its whole
/// bound on thinking.
fn text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        _ => parts(message).filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
    }
}
