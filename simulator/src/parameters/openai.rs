//! Chat Completions and Responses: the vendor's OpenAPI document 2.3.0 and its guides on reasoning
//! and on the latest model (parameter compatibility), November 2026.

use serde_json::Value;

use super::{is_outside, unknown, version};
use crate::{problem::Problem, strict};

const CHAT: &[&str] = &[
    "messages",
    "model",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

const RESPONSES: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// How one of OpenAI's own models treats reasoning.
enum Model {
    /// It does not reason.
    Plain,
    /// It always does.
    Reasons,
    /// Unless it is told not to (from gpt-5.1 on).
    UnlessNone,
}

fn own(model: &str) -> Option<Model> {
    if model.contains("-chat") {
        return version(model, "gpt-").map(|_| Model::Plain);
    }
    let is_o = ["o1", "o3", "o4-"].iter().any(|begin| model.starts_with(begin));
    match version(model, "gpt-") {
        _ if is_o => Some(Model::Reasons),
        Some(version) if version < 50 => Some(Model::Plain),
        Some(50) if model.starts_with("gpt-5") => Some(Model::Reasons),
        Some(_) => Some(Model::UnlessNone),
        None => None,
    }
}

/// Refuses what the vendor refuses of a Chat Completions call.
pub(crate) fn check(model: &str, body: &Value) -> Result<(), Problem> {
    ranges(body)?;
    let Some(kind) = own(model) else { return Ok(()) };
    if let Some(name) = unknown(Some(body), CHAT) {
        return Err(Problem::invalid(
            format!("Unrecognized request argument supplied: {name}"),
            "body",
        ));
    }
    if body.pointer("/response_format/json_schema/strict") == Some(&Value::Bool(true))
        && let Some(schema) = body.pointer("/response_format/json_schema/schema")
    {
        strict::openai(schema)?;
    }
    let effort = body.get("reasoning_effort").and_then(Value::as_str);
    of_model(&kind, body, effort, "reasoning_effort")?;
    match body.get("stop").filter(|stop| !stop.is_null()) {
        Some(_) if matches!(kind, Model::Reasons) => Err(unsupported("stop", "stop")),
        Some(Value::Array(texts)) if texts.len() > 4 => Err(Problem::invalid(
            "Invalid 'stop': array too long. Expected an array with maximum length 4.",
            "stop",
        )),
        _ => Ok(()),
    }
}

/// Checks the fields of a Responses call.
pub(crate) fn check_responses(model: &str, body: &Value) -> Result<(), Problem> {
    ranges(body)?;
    if let Some(name) = unknown(Some(body), RESPONSES) {
        return Err(Problem::invalid(format!("Unknown parameter: '{name}'."), "body"));
    }
    let Some(kind) = own(model) else { return Ok(()) };
    if body.pointer("/text/format/strict") == Some(&Value::Bool(true))
        && let Some(schema) = body.pointer("/text/format/schema")
    {
        strict::openai(schema)?;
    }
    let effort = body.pointer("/reasoning/effort").and_then(Value::as_str);
    of_model(&kind, body, effort, "reasoning.effort")
}

fn ranges(body: &Value) -> Result<(), Problem> {
    for (name, least, most) in [
        ("temperature", 0.0, 2.0),
        ("top_p", 0.0, 1.0),
        ("frequency_penalty", -2.0, 2.0),
        ("presence_penalty", -2.0, 2.0),
    ] {
        if is_outside(body, name, least, most) {
            return Err(Problem::invalid(
                format!("Invalid '{name}': expected a value from {least} to {most}."),
                name,
            ));
        }
    }
    Ok(())
}

fn unsupported(name: &str, param: &'static str) -> Problem {
    Problem::invalid(
        format!("Unsupported parameter: '{name}' is not supported with this model."),
        param,
    )
}

fn of_model(
    kind: &Model,
    body: &Value,
    effort: Option<&str>,
    name: &'static str,
) -> Result<(), Problem> {
    let takes: &[&str] = match kind {
        Model::Plain if effort.is_some() => return Err(unsupported(name, name)),
        Model::Plain => &[],
        Model::Reasons => &["minimal", "low", "medium", "high", "xhigh"],
        Model::UnlessNone => &["none", "low", "medium", "high", "xhigh", "max"],
    };
    if let Some(effort) = effort.filter(|effort| !takes.contains(effort)) {
        return Err(Problem::invalid(
            format!("Unsupported value: '{name}' does not support '{effort}' with this model."),
            name,
        ));
    }
    let reasons = match kind {
        Model::Plain => false,
        Model::Reasons => true,
        Model::UnlessNone => effort != Some("none"),
    };
    for name in ["temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias"] {
        let given = body.get(name).filter(|value| !value.is_null());
        let default = if matches!(name, "temperature" | "top_p") { 1.0 } else { 0.0 };
        if reasons && given.is_some_and(|value| value.as_f64() != Some(default)) {
            return Err(unsupported(name, "temperature"));
        }
    }
    Ok(())
}
