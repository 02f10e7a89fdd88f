//! How a provider is reached: whose API it speaks, and what its section in the configuration says.

use std::{
    fmt,
    hash::{Hash, Hasher},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tidegate_types::Charge;
use url::Url;

use crate::{
    bounds::Caps,
    classify::{Classifier, ErrorNames},
    endpoint,
    key::{Key, KeySource},
    parameters::Table,
    provider::Provider,
    schema::Keeps,
    secret::Secret,
};

/// Whose API a provider speaks: one row of the table in `vendors.rs`.
#[derive(Clone, Copy)]
pub struct Vendor(pub(crate) &'static Profile);

/// Where a vendor lists its models, below its base URL, and how to ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelsList {
    pub(crate) path: &'static [&'static str],
    /// For one model: the answer need not be long.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The host that lists them, where it is not the one that answers: a part of its name, and what
    /// stands there instead.
    pub(crate) host: Option<(&'static str, &'static str)>,
}

/// What is known of a vendor before any call.
pub(crate) struct Profile {
    /// The value of `kind` in configuration, and the name of the section that needs nothing else.
    pub(crate) name: &'static str,
    /// The vendor's own endpoint, in the form that `base-url` takes. `{region}` in the place of the
    /// region, where there is an endpoint for each.
    pub(crate) base_url: &'static str,
    pub(crate) base_path: BasePath,
    /// The environment variable that the vendor's own SDK reads the key from.
    pub(crate) key_variable: &'static str,
    /// The header that carries the key, and what stands before the key in it.
    pub(crate) key_header: (&'static str, &'static str),
    pub(crate) credentials: Credentials,
    pub(crate) error_names: ErrorNames,
    pub(crate) charge: Charge,
    /// Whether the vendor says that its limits are those of token buckets, full after a minute.
    pub(crate) token_buckets: bool,
    /// In the form that [`Prices::parse`](crate::Prices::parse) reads.
    pub(crate) prices: &'static str,
    pub(crate) output_caps: Caps,
    /// Where it lists its models.
    pub(crate) models: ModelsList,
    pub(crate) parameters: fn(Api) -> &'static Table,
    /// The field that bounds the output; of OpenAI's kind, `None` where the host tells.
    pub(crate) output_cap: Option<OutputCap>,
    /// What a model of it does with a schema.
    pub(crate) schemas: fn(&str) -> Keeps,
    /// The fields that make it put out JSON, whichever.
    pub(crate) json_mode: Option<fn(Api) -> Value>,
    /// Whether it has a batch API that is known here.
    pub(crate) batches: bool,
    /// Compatible with OpenAI's Chat Completions.
    pub(crate) preset: bool,
    pub(crate) connect: fn(&Setup<'_>) -> Result<Box<dyn Provider>, SetupError>,
}

/// What `base-url` names besides the host, as in the vendor's own SDK.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BasePath {
    /// Nothing: the client adds the version, so that these must not stand in it.
    HostAlone { versions: &'static [&'static str], remedy: &'static str },
    /// The version, at the vendor's own host. Compatible servers may have any path.
    Version(&'static str),
    /// Whatever it names is right.
    Any,
}

/// What the vendor's own host takes to know its customers by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A key, always.
    Key,
    /// A key if there is one, else what the vendor's SDK finds on the machine. As these hold for
    /// the machine, any provider of this kind looks for both, whatever its section is called.
    KeyOrMachine,
    /// A key if there is one: servers of one's own mostly want none.
    IfAny,
}

/// What a client is made from.
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

impl Vendor {
    /// The value of `kind` in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// The vendor's own endpoint, in the form that `base-url` takes. The region matters where
    /// [`Self::has_regions`].
    #[must_use]
    pub fn base_url(self, region: &str) -> String {
        self.0.base_url.replace(REGION, region)
    }

    /// Whether there is an endpoint for each region.
    #[must_use]
    pub fn has_regions(self) -> bool {
        self.0.base_url.contains(REGION)
    }

