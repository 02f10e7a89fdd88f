//! Vendors with an API of their own, which has a folder.
//!
//! A vendor's charges against its limits are quoted from its documentation; if that is silent, the
//! row takes the cautious side. Output caps: LiteLLM's table `model_prices_and_context_window`
//! (1.109.1 of November 2026, `max_output_tokens`), compared with the vendors' model pages where
//! both state a figure.

use serde_json::json;
use tidegate_types::{Charge, OutputHold};

use crate::{
    anthropic, bedrock, gemini,
    observed::Observed,
    openai,
    schema::{self, Keeps},
    vendor::{BasePath, Credentials, Interface, ModelsList, Profile, Vendor},
};

impl Vendor {
    /// Vendors with an API of their own.
    pub const OWN: [Self; 4] = [Self::ANTHROPIC, Self::OPENAI, Self::GEMINI, Self::BEDROCK];

    /// Anthropic Messages.
    ///
    /// Charging: platform.claude.com/docs/en/api/rate-limits, read 2026-08-27 to 2026-10-08. Input
    /// is uncached input and cache writes, estimated at the start and corrected during the call;
    /// cache reads do not count (except Haiku 3.5). Output is what is really produced; `max_tokens`
    /// is ignored (until 2025 it counted). Whether a refused call counts as a request is not
    /// documented: here it does.
    pub const ANTHROPIC: Self = Self(&Profile {
        name: "anthropic",
        base_url: "https://api.anthropic.com",
        base_path: BasePath::HostAlone {
            versions: &["v1"],
            remedy: "names the host alone for this kind; leave out /v1",
        },
        key_variable: "ANTHROPIC_API_KEY",
        key_header: ("x-api-key", ""),
        credentials: Credentials::Key,
        error_names: anthropic::NAMES,
        refused: |error, _| error,
        observed: anthropic::observed,
        charge: Charge {
            hold: OutputHold::Expected,
            cached_input: false,
            output_weight: 1.0,
            unused_returns: true,
            failed_calls: true,
        },
        token_buckets: true,
        prices: include_str!("../anthropic/prices.toml"),
        output_caps: &[
            // Unlisted models are newer: every model since Sonnet 4 has at least this cap.
            ("claude", 64_000),
            ("claude-3", 4_096),
            ("claude-3-5", 8_192),
            ("claude-3-7", 8_192),
            ("claude-opus-4", 32_000),
            ("claude-opus-4-5", 64_000),
            ("claude-opus-4-6", 128_000),
            ("claude-opus-4-7", 128_000),
            ("claude-opus-4-8", 128_000),
            ("claude-sonnet-4-6", 64_000),
            ("claude-opus-5", 128_000),
            ("claude-sonnet-5", 128_000),
            ("claude-haiku-5", 128_000),
            ("claude-fable-5", 128_000),
        ],
        // platform.claude.com/docs/en/api/models-list
        models: ModelsList {
            path: &["v1", "models"],
            query: &[("limit", "1000")],
            headers: &[("anthropic-version", anthropic::VERSION)],
            host: None,
            names_as_called: true,
        },
        output_cap: None,
        schemas: anthropic::schemas,
        json_mode: None,
        embeddings: None,
        batches: true,
        parameters: &anthropic::parameters::TABLE,
        responses: None,
        interface: Interface::Messages,
    });

    /// OpenAI Chat Completions or Responses, and the many servers compatible with the former.
    ///
    /// Charging: developers.openai.com/api/docs/guides/rate-limits, read up to 2026-10-08, and the
    /// prompt-caching guide. The documentation says the larger of `max_tokens` and the estimated
    /// input. Error texts suggest that both are added, so both are held. Cached input counts
    /// (caching guide, FAQ). Failed requests count towards the minute. Whether unused `max_tokens`
    /// return is not documented, so nothing is taken back.
    pub const OPENAI: Self = Self(&Profile {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        base_path: BasePath::Version("/v1"),
        key_variable: "OPENAI_API_KEY",
        key_header: ("authorization", "Bearer "),
        credentials: Credentials::Key,
        error_names: openai::NAMES,
        refused: |error, _| error,
        observed: openai::observed,
        charge: Charge {
            hold: OutputHold::Maximum,
            cached_input: true,
            output_weight: 1.0,
            unused_returns: false,
            failed_calls: true,
        },
        token_buckets: true,
        prices: include_str!("../openai/prices.toml"),
        output_caps: &[
            ("gpt-3.5", 4_096),
            ("gpt-4", 4_096),
            ("gpt-4o", 16_384),
            ("gpt-4.1", 32_768),
            ("o1", 100_000),
            ("o3", 100_000),
            ("o4-mini", 100_000),
            ("gpt-5", 128_000),
            ("gpt-5-chat", 16_384),
            ("gpt-6", 128_000),
        ],
        // developers.openai.com/api/reference, models
        models: ModelsList::OPENAI,
        output_cap: None,
        schemas: openai::schemas,
        json_mode: Some(openai::json_mode),
        embeddings: Some(&openai::embeddings::OPENAI),
        batches: true,
        parameters: &openai::parameters::TABLE,
        responses: Some(&openai::parameters::RESPONSES),
        interface: Interface::OpenAi,
    });

