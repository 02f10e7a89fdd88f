//! Vendors whose API is compatible with OpenAI's Chat Completions: a row each, with its
//! differences. `CONTRIBUTING.md` lists the needs of a new one.
//!
//! Few document which tokens count towards their limits, so all of them count, and the bound of the
//! output is held. Their prices change with their lists of models: a model's section states them
//! (`price`).

use tidegate_types::Charge;

use super::parameters;
use crate::{
    classify::ErrorNames,
    error::Kind,
    openai,
    rules::{Sign, Statuses, row},
    schema::{self, Keeps},
    vendor::{BasePath, Credentials, Interface, ModelsList, OutputCap, Profile, Vendor},
};

/// The facts that all of them have in common.
pub(super) const COMPATIBLE: Profile = Profile {
    name: "",
    base_url: "",
    base_path: BasePath::Any,
    key_variable: "",
    key_header: ("authorization", "Bearer "),
    credentials: Credentials::Key,
    error_names: openai::NAMES,
    refused: |error, _| error,
    observed: openai::observed,
    charge: Charge::CAUTIOUS,
    token_buckets: false,
    prices: "",
    // They serve other vendors' models, whose caps are used.
    output_caps: &[],
    models: ModelsList::OPENAI,
    output_cap: Some(OutputCap::MaxTokens),
    schemas: |_| Keeps::Schema(&schema::OPENAI),
    json_mode: Some(openai::json_mode),
    embeddings: None,
    batches: false,
    parameters: &parameters::PLAIN,
    responses: None,
    interface: Interface::OpenAi,
};

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
        // A limit shared by all customers, not ours (help.mistral.ai, "Why am I getting a 429").
        error_names: ErrorNames::Rows(&[row(
            Statuses::Any,
            Sign::Type("service_tier_capacity_exceeded"),
            Kind::Overloaded,
        )]),
        refused: openai::not_in_plan,
        parameters: &parameters::MISTRAL,
        ..COMPATIBLE
    });

    /// Groq: console.groq.com/docs. Cached input does not count (docs/rate-limits,
    /// docs/prompt-caching); batches are OpenAI's, at half the price (docs/batch).
    pub const GROQ: Self = Self(&Profile {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        key_variable: "GROQ_API_KEY",
        // The flexible tier has no capacity left (console.groq.com/docs/errors). Daily limits are
        // told by the message.
        error_names: ErrorNames::Rows(&[row(
            Statuses::Only(&[498]),
            Sign::Status,
            Kind::Overloaded,
        )]),
        charge: Charge { cached_input: false, ..Charge::CAUTIOUS },
        output_cap: Some(OutputCap::MaxCompletionTokens),
        batches: true,
        parameters: &parameters::GROQ,
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
        // Traffic grew faster than the machines behind it (docs.together.ai/docs/error-codes).
        error_names: ErrorNames::Rows(&[
            row(Statuses::Any, Sign::Name("dynamic_request_limited"), Kind::RateLimited),
            row(Statuses::Any, Sign::Name("dynamic_token_limited"), Kind::RateLimited),
        ]),
        parameters: &parameters::TOGETHER,
        ..COMPATIBLE
    });

    /// Fireworks AI: docs.fireworks.ai.
    pub const FIREWORKS: Self = Self(&Profile {
        name: "fireworks",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "https://api.fireworks.ai/inference/v1",
        key_variable: "FIREWORKS_API_KEY",
        // The account is suspended, mostly for a bill or a spending limit
        // (docs.fireworks.ai/guides/inference-error-codes).
        error_names: ErrorNames::Rows(&[row(
            Statuses::Only(&[412]),
            Sign::Status,
            Kind::QuotaExhausted,
        )]),
        parameters: &parameters::FIREWORKS,
        ..COMPATIBLE
    });

    /// DeepSeek: api-docs.deepseek.com. It states no rate limits.
    pub const DEEPSEEK: Self = Self(&Profile {
        name: "deepseek",
        base_url: "https://api.deepseek.com",
        key_variable: "DEEPSEEK_API_KEY",
        error_names: ErrorNames::Rows(&[]),
        parameters: &parameters::DEEPSEEK,
        schemas: |_| Keeps::Json,
        ..COMPATIBLE
    });

    /// xAI: docs.x.ai. Reasoning is counted outside the answer's tokens.
    pub const XAI: Self = Self(&Profile {
        name: "xai",
        base_url: "https://api.x.ai/v1",
        key_variable: "XAI_API_KEY",
        error_names: ErrorNames::Rows(&[]),
        output_cap: Some(OutputCap::MaxCompletionTokens),
        parameters: &parameters::XAI,
        ..COMPATIBLE
    });

    /// OpenRouter: openrouter.ai/docs. Errors of the vendor behind it come wrapped.
    pub const OPENROUTER: Self = Self(&Profile {
        name: "openrouter",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "https://openrouter.ai/api/v1",
        key_variable: "OPENROUTER_API_KEY",
        // 403: the vendor behind it moderates, and the text was flagged
        // (openrouter.ai/docs/api-reference/errors).
        error_names: ErrorNames::Rows(&[
            row(Statuses::Only(&[403]), Sign::Says(&["flagged"]), Kind::ContentRefused),
            row(Statuses::Only(&[403]), Sign::Says(&["moderation"]), Kind::ContentRefused),
        ]),
        parameters: &parameters::OPENROUTER,
        ..COMPATIBLE
    });

    /// Ollama, on this machine: docs.ollama.com/api/openai-compatibility. It needs no key.
    pub const OLLAMA: Self = Self(&Profile {
        name: "ollama",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "http://localhost:11434/v1",
        key_variable: "OLLAMA_API_KEY",
        credentials: Credentials::IfAny,
        parameters: &parameters::OLLAMA,
        schemas: |_| Keeps::Schema(&schema::LENIENT),
        ..COMPATIBLE
    });

    /// vLLM, on this machine: docs.vllm.ai/en/latest/serving/openai_compatible_server. It needs a
    /// key only if it was started with one.
    pub const VLLM: Self = Self(&Profile {
        name: "vllm",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "http://localhost:8000/v1",
        key_variable: "VLLM_API_KEY",
        credentials: Credentials::IfAny,
        parameters: &parameters::VLLM,
        schemas: |_| Keeps::Schema(&schema::LENIENT),
        ..COMPATIBLE
    });

    /// Cerebras: inference-docs.cerebras.ai.
    pub const CEREBRAS: Self = Self(&Profile {
        name: "cerebras",
        base_url: "https://api.cerebras.ai/v1",
        key_variable: "CEREBRAS_API_KEY",
        output_cap: Some(OutputCap::MaxCompletionTokens),
        parameters: &parameters::CEREBRAS,
        ..COMPATIBLE
    });

    /// DeepInfra: deepinfra.com/docs/advanced/openai_api. It limits concurrent calls.
    pub const DEEPINFRA: Self = Self(&Profile {
        name: "deepinfra",
        embeddings: Some(&openai::embeddings::COMPATIBLE),
        base_url: "https://api.deepinfra.com/v1/openai",
        key_variable: "DEEPINFRA_API_KEY",
        parameters: &parameters::DEEPINFRA,
        ..COMPATIBLE
    });

    /// Moonshot AI (Kimi): platform.moonshot.ai/docs.
    pub const MOONSHOT: Self = Self(&Profile {
        name: "moonshot",
        base_url: "https://api.moonshot.ai/v1",
        key_variable: "MOONSHOT_API_KEY",
        // platform.moonshot.ai/docs: out of money; a limit shared by all customers.
        error_names: ErrorNames::Rows(&[
            row(Statuses::Any, Sign::Type("exceeded_current_quota_error"), Kind::QuotaExhausted),
            row(Statuses::Any, Sign::Type("engine_overloaded_error"), Kind::Overloaded),
        ]),
        parameters: &parameters::MOONSHOT,
        schemas: |_| Keeps::Json,
        ..COMPATIBLE
    });
}
