//! Google's Gemini API: `POST /v1beta/models/{model}:generateContent`.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::{
    amounts::Dimension,
    answer::Answer,
    call::{Call, Prompt},
    embeddings,
    limiter::{LimitStatus, Refusal},
    parameters,
    problem::Problem,
    vendor::{self, Style, Vendor},
};

#[derive(Debug)]
pub(crate) struct Gemini;

/// The longest answer of a call that names no maximum.
const MAX_TOKENS: u64 = 8_192;

const METHOD: &str = ":generateContent";

/// Whether there is a key.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let has_key = headers.get("x-goog-api-key").is_some_and(|key| !key.is_empty());
    if has_key || vendor::has_bearer(headers) { Ok(()) } else { Err(Problem::NoKey) }
}

impl Vendor for Gemini {
    type Style = Self;

    fn read(named: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        check(headers)?;
        if let Some(model) = named.and_then(|named| named.strip_suffix(":batchEmbedContents")) {
            return embeddings::read_gemini(model, body);
        }
        let model =
            named.and_then(|named| named.strip_suffix(METHOD)).filter(|model| !model.is_empty());
        let model = model.ok_or_else(|| {
            Problem::invalid("The simulator knows generateContent and batchEmbedContents.", "model")
        })?;
        let body = vendor::json(body)?;
        let field = |names| either(&body, names);
        let contents =
            body.get("contents").and_then(Value::as_array).filter(|contents| !contents.is_empty());
        let contents = contents.ok_or_else(|| {
            Problem::invalid(
                "* GenerateContentRequest.contents: contents is not specified",
                "contents",
            )
        })?;
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
        parameters::gemini::check(model, &body, config)?;
        let setting = |names: [&str; 2]| config.and_then(|config| either(config, names));
        let most = match setting(["maxOutputTokens", "max_output_tokens"]) {
            None => MAX_TOKENS,
            Some(value) => value.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
                Problem::invalid(
                    "* GenerateContentRequest.generation_config.max_output_tokens: must be positive",
                    "max_output_tokens",
                )
            })?,
        };
        let schema = setting(["responseJsonSchema", "response_json_schema"]).cloned();
        let schema = schema
            .or_else(|| setting(["responseSchema", "response_schema"]).cloned().map(json_schema));
        prompt.check()?;
        Ok(Call::new(model, most, schema, prompt))
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        if let Some(texts) = &call.texts {
            return embeddings::gemini(call, texts);
        }
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
}

impl Style for Gemini {
    /// Only the body says when to come back.
    const TELLS_WAIT: bool = false;

    fn problem(problem: &Problem, model: &str, _id: u64) -> (StatusCode, Value) {
        let error = |code: u16, status: &str, message: &str, details: Value| {
            let mut error = json!({"code": code, "message": message, "status": status});
            if details != Value::Null {
                error["details"] = details;
            }
            (
                StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                json!({"error": error}),
            )
        };
        let exhausted = "RESOURCE_EXHAUSTED";
        match problem {
            Problem::NoKey => {
                let message = "Method doesn't allow unregistered callers (callers without established identity).";
                error(403, "PERMISSION_DENIED", message, Value::Null)
            }
            Problem::WrongKey => {
                let message = "API key not valid. Please pass a valid API key.";
                let reason = json!([{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                }]);
                error(400, "INVALID_ARGUMENT", message, reason)
            }
            Problem::NoAccess => {
                let message = "Your API key doesn't have the required permissions.";
                error(403, "PERMISSION_DENIED", message, Value::Null)
            }
            Problem::Invalid { message, .. } => {
                error(400, "INVALID_ARGUMENT", message, Value::Null)
            }
            Problem::NotFound { message, .. } => error(404, "NOT_FOUND", message, Value::Null),
            Problem::Refused(refusal) => {
                let mut message =
                    "You exceeded your current quota, please check your plan and billing details."
                        .to_owned();
                if !refusal.is_too_large() {
                    message = format!("{message} Please retry in {}.", seconds(refusal.wait));
                }
                error(429, exhausted, &message, details(quota_id(refusal), refusal.limit, model))
            }
            // Growing too fast: a 429 that tells nothing.
            Problem::Ramp => error(
                429,
                exhausted,
                "Resource has been exhausted (e.g. check quota).",
                Value::Null,
            ),
            // The day is used up, and still the advice is to come back in seconds.
            Problem::Spent => {
                let details =
                    details("GenerateRequestsPerDayPerProjectPerModel-FreeTier", 200, model);
                let (status, mut body) = error(
                    429,
                    exhausted,
                    "You exceeded your current quota. Please retry in 26.000s.",
                    details,
                );
                Self::advise(&mut body, Duration::from_secs(26));
                (status, body)
            }
            Problem::Overloaded => error(
                503,
                "UNAVAILABLE",
                "The model is overloaded. Please try again later.",
                Value::Null,
            ),
            Problem::Server => {
                error(500, "INTERNAL", "An internal error has occurred.", Value::Null)
            }
        }
    }

