//! AWS Bedrock's Converse: `POST /model/{model}/converse`.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::{
    amounts::Dimension,
    answer::Answer,
    call::{Call, Prompt},
    limiter::LimitStatus,
    parameters,
    picture::Picture,
    problem::Problem,
    vendor::{self, Style, Vendor, set},
};

#[derive(Debug)]
pub(crate) struct Bedrock;

/// The longest answer of a call that names no maximum.
const MAX_TOKENS: u64 = 4_096;

/// Whether the call is signed, or has a key.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let signed = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 "));
    if signed || vendor::has_bearer(headers) { Ok(()) } else { Err(Problem::NoKey) }
}

impl Vendor for Bedrock {
    type Style = Self;

    fn read(named: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        check(headers)?;
        let model = named
            .filter(|model| !model.is_empty())
            .ok_or_else(|| Problem::invalid("modelId is missing", "modelId"))?;
        let body = vendor::json(body)?;
        let messages =
            body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
        let messages = messages.ok_or_else(|| {
            Problem::invalid("A conversation must start with a user message.", "messages")
        })?;
        let mut prompt = Prompt::default();
        body.get("system")
            .into_iter()
            .for_each(|blocks| read_blocks(&mut prompt, "system", blocks));
        for message in messages {
            let role = message
                .get("role")
                .and_then(Value::as_str)
                .ok_or_else(|| Problem::invalid("role is missing", "messages"))?;
            prompt.message(role);
            message
                .get("content")
                .into_iter()
                .for_each(|blocks| read_blocks(&mut prompt, role, blocks));
        }
        let most = match body.pointer("/inferenceConfig/maxTokens") {
            None => MAX_TOKENS,
            Some(value) => value.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
                Problem::invalid(
                    "Value at 'inferenceConfig.maxTokens' failed to satisfy constraint: must be at least 1",
                    "maxTokens",
                )
            })?,
        };
        parameters::bedrock::check(model, most, &body)?;
        let schema = body
            .pointer("/outputConfig/textFormat/structure/jsonSchema/schema")
            .and_then(Value::as_str);
        let schema = schema.map(serde_json::from_str).transpose();
        let schema = schema.map_err(|_| {
            Problem::invalid("The provided JSON schema is not valid JSON.", "schema")
        })?;
        if schema.is_some() && model.contains("nova") {
            return Err(Problem::invalid(
                "This model doesn't support the outputConfig.textFormat field.",
                "outputConfig",
            ));
        }
        let forced = parameters::bedrock::forced_tool(&body)?;
        let (tool, arguments) = forced.unzip();
        prompt.check()?;
        let mut call = Call::new(model, most, schema.or(arguments), prompt);
        call.tool = tool;
        Ok(call)
    }

    fn answer(call: &Call, answer: &Answer, _id: u64) -> Value {
        let uncached = call.input.saturating_sub(call.cache_read + call.cache_written);
        let (content, end) = match &call.tool {
            // Arguments that are cut are no JSON: none of them are there.
            Some(tool) => {
                let input: Value = serde_json::from_str(&answer.text).unwrap_or_else(|_| json!({}));
                (
                    json!({"toolUse": {"toolUseId": "tooluse_1", "name": tool, "input": input}}),
                    "tool_use",
                )
            }
            None => (json!({"text": answer.text}), "end_turn"),
        };
        json!({
            "metrics": {"latencyMs": 1},
            "output": {"message": {"role": "assistant", "content": [content]}},
            "stopReason": if answer.cut_off { "max_tokens" } else { end },
            "usage": {
                "inputTokens": uncached,
                "outputTokens": answer.output,
                "totalTokens": call.input + answer.output,
                "cacheReadInputTokens": call.cache_read,
                "cacheWriteInputTokens": call.cache_written,
            },
        })
    }
}

impl Style for Bedrock {
    /// Neither header nor body says when to come back.
    const TELLS_WAIT: bool = false;

    fn problem(problem: &Problem, _model: &str, _id: u64) -> (StatusCode, Value) {
        let (status, _, message) = exception(problem);
        (
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            json!({"message": message}),
        )
    }

    fn problem_headers(headers: &mut HeaderMap, problem: &Problem) {
        let (_, class, _) = exception(problem);
        set(
            headers,
            "x-amzn-errortype",
            format!("{class}:http://internal.amazon.com/coral/com.amazon.bedrock/"),
        );
    }

    fn headers(headers: &mut HeaderMap, _model: &str, id: u64, _took: Duration) {
        set(
            headers,
            "x-amzn-requestid",
            format!("{:08x}-0000-4000-8000-{:012x}", id >> 32, id & 0xffff_ffff_ffff),
        );
    }

    fn limits(_: &mut HeaderMap, _: &[LimitStatus]) {}
}

/// Status, class and message.
fn exception(problem: &Problem) -> (u16, &'static str, String) {
    let throttling = "ThrottlingException";
    match problem {
        Problem::NoKey => (
            403,
            "AccessDeniedException",
            "Authentication failed: please make sure your API key is valid.".into(),
        ),
        Problem::WrongKey => (
            403,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.".into(),
        ),
        Problem::NoAccess => (
            403,
            "AccessDeniedException",
            "You don't have access to the model with the specified model ID.".into(),
        ),
        Problem::Invalid { message, .. } => (400, "ValidationException", message.clone()),
        Problem::NotFound { message, .. } => (404, "ResourceNotFoundException", message.clone()),
        Problem::Refused(refusal) if refusal.dimension == Dimension::Requests => {
            (429, throttling, "Too many requests, please wait before trying again.".into())
        }
        Problem::Refused(_) => {
            (429, throttling, "Too many tokens, please wait before trying again.".into())
        }
        Problem::Ramp => (
            429,
            throttling,
            "Your request rate is too high. Reduce the frequency of requests.".into(),
        ),
        Problem::Spent => {
            (429, throttling, "Too many tokens per day, please wait before trying again.".into())
        }
        Problem::Overloaded => (
            503,
            "ServiceUnavailableException",
            "Too many connections, please wait before trying again.".into(),
        ),
        Problem::Server => (
            500,
            "InternalServerException",
            "The system encountered an unexpected error during processing.".into(),
        ),
    }
}

fn read_blocks(prompt: &mut Prompt, role: &str, blocks: &Value) {
    for block in blocks.as_array().into_iter().flatten() {
        if let Some(text) = block.get("text").and_then(Value::as_str) {
            prompt.text(role, text);
        }
        if let Some(data) = block.pointer("/image/source/bytes").and_then(Value::as_str) {
            let format = block.pointer("/image/format").and_then(Value::as_str);
            let media_type = format.map(|format| format!("image/{format}"));
            // API_runtime_Message: 3.75 MB; tokens as Claude's.
            let (kind, count) = (media_type.as_deref(), |picture: Picture| picture.patches(28));
            prompt.picture(data, kind, 3_750_000, count);
        }
        if let Some(data) = block.pointer("/document/source/bytes").and_then(Value::as_str) {
            prompt.base64(data);
        }
        if block.get("cachePoint").is_some() {
            prompt.is_to_be_cached();
        }
    }
}
