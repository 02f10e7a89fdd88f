//! Parameters of Chat Completions at the vendor's own host; those of compatible servers are in
//! `vendors/parameters.rs`.

use serde_json::{Value, json};
use tidegate_types::Effort;

use super::model::{self, Reasoning};
use crate::parameters::{Refusal, Row, Table, Takes};

pub(crate) const LOGIT_BIAS: Row = Row::new("logit_bias", Takes::Object, &["logit_bias"]);
pub(crate) const TEMPERATURE: Row =
    Row::new("temperature", Takes::Number(0.0, 2.0), &["temperature"]);
pub(crate) const TOP_P: Row = Row::new("top_p", Takes::Number(0.0, 1.0), &["top_p"]);
pub(crate) const SEED: Row = Row::new("seed", Takes::Whole(i64::MIN, i64::MAX), &["seed"]);
pub(crate) const STOP: Row = Row::new("stop", Takes::Texts(4), &["stop"]);
pub(crate) const FREQUENCY: Row =
    Row::new("frequency_penalty", Takes::Number(-2.0, 2.0), &["frequency_penalty"]);
pub(crate) const PRESENCE: Row =
    Row::new("presence_penalty", Takes::Number(-2.0, 2.0), &["presence_penalty"]);
pub(crate) const USER: Row = Row::new("user", Takes::Text, &["user"]);

const SERVICE_TIER: Takes = Takes::Word(&["auto", "default", "flex", "scale", "priority", "fast"]);
const LEVELS: Takes = Takes::Word(&["low", "medium", "high"]);

/// Fields that the client of every API of this form writes itself.
pub(crate) const OWN: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "reasoning_effort",
    "reasoning",
    "stream",
    "stream_options",
    "n",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "modalities",
    "audio",
];

pub(crate) static TABLE: Table = Table {
    rows: &[
        TEMPERATURE,
        TOP_P,
        SEED,
        STOP,
        Row::new("service_tier", SERVICE_TIER, &["service_tier"]),
        Row::new("verbosity", LEVELS, &["verbosity"]),
        FREQUENCY,
        PRESENCE,
        LOGIT_BIAS,
        Row::new("metadata", Takes::Object, &["metadata"]),
        Row::new("store", Takes::Flag, &["store"]),
        Row::new("prompt_cache_key", Takes::Text, &["prompt_cache_key"]),
        Row::new("safety_identifier", Takes::Text, &["safety_identifier"]),
        USER,
    ],
    own: OWN,
    unknown: &[],
    effort: |model, effort, _| {
        let word = model::word(model, effort)?;
        Ok(word.map_or_else(|| json!({}), |word| json!({"reasoning_effort": word})))
    },
    refuses,
    sources: &[
        "https://developers.openai.com/api/reference/resources/chat",
        "https://developers.openai.com/api/docs/guides/reasoning",
    ],
};

/// Parameters of the vendor's other API, which has no seed, stops or penalties.
pub(crate) static RESPONSES: Table = Table {
    rows: &[
        TEMPERATURE,
        TOP_P,
        Row::new("service_tier", SERVICE_TIER, &["service_tier"]),
        Row::new("verbosity", LEVELS, &["text", "verbosity"]),
        Row::new("metadata", Takes::Object, &["metadata"]),
        Row::new("store", Takes::Flag, &["store"]),
        Row::new("prompt_cache_key", Takes::Text, &["prompt_cache_key"]),
        Row::new("safety_identifier", Takes::Text, &["safety_identifier"]),
        Row::new("truncation", Takes::Word(&["auto", "disabled"]), &["truncation"]),
        USER,
    ],
    own: &[
        "model",
        "input",
        "instructions",
        "max_output_tokens",
        "text",
        "reasoning",
        "stream",
        "background",
        "tools",
        "tool_choice",
        "previous_response_id",
        "conversation",
    ],
    unknown: &[],
    effort: |model, effort, _| {
        let word = model::word(model, effort)?;
        Ok(word.map_or_else(|| json!({}), |word| json!({"reasoning": {"effort": word}})))
    },
    refuses,
    sources: &[
        "https://developers.openai.com/api/reference/resources/responses",
        "https://developers.openai.com/api/docs/guides/reasoning",
    ],
};

/// Fields that reasoning models refuse.
pub(crate) const SAMPLING: [&str; 5] =
    ["temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias"];

pub(crate) fn refuses(asked: &Refusal<'_>) -> Option<&'static str> {
    let reasoning = model::reasoning(asked.model);
    let default = |value: &Value| value.as_f64() == Some(1.0);
    match asked.name {
        "temperature" | "top_p" if default(asked.value) => None,
        name if SAMPLING.contains(&name) => match reasoning {
            Reasoning::Always | Reasoning::AtLeastMinimal => {
                Some("models that reason refuse it; leave it out")
            }
            Reasoning::UnlessNone if asked.effort != Some(Effort::None) => {
                Some("this model refuses it while it reasons; add effort \"none\" or leave it out")
            }
            _ => None,
        },
        "stop" if matches!(reasoning, Reasoning::Always | Reasoning::AtLeastMinimal) => {
            Some("models that reason refuse it; leave it out")
        }
        "verbosity" if reasoning == Reasoning::Never && asked.value != "medium" => {
            Some("models before gpt-5 refuse it; leave it out")
        }
        _ => None,
    }
}
