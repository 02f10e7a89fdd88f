//! The parameters of each preset, with its own names.

use serde_json::{Value, json};
use tidegate_types::Effort;

use crate::{
    openai::parameters::{
        FREQUENCY, LOGIT_BIAS, OWN, PRESENCE, SEED, STOP, TEMPERATURE, TOP_P, USER,
    },
    parameters::{Row, Table, Takes},
};

const TOP_K: Row = Row::new("top_k", Takes::Whole(-1, i64::MAX), &["top_k"]);
const MIN_P: Row = Row::new("min_p", Takes::Number(0.0, 1.0), &["min_p"]);
const REPETITION: Row =
    Row::new("repetition_penalty", Takes::Number(0.0, 2.0), &["repetition_penalty"]);

type EffortFields = Result<Value, String>;

/// `reasoning_effort`, with our words.
fn as_it_is(_: &str, effort: Effort, _: u32) -> EffortFields {
    Ok(json!({"reasoning_effort": effort}))
}

/// `reasoning_effort` of models whose reasoning cannot be switched off.
fn at_least_low(effort: Effort) -> EffortFields {
    match effort {
        Effort::None => Err("this model always reasons; \"low\" is the least".to_owned()),
        _ => Ok(json!({"reasoning_effort": effort})),
    }
}

