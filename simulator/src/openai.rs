//! OpenAI's Chat Completions API: `POST /v1/chat/completions`.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use chrono::Utc;
use serde_json::{Value, json};

use crate::{
    amounts::Dimension,
    answer::Answer,
    call::{Call, Prompt},
    embeddings,
    limiter::{LimitStatus, Refusal},
    parameters,
    picture::Picture,
    problem::Problem,
    vendor::{self, Style, Vendor, set},
};

#[derive(Debug)]
pub(crate) struct OpenAi;

/// OpenAI's embeddings.
#[derive(Debug)]
pub(crate) struct Embeddings;

impl Vendor for Embeddings {
    type Style = OpenAi;

    fn read(_: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        if !vendor::has_bearer(headers) {
            return Err(Problem::NoKey);
        }
        embeddings::read_openai(None, body)
    }

    fn answer(call: &Call, _: &Answer, _: u64) -> Value {
        call.texts.as_ref().map_or(Value::Null, |texts| embeddings::openai(call, texts))
    }
}

/// The longest answer of a call that names no maximum.
const MAX_TOKENS: u64 = 4_096;

impl Vendor for OpenAi {
    type Style = Self;

    fn read(_: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        if !vendor::has_bearer(headers) {
            return Err(Problem::NoKey);
        }
        let body = vendor::json(body)?;
        let model = body.get("model").and_then(Value::as_str).filter(|model| !model.is_empty());
        let model =
            model.ok_or_else(|| Problem::invalid("you must provide a model parameter", "model"))?;
        let messages =
            body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
        let messages = messages.ok_or_else(|| {
            Problem::invalid("Missing required parameter: 'messages'.", "messages")
        })?;
        if body.get("stream").and_then(Value::as_bool) == Some(true) {
            return Err(Problem::invalid("The simulator does not stream.", "stream"));
        }
        parameters::openai::check(model, &body)?;
        let (mut prompt, mut cached) = (Prompt::default(), false);
        for message in messages {
            let role = message.get("role").and_then(Value::as_str);
            let role = role.ok_or_else(|| {
                Problem::invalid(
                    "Missing required parameter: 'messages[0].role'.",
                    "messages[0].role",
                )
            })?;
            if role == "user" && !cached {
                prompt.may_be_cached();
                cached = true;
            }
            prompt.message(role);
            message
                .get("content")
                .into_iter()
                .for_each(|content| read_content(&mut prompt, role, content));
        }
        let schema = body.pointer("/response_format/json_schema/schema").cloned();
        prompt.check()?;
        Ok(Call::new(model, max_tokens(&body)?, schema, prompt))
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        json!({
            "id": format!("chatcmpl-{id:016x}"),
            "object": "chat.completion",
            "created": Utc::now().timestamp(),
            "model": call.model,
            "service_tier": "default",
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": answer.text, "refusal": null},
                "logprobs": null,
                "finish_reason": if answer.cut_off { "length" } else { "stop" },
            }],
            "usage": {
                "prompt_tokens": call.input,
                "completion_tokens": answer.output,
                "total_tokens": call.input + answer.output,
                "prompt_tokens_details": {"cached_tokens": call.cache_read},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        })
    }
}

