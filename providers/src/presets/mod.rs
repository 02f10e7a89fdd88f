//! Vendors whose API is compatible with OpenAI's Chat Completions: one row each, with what it does
//! otherwise. A further one is a row here, its place in [`Vendor::PRESETS`], and a page in
//! `docs/providers/`.
//!
//! What they count towards their limits is documented by few, so that everything is taken to count,
//! and what is allowed is held. Their prices change with their lists of models: a model's section
//! states them (`price`).

mod errors;
mod parameters;

use tidegate_types::Charge;

use crate::{
    bounds::Caps,
    classify::ErrorNames,
    openai,
    schema::{self, Keeps},
    vendor::{BasePath, Credentials, Interface, ModelsList, OutputCap, Profile, Vendor},
};

/// Compatible vendors serve other vendors' models, whose caps are known by those.
const NO_CAPS: Caps = &[];

/// What all of them have in common.
pub(crate) const COMPATIBLE: Profile = Profile {
    name: "",
    base_url: "",
    base_path: BasePath::Any,
    key_variable: "",
    key_header: ("authorization", "Bearer "),
    credentials: Credentials::Key,
    error_names: openai::NAMES,
    charge: Charge::CAUTIOUS,
    token_buckets: false,
    prices: "",
    output_caps: NO_CAPS,
    models: ModelsList::OPENAI,
    output_cap: Some(OutputCap::MaxTokens),
    schemas: |_| Keeps::Schema(&schema::OPENAI),
    json_mode: Some(openai::json_mode),
    embeddings: None,
    batches: false,
    preset: true,
    parameters: |_| &parameters::PLAIN,
    interface: Interface::OpenAi,
};

const fn names(
    by_code: fn(u16, &str, &crate::envelope::Envelope) -> Option<crate::error::Kind>,
    by_type: fn(u16, &crate::envelope::Envelope) -> Option<crate::error::Kind>,
) -> ErrorNames {
    ErrorNames { by_code, by_type }
}

impl Vendor {
    /// Vendors that are compatible with OpenAI's Chat Completions, by name.
    pub const PRESETS: [Self; 12] = [
        Self::MISTRAL,
        Self::GROQ,
        Self::TOGETHER,
        Self::FIREWORKS,
        Self::DEEPSEEK,
        Self::XAI,
        Self::OPENROUTER,
        Self::OLLAMA,
        Self::VLLM,
        Self::CEREBRAS,
        Self::DEEPINFRA,
        Self::MOONSHOT,
    ];

    /// Mistral: docs.mistral.ai/api. A seed is called `random_seed`.
    pub const MISTRAL: Self = Self(&Profile {
        name: "mistral",
        embeddings: Some(&openai::embeddings::MISTRAL),
        base_url: "https://api.mistral.ai/v1",
        key_variable: "MISTRAL_API_KEY",
        error_names: names(errors::no_code, errors::mistral),
        parameters: |_| &parameters::MISTRAL,
        ..COMPATIBLE
    });

    /// Groq: console.groq.com/docs. Cached input does not count (docs/rate-limits,
    /// docs/prompt-caching); batches are OpenAI's, at half the price (docs/batch).
    pub const GROQ: Self = Self(&Profile {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        key_variable: "GROQ_API_KEY",
        error_names: names(errors::no_code, errors::groq),
        charge: Charge { cached_input: false, ..Charge::CAUTIOUS },
        output_cap: Some(OutputCap::MaxCompletionTokens),
        batches: true,
        parameters: |_| &parameters::GROQ,
        schemas: |model| {
            // console.groq.com/docs/structured-outputs#supported-models
            let keeps = ["gpt-oss", "llama-4", "kimi-k2"].iter().any(|name| model.contains(name));
            if keeps { Keeps::Schema(&schema::OPENAI) } else { Keeps::Json }
        },
        ..COMPATIBLE
    });

    /// Together AI: docs.together.ai.
    pub const TOGETHER: Self = Self(&Profile {
        name: "together",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "https://api.together.xyz/v1",
        key_variable: "TOGETHER_API_KEY",
        error_names: names(errors::together_code, errors::no_type),
        parameters: |_| &parameters::TOGETHER,
        ..COMPATIBLE
    });

