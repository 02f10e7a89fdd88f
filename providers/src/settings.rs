//! How a provider is reached.

use std::{fmt, str::FromStr, time::Duration};

use url::Url;

use crate::{endpoint, secret::Secret};

/// Whose API a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions or Responses, and the many servers that are compatible with the
    /// former.
    OpenAi,
    /// Google Gemini, `generateContent`.
    Gemini,
    /// AWS Bedrock, Converse.
    Bedrock,
}

impl Vendor {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::Gemini, Self::Bedrock];

    /// The value of `kind` in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }

    /// The vendor's own endpoint, in the form that `base-url` takes. Bedrock has one for each
    /// region: see [`Settings::region`].
    #[must_use]
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Bedrock => "https://bedrock-runtime.us-east-1.amazonaws.com",
        }
    }

    /// The environment variable that the vendor's own SDK reads the key from.
    #[must_use]
    pub fn default_key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
            Self::Bedrock => "AWS_BEARER_TOKEN_BEDROCK",
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Vendor {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Self, SetupError> {
        Self::ALL
            .into_iter()
            .find(|vendor| vendor.as_str() == text)
            .ok_or_else(|| SetupError::UnknownVendor { given: text.to_owned() })
    }
}

/// Which of OpenAI's two APIs a provider speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Api {
    /// `POST /chat/completions`: OpenAI, and everything that is compatible with it.
    #[default]
    ChatCompletions,
    /// `POST /responses`: OpenAI's newer one, with `store` switched off.
    Responses,
}

/// In which field an OpenAI-compatible server is told the bound on output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputCap {
    /// `max_completion_tokens`: what OpenAI wants; its reasoning models reject the other.
    MaxCompletionTokens,
    /// `max_tokens`: what every compatible server knows. Some take `max_completion_tokens` and
    /// **ignore** it without a word (<https://github.com/ollama/ollama/issues/7125>), so that
    /// output has no bound.
    MaxTokens,
}

/// One provider's configuration, checked by [`Providers::new`](crate::Providers::new).
#[derive(Clone)]
pub struct Settings {
    /// Whose API it speaks.
    pub vendor: Vendor,
    /// As in the vendor's own SDK: `openai` (and anything compatible) ends in `/v1`, `anthropic`
    /// names the host alone. A query (`?api-version=…`) is kept.
    pub base_url: Url,
    /// The key. Servers of one's own often want none; the vendors' hosts always do.
    pub api_key: Option<Secret>,
    /// Time for the whole call, connecting and reading the answer included. Default 600 s, as in
    /// the vendors' SDKs.
    pub request_timeout: Duration,
    /// OpenAI-compatible only. Default: `max_completion_tokens` at OpenAI and Azure, `max_tokens`
    /// elsewhere, because an unknown `max_tokens` is refused with a 400 that says so, while an
    /// unknown `max_completion_tokens` may be ignored.
    pub output_cap: Option<OutputCap>,
    /// OpenAI only.
    pub api: Api,
    /// Bedrock only: the region to sign for, where `base_url` does not name it.
    pub region: Option<String>,
    /// Error codes, types or statuses (`"engine_busy"`, `"418"`) that stand for a passing fault at
    /// this endpoint, whatever they mean elsewhere.
    pub retry_codes: Vec<String>,
}

impl Settings {
    /// Settings with the defaults named at each field, and no key.
    #[must_use]
    pub fn new(vendor: Vendor, base_url: Url) -> Self {
        Self {
            vendor,
            base_url,
            api_key: None,
            request_timeout: Duration::from_secs(600),
            output_cap: None,
            api: Api::default(),
            region: None,
            retry_codes: Vec::new(),
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn api_key(self, key: Secret) -> Self {
        Self { api_key: Some(key), ..self }
    }

    /// Sets the time for a whole call.
    #[must_use]
    pub fn request_timeout(self, timeout: Duration) -> Self {
        Self { request_timeout: timeout, ..self }
    }
}

/// The URL is shown without what may be secret in it: user information and query.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("vendor", &self.vendor)
            .field("base_url", &endpoint::printable(&self.base_url))
            .field("api_key", &self.api_key)
            .field("request_timeout", &self.request_timeout)
            .field("output_cap", &self.output_cap)
            .field("api", &self.api)
            .field("region", &self.region)
            .field("retry_codes", &self.retry_codes)
            .finish()
    }
}

/// A provider that cannot be set up, and what to change.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No such API.
    #[error(
        "kind \"{given}\" is not known; use anthropic, openai (for anything compatible with it), gemini or bedrock"
    )]
    UnknownVendor {
        /// As given.
        given: String,
    },
    /// The URL cannot be used.
    #[error("provider {provider}: base-url {url} {reason}")]
    BaseUrl {
        /// The provider's configured name.
        provider: String,
        /// The URL without user information and query.
        url: String,
        /// What to change.
        reason: &'static str,
    },
    /// The vendor's own host wants a key.
    #[error("provider {provider} needs an API key; set api-key-env or api-key-file")]
    NoKey {
        /// The provider's configured name.
        provider: String,
    },
    /// Left out of this build.
    #[error(
        "provider {provider} speaks Bedrock, which was left out of this build; build tidegate with its feature bedrock"
    )]
    NoBedrock {
        /// The provider's configured name.
        provider: String,
    },
    /// Nothing could ever be answered.
    #[error("provider {provider}: request-timeout must be longer than 0")]
    NoTime {
        /// The provider's configured name.
        provider: String,
    },
    /// Two providers under one name.
    #[error("provider {provider} is configured twice")]
    Duplicate {
        /// The name.
        provider: String,
    },
    /// The HTTP client cannot be made.
    #[error(
        "provider {provider}: no HTTPS client ({reason}); on a bare system, install the package ca-certificates"
    )]
    Client {
        /// The provider's configured name.
        provider: String,
        /// Why.
        reason: String,
    },
}
