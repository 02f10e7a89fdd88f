//! Google's Gemini API: `POST /v1beta/models/{model}:generateContent`.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::{
    amounts::Dimension,
    answer::Answer,
    call::{Call, Prompt},
    limiter::{Refusal, Standing},
    problem::Problem,
    vendor::{self, Vendor},
};

#[derive(Debug)]
pub(crate) struct Gemini;

/// The longest answer of a call that names no maximum.
const MOST_TOKENS: u64 = 8_192;

const METHOD: &str = ":generateContent";

impl Vendor for Gemini {
    /// A wait is told in the body alone.
    const TELLS_WAIT: bool = false;

    fn read(named: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        if headers.get("x-goog-api-key").is_none_or(|key| key.is_empty()) && !vendor::has_bearer(headers) {
            return Err(Problem::NoKey);
        }
        let model = named.and_then(|named| named.strip_suffix(METHOD)).filter(|model| !model.is_empty());
        let model = model.ok_or_else(|| Problem::invalid("The simulator knows generateContent alone.", "model"))?;
        let body = vendor::json(body)?;
        // The vendor takes both spellings.
        let field = |names: [&str; 2]| names.into_iter().find_map(|name| body.get(name));
        let contents = body.get("contents").and_then(Value::as_array).filter(|contents| !contents.is_empty());
        let contents =
            contents.ok_or_else(|| Problem::invalid("* GenerateContentRequest.contents: contents is not specified", "contents"))?;
        let mut prompt = Prompt::default();
        field(["systemInstruction", "system_instruction"])
            .into_iter()
            .for_each(|content| read_parts(&mut prompt, "system", content));
        prompt.may_be_cached();
        for content in contents {
            let role = content.get("role").and_then(Value::as_str).unwrap_or("user");
            prompt.message(role);
            read_parts(&mut prompt, role, content);
        }
        let config = field(["generationConfig", "generation_config"]);
        let setting = |names: [&str; 2]| config.and_then(|config| names.into_iter().find_map(|name| config.get(name)));
        let most = match setting(["maxOutputTokens", "max_output_tokens"]) {
            None => MOST_TOKENS,
            Some(value) => value.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
                Problem::invalid(
                    "* GenerateContentRequest.generation_config.max_output_tokens: must be positive",
                    "max_output_tokens",
                )
            })?,
        };
        let schema =
            setting(["responseJsonSchema", "response_json_schema"]).or_else(|| setting(["responseSchema", "response_schema"]));
        Ok(Call::new(model, most, schema.cloned(), prompt))
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        let mut usage = json!({
            "promptTokenCount": call.input,
            "candidatesTokenCount": answer.output,
            "totalTokenCount": call.input + answer.output,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": call.input}],
        });
        if call.cache_read > 0 {
            usage["cachedContentTokenCount"] = call.cache_read.into();
        }
        json!({
            "candidates": [{
                "content": {"role": "model", "parts": [{"text": answer.text}]},
                "finishReason": if answer.cut_off { "MAX_TOKENS" } else { "STOP" },
                "index": 0,
            }],
            "usageMetadata": usage,
            "modelVersion": call.model,
            "responseId": format!("{id:016x}"),
        })
    }

    fn problem(problem: &Problem, model: &str, _id: u64) -> (StatusCode, Value) {
        let error = |code: u16, status: &str, message: &str, details: Value| {
            let mut error = json!({"code": code, "message": message, "status": status});
            if details != Value::Null {
                error["details"] = details;
            }
            (StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), json!({"error": error}))
        };
        let exhausted = "RESOURCE_EXHAUSTED";
        match problem {
            Problem::NoKey => {
                let message = "Method doesn't allow unregistered callers (callers without established identity).";
                error(403, "PERMISSION_DENIED", message, Value::Null)
            }
            Problem::Invalid { message, .. } => error(400, "INVALID_ARGUMENT", message, Value::Null),
            Problem::NoModel => error(404, "NOT_FOUND", "There are too many models.", Value::Null),
            Problem::Refused(refusal) => {
                let wait = seconds(refusal.wait);
                let message =
                    format!("You exceeded your current quota, please check your plan and billing details. Please retry in {wait}.");
                error(429, exhausted, &message, details(quota_id(refusal), refusal.limit, model, &wait))
            }
            // Growing too fast: a 429 that tells nothing.
            Problem::Ramp => error(429, exhausted, "Resource has been exhausted (e.g. check quota).", Value::Null),
            // The day is used up, and still the advice is to come back in seconds.
            Problem::Spent => {
                let details = details("GenerateRequestsPerDayPerProjectPerModel-FreeTier", 200, model, "26s");
                error(429, exhausted, "You exceeded your current quota. Please retry in 26s.", details)
            }
            Problem::Overloaded => error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", Value::Null),
            Problem::Server => error(500, "INTERNAL", "An internal error has occurred.", Value::Null),
        }
    }

    fn headers(headers: &mut HeaderMap, _model: &str, _id: u64, took: Duration) {
        vendor::set(headers, "server-timing", format!("gfet4t7; dur={}", took.as_millis()));
        vendor::set(headers, "x-content-type-options", "nosniff");
    }

    fn limits(_: &mut HeaderMap, _: &[Standing]) {}
}

fn quota_id(refusal: &Refusal) -> &'static str {
    match refusal.dimension {
        Dimension::Requests => "GenerateRequestsPerMinutePerProjectPerModel",
        Dimension::Tokens | Dimension::Input | Dimension::Output => "GenerateContentInputTokensPerModelPerMinute",
    }
}

fn details(quota_id: &str, limit: u64, model: &str, wait: &str) -> Value {
    let name = |name: &str| format!("type.googleapis.com/google.rpc.{name}");
    let violation = json!({
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
        "quotaId": quota_id,
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": limit.to_string(),
    });
    json!([
        {"@type": name("QuotaFailure"), "violations": [violation]},
        {"@type": name("Help"), "links": [{"description": "Learn more", "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}]},
        {"@type": name("RetryInfo"), "retryDelay": wait},
    ])
}

/// A protobuf duration, to the millisecond and rounded up.
fn seconds(wait: Duration) -> String {
    let millis = wait.as_micros().div_ceil(1_000);
    format!("{}.{:03}s", millis / 1_000, millis % 1_000)
}

fn read_parts(prompt: &mut Prompt, role: &str, content: &Value) {
    for part in content.get("parts").and_then(Value::as_array).into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            prompt.text(role, text);
        }
        let data = part.pointer("/inlineData/data").or_else(|| part.pointer("/inline_data/data"));
        if let Some(data) = data.and_then(Value::as_str) {
            prompt.base64(data);
        }
    }
}
