//! generateContent: ai.google.dev/api/generate-content and gemini-api/docs/thinking, November 2026.

use serde_json::Value;

use super::{is_outside, unknown, version};
use crate::problem::Problem;

const TOP: &[&str] = &[
    "contents",
    "tools",
    "toolConfig",
    "tool_config",
    "safetySettings",
    "safety_settings",
    "systemInstruction",
    "system_instruction",
    "generationConfig",
    "generation_config",
    "cachedContent",
    "cached_content",
    "serviceTier",
    "service_tier",
    "store",
    "model",
    "labels",
];

const CONFIG: &[&str] = &[
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "responseLogprobs",
    "logprobs",
    "presencePenalty",
    "frequencyPenalty",
    "seed",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "mediaResolution",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "enableEnhancedCivicAnswers",
];

/// Refuses what the vendor refuses.
pub(crate) fn check(model: &str, body: &Value, config: Option<&Value>) -> Result<(), Problem> {
    let no_field = |name: &str, place: &str| {
        let place = if place.is_empty() { String::new() } else { format!(" at '{place}'") };
        Problem::invalid(
            format!(
                "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
            ),
            "body",
        )
    };
    if let Some(name) = unknown(Some(body), TOP) {
        return Err(no_field(name, ""));
    }
    // Google takes either spelling.
    let camel = |name: &str| {
        let mut parts = name.split('_');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |name, part| {
            let (head, tail) = part.split_at(part.len().min(1));
            name + &head.to_ascii_uppercase() + tail
        })
    };
    let names: Vec<String> = super::fields(config).map(|(name, _)| camel(name)).collect();
    if let Some(name) = names.iter().find(|name| !CONFIG.contains(&name.as_str())) {
        return Err(no_field(name, "generation_config"));
    }
    let Some(config) = config else { return Ok(()) };
    let invalid = |message: &str| Err(Problem::invalid(message, "generation_config"));
    if is_outside(config, "temperature", 0.0, 2.0) {
        return invalid(
            "* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].",
        );
    }
    if is_outside(config, "topP", 0.0, 1.0) {
        return invalid(
            "* GenerateContentRequest.generation_config.top_p: must be in the range [0.0, 1.0].",
        );
    }
    let Some(thinking) = config.get("thinkingConfig") else { return Ok(()) };
    let (budget, level) = (thinking.get("thinkingBudget"), thinking.get("thinkingLevel"));
    let version = version(model, "gemini-");
    let is_pro = model.contains("-pro");
    match (budget, level, version) {
        (Some(_), Some(_), _) => {
            invalid("You can only set only one of thinking budget and thinking level.")
        }
        (None, Some(_), Some(..=29)) => invalid("Thinking level is not supported for this model."),
        (None, Some(level), _) => match level.as_str().map(str::to_ascii_uppercase).as_deref() {
            Some("MINIMAL") if is_pro => {
                invalid("Thinking level MINIMAL is not supported for this model.")
            }
            Some("MEDIUM") if model.contains("gemini-3-pro") => {
                invalid("Thinking level MEDIUM is not supported for this model.")
            }
            Some("MINIMAL" | "LOW" | "MEDIUM" | "HIGH" | "XHIGH") => Ok(()),
            _ => invalid("Invalid value at 'generation_config.thinking_config.thinking_level'"),
        },
        (Some(budget), None, _) => match budget.as_i64() {
            Some(0) if is_pro => {
                invalid("Budget 0 is invalid. This model only works in thinking mode.")
            }
            Some(-1..=32_768) => Ok(()),
            _ => invalid(
                "The thinking budget is invalid. Please choose a value between 0 and 32768.",
            ),
        },
        (None, None, _) => Ok(()),
    }
}
