//! Converse: the service model of 2023-09-30 as of November 2026. Fields for the model itself are
//! known of Claude alone.

use serde_json::Value;

use super::{anthropic, is_outside, unknown};
use crate::problem::Problem;

const TOP: &[&str] = &[
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "promptVariables",
    "additionalModelResponseFieldPaths",
    "requestMetadata",
    "performanceConfig",
    "serviceTier",
    "outputConfig",
];

/// The tool that a call forces, and the schema of its arguments: `API_runtime_ToolConfiguration`.
pub(crate) fn forced_tool(body: &Value) -> Result<Option<(String, Value)>, Problem> {
    let Some(config) = body.get("toolConfig") else { return Ok(None) };
    let refused = |message: &str| Err(Problem::invalid(message, "toolConfig"));
    let tools = config["tools"].as_array().filter(|tools| !tools.is_empty());
    let Some(tools) = tools else {
        return refused(
            "1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1",
        );
    };
    let forced = config.pointer("/toolChoice/tool/name").and_then(Value::as_str);
    let mut found = None;
    for tool in tools {
        let specification = &tool["toolSpec"];
        let schema = &specification["inputSchema"]["json"];
        if schema["type"] != "object" {
            return refused(
                "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.",
            );
        }
        let name = specification["name"].as_str().unwrap_or_default();
        if forced == Some(name) {
            found = Some((name.to_owned(), schema.clone()));
        }
    }
    if forced.is_some() && found.is_none() {
        return refused("The toolChoice names a tool that is not in toolConfig.tools.");
    }
    Ok(found)
}

/// Refuses what the vendor refuses.
pub(crate) fn check(model: &str, max_tokens: u64, body: &Value) -> Result<(), Problem> {
    let inference = body.get("inferenceConfig");
    let stranger = unknown(Some(body), TOP)
        .or_else(|| unknown(inference, &["maxTokens", "temperature", "topP", "stopSequences"]));
    if let Some(name) = stranger {
        let message = format!("extraneous key [{name}] is not permitted");
        return Err(Problem::invalid(message, "body"));
    }
    let nothing = Value::Null;
    let inference = inference.unwrap_or(&nothing);
    for name in ["temperature", "topP"] {
        if is_outside(inference, name, 0.0, 1.0) {
            let message = format!(
                "1 validation error detected: Value at 'inferenceConfig.{name}' failed to satisfy constraint: Member must be between 0 and 1"
            );
            return Err(Problem::invalid(message, "inferenceConfig"));
        }
    }
    for (place, words) in [
        ("/serviceTier/type", ["priority", "default", "flex", "reserved"].as_slice()),
        ("/performanceConfig/latency", ["standard", "optimized"].as_slice()),
    ] {
        let given = body.pointer(place);
        if given.is_some_and(|word| word.as_str().is_none_or(|word| !words.contains(&word))) {
            let message = format!(
                "1 validation error detected: Value at '{place}' failed to satisfy constraint: Member must satisfy enum value set: {words:?}"
            );
            return Err(Problem::invalid(message, "body"));
        }
    }
    if !model.contains("claude") {
        return Ok(());
    }
    let own = body.get("additionalModelRequestFields");
    let mut sampling = own.cloned().unwrap_or(Value::Null);
    for (ours, theirs) in [("temperature", "temperature"), ("topP", "top_p")] {
        if let (Some(value), Some(fields)) = (inference.get(ours), sampling.as_object_mut()) {
            fields.insert(theirs.to_owned(), value.clone());
        }
    }
    if sampling.is_null() {
        sampling = serde_json::json!({"temperature": inference.get("temperature"), "top_p": inference.get("topP")});
    }
    let thinking = own.and_then(|own| own.get("thinking"));
    let effort = body.pointer("/outputConfig/effort");
    anthropic::model_check(model, max_tokens, &sampling, thinking, effort)
}
