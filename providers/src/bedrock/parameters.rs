//! Parameters of Converse: some have their own field there, the others are sent as the model's own
//! fields (`additionalModelRequestFields`).

use serde_json::{Value, json};
use tidegate_types::Effort;

use crate::{
    anthropic,
    parameters::{Refusal, Row, Table, Takes},
};

/// The field for a model's own fields.
pub(super) const OF_THE_MODEL: &str = "additionalModelRequestFields";

pub(crate) static TABLE: Table = Table {
    rows: &[
        Row::new("temperature", Takes::Number(0.0, 1.0), &["inferenceConfig", "temperature"]),
        Row::new("top_p", Takes::Number(0.0, 1.0), &["inferenceConfig", "topP"]),
        Row::new("top_k", Takes::Whole(0, 500), &[OF_THE_MODEL, "top_k"]),
        Row::new("stop", Takes::Texts(2_500), &["inferenceConfig", "stopSequences"]),
        Row::new(
            "service_tier",
            Takes::Word(&["priority", "default", "flex", "reserved"]),
            &["serviceTier", "type"],
        ),
        Row::new(
            "latency",
            Takes::Word(&["standard", "optimized"]),
            &["performanceConfig", "latency"],
        ),
        Row {
            companion: Some(("type", "enabled")),
            ..Row::new(
                "thinking_budget",
                Takes::Whole(1_024, i64::MAX),
                &[OF_THE_MODEL, "thinking", "budget_tokens"],
            )
        },
    ],
    own: &[
        "modelId",
        "messages",
        "system",
        "inferenceConfig",
        "outputConfig",
        "maxTokens",
        "toolConfig",
        "guardrailConfig",
        "thinking",
        "reasoning_effort",
        "reasoningConfig",
        OF_THE_MODEL,
    ],
    unknown: &[OF_THE_MODEL],
    effort,
    refuses: |asked| match asked.name {
        "thinking_budget" if !is_claude(asked.model) => Some("only Claude's models take it"),
        "top_k" if !is_claude(asked.model) => Some("only Claude's models take it by this name"),
        _ if is_claude(asked.model) => anthropic::parameters::refuses(&Refusal { ..*asked }),
        _ => None,
    },
    sources: &[
        "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
        "https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html",
    ],
};

fn is_claude(model: &str) -> bool {
    model.contains("claude")
}

/// Claude's models as at Anthropic; Nova 2 and gpt-oss use their own words.
fn effort(model: &str, effort: Effort, room: u32) -> Result<Value, String> {
    if is_claude(model) {
        let said = anthropic::parameters::effort(model, effort, room)?;
        let mut body = json!({});
        if let Some(thinking) = said.get("thinking") {
            body[OF_THE_MODEL] = json!({"thinking": thinking});
        }
        if let Some(config) = said.get("output_config") {
            body["outputConfig"] = config.clone();
        }
        return Ok(body);
    }
    match effort {
        _ if model.contains("nova-2") => {
            let config = match effort {
                Effort::None => json!({"type": "disabled"}),
                _ => json!({"type": "enabled", "maxReasoningEffort": effort}),
            };
            Ok(json!({OF_THE_MODEL: {"reasoningConfig": config}}))
        }
        Effort::None if model.contains("gpt-oss") => {
            Err("this model always reasons; \"low\" is the least".to_owned())
        }
        _ if model.contains("gpt-oss") => Ok(json!({OF_THE_MODEL: {"reasoning_effort": effort}})),
        Effort::None => Ok(json!({})),
        _ => Err("how this model is told is not known here; leave it out, or send the model's own field with allow_unknown".to_owned()),
    }
}