const fn table(rows: &'static [Row], sources: &'static [&'static str]) -> Table {
    Table { rows, own: OWN, unknown: &[], effort: as_it_is, refuses: |_| None, sources }
}

/// Parameters that all presets accept.
pub(super) static PLAIN: Table = table(
    &[TEMPERATURE, TOP_P, SEED, STOP, FREQUENCY, PRESENCE, USER],
    &["https://developers.openai.com/api/reference/resources/chat"],
);

pub(super) static MISTRAL: Table = Table {
    effort: |model, effort, _| match effort {
        _ if model.contains("magistral") => {
            Err("this model always reasons, and takes no effort; leave it out".to_owned())
        }
        Effort::None | Effort::High => Ok(json!({"reasoning_effort": effort})),
        _ => Err("mistral knows \"none\" and \"high\" alone".to_owned()),
    },
    ..table(
        &[
            Row::new("temperature", Takes::Number(0.0, 1.5), &["temperature"]),
            TOP_P,
            Row::new("seed", Takes::Whole(0, i64::MAX), &["random_seed"]),
            STOP,
            FREQUENCY,
            PRESENCE,
            Row::new("safe_prompt", Takes::Flag, &["safe_prompt"]),
            Row::new("prompt_mode", Takes::Text, &["prompt_mode"]),
        ],
        &["https://docs.mistral.ai/api/", "https://docs.mistral.ai/capabilities/reasoning"],
    )
};

pub(super) static GROQ: Table = Table {
    effort: |model, effort, _| match effort {
        _ if model.contains("gpt-oss") => at_least_low(effort),
        Effort::None if model.contains("qwen") => Ok(json!({"reasoning_effort": "none"})),
        _ if model.contains("qwen") => Ok(json!({"reasoning_effort": "default"})),
        Effort::None => Ok(json!({})),
        _ => Err("at groq gpt-oss and qwen models take an effort; leave it out".to_owned()),
    },
    ..table(
        &[
            TEMPERATURE,
            TOP_P,
            SEED,
            STOP,
            FREQUENCY,
            PRESENCE,
            USER,
            Row::new(
                "service_tier",
                Takes::Word(&["auto", "on_demand", "flex", "performance"]),
                &["service_tier"],
            ),
            Row::new("reasoning_format", Takes::Word(&["hidden", "parsed"]), &["reasoning_format"]),
        ],
        &["https://console.groq.com/docs/api-reference", "https://console.groq.com/docs/reasoning"],
    )
};

pub(super) static TOGETHER: Table = Table {
    effort: |model, effort, _| match effort {
        _ if model.contains("gpt-oss") => at_least_low(effort),
        Effort::None => Ok(json!({"reasoning": {"enabled": false}})),
        _ => Ok(json!({"reasoning": {"enabled": true}, "reasoning_effort": effort})),
    },
    ..table(
        &[
            TEMPERATURE,
            TOP_P,
            TOP_K,
            MIN_P,
            REPETITION,
            SEED,
            STOP,
            FREQUENCY,
            PRESENCE,
            LOGIT_BIAS,
            Row::new("safety_model", Takes::Text, &["safety_model"]),
        ],
        &[
            "https://docs.together.ai/reference/chat-completions",
            "https://docs.together.ai/docs/reasoning-overview",
        ],
    )
};

pub(super) static FIREWORKS: Table = table(
    &[
        TEMPERATURE,
        TOP_P,
        TOP_K,
        MIN_P,
        REPETITION,
        SEED,
        STOP,
        FREQUENCY,
        PRESENCE,
        LOGIT_BIAS,
        USER,
        Row::new("service_tier", Takes::Word(&["auto", "default", "priority"]), &["service_tier"]),
        Row::new(
            "context_length_exceeded_behavior",
            Takes::Word(&["error", "truncate"]),
            &["context_length_exceeded_behavior"],
        ),
    ],
    &[
        "https://docs.fireworks.ai/api-reference/post-chatcompletions",
        "https://docs.fireworks.ai/guides/reasoning",
    ],
);

/// It treats low and medium as high.
pub(super) static DEEPSEEK: Table = Table {
    effort: |_, effort, _| match effort {
        Effort::None => Ok(json!({"thinking": {"type": "disabled"}})),
        _ => Ok(json!({"thinking": {"type": "enabled"}, "reasoning_effort": effort})),
    },
    refuses: |asked| match asked.name {
        "temperature" | "top_p" | "frequency_penalty" | "presence_penalty"
            if asked.effort.is_some_and(|effort| effort != Effort::None) =>
        {
            Some("deepseek ignores it while it thinks; leave out one of them")
        }
        _ => None,
    },
    ..table(
        &[TEMPERATURE, TOP_P, Row::new("stop", Takes::Texts(16), &["stop"]), FREQUENCY, PRESENCE],
        &[
            "https://api-docs.deepseek.com/api/create-chat-completion",
            "https://api-docs.deepseek.com/guides/thinking_mode",
        ],
    )
};

pub(super) static XAI: Table = Table {
    refuses: |asked| match asked.name {
        "stop" | "frequency_penalty" | "presence_penalty"
            if asked.effort.is_some_and(|effort| effort != Effort::None) =>
        {
            Some("models that reason refuse it; leave out one of them")
        }
        _ => None,
    },
    ..table(
        &[TEMPERATURE, TOP_P, SEED, STOP, FREQUENCY, PRESENCE, USER],
        &["https://docs.x.ai/docs/api-reference", "https://docs.x.ai/docs/guides/reasoning"],
    )
};

/// One form for all vendors behind it.
pub(super) static OPENROUTER: Table = Table {
    effort: |_, effort, _| Ok(json!({"reasoning": {"effort": effort}})),
    ..table(
        &[
            TEMPERATURE,
            TOP_P,
            TOP_K,
            MIN_P,
            Row::new("top_a", Takes::Number(0.0, 1.0), &["top_a"]),
            REPETITION,
            SEED,
            STOP,
            FREQUENCY,
            PRESENCE,
            LOGIT_BIAS,
            Row::new("verbosity", Takes::Word(&["low", "medium", "high"]), &["verbosity"]),
            Row::new("provider", Takes::Object, &["provider"]),
            USER,
        ],
        &[
            "https://openrouter.ai/docs/api-reference/parameters",
            "https://openrouter.ai/docs/use-cases/reasoning-tokens",
        ],
    )
};

pub(super) static OLLAMA: Table = table(
    &[TEMPERATURE, TOP_P, SEED, STOP, FREQUENCY, PRESENCE],
    &["https://docs.ollama.com/api/openai-compatibility"],
);

/// gpt-oss takes an effort; the templates of most other models take a switch.
pub(super) static VLLM: Table = Table {
    effort: |model, effort, _| {
        if model.contains("gpt-oss") {
            return at_least_low(effort);
        }
        let on = effort != Effort::None;
        Ok(json!({"chat_template_kwargs": {"enable_thinking": on}}))
    },
    ..table(
        &[
            TEMPERATURE,
            TOP_P,
            TOP_K,
            MIN_P,
            REPETITION,
            SEED,
            Row::new("stop", Takes::Texts(usize::MAX), &["stop"]),
            FREQUENCY,
            PRESENCE,
            LOGIT_BIAS,
            Row::new("priority", Takes::Whole(i64::MIN, i64::MAX), &["priority"]),
            Row::new("chat_template_kwargs", Takes::Object, &["chat_template_kwargs"]),
        ],
        &[
            "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
            "https://docs.vllm.ai/en/latest/features/reasoning_outputs.html",
        ],
    )
};

pub(super) static CEREBRAS: Table = Table {
    effort: |model, effort, _| match effort {
        _ if model.contains("gpt-oss") => at_least_low(effort),
        Effort::None => Ok(json!({"disable_reasoning": true})),
        _ => Ok(json!({"disable_reasoning": false})),
    },
    ..table(
        &[
            Row::new("temperature", Takes::Number(0.0, 1.5), &["temperature"]),
            TOP_P,
            SEED,
            STOP,
            USER,
        ],
        &[
            "https://inference-docs.cerebras.ai/api-reference/chat-completions",
            "https://inference-docs.cerebras.ai/capabilities/reasoning",
        ],
    )
};

pub(super) static DEEPINFRA: Table = table(
    &[
        TEMPERATURE,
        TOP_P,
        TOP_K,
        MIN_P,
        REPETITION,
        SEED,
        Row::new("stop", Takes::Texts(16), &["stop"]),
        FREQUENCY,
        PRESENCE,
        USER,
        Row::new("service_tier", Takes::Word(&["default", "priority"]), &["service_tier"]),
    ],
    &["https://deepinfra.com/docs/advanced/openai_api"],
);

pub(super) static MOONSHOT: Table = Table {
    effort: |_, effort, _| match effort {
        Effort::None => Ok(json!({"thinking": {"type": "disabled"}})),
        _ => Ok(json!({"thinking": {"type": "enabled"}})),
    },
    refuses: |asked| match asked.name {
        "temperature" if asked.model.contains("kimi-k2.") => {
            Some("this model refuses every temperature but its own; leave it out")
        }
        _ => None,
    },
    ..table(
        &[
            Row::new("temperature", Takes::Number(0.0, 1.0), &["temperature"]),
            TOP_P,
            Row::new("stop", Takes::Texts(5), &["stop"]),
            FREQUENCY,
            PRESENCE,
        ],
        &["https://platform.moonshot.ai/docs/api/chat"],
    )
};
