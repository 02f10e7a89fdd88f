//! The table of vendors: all that is known of each, one row a vendor. What differs in code stands
//! in the vendor's folder.
//!
//! What a vendor counts towards its limits is quoted from its documentation; where that does not
//! say, the row takes the cautious side.

use std::{iter, str::FromStr, time::Duration};

use serde_json::json;
use tidegate_types::{Charge, OutputHold};

use crate::{
    anthropic, bedrock,
    bounds::{self, Bounds},
    classify::Classifier,
    gemini, openai,
    schema::{self, Keeps},
    vendor::{BasePath, Credentials, Interface, ModelsList, Profile, UnknownVendor, Vendor},
};

impl Vendor {
    /// Those with an API of their own; those that are compatible with OpenAI's are
    /// [`Self::PRESETS`], and those at clouds [`Self::CLOUDS`].
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
        prices: include_str!("anthropic/prices.toml"),
        output_caps: bounds::ANTHROPIC,
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
        preset: false,
        parameters: |_| &anthropic::parameters::TABLE,
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
        prices: include_str!("openai/prices.toml"),
        output_caps: bounds::OPENAI,
        // developers.openai.com/api/reference, models
        models: ModelsList::OPENAI,
        output_cap: None,
        schemas: openai::schemas,
        json_mode: Some(openai::json_mode),
        embeddings: Some(&openai::embeddings::OPENAI),
        batches: true,
        preset: false,
        parameters: openai::parameters,
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
        prices: include_str!("gemini/prices.toml"),
        output_caps: bounds::GEMINI,
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
        preset: false,
        parameters: |_| &gemini::parameters::TABLE,
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
        prices: include_str!("bedrock/prices.toml"),
        output_caps: bounds::BEDROCK,
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
        preset: false,
        parameters: |_| &bedrock::parameters::TABLE,
        interface: Interface::Converse,
    });

    /// The cap of a model's output, in tokens: by this vendor's names, else, as gateways serve
    /// several vendors' models, by the others'.
    pub(crate) fn output_cap(self, model: &str) -> Option<u32> {
        let others = Self::ALL.into_iter().filter(|other| *other != self);
        iter::once(self).chain(others).find_map(|vendor| bounds::cap(vendor.0.output_caps, model))
    }

    /// What bounds a call to a model. What a model takes is known of the vendor's own host alone:
    /// behind other names there may be other models.
    pub(crate) fn bounds(self, model: &str, is_official: bool, time: Duration) -> Bounds {
        Bounds {
            output_tokens: self.output_cap(model),
            time: Some(time),
            context_tokens: is_official.then(|| bounds::cap(bounds::CONTEXTS, model)).flatten(),
        }
    }

    /// All vendors' names of errors, this one's first.
    pub(crate) fn classifier(self) -> Classifier {
        let others = Self::ALL.into_iter().filter(|other| *other != self);
        Classifier::new(iter::once(self).chain(others).map(|vendor| vendor.0.error_names))
    }
}

impl FromStr for Vendor {
    type Err = UnknownVendor;

    fn from_str(text: &str) -> Result<Self, UnknownVendor> {
        Self::known().find(|vendor| vendor.as_str() == text).ok_or_else(|| UnknownVendor {
            given: text.to_owned(),
            known: Self::known().map(Self::as_str).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_of_a_models_name_says_its_cap() {
        for (vendor, model, expected) in [
            (Vendor::ANTHROPIC, "claude-sonnet-5-5", Some(128_000)),
            (Vendor::ANTHROPIC, "claude-opus-4-1-20250805", Some(32_000)),
            (Vendor::ANTHROPIC, "claude-haiku-4-5-20251001", Some(64_000)),
            (Vendor::ANTHROPIC, "claude-of-the-future", Some(64_000)),
            (Vendor::BEDROCK, "global.anthropic.claude-opus-5-5-v1:0", Some(128_000)),
            (Vendor::BEDROCK, "amazon.nova-pro-v1:0", Some(10_000)),
            (Vendor::GEMINI, "gemini-3.8-flash", Some(65_536)),
            (Vendor::OPENAI, "gpt-4o-mini-2024-07-18", Some(16_384)),
            (Vendor::OPENAI, "openai/gpt-6-luna", Some(128_000)),
            (Vendor::OPENAI, "anthropic/claude-opus-5", Some(128_000)),
            (Vendor::OPENAI, "meta-llama/llama-4-70b", None),
            (Vendor::OPENAI, "piccolo1", None),
        ] {
            assert_eq!(vendor.output_cap(model), expected, "{model}");
        }
    }

    #[test]
    fn what_a_model_takes_is_known_at_the_vendors_own_host() {
        let at = |vendor: Vendor, url: &str, model| {
            let is_official = vendor.is_official(&url.parse().unwrap());
            vendor.bounds(model, is_official, Duration::from_secs(1)).context_tokens
        };
        let bedrock = "https://bedrock-runtime.eu-west-1.amazonaws.com";
        for (vendor, url, model, tokens) in [
            (Vendor::ANTHROPIC, "https://api.anthropic.com", "claude-sonnet-5-5", Some(1_000_000)),
            (Vendor::ANTHROPIC, "https://api.anthropic.com", "claude-haiku-4-5", Some(200_000)),
            (Vendor::OPENAI, "https://api.openai.com/v1", "gpt-4o-mini", Some(128_000)),
            (Vendor::OPENAI, "https://api.openai.com/v1", "gpt-7", None),
            (Vendor::OPENAI, "http://localhost:11434/v1", "gpt-4o-mini", None),
            (Vendor::BEDROCK, bedrock, "eu.anthropic.claude-opus-4-1-20250805-v1:0", Some(200_000)),
        ] {
            assert_eq!(at(vendor, url, model), tokens, "{model} at {url}");
        }
    }
}
