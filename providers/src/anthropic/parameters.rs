//! Parameters of Messages.

use serde_json::{Value, json};
use tidegate_types::Effort;

use super::model::{self, Thinking};
use crate::parameters::{Refusal, Row, Table, Takes};

/// The smallest budget that the vendor accepts; it must stay below `max_tokens`.
const MIN_BUDGET: u32 = 1_024;

pub(crate) static TABLE: Table = Table {
    rows: &[
        Row::new("temperature", Takes::Number(0.0, 1.0), &["temperature"]),
        Row::new("top_p", Takes::Number(0.0, 1.0), &["top_p"]),
        Row::new("top_k", Takes::Whole(0, i64::MAX), &["top_k"]),
        Row::new("stop", Takes::Texts(usize::MAX), &["stop_sequences"]),
        Row::new("service_tier", Takes::Word(&["auto", "standard_only"]), &["service_tier"]),
        Row {
            companion: Some(("type", "enabled")),
            ..Row::new(
                "thinking_budget",
                Takes::Whole(MIN_BUDGET as i64, i64::MAX),
                &["thinking", "budget_tokens"],
            )
        },
        Row::new("inference_geo", Takes::Text, &["inference_geo"]),
        Row::new("metadata", Takes::Object, &["metadata"]),
        Row::new("speed", Takes::Word(&["standard", "fast"]), &["speed"]),
    ],
    own: &[
        "model",
        "max_tokens",
        "messages",
        "system",
        "output_config",
        "thinking",
        "stream",
        "tools",
        "tool_choice",
    ],
    unknown: &[],
    effort,
    refuses,
    sources: &[
        "https://platform.claude.com/docs/en/api/messages",
        "https://platform.claude.com/docs/en/build-with-claude/effort",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking",
    ],
};

pub(crate) fn effort(model: &str, effort: Effort, room: u32) -> Result<Value, String> {
    match (model::thinking(model), effort) {
        (Thinking::Never | Thinking::Budget, Effort::None) => Ok(json!({})),
        (Thinking::Never, _) => Err("this model does not think; leave it out".to_owned()),
        (Thinking::Budget, _) => {
            // Half of the room is left for the answer.
            let budget = effort.thinking_tokens().min(room / 2);
            if budget < MIN_BUDGET {
                return Err(format!(
                    "max_output_tokens must be at least {} with it, because this model's thinking takes {MIN_BUDGET} at least",
                    2 * MIN_BUDGET
                ));
            }
            Ok(json!({"thinking": {"type": "enabled", "budget_tokens": budget}}))
        }
        (Thinking::Adaptive, Effort::None) => Ok(json!({"thinking": {"type": "disabled"}})),
        (Thinking::Adaptive, _) => {
            Ok(json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}))
        }
        (Thinking::Always, Effort::None) => {
            Err("this model always thinks; \"low\" is the least".to_owned())
        }
        (Thinking::Always, _) => Ok(json!({"output_config": {"effort": effort}})),
    }
}

pub(crate) fn refuses(asked: &Refusal<'_>) -> Option<&'static str> {
    let thinks = asked.effort.is_some_and(|effort| effort != Effort::None)
        || asked.fields.contains_key("thinking_budget");
    match asked.name {
        "temperature" | "top_p" | "top_k" if model::refuses_sampling(asked.model) => {
            Some("this model refuses sampling parameters; leave it out")
        }
        "top_p"
            if asked.fields.contains_key("temperature")
                && model::takes_one_sampler(asked.model) =>
        {
            Some("this model does not take it together with temperature; leave out one of them")
        }
        "temperature" | "top_k" if thinks => {
            Some("it does not go together with thinking; leave out one of them")
        }
        "top_p" if thinks && asked.value.as_f64().is_some_and(|top_p| top_p < 0.95) => {
            Some("with thinking it must be 0.95 at least")
        }
        "thinking_budget" if model::refuses_budgets(asked.model) => {
            Some("this model takes no budget of thinking tokens; write effort instead")
        }
        _ => None,
    }
}
