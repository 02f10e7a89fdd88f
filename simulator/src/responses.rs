//! OpenAI's Responses API: `POST /v1/responses`. Errors and headers are those of Chat Completions.

use axum::http::HeaderMap;
use chrono::Utc;
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    call::{Call, Prompt},
    openai::{OpenAi, vision_tokens},
    parameters,
    problem::Problem,
    vendor::{self, Vendor},
};

#[derive(Debug)]
pub(crate) struct Responses;

/// The longest answer of a call that names no maximum, and the least that may be named.
const MAX_TOKENS: u64 = 4_096;
const MIN_TOKENS: u64 = 16;

impl Vendor for Responses {
    type Style = OpenAi;

    fn read(_: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        if !vendor::has_bearer(headers) {
            return Err(Problem::NoKey);
        }
        let body = vendor::json(body)?;
        let model = body.get("model").and_then(Value::as_str).filter(|model| !model.is_empty());
        let model = model
            .ok_or_else(|| Problem::invalid("Missing required parameter: 'model'.", "model"))?;
        if body.get("stream").and_then(Value::as_bool) == Some(true)
            || body.get("background").and_then(Value::as_bool) == Some(true)
        {
            return Err(Problem::invalid(
                "The simulator does neither stream nor work in the background.",
                "stream",
            ));
        }
        let most = match body.get("max_output_tokens").filter(|value| !value.is_null()) {
            None => MAX_TOKENS,
            Some(value) => {
                value.as_u64().filter(|tokens| *tokens >= MIN_TOKENS).ok_or_else(|| {
                    Problem::invalid(
                        "Invalid 'max_output_tokens': expected a value >= 16.",
                        "max_output_tokens",
                    )
                })?
            }
        };
        parameters::openai::check_responses(model, &body)?;
        let mut prompt = Prompt::default();
        if let Some(instructions) = body.get("instructions").and_then(Value::as_str) {
            prompt.text("system", instructions);
        }
        prompt.may_be_cached();
        match body.get("input") {
            Some(Value::String(text)) => {
                prompt.message("user");
                prompt.text("user", text);
            }
            Some(Value::Array(items)) if !items.is_empty() => {
                items.iter().for_each(|item| read_item(&mut prompt, item))
            }
            _ => return Err(Problem::invalid("Missing required parameter: 'input'.", "input")),
        }
        prompt.check()?;
        Ok(Call::new(model, most, body.pointer("/text/format/schema").cloned(), prompt))
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        let (status, details) = if answer.cut_off {
            ("incomplete", json!({"reason": "max_output_tokens"}))
        } else {
            ("completed", Value::Null)
        };
        json!({
            "id": format!("resp_{id:016x}"),
            "object": "response",
            "created_at": Utc::now().timestamp(),
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": details,
            "instructions": null,
            "max_output_tokens": call.max_tokens,
            "metadata": {},
            "model": call.model,
            "output": [{
                "type": "message",
                "id": format!("msg_{id:016x}"),
                "status": status,
                "role": "assistant",
                "content": [{"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}],
            }],
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "service_tier": "default",
            "store": false,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": {
                "input_tokens": call.input,
                "input_tokens_details": {"cached_tokens": call.cache_read, "cache_write_tokens": 0},
                "output_tokens": answer.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": call.input + answer.output,
            },
        })
    }
}

/// A message: a text, or parts of text and files.
fn read_item(prompt: &mut Prompt, item: &Value) {
    let role = item.get("role").and_then(Value::as_str).unwrap_or("user");
    prompt.message(role);
    if let Some(text) = item.get("content").and_then(Value::as_str) {
        return prompt.text(role, text);
    }
    for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            prompt.text(role, text);
        }
        if let Some(data) = part.get("image_url").and_then(Value::as_str) {
            prompt.picture(data, None, 20 << 20, vision_tokens);
        }
        if let Some(data) = part.get("file_data").and_then(Value::as_str) {
            prompt.base64(data);
        }
    }
}
