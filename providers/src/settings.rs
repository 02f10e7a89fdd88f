//! The connection to a provider: its section of the configuration.

use std::{fmt, time::Duration};

use http::HeaderMap;
use url::Url;

use crate::{
    classify::Classifier,
    endpoint,
    error_rule::ErrorRule,
    key::{Key, KeySource},
    secret::Secret,
    vendor::{Api, OutputCap, Vendor},
};

/// The arguments for making a client.
pub(crate) struct Setup<'a> {
    /// The provider's configured name.
    pub(crate) name: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) classifier: Classifier,
    pub(crate) key: Key,
}

impl<'a> Setup<'a> {
    pub(crate) fn new(name: &'a str, settings: &'a Settings) -> Self {
        let key = Key::new(settings.api_key.clone(), settings.key_source.clone());
        Self { name, settings, classifier: settings.vendor.classifier(), key }
    }
}

/// One provider's configuration, checked by [`Providers::new`](crate::Providers::new).
#[derive(Clone)]
pub struct Settings {
    /// The vendor whose API it speaks.
    pub vendor: Vendor,
    /// Its form is that of the vendor's own SDK: `openai` (and anything compatible) ends in `/v1`,
    /// `anthropic` names only the host. A query (`?api-version=…`) is kept.
    pub base_url: Url,
    /// The key. Self-hosted servers often need none; the vendors' hosts always do.
    pub api_key: Option<Secret>,
    /// The source from which the key is read again. Default: none.
    pub key_source: KeySource,
    /// Time for the whole call, connecting and reading the answer included. Default 600 s, as in
    /// the vendors' SDKs.
    pub request_timeout: Duration,
    /// OpenAI-compatible only. Default: `max_completion_tokens` at OpenAI and Azure, `max_tokens`
    /// elsewhere, because an unknown `max_tokens` is refused with a clear 400, while an unknown
    /// `max_completion_tokens` may be ignored.
    pub output_cap: Option<OutputCap>,
    /// OpenAI only.
    pub api: Api,
    /// Bedrock only: the region to sign for, if `base_url` does not name it.
    pub region: Option<String>,
    /// Headers sent with each request, in addition to the key.
    pub headers: HeaderMap,
    /// Rules for refusals of this endpoint; they precede the general table, and the first match
    /// counts.
    pub errors: Vec<ErrorRule>,
}

impl Settings {
    /// Settings with the defaults named at each field, and no key.
    pub fn new(vendor: Vendor, base_url: Url) -> Self {
        Self {
            vendor,
            base_url,
            api_key: None,
            key_source: KeySource::Fixed,
            request_timeout: Duration::from_secs(600),
            output_cap: None,
            api: Api::default(),
            region: None,
            headers: HeaderMap::new(),
            errors: Vec::new(),
        }
    }

    /// The URL of one of the API's endpoints.
    pub(crate) fn endpoint(&self, provider: &str, path: &[&str]) -> Result<Url, SetupError> {
        let base = &self.base_url;
        endpoint::check(base)
            .and_then(|()| self.vendor.check_path(base))
            .and_then(|()| endpoint::join(base, path))
            .map_err(|reason| SetupError::BaseUrl {
                provider: provider.to_owned(),
                url: endpoint::printable(base),
                reason,
            })
    }

    /// Sets the key.
    pub fn api_key(self, key: Secret) -> Self {
        Self { api_key: Some(key), ..self }
    }

    /// Sets the time for a whole call.
    pub fn request_timeout(self, timeout: Duration) -> Self {
        Self { request_timeout: timeout, ..self }
    }
}

/// The URL is shown without parts that may be secret: user information and query.
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
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("errors", &self.errors)
            .finish()
    }
}

/// A provider that cannot be set up, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The URL is invalid.
    #[error("provider {provider}: base-url {url} {reason}")]
    BaseUrl {
        /// The provider's configured name.
        provider: String,
        /// The URL without user information and query.
        url: String,
        /// The remedy.
        reason: &'static str,
    },
    /// The vendor's own host needs a key.
    #[error(
        "provider {provider} needs an API key; set {variable}, or name another variable in providers.{provider}.api-key-env, or a file in api-key-file"
    )]
    NoKey {
        /// The provider's configured name.
        provider: String,
        /// The variable that usually holds such keys.
        variable: &'static str,
    },
    /// The vendor was left out of this build.
    #[error(
        "provider {provider} speaks Bedrock, which was left out of this build; build tidegate with its feature bedrock"
    )]
    NoBedrock {
        /// The provider's configured name.
        provider: String,
    },
    /// The time-out is zero: no call could be answered.
    #[error("provider {provider}: request-timeout must be longer than 0")]
    NoTime {
        /// The provider's configured name.
        provider: String,
    },
    /// Two providers have the same name.
    #[error("provider {provider} is configured twice")]
    Duplicate {
        /// The name.
        provider: String,
    },
    /// The HTTP client could not be created.
    #[error(
        "provider {provider}: no HTTPS client ({reason}); on a bare system, install the package ca-certificates"
    )]
    Client {
        /// The provider's configured name.
        provider: String,
        /// The reason.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins() {
        #[rustfmt::skip]
        let cases = [
            (Vendor::ANTHROPIC, "https://api.anthropic.com",           Ok("https://api.anthropic.com/v1/messages")),
            (Vendor::ANTHROPIC, "http://127.0.0.1:9000/",              Ok("http://127.0.0.1:9000/v1/messages")),
            (Vendor::ANTHROPIC, "https://gateway.example/anthropic/",  Ok("https://gateway.example/anthropic/v1/messages")),
            (Vendor::ANTHROPIC, "https://api.anthropic.com/v1",        Err("leave out /v1")),
            (Vendor::ANTHROPIC, "https://me:pw@api.anthropic.com",     Err("credentials")),
            (Vendor::ANTHROPIC, "ftp://api.anthropic.com",             Err("https://")),
            (Vendor::GEMINI,    "https://gateway.example/v1beta",      Err("leave out the version")),
            (Vendor::OPENAI,    "https://api.openai.com/v1",           Ok("https://api.openai.com/v1/chat/completions")),
            (Vendor::OPENAI,    "https://api.openai.com",              Err("/v1")),
            (Vendor::OPENAI,    "http://localhost:11434/v1/",          Ok("http://localhost:11434/v1/chat/completions")),
            (Vendor::OPENAI,    "https://x.openai.azure.com/openai/v1/?api-version=preview",
                Ok("https://x.openai.azure.com/openai/v1/chat/completions?api-version=preview")),
        ];
        for (vendor, base, expected) in cases {
            let path: &[&str] = if vendor == Vendor::OPENAI {
                &["chat", "completions"]
            } else {
                &["v1", "messages"]
            };
            let settings = Settings::new(vendor, base.parse().unwrap());
            match (settings.endpoint("mine", path), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected),
                (Err(SetupError::BaseUrl { reason, .. }), Err(expected)) => {
                    assert!(reason.contains(expected), "{base}: {reason}")
                }
                (result, _) => panic!("{base}: {result:?}"),
            }
        }
    }
}