    /// Google Gemini, `generateContent`.
    ///
    /// Charging: ai.google.dev/gemini-api/docs/rate-limits, page of 2026-08-18. Tokens per minute
    /// are input tokens; output and `maxOutputTokens` do not count, so that a limit given as `tpm`
    /// counts input alone. Whether cached input counts, and whether a refused call counts as a
    /// request, is not documented: here both do.
    pub const GEMINI: Self = Self(&Profile {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com",
        base_path: BasePath::HostAlone {
            versions: &["v1", "v1beta"],
            remedy: "names the host alone for this kind; leave out the version",
        },
        key_variable: "GEMINI_API_KEY",
        key_header: ("x-goog-api-key", ""),
        credentials: Credentials::Key,
        error_names: gemini::NAMES,
        refused: gemini::with_reset,
        observed: gemini::observed,
        charge: Charge {
            hold: OutputHold::Expected,
            cached_input: true,
            output_weight: 0.0,
            unused_returns: true,
            failed_calls: true,
        },
        token_buckets: false,
        prices: include_str!("../gemini/prices.toml"),
        output_caps: &[
            ("gemini", 65_536),
            ("gemini-1", 8_192),
            ("gemini-2.0", 8_192),
            ("gemma", 8_192),
        ],
        // ai.google.dev/api/models
        models: ModelsList {
            path: &["v1beta", "models"],
            query: &[("pageSize", "1000")],
            headers: &[],
            host: None,
            names_as_called: true,
        },
        output_cap: None,
        schemas: |_| Keeps::Schema(&schema::GEMINI),
        json_mode: Some(|_| json!({"generationConfig": {"responseMimeType": "application/json"}})),
        embeddings: Some(&gemini::EMBEDS),
        batches: true,
        parameters: &gemini::parameters::TABLE,
        responses: None,
        interface: Interface::GenerateContent,
    });

    /// AWS Bedrock, Converse, at the endpoint `bedrock-runtime`.
    ///
    /// Charging: docs.aws.amazon.com, Bedrock user guide: quotas and token burndown, read
    /// 2026-08-27 and later. At the start input and `maxTokens` are held; at the end input, cache
    /// writes and output times a weight are charged. The weight is 15 for Claude 4.8, 10 for Sonnet
    /// 5 and Opus 5, 5 for Claude up to 4.7, 1 for most others; here 10 unless a model's section
    /// states `output-weight`. Cache reads do not count. So a call with much output costs more than
    /// was held. Whether a refused call counts as a request is not documented: here it does.
    pub const BEDROCK: Self = Self(&Profile {
        name: "bedrock",
        base_url: "https://bedrock-runtime.{region}.amazonaws.com",
        base_path: BasePath::HostAlone {
            versions: &["v1"],
            remedy: "names the host alone for this kind; leave out /v1",
        },
        key_variable: "AWS_BEARER_TOKEN_BEDROCK",
        key_header: ("authorization", "Bearer "),
        credentials: Credentials::KeyOrMachine,
        error_names: bedrock::NAMES,
        refused: |error, _| error,
        observed: |_| Observed::default(),
        charge: Charge {
            hold: OutputHold::Maximum,
            cached_input: false,
            output_weight: 10.0,
            unused_returns: true,
            failed_calls: true,
        },
        token_buckets: false,
        prices: include_str!("../bedrock/prices.toml"),
        // Claude's models have the caps that they have at Anthropic.
        output_caps: &[
            ("nova", 10_000),
            ("nova-2", 64_000),
            ("nova-premier", 10_000),
            ("gpt-oss", 16_384),
        ],
        // docs.aws.amazon.com, ListFoundationModels: at the control plane's host
        models: ModelsList {
            path: &["foundation-models"],
            query: &[],
            headers: &[],
            host: Some(("bedrock-runtime", "bedrock")),
            names_as_called: false,
        },
        output_cap: None,
        schemas: bedrock::schemas,
        json_mode: None,
        embeddings: None,
        batches: false,
        parameters: &bedrock::parameters::TABLE,
        responses: None,
        interface: Interface::Converse,
    });
}