    /// Fireworks AI: docs.fireworks.ai.
    pub const FIREWORKS: Self = Self(&Profile {
        name: "fireworks",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "https://api.fireworks.ai/inference/v1",
        key_variable: "FIREWORKS_API_KEY",
        error_names: names(errors::no_code, errors::fireworks),
        parameters: |_| &parameters::FIREWORKS,
        ..COMPATIBLE
    });

    /// DeepSeek: api-docs.deepseek.com. It states no limits of rate.
    pub const DEEPSEEK: Self = Self(&Profile {
        name: "deepseek",
        base_url: "https://api.deepseek.com",
        key_variable: "DEEPSEEK_API_KEY",
        error_names: names(errors::no_code, errors::no_type),
        parameters: |_| &parameters::DEEPSEEK,
        schemas: |_| Keeps::Json,
        ..COMPATIBLE
    });

    /// xAI: docs.x.ai. Reasoning is counted beside the answer's tokens.
    pub const XAI: Self = Self(&Profile {
        name: "xai",
        base_url: "https://api.x.ai/v1",
        key_variable: "XAI_API_KEY",
        error_names: names(errors::no_code, errors::xai),
        output_cap: Some(OutputCap::MaxCompletionTokens),
        parameters: |_| &parameters::XAI,
        ..COMPATIBLE
    });

    /// OpenRouter: openrouter.ai/docs. Errors of the vendor behind it come wrapped.
    pub const OPENROUTER: Self = Self(&Profile {
        name: "openrouter",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "https://openrouter.ai/api/v1",
        key_variable: "OPENROUTER_API_KEY",
        error_names: names(errors::no_code, errors::openrouter),
        parameters: |_| &parameters::OPENROUTER,
        ..COMPATIBLE
    });

    /// Ollama, on this machine: docs.ollama.com/api/openai-compatibility. It wants no key.
    pub const OLLAMA: Self = Self(&Profile {
        name: "ollama",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "http://localhost:11434/v1",
        key_variable: "OLLAMA_API_KEY",
        credentials: Credentials::IfAny,
        parameters: |_| &parameters::OLLAMA,
        schemas: |_| Keeps::Schema(&schema::LENIENT),
        ..COMPATIBLE
    });

    /// vLLM, on this machine: docs.vllm.ai/en/latest/serving/openai_compatible_server. It wants a
    /// key where it was started with one.
    pub const VLLM: Self = Self(&Profile {
        name: "vllm",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "http://localhost:8000/v1",
        key_variable: "VLLM_API_KEY",
        credentials: Credentials::IfAny,
        parameters: |_| &parameters::VLLM,
        schemas: |_| Keeps::Schema(&schema::LENIENT),
        ..COMPATIBLE
    });

    /// Cerebras: inference-docs.cerebras.ai.
    pub const CEREBRAS: Self = Self(&Profile {
        name: "cerebras",
        base_url: "https://api.cerebras.ai/v1",
        key_variable: "CEREBRAS_API_KEY",
        output_cap: Some(OutputCap::MaxCompletionTokens),
        parameters: |_| &parameters::CEREBRAS,
        ..COMPATIBLE
    });

    /// DeepInfra: deepinfra.com/docs/advanced/openai_api. Its limit is of calls at once.
    pub const DEEPINFRA: Self = Self(&Profile {
        name: "deepinfra",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "https://api.deepinfra.com/v1/openai",
        key_variable: "DEEPINFRA_API_KEY",
        parameters: |_| &parameters::DEEPINFRA,
        ..COMPATIBLE
    });

    /// Moonshot AI (Kimi): platform.moonshot.ai/docs.
    pub const MOONSHOT: Self = Self(&Profile {
        name: "moonshot",
        base_url: "https://api.moonshot.ai/v1",
        key_variable: "MOONSHOT_API_KEY",
        error_names: names(errors::no_code, errors::moonshot),
        parameters: |_| &parameters::MOONSHOT,
        schemas: |_| Keeps::Json,
        ..COMPATIBLE
    });
}

#[cfg(test)]
mod tests;
