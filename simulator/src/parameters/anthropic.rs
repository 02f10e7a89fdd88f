//! Messages: platform.claude.com/docs/en/api/messages, build-with-claude/{thinking,
//! extended-thinking, effort}, November 2026.

use serde_json::Value;

use super::{is_outside, unknown, version};
use crate::{problem::Problem, strict};

const KNOWN: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "system",
    "metadata",
    "stop_sequences",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "thinking",
    "tools",
    "tool_choice",
    "service_tier",
    "output_config",
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "mcp_servers",
    "speed",
    "user_profile_id",
];

/// From Claude 4.7 on, and for Fable and Mythos, sampling parameters are refused.
const NO_SAMPLING: u32 = 47;

/// Refuses what the vendor refuses.
pub(crate) fn check(model: &str, max_tokens: u64, body: &Value) -> Result<(), Problem> {
    if let Some(name) = unknown(Some(body), KNOWN) {
        return Err(Problem::invalid(format!("{name}: Extra inputs are not permitted"), "body"));
    }
    if version(model, "claude").is_some()
        && let Some(schema) = body.pointer("/output_config/format/schema")
    {
        // build-with-claude/structured-outputs: from Claude 4.5 on.
        if version(model, "claude").is_some_and(|version| version < 45) {
            return Err(Problem::invalid(
                "This model does not support the `output_config.format` parameter.",
                "output_config",
            ));
        }
        strict::anthropic(schema)?;
    }
    model_check(model, max_tokens, body, body.get("thinking"), effort(body))
}

/// The tool that a call forces, and the schema of its arguments
/// (agents-and-tools/tool-use/implement-tool-use).
pub(crate) fn forced_tool(body: &Value) -> Result<Option<(String, Value)>, Problem> {
    let refused = |message: String| Err(Problem::invalid(message, "tools"));
    let tools = body.get("tools").and_then(Value::as_array);
    let mut found = None;
    let choice = body.get("tool_choice").filter(|choice| !choice.is_null());
    let forced = choice.filter(|choice| choice["type"] == "tool").map(|choice| &choice["name"]);
    for (n, tool) in tools.into_iter().flatten().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return refused(format!(
                "tools.{n}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if tool["input_schema"]["type"] != "object" {
            return refused(format!(
                "tools.{n}.custom.input_schema.type: Input should be 'object'"
            ));
        }
        if forced.is_some_and(|forced| forced == name) {
            found = Some((name.to_owned(), tool["input_schema"].clone()));
        }
    }
    if choice.is_some() && tools.is_none_or(Vec::is_empty) {
        return refused("tool_choice: may only be specified while providing `tools`.".to_owned());
    }
    if forced.is_some() && found.is_none() {
        return refused(format!(
            "Tool '{}' not found in provided tools",
            forced.and_then(Value::as_str).unwrap_or_default()
        ));
    }
    let thinks = body.pointer("/thinking/type").and_then(Value::as_str);
    if found.is_some() && matches!(thinks, Some("enabled" | "adaptive")) {
        return refused("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
    }
    Ok(found)
}

fn effort(body: &Value) -> Option<&Value> {
    body.pointer("/output_config/effort").filter(|effort| !effort.is_null())
}

/// Checks for Claude on another cloud, where these fields stand elsewhere in the body.
pub(super) fn model_check(
    model: &str,
    max_tokens: u64,
    sampling: &Value,
    thinking: Option<&Value>,
    effort: Option<&Value>,
) -> Result<(), Problem> {
    let refused = |message: String| Err(Problem::invalid(message, "thinking"));
    let always = model.contains("fable") || model.contains("mythos");
    let version = version(model, "claude");
    for name in ["temperature", "top_p"] {
        if is_outside(sampling, name, 0.0, 1.0) {
            return refused(format!("{name}: range: 0..1"));
        }
    }
    let given = |name: &&str| sampling.get(*name).is_some_and(|value| !value.is_null());
    let sampled = ["temperature", "top_p", "top_k"].into_iter().find(given);
    if let Some(name) = sampled
        && (always || version.is_some_and(|version| version >= NO_SAMPLING))
    {
        return refused(format!("`{name}` is deprecated for this model."));
    }
    if given(&"temperature") && given(&"top_p") && version.is_some_and(|version| version >= 41) {
        return refused(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
                .to_owned(),
        );
    }
    if let Some(effort) = effort
        && !["low", "medium", "high", "xhigh", "max"].map(Value::from).contains(effort)
    {
        return refused(
            "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"
                .to_owned(),
        );
    }
    let kind = thinking.and_then(|thinking| thinking.get("type")).and_then(Value::as_str);
    let is_on = matches!(kind, Some("enabled" | "adaptive"));
    if is_on && given(&"temperature") && sampling["temperature"].as_f64() != Some(1.0) {
        return refused("`temperature` may only be set to 1 when thinking is enabled.".to_owned());
    }
    if is_on && given(&"top_k") {
        return refused("`top_k` must be unset when thinking is enabled.".to_owned());
    }
    match (thinking, kind) {
        (None, _) => Ok(()),
        (_, Some("disabled")) if always => {
            refused("\"thinking.type.disabled\" is not supported for this model.".to_owned())
        }
        (_, Some("disabled")) => Ok(()),
        (_, Some("adaptive")) if version.is_some_and(|version| version < 46) => {
            refused("adaptive thinking is not supported on this model".to_owned())
        }
        (_, Some("adaptive")) => Ok(()),
        (_, Some("enabled")) if always || version.is_some_and(|version| version >= 47) => refused(
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."
                .to_owned(),
        ),
        (Some(thinking), Some("enabled")) => {
            let budget = thinking.get("budget_tokens").and_then(Value::as_u64).unwrap_or(0);
            if budget < 1_024 {
                return refused(
                    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
                        .to_owned(),
                );
            }
            if budget >= max_tokens {
                return refused(
                    "`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned(),
                );
            }
            Ok(())
        }
        _ => refused(
            "thinking: Input tag does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'"
                .to_owned(),
        ),
    }
}
