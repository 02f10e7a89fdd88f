//! What comes back: the SDK's output for a success, with its token counts, and the bytes on the
//! wire for an error.

use aws_sdk_bedrockruntime::{
    config::http::HttpResponse,
    operation::converse::ConverseOutput,
    types::{ContentBlock, TokenUsage},
};
use http::HeaderMap;
use tidegate_types::Usage;

use crate::{
    call::Completion,
    error::{Charged, Error, Kind},
    exchange::{Cut, Reply},
    finish::{self, Ending, Row},
    refusal::Context,
};

const CONVERSE: &str =
    "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html";
const CLAUDE: &str = "https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons";

/// `stopReason`.
pub(super) const ENDINGS: &[Row] = &[
    ("end_turn", Ending::Complete, CONVERSE),
    ("stop_sequence", Ending::Sequence, CONVERSE),
    ("max_tokens", Ending::Cut, CONVERSE),
    ("guardrail_intervened", Ending::Refused, CONVERSE),
    ("content_filtered", Ending::Refused, CONVERSE),
    ("tool_use", Ending::ToolUse, CONVERSE),
    ("malformed_tool_use", Ending::ToolUse, CONVERSE),
    ("malformed_model_output", Ending::Failed(Kind::Transient), CONVERSE),
    ("model_context_window_exceeded", Ending::Failed(Kind::TooLarge), CONVERSE),
    // Not a value of the vendor's own, but what Claude says elsewhere.
    ("refusal", Ending::Refused, CLAUDE),
];

pub(super) fn read(output: &ConverseOutput, context: Context<'_>) -> Result<Completion, Error> {
    // The SDK has read a whole success; only the status is left of it.
    let reply = Reply { status: 200, headers: HeaderMap::new(), body: Vec::new(), cut: None };
    let usage = output.usage().map(usage);
    let Some(message) = output.output().and_then(|output| output.as_message().ok()) else {
        let (text, charged) = ("the answer holds no message", Charged::from(usage));
        return Err(context.no_answer(&reply, Kind::Transient, text, charged));
    };
    let (stop_reason, context) = finish::read(
        ENDINGS,
        Some(output.stop_reason().as_str()),
        &reply,
        context,
        Charged::from(usage),
    )?;
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
