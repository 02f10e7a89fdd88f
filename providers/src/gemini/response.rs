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
    let usage = usage::read(body);
    let text = |path: &str| body.pointer(path).and_then(Value::as_str);
    if let Some(reason) = text("/promptFeedback/blockReason") {
        let what = format!("the prompt was blocked ({reason})");
        return Err(context.no_answer(reply, Kind::ContentRefused, &what, Charged::from(usage)));
    }
    let Some(candidate) = body.pointer("/candidates/0").filter(|candidate| candidate.is_object())
    else {
        return Err(
            context.unreadable(reply, "it is no generateContent response (is base-url right?)")
        );
    };
    let stop_reason = match candidate.get("finishReason").and_then(Value::as_str) {
        Some("STOP") => StopReason::EndTurn,
        Some("MAX_TOKENS") => StopReason::MaxTokens,
        // `IMAGE_SAFETY` and its like begin so too.
        Some(reason) if is_refusal(reason) => {
            let what = format!("the provider withheld the answer ({reason})");
            return Err(context.no_answer(
                reply,
                Kind::ContentRefused,
                &what,
                Charged::from(usage),
            ));
        }
        // The model lost its thread; another attempt is another throw.
        Some(reason @ ("MALFORMED_RESPONSE" | "MALFORMED_FUNCTION_CALL")) => {
            return Err(context.no_answer(
                reply,
                Kind::Transient,
                &format!("the model broke off ({reason})"),
                Charged::from(usage),
            ));
        }
        other => StopReason::other(other),
    };
    Ok(Completion {
        answer: answer(candidate),
        stop_reason,
        usage,
        model: text("/modelVersion").unwrap_or(request.model).to_owned(),
        observed: context.observed,
    })
}

fn is_refusal(reason: &str) -> bool {
    const REFUSALS: [&str; 8] = [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "ESCALATION",
    ];
    REFUSALS.contains(&reason) || (reason.starts_with("IMAGE_") && reason != "IMAGE_OTHER")
}

/// The parts that are text, without the model's thoughts. None is an empty answer: all tokens may
/// have gone into thinking.
fn answer(candidate: &Value) -> String {
    let parts = candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten();
    let spoken = parts.filter(|part| part.get("thought").and_then(Value::as_bool) != Some(true));
    spoken.filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
}
