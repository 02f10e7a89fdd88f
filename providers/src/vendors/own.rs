//! Vendors with an API of their own, which has a folder.
//!
//! What a vendor counts towards its limits is quoted from its documentation; where that does not
//! say, the row takes the cautious side. Caps of the output: LiteLLM's table
//! `model_prices_and_context_window` (1.109.1 of November 2026, `max_output_tokens`), held against
//! the vendors' model pages where both say something.

use serde_json::json;
use tidegate_types::{Charge, OutputHold};

use crate::{
    anthropic, bedrock, gemini, openai,
    schema::{self, Keeps},
    vendor::{BasePath, Credentials, Interface, ModelsList, Profile, Vendor},
};

impl Vendor {
    /// Vendors with an API of their own.
    pub const ALL: [Self; 4] = [Self::ANTHROPIC, Self::OPENAI, Self::GEMINI, Self::BEDROCK];

    /// Anthropic Messages.
    ///
    /// Charging: platform.claude.com/docs/en/api/rate-limits, read 2026-08-27 to 2026-10-08. Input
    /// is uncached input and cache writes, estimated at the start and corrected during the call;
    /// cache reads do not count (Haiku 3.5 excepted). Output is what is really produced;
    /// `max_tokens` plays no part (until 2025 it did). Whether a refused call counts as a request
    /// is not documented: it is taken to.
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
            // Whatever is not listed is newer: every model since Sonnet 4 has that much.
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

    /// OpenAI Chat Completions or Responses, and the many servers that are compatible with the
    /// former.
    ///
    /// Charging: developers.openai.com/api/docs/guides/rate-limits, read up to 2026-10-08, and the
    /// prompt-caching guide. Documented is the larger of `max_tokens` and the estimated input.
    /// Error texts suggest that both are added, so both are held. Cached input counts (caching
    /// guide, FAQ). Failed requests count towards the minute. What becomes of unused `max_tokens`
    /// is not documented, so nothing is taken back.
    pub const OPENAI: Self = Self(&Profile {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        base_path: BasePath::Version("/v1"),
        key_variable: "OPENAI_API_KEY",
        key_header: ("authorization", "Bearer "),
        credentials: Credentials::Key,
        error_names: openai::NAMES,
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
    /// Charging: ai.google.dev/gemini-api/docs/rate-limits, page of 2026-08-18. Tokens a minute are
    /// input tokens; output and `maxOutputTokens` play no part, so that a limit given as `tpm`
    /// counts input alone. Whether cached input counts is not documented: it is taken to. Nor is it
    /// whether a refused call counts as a request: it is taken to.
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
    /// 2026-08-27 and later. At the start input and `maxTokens` are held, at the end input, cache
    /// writes and output times a weight are charged: 15 for Claude 4.8, 10 for Sonnet 5 and Opus 5,
    /// 5 for Claude up to 4.7, 1 for most others. 10 where a model's section does not say
    /// (`output-weight`). Cache reads do not count. A call with much output so costs more than was
    /// held. Whether a refused call counts as a request is not documented: it is taken to.
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
