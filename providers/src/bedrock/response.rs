//! Reads a reply: the SDK's output and token counts of a success, and the raw bytes of an error.

use aws_sdk_bedrockruntime::{
    config::http::HttpResponse,
    operation::converse::ConverseOutput,
    types::{ContentBlock, TokenUsage},
};
use aws_smithy_types::{Document, Number};
use http::HeaderMap;
use serde_json::Value;
use tidegate_types::Usage;

use crate::{
    call::Completion,
    endings,
    error::{Charged, Error, Kind},
    exchange::{Cut, Reply},
    finish,
    refusal::Context,
    schema::TOOL_NAME,
};

pub(super) fn read(output: &ConverseOutput, context: Context<'_>) -> Result<Completion, Error> {
    // The SDK has read a whole success; only the status remains.
    let reply = Reply { status: 200, headers: HeaderMap::new(), body: Vec::new(), cut: None };
    let usage = output.usage().map(usage);
    let Some(message) = output.output().and_then(|output| output.as_message().ok()) else {
        let (text, charged) = ("the answer holds no message", Charged::from(usage));
        return Err(context.no_answer(&reply, Kind::Transient, text, charged));
    };
    // The only tool is the form of an answer: its call ends the answer.
    let form = message.content().iter().find_map(|block| match block {
        ContentBlock::ToolUse(call) if call.name() == TOOL_NAME => Some(json(call.input())),
        _ => None,
    });
    let word = match output.stop_reason().as_str() {
        "tool_use" if form.is_some() => "end_turn",
        word => word,
    };
    let (stop_reason, context) =
        finish::read(endings::BEDROCK, Some(word), &reply, context, Charged::from(usage))?;
    let text = message.content().iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let answer = form.map_or_else(|| text.collect(), |form| form.to_string());
    Ok(Completion { answer, stop_reason, usage, observed: context.observed })
}

/// The SDK's JSON as `serde_json`'s.
fn json(document: &Document) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Bool(flag) => Value::Bool(*flag),
        Document::String(text) => text.as_str().into(),
        Document::Number(Number::PosInt(number)) => (*number).into(),
        Document::Number(Number::NegInt(number)) => (*number).into(),
        Document::Number(Number::Float(number)) => (*number).into(),
        Document::Array(values) => values.iter().map(json).collect(),
        Document::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), json(value))).collect()
        }
    }
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

/// The error of a failed call, or of a success that the SDK cannot read.
pub(super) fn failed(raw: &HttpResponse, context: Context<'_>) -> Error {
    let reply = reply(raw);
    if reply.is_success() {
        context.unreadable(&reply, "it is no Converse response (is base-url right?)")
    } else {
        context.refused_call(&reply)
    }
}

/// The raw response.
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