impl Style for OpenAi {
    fn problem(problem: &Problem, model: &str, _id: u64) -> (StatusCode, Value) {
        let (status, kind, code, message) = match problem {
            Problem::NoKey => {
                let message = "You didn't provide an API key. Provide it in an Authorization header using Bearer auth.".into();
                (401, "invalid_request_error", None, message)
            }
            Problem::WrongKey => {
                let message = "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.".into();
                (401, "invalid_request_error", Some("invalid_api_key"), message)
            }
            Problem::NoAccess => {
                let message = "You have insufficient permissions for this operation.".into();
                (403, "invalid_request_error", Some("insufficient_permissions"), message)
            }
            Problem::Invalid { message, .. } => {
                (400, "invalid_request_error", None, message.clone())
            }
            Problem::NotFound { message, code } => {
                (404, "invalid_request_error", *code, message.clone())
            }
            Problem::Refused(refusal) => {
                let kind =
                    if refusal.dimension == Dimension::Requests { "requests" } else { "tokens" };
                (429, kind, Some("rate_limit_exceeded"), refused(refusal, model))
            }
            Problem::Ramp => {
                let message =
                    "The rate of requests rises too fast. Slow down, then increase it gradually."
                        .into();
                (429, "rate_limit_error", Some("slow_down"), message)
            }
            Problem::Spent => {
                let message =
                    "You exceeded your current quota, please check your plan and billing details."
                        .into();
                (429, "insufficient_quota", Some("credit_balance_exhausted"), message)
            }
            Problem::Overloaded => {
                let message = "The server is currently overloaded. Please try again later.".into();
                (503, "service_unavailable_error", Some("server_is_overloaded"), message)
            }
            Problem::Server => (
                500,
                "server_error",
                None,
                "The server had an error while processing your request. Sorry about that!".into(),
            ),
        };
        let param = if let Problem::Invalid { param, .. } = problem { *param } else { None };
        let body =
            json!({"error": {"message": message, "type": kind, "param": param, "code": code}});
        (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
    }

    fn headers(headers: &mut HeaderMap, model: &str, id: u64, took: Duration) {
        set(headers, "x-request-id", format!("req_{id:016x}"));
        set(headers, "openai-processing-ms", took.as_millis());
        set(headers, "openai-organization", "org-sim");
        set(headers, "openai-version", "2020-10-01");
        if !model.is_empty() {
            set(headers, "openai-model", model);
        }
    }

    fn limits(headers: &mut HeaderMap, statuses: &[LimitStatus]) {
        let (requests, tokens): (Vec<&LimitStatus>, Vec<&LimitStatus>) =
            statuses.iter().partition(|status| status.dimension == Dimension::Requests);
        for (what, status) in [("requests", requests.first()), ("tokens", tokens.first())] {
            let Some(status) = status else { continue };
            set(headers, &format!("x-ratelimit-limit-{what}"), status.limit);
            set(headers, &format!("x-ratelimit-remaining-{what}"), status.remaining);
            set(headers, &format!("x-ratelimit-reset-{what}"), go_duration(status.reset));
        }
    }
}

/// `max_completion_tokens`, or `max_tokens` as it used to be called.
fn max_tokens(body: &Value) -> Result<u64, Problem> {
    let given = ["max_completion_tokens", "max_tokens"]
        .into_iter()
        .find_map(|key| Some((key, body.get(key).filter(|value| !value.is_null())?)));
    let Some((key, value)) = given else { return Ok(MAX_TOKENS) };
    value.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
        Problem::invalid(format!("Invalid '{key}': expected an integer above 0."), key)
    })
}

fn refused(refusal: &Refusal, model: &str) -> String {
    let Refusal { limit, used, requested, .. } = refusal;
    let what = match refusal.dimension {
        Dimension::Requests => "requests per min (RPM)",
        Dimension::Tokens => "tokens per min (TPM)",
        Dimension::Input => "input tokens per min (ITPM)",
        Dimension::Output => "output tokens per min (OTPM)",
    };
    let place = format!("{model} in organization org-sim on {what}: Limit {limit}");
    if refusal.is_too_large() {
        return format!(
            "Request too large for {place}, Requested {requested}. The input or output tokens must be reduced in order to run successfully."
        );
    }
    let wait = go_duration(refusal.wait);
    format!(
        "Rate limit reached for {place}, Used {used}, Requested {requested}. Please try again in {wait}."
    )
}

/// As Go prints durations, to the millisecond and rounded up: `20ms`, `1.2s`, `6m0s`.
fn go_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
    if millis > 0 && millis < 1_000 {
        return format!("{millis}ms");
    }
    let fraction = match millis % 1_000 {
        0 => String::new(),
        rest => format!(".{rest:03}").trim_end_matches('0').to_owned(),
    };
    let (hours, minutes, seconds) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1_000 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, _) => format!("{minutes}m{seconds}{fraction}s"),
        _ => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

/// Guide "Images and vision", calculating costs: patches of 32 × 32 pixels, up to 2,500 in high
/// detail, at 1.2 tokens.
pub(crate) fn vision_tokens(picture: Picture) -> u64 {
    picture.patches(32).min(2_500) * 6 / 5
}

/// A string, or parts of text, pictures and files.
fn read_content(prompt: &mut Prompt, role: &str, content: &Value) {
    if let Some(text) = content.as_str() {
        return prompt.text(role, text);
    }
    for part in content.as_array().into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            prompt.text(role, text);
        }
        if let Some(data) = part.pointer("/image_url/url").and_then(Value::as_str) {
            prompt.picture(data, None, 20 << 20, vision_tokens);
        }
        if let Some(data) = part.pointer("/file/file_data").and_then(Value::as_str) {
            prompt.base64(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        for (micros, text) in [
            (0, "0s"),
            (11_400, "12ms"),
            (1_200_000, "1.2s"),
            (20_000_000, "20s"),
            (360_000_000, "6m0s"),
            (3_661_050_000, "1h1m1.05s"),
        ] {
            assert_eq!(go_duration(Duration::from_micros(micros)), text);
        }
    }
}
