//! Anthropic's Messages API: `POST /v1/messages`.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::{
    amounts::Dimension,
    answer::Answer,
    call::{Call, Prompt},
    limiter::LimitStatus,
    parameters,
    problem::Problem,
    vendor::{self, Style, Vendor, set},
};

#[derive(Debug)]
pub(crate) struct Anthropic;

/// How many blocks may be marked for the cache.
const MAX_MARKS: usize = 4;

impl Vendor for Anthropic {
    type Style = Self;

    fn read(_: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        check(headers)?;
        let body = vendor::json(body)?;
        let missing = |field| move || Problem::invalid(format!("{field}: Field required"), field);
        let model = body
            .get("model")
            .and_then(Value::as_str)
            .filter(|model| !model.is_empty())
            .ok_or_else(missing("model"))?;
        let max_tokens = body
            .get("max_tokens")
            .ok_or_else(missing("max_tokens"))?
            .as_u64()
            .filter(|tokens| *tokens > 0);
        let max_tokens = max_tokens.ok_or_else(|| {
            Problem::invalid("max_tokens: Input should be greater than or equal to 1", "max_tokens")
        })?;
        let messages =
            body.get("messages").and_then(Value::as_array).ok_or_else(missing("messages"))?;
        if messages.is_empty() {
            return Err(Problem::invalid("messages: at least one message is required", "messages"));
        }
        if body.get("stream").and_then(Value::as_bool) == Some(true) {
            return Err(Problem::invalid("stream: the simulator does not stream", "stream"));
        }
        parameters::anthropic::check(model, max_tokens, &body)?;
        let mut prompt = Prompt::default();
        body.get("system")
            .into_iter()
            .for_each(|system| read_content(&mut prompt, "system", system));
        for message in messages {
            let role = message
                .get("role")
                .and_then(Value::as_str)
                .ok_or_else(missing("messages.0.role"))?;
            let content = message.get("content").ok_or_else(missing("messages.0.content"))?;
            prompt.message(role);
            read_content(&mut prompt, role, content);
        }
        if prompt.marks() > MAX_MARKS {
            let found = prompt.marks();
            let message = format!(
                "A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {found}."
            );
            return Err(Problem::invalid(message, "cache_control"));
        }
        prompt.check()?;
        let forced = parameters::anthropic::forced_tool(&body)?;
        let schema = body.pointer("/output_config/format/schema").cloned();
        let (tool, arguments) = forced.unzip();
        let mut call = Call::new(model, max_tokens, schema.or(arguments), prompt);
        call.tool = tool;
        Ok(call)
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        let (content, end) = match &call.tool {
            // Arguments that are cut are no JSON: none of them are there.
            Some(tool) => {
                let input = serde_json::from_str(&answer.text).unwrap_or_else(|_| json!({}));
                let call = json!({"type": "tool_use", "id": format!("toolu_{id:016x}"), "name": tool, "input": input});
                (call, "tool_use")
            }
            None => (json!({"type": "text", "text": answer.text}), "end_turn"),
        };
        json!({
            "id": format!("msg_{id:016x}"),
            "type": "message",
            "role": "assistant",
            "model": call.model,
            "content": [content],
            "stop_reason": if answer.cut_off { "max_tokens" } else { end },
            "stop_sequence": null,
            "usage": {
                "input_tokens": call.input.saturating_sub(call.cache_read + call.cache_written),
                "cache_creation_input_tokens": call.cache_written,
                "cache_read_input_tokens": call.cache_read,
                "cache_creation": {"ephemeral_5m_input_tokens": call.cache_written, "ephemeral_1h_input_tokens": 0},
                "output_tokens": answer.output,
                "service_tier": "standard",
            },
        })
    }
}

