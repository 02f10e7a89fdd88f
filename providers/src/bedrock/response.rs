//! What comes back: the SDK's output for a success, with its token counts, and the bytes on the
//! wire for an error.

use aws_sdk_bedrockruntime::{
    config::http::HttpResponse,
    operation::converse::ConverseOutput,
    types::{ContentBlock, StopReason as Stop, TokenUsage},
};
use http::HeaderMap;
use tidegate_types::Usage;

use crate::{
    call::{Completion, StopReason},
    error::{Charged, Error, Kind},
    exchange::{Cut, Reply},
    refusal::Context,
};

pub(super) fn read(output: &ConverseOutput, context: Context<'_>) -> Result<Completion, Error> {
    // The SDK has read a whole success; only the status is left of it.
    let reply = Reply { status: 200, headers: HeaderMap::new(), body: Vec::new(), cut: None };
    let usage = output.usage().map(usage);
    let no_answer = |context: Context<'_>, kind, text| {
        Err(context.no_answer(&reply, kind, text, Charged::from(usage)))
    };
    let Some(message) = output.output().and_then(|output| output.as_message().ok()) else {
        return no_answer(context, Kind::Transient, "the answer holds no message");
    };
    let stop_reason = match output.stop_reason() {
        Stop::EndTurn => StopReason::EndTurn,
        Stop::MaxTokens => StopReason::MaxTokens,
        Stop::StopSequence => StopReason::StopSequence,
        Stop::GuardrailIntervened => {
            return no_answer(context, Kind::ContentRefused, "a guardrail withheld the answer");
        }
        Stop::ContentFiltered => {
            return no_answer(context, Kind::ContentRefused, "the content was filtered");
        }
        Stop::ModelContextWindowExceeded => {
            return no_answer(
                context,
                Kind::TooLarge,
                "the document and its answer do not fit into the model's context",
            );
        }
        // A fault of this one answer: another attempt may do better.
        Stop::MalformedModelOutput => {
            return no_answer(context, Kind::Transient, "the model's output was malformed");
        }
        // Not a value of the vendor's own, but what Claude says elsewhere.
        other if other.as_str() == "refusal" => {
            return no_answer(context, Kind::ContentRefused, "the model refused");
        }
        other => StopReason::other(Some(other.as_str())),
    };
    let answer = message.content().iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    Ok(Completion { answer: answer.collect(), stop_reason, usage, observed: context.observed })
}

/// Token counts: cached tokens are **beside** `inputTokens` (Claude, Nova).
fn usage(usage: &TokenUsage) -> Usage {
    let tokens =
        |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    Usage {
        uncached_input: tokens(Some(usage.input_tokens())),
        cache_read: tokens(usage.cache_read_input_tokens()),
        cache_write: tokens(usage.cache_write_input_tokens()),
        output: tokens(Some(usage.output_tokens())),
    }
}

/// An error, or a success that the SDK cannot read.
pub(super) fn failed(raw: &HttpResponse, context: Context<'_>) -> Error {
    let reply = reply(raw);
    if reply.is_success() {
        context.unreadable(&reply, "it is no Converse response (is base-url right?)")
    } else {
        context.refused(&reply)
    }
}

/// The bytes on the wire.
fn reply(raw: &HttpResponse) -> Reply {
    let headers = raw
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
    Reply {
        status: raw.status().as_u16(),
        headers: headers
            .collect::<Vec<(http::HeaderName, http::HeaderValue)>>()
            .into_iter()
            .collect(),
        body: raw.body().bytes().unwrap_or_default().to_vec(),
        cut: raw.extension::<Cut>().cloned(),
    }
}