    fn advise(body: &mut Value, wait: Duration) {
        let advice = json!({"@type": type_url("RetryInfo"), "retryDelay": seconds(wait)});
        match body["error"]["details"].as_array_mut() {
            Some(details) => details.push(advice),
            None => body["error"]["details"] = json!([advice]),
        }
    }

    fn headers(headers: &mut HeaderMap, _model: &str, _id: u64, took: Duration) {
        vendor::set(headers, "server-timing", format!("gfet4t7; dur={}", took.as_millis()));
        vendor::set(headers, "x-content-type-options", "nosniff");
    }

    fn limits(_: &mut HeaderMap, _: &[LimitStatus]) {}
}

fn quota_id(refusal: &Refusal) -> &'static str {
    match refusal.dimension {
        Dimension::Requests => "GenerateRequestsPerMinutePerProjectPerModel",
        Dimension::Tokens | Dimension::Input | Dimension::Output => {
            "GenerateContentInputTokensPerModelPerMinute"
        }
    }
}

fn type_url(name: &str) -> String {
    format!("type.googleapis.com/google.rpc.{name}")
}

fn details(quota_id: &str, limit: u64, model: &str) -> Value {
    let violation = json!({
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
        "quotaId": quota_id,
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": limit.to_string(),
    });
    json!([
        {"@type": type_url("QuotaFailure"), "violations": [violation]},
        {"@type": type_url("Help"), "links": [{"description": "Learn more", "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}]},
    ])
}

/// A protobuf duration, to the millisecond and rounded up.
fn seconds(wait: Duration) -> String {
    let millis = wait.as_micros().div_ceil(1_000);
    format!("{}.{:03}s", millis / 1_000, millis % 1_000)
}

/// The older kind of schema, whose types the SDK writes in capitals: `{"type": "OBJECT"}`.
fn json_schema(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(kind) if name == "type" => kind.make_ascii_lowercase(),
                    _ => *value = json_schema(value.take()),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = json_schema(item.take())),
        _ => {}
    }
    schema
}

/// A field by either spelling, for the vendor takes both; null is as good as nothing.
fn either<'a>(object: &'a Value, names: [&str; 2]) -> Option<&'a Value> {
    names.into_iter().find_map(|name| object.get(name).filter(|value| !value.is_null()))
}

fn read_parts(prompt: &mut Prompt, role: &str, content: &Value) {
    for part in content.get("parts").and_then(Value::as_array).into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            prompt.text(role, text);
        }
        let data = part.pointer("/inlineData/data").or_else(|| part.pointer("/inline_data/data"));
        let kind =
            part.pointer("/inlineData/mimeType").or_else(|| part.pointer("/inline_data/mime_type"));
        let kind = kind.and_then(Value::as_str);
        if let Some(data) = data.and_then(Value::as_str) {
            match kind.filter(|kind| kind.starts_with("image/")) {
                // docs: media-resolution; the same for every size.
                Some(_) => prompt.picture(data, kind, 20 << 20, |_| 1_120),
                None => prompt.base64(data),
            }
        }
    }
}