impl Style for Anthropic {
    fn problem(problem: &Problem, _model: &str, id: u64) -> (StatusCode, Value) {
        let (status, kind, message, code) = match problem {
            Problem::NoKey => {
                (401, "authentication_error", "x-api-key header is required".into(), None)
            }
            Problem::WrongKey => (401, "authentication_error", "invalid x-api-key".into(), None),
            Problem::NoAccess => {
                let message =
                    "Your API key does not have permission to use the specified resource.".into();
                (403, "permission_error", message, None)
            }
            Problem::Invalid { message, .. } => {
                (400, "invalid_request_error", message.clone(), None)
            }
            Problem::NotFound { message, .. } => (404, "not_found_error", message.clone(), None),
            Problem::Refused(refusal) => {
                let message = format!(
                    "This request would exceed your organization's rate limit of {} {} per minute (org: org-sim).",
                    refusal.limit, refusal.dimension
                );
                (429, "rate_limit_error", message, None)
            }
            Problem::Ramp => {
                let message =
                    "This request would exceed your organization's maximum usage increase rate."
                        .into();
                (429, "rate_limit_error", message, Some("ramp_limit_exceeded"))
            }
            Problem::Spent => {
                let message = "You have reached your enforced usage limits.".into();
                (429, "rate_limit_error", message, Some("enforced_spend_limit_reached"))
            }
            Problem::Overloaded => (529, "overloaded_error", "Overloaded".into(), None),
            Problem::Server => (500, "api_error", "Internal server error".into(), None),
        };
        let mut error = json!({"type": kind, "message": message});
        if let Some(code) = code {
            error["details"] = json!({"error_code": code});
        }
        let body = json!({"type": "error", "error": error, "request_id": request_id(id)});
        (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
    }

    fn headers(headers: &mut HeaderMap, _model: &str, id: u64, _took: Duration) {
        set(headers, "request-id", request_id(id));
        set(headers, "anthropic-organization-id", "org-sim");
    }

    fn limits(headers: &mut HeaderMap, statuses: &[LimitStatus]) {
        let now = Utc::now();
        let find = |dimension| statuses.iter().find(|status| status.dimension == dimension);
        let (input, output) = (find(Dimension::Input), find(Dimension::Output));
        let both = input.zip(output).map(|(input, output)| LimitStatus {
            dimension: Dimension::Tokens,
            limit: input.limit + output.limit,
            remaining: input.remaining + output.remaining,
            reset: input.reset.max(output.reset),
        });
        let tokens =
            find(Dimension::Tokens).copied().or(both).or_else(|| input.or(output).copied());
        let requests = find(Dimension::Requests).copied();
        state(headers, now, requests, "requests");
        state(headers, now, tokens, "tokens");
        state(headers, now, input.copied(), "input-tokens");
        state(headers, now, output.copied(), "output-tokens");
    }
}

/// A key and a version, which every call has.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get("x-api-key").is_none_or(|key| key.is_empty()) && !vendor::has_bearer(headers) {
        return Err(Problem::NoKey);
    }
    if !headers.contains_key("anthropic-version") {
        return Err(Problem::invalid("anthropic-version: header is required", "anthropic-version"));
    }
    Ok(())
}

/// The three headers of one dimension. Remaining tokens are rounded to the nearest thousand; a
/// reset is a moment.
fn state(headers: &mut HeaderMap, now: DateTime<Utc>, status: Option<LimitStatus>, what: &str) {
    let Some(status) = status else { return };
    let left = status.remaining;
    let full =
        now + TimeDelta::from_std(status.reset).unwrap_or_default() + TimeDelta::milliseconds(999);
    let left = if what == "requests" { left } else { (left + 500) / 1_000 * 1_000 };
    set(headers, &format!("anthropic-ratelimit-{what}-limit"), status.limit);
    set(headers, &format!("anthropic-ratelimit-{what}-remaining"), left);
    set(
        headers,
        &format!("anthropic-ratelimit-{what}-reset"),
        full.to_rfc3339_opts(SecondsFormat::Secs, true),
    );
}

fn request_id(id: u64) -> String {
    format!("req_{id:016x}")
}

/// A string, or blocks of text and documents.
fn read_content(prompt: &mut Prompt, role: &str, content: &Value) {
    if let Some(text) = content.as_str() {
        return prompt.text(role, text);
    }
    for block in content.as_array().into_iter().flatten() {
        if let Some(text) = block.get("text").and_then(Value::as_str) {
            prompt.text(role, text);
        }
        let data = block.pointer("/source/data").and_then(Value::as_str);
        if let (Some(data), Some("image")) = (data, block.get("type").and_then(Value::as_str)) {
            let media_type = block.pointer("/source/media_type").and_then(Value::as_str);
            // docs: build-with-claude/vision; 5 MB, and a token for each 28 × 28 pixels.
            prompt.picture(data, media_type, 5 << 20, |picture| picture.patches(28));
            continue;
        }
        match (data, block.pointer("/source/type").and_then(Value::as_str)) {
            (Some(data), Some("text")) => prompt.text(role, data),
            (Some(data), _) => prompt.base64(data),
            (None, _) => {}
        }
        if block.get("cache_control").is_some_and(Value::is_object) {
            prompt.is_to_be_cached();
        }
    }
}
