//! Parameters of generateContent: all in `generationConfig`.

use serde_json::{Value, json};
use tidegate_types::Effort;

use crate::parameters::{Refusal, Row, Table, Takes};

pub(crate) static TABLE: Table = Table {
    rows: &[
        Row::new("temperature", Takes::Number(0.0, 2.0), &["generationConfig", "temperature"]),
        Row::new("top_p", Takes::Number(0.0, 1.0), &["generationConfig", "topP"]),
        Row::new("top_k", Takes::Whole(1, i64::MAX), &["generationConfig", "topK"]),
        Row::new(
            "seed",
            Takes::Whole(i32::MIN as i64, i32::MAX as i64),
            &["generationConfig", "seed"],
        ),
        Row::new("stop", Takes::Texts(5), &["generationConfig", "stopSequences"]),
        Row::new(
            "presence_penalty",
            Takes::Number(-2.0, 2.0),
            &["generationConfig", "presencePenalty"],
        ),
        Row::new(
            "frequency_penalty",
            Takes::Number(-2.0, 2.0),
            &["generationConfig", "frequencyPenalty"],
        ),
        Row::new(
            "thinking_budget",
            Takes::Whole(-1, 32_768),
            &["generationConfig", "thinkingConfig", "thinkingBudget"],
        ),
        Row::new("service_tier", Takes::Word(&["standard", "flex", "priority"]), &["serviceTier"]),
        Row::new(
            "media_resolution",
            Takes::Word(&[
                "MEDIA_RESOLUTION_LOW",
                "MEDIA_RESOLUTION_MEDIUM",
                "MEDIA_RESOLUTION_HIGH",
            ]),
            &["generationConfig", "mediaResolution"],
        ),
        Row::new("cached_content", Takes::Text, &["cachedContent"]),
    ],
    own: &[
        "contents",
        "systemInstruction",
        "generationConfig",
        "thinkingConfig",
        "maxOutputTokens",
        "responseMimeType",
        "responseSchema",
        "responseJsonSchema",
        "candidateCount",
        "tools",
        "toolConfig",
    ],
    unknown: &["generationConfig"],
    effort,
    refuses,
    sources: &[
        "https://ai.google.dev/api/generate-content",
        "https://ai.google.dev/gemini-api/docs/thinking",
        "https://ai.google.dev/gemini-api/docs/openai#thinking",
    ],
};

/// The generation in a model's name: 2.5 takes budgets, 3 and later take levels. A name without a
/// number counts as the newest.
fn generation(model: &str) -> f32 {
    let rest = model.split_once("gemini-").map_or("", |(_, rest)| rest);
    rest.split('-').next().and_then(|number| number.parse().ok()).unwrap_or(f32::MAX)
}

fn is_pro(model: &str) -> bool {
    model.contains("-pro")
}

fn effort(model: &str, effort: Effort, _room: u32) -> Result<Value, String> {
    let generation = generation(model);
    if generation < 2.5 {
        return match effort {
            Effort::None => Ok(json!({})),
            _ => Err("this model does not think; leave it out".to_owned()),
        };
    }
    if generation < 3.0 {
        if effort == Effort::None && is_pro(model) {
            return Err("this model always thinks; \"low\" is the least".to_owned());
        }
        let budget = effort.thinking_tokens();
        return Ok(json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": budget}}}));
    }
    let level = match effort {
        Effort::None => return Err("this model always thinks; \"low\" is the least".to_owned()),
        Effort::Medium if model.contains("gemini-3-pro") => {
            return Err("this model knows \"low\" and \"high\" alone".to_owned());
        }
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High => "HIGH",
    };
    Ok(json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": level}}}))
}

fn refuses(asked: &Refusal<'_>) -> Option<&'static str> {
    let generation = generation(asked.model);
    match (asked.name, asked.value.as_i64()) {
        ("thinking_budget", _) if generation < 2.5 => Some("this model does not think"),
        ("thinking_budget", Some(0..128)) if is_pro(asked.model) => {
            Some("this model always thinks; 128 is the least")
        }
        ("thinking_budget", _) if generation >= 3.0 => {
            Some("this model is told by levels; write effort instead")
        }
        _ => None,
    }
}