    /// What `base-url` has behind the host: `/v1`, or nothing.
    #[must_use]
    pub fn base_path(self) -> &'static str {
        match self.0.base_path {
            BasePath::HostAlone { .. } => "",
            BasePath::Version(path) => path,
            BasePath::Any => "/v1",
        }
    }

    /// The environment variable that the vendor's own SDK reads the key from.
    #[must_use]
    pub fn key_variable(self) -> &'static str {
        self.0.key_variable
    }

    /// Whether calls can be made without a key, with credentials that the vendor's own tools find
    /// on the machine.
    #[must_use]
    pub fn takes_machine_credentials(self) -> bool {
        self.0.credentials == Credentials::KeyOrMachine
    }

    /// Whether it is compatible with OpenAI's Chat Completions, and known by name.
    #[must_use]
    pub fn is_preset(self) -> bool {
        self.0.preset
    }

    /// Whether it has a batch API that is known here.
    #[must_use]
    pub fn has_batches(self) -> bool {
        self.0.batches
    }

    /// Whether this endpoint takes no call without a key.
    pub(crate) fn wants_key(self, url: &Url) -> bool {
        self.0.credentials == Credentials::Key && self.is_official(url)
    }

    /// What the vendor counts towards its limits.
    #[must_use]
    pub fn charge(self) -> Charge {
        self.0.charge
    }

    /// Whether the limits at this endpoint are known to be those of token buckets: at the vendor's
    /// own host, if the vendor says so. Nothing is known of proxies and compatible servers.
    #[must_use]
    pub fn has_token_buckets(self, endpoint: &str) -> bool {
        self.0.token_buckets && Url::parse(endpoint).is_ok_and(|url| self.is_official(&url))
    }

    /// Whether this is the vendor's own host, and not a server compatible with it.
    pub(crate) fn is_official(self, url: &Url) -> bool {
        match self.0.base_url.split_once(REGION) {
            Some((_, end)) => url.host_str().is_some_and(|host| host.ends_with(end)),
            None => Url::parse(self.0.base_url).is_ok_and(|own| own.host() == url.host()),
        }
    }

    /// Puts the key into a request's headers, if there is one.
    pub(crate) fn add_key(self, key: &Key, headers: &mut HeaderMap) {
        let (name, before) =
            if key.is_token() { ("authorization", "Bearer ") } else { self.0.key_header };
        let value = key.current();
        let value = value.map(|key| HeaderValue::from_str(&format!("{before}{}", key.expose())));
        // A key is ASCII (see `Secret`), so that this cannot fail.
        if let Some(Ok(mut value)) = value {
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
    }

    fn check_path(self, base: &Url) -> Result<(), &'static str> {
        let last = endpoint::last_segment(base);
        match self.0.base_path {
            BasePath::HostAlone { versions, remedy }
                if last.is_some_and(|last| versions.contains(&last)) =>
            {
                Err(remedy)
            }
            BasePath::Version(path)
                if self.is_official(base) && last != Some(path.trim_start_matches('/')) =>
            {
                Err("ends in /v1 for this kind")
            }
            BasePath::HostAlone { .. } | BasePath::Version(_) | BasePath::Any => Ok(()),
        }
    }
}

/// Stands for the region in [`Profile::base_url`].
const REGION: &str = "{region}";

impl PartialEq for Vendor {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Vendor {}

impl Hash for Vendor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
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

/// The field that carries the bound on output tokens to an OpenAI-compatible server.
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
    /// Where it is read again. Default: nowhere.
    pub key_source: KeySource,
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
    /// Sent with each request, beside the key.
    pub headers: HeaderMap,
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
            key_source: KeySource::Fixed,
            request_timeout: Duration::from_secs(600),
            output_cap: None,
            api: Api::default(),
            region: None,
            headers: HeaderMap::new(),
            retry_codes: Vec::new(),
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
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("retry_codes", &self.retry_codes)
            .finish()
    }
}

/// A provider that cannot be set up, and what to change.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No such API.
    #[error("kind \"{given}\" is not known; use {}", known.join(", "))]
    UnknownVendor {
        /// As given.
        given: String,
        /// The kinds there are.
        known: Vec<&'static str>,
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
