//! Vendors whose API a provider can speak, with the facts known before any call.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_types::Charge;
use url::Url;

use crate::{
    bounds::Caps, classify::ErrorNames, embedding::Embeds, endpoint, error::Error, key::Key,
    observed::Observed, parameters::Table, schema::Keeps,
};

/// A vendor: one row of the table in `vendors`.
#[derive(Clone, Copy)]
pub struct Vendor(pub(crate) &'static Profile);

/// The endpoint that lists a vendor's models, below its base URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelsList {
    pub(crate) path: &'static [&'static str],
    /// Query that returns all models on one page, if there are pages.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The host that lists them if it differs from the one that answers: a part of its name, and
    /// the replacement.
    pub(crate) host: Option<(&'static str, &'static str)>,
    /// Whether the listed names are those of calls: some are called by the name of a deployment or
    /// profile.
    pub(crate) names_as_called: bool,
}

impl ModelsList {
    /// OpenAI's list, which compatible servers have too.
    pub(crate) const OPENAI: Self =
        Self { path: &["models"], query: &[], headers: &[], host: None, names_as_called: true };
}

/// The facts about a vendor known before any call.
pub(crate) struct Profile {
    /// The value of `kind` in configuration, and the name of the section that needs nothing else.
    pub(crate) name: &'static str,
    /// The vendor's own endpoint, in the form of `base-url`, with `{region}` in place of the region
    /// if each region has an endpoint.
    pub(crate) base_url: &'static str,
    pub(crate) base_path: BasePath,
    /// The environment variable from which the vendor's own SDK reads the key.
    pub(crate) key_variable: &'static str,
    /// The header that carries the key, and the prefix before the key.
    pub(crate) key_header: (&'static str, &'static str),
    pub(crate) credentials: Credentials,
    pub(crate) error_names: ErrorNames,
    /// Refines an error by facts beyond its message, from the reply's headers.
    pub(crate) refused: fn(Error, &HeaderMap) -> Error,
    /// Reads the limits in the headers of a reply.
    pub(crate) observed: fn(&HeaderMap) -> Observed,
    pub(crate) charge: Charge,
    /// Whether the vendor documents its limits as token buckets that are full after a minute.
    pub(crate) token_buckets: bool,
    /// Prices in the form of [`Prices::parse`](crate::Prices::parse).
    pub(crate) prices: &'static str,
    pub(crate) output_caps: Caps,
    /// The endpoint that lists its models.
    pub(crate) models: ModelsList,
    pub(crate) parameters: &'static Table,
    /// The parameters of OpenAI's newer API, if they differ.
    pub(crate) responses: Option<&'static Table>,
    /// The field that bounds the output; for OpenAI's API, `None` if the host decides.
    pub(crate) output_cap: Option<OutputCap>,
    /// The way in which one of its models handles a schema.
    pub(crate) schemas: fn(&str) -> Keeps,
    /// The fields that switch on JSON output without a schema.
    pub(crate) json_mode: Option<fn(Api) -> Value>,
    /// Its API for embeddings, if it has one.
    pub(crate) embeddings: Option<&'static Embeds>,
    /// Whether its batch API is supported here.
    pub(crate) batches: bool,
    pub(crate) interface: Interface,
}

/// The request and reply formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// OpenAI's, with either of its two [`Api`]s.
    OpenAi,
    /// OpenAI's Chat Completions at Azure's deployments.
    AzureDeployments,
    /// Anthropic's Messages.
    Messages,
    /// Anthropic's Messages at Vertex AI.
    MessagesAtVertex,
    /// Gemini's `generateContent`.
    GenerateContent,
    /// Gemini's `generateContent` at Vertex AI.
    GenerateContentAtVertex,
    /// AWS Bedrock's Converse.
    Converse,
}

/// The part of `base-url` after the host, as in the vendor's own SDK.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BasePath {
    /// Nothing: the client adds the version, which must not be in it.
    HostAlone { versions: &'static [&'static str], remedy: &'static str },
    /// The version, at the vendor's own host. Compatible servers may have any path.
    Version(&'static str),
    /// Any path.
    Any,
}

/// The credentials by which the vendor's own host identifies its customers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A key, always.
    Key,
    /// A key if there is one; otherwise credentials that the vendor's SDK finds on the machine.
    /// They apply to the whole machine, so any provider of this kind looks for both, under any
    /// section name.
    KeyOrMachine,
    /// A token if there is one; otherwise Google's application-default credentials, under any
    /// section name; only at Google's own hosts.
    KeyOrGoogle,
    /// A key if there is one: self-hosted servers mostly need none.
    IfAny,
}

impl Vendor {
    /// The value of `kind` in configuration.
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// The vendor's own endpoint, in the form of `base-url`. The region matters only with
    /// [`Self::has_regions`].
    pub fn base_url(self, region: &str) -> String {
        self.0.base_url.replace(REGION, region)
    }

    /// Whether each region has its own endpoint.
    pub fn has_regions(self) -> bool {
        self.0.base_url.contains(REGION)
    }

    /// The path of `base-url`: `/v1`, or nothing.
    pub fn base_path(self) -> &'static str {
        match self.0.base_path {
            BasePath::HostAlone { .. } => "",
            BasePath::Version(path) => path,
            BasePath::Any => "/v1",
        }
    }

    /// The environment variable from which the vendor's own SDK reads the key.
    pub fn key_variable(self) -> &'static str {
        self.0.key_variable
    }

    /// Whether calls can be made without a key, with credentials that the vendor's own tools find
    /// on the machine.
    pub fn takes_machine_credentials(self) -> bool {
        self.0.credentials == Credentials::KeyOrMachine
    }

    /// Whether calls to this endpoint can use Google's application-default credentials: their token
    /// is sent only to Google's hosts, and over TLS.
    pub fn takes_google_credentials(self, endpoint: &str) -> bool {
        let is_google = |url: &Url| {
            let host = url.host_str().unwrap_or_default();
            url.scheme() == "https" && host.ends_with(".googleapis.com")
        };
        self.0.credentials == Credentials::KeyOrGoogle
            && Url::parse(endpoint).is_ok_and(|url| is_google(&url))
    }

    /// Whether it is a named preset of an API compatible with OpenAI's Chat Completions.
    pub fn is_preset(self) -> bool {
        Self::PRESETS.contains(&self)
    }

    /// Whether its batch API is supported here.
    pub fn has_batches(self) -> bool {
        self.0.batches
    }

    /// Whether it identifies customers only by a key. Servers compatible with it may need none.
    pub fn always_has_key(self) -> bool {
        self.0.credentials == Credentials::Key
    }

    /// Whether this endpoint refuses calls without a key.
    pub(crate) fn wants_key(self, url: &Url) -> bool {
        self.always_has_key() && self.is_official(url)
    }

    /// The calls and tokens that the vendor charges against its limits.
    pub fn charge(self) -> Charge {
        self.0.charge
    }

    /// Whether the limits at this endpoint are known to be token buckets: at the vendor's own host,
    /// if the vendor documents it. Nothing is known of proxies and compatible servers.
    pub fn has_token_buckets(self, endpoint: &str) -> bool {
        self.0.token_buckets && Url::parse(endpoint).is_ok_and(|url| self.is_official(&url))
    }

    /// Whether this is the vendor's own host, and no compatible server.
    pub(crate) fn is_official(self, url: &Url) -> bool {
        match self.0.base_url.split_once(REGION) {
            Some((_, end)) => url.host_str().is_some_and(|host| host.ends_with(end)),
            None => Url::parse(self.0.base_url).is_ok_and(|own| own.host() == url.host()),
        }
    }

    /// Adds the key to a request's headers, if there is one.
    pub(crate) fn add_key(self, key: &Key, headers: &mut HeaderMap) {
        let (name, before) =
            if key.is_token() { ("authorization", "Bearer ") } else { self.0.key_header };
        let value = key.current();
        let value = value.map(|key| HeaderValue::from_str(&format!("{before}{}", key.expose())));
        // A key is ASCII (see `Secret`), so this cannot fail.
        if let Some(Ok(mut value)) = value {
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        if let Some(Ok(project)) = key.project().map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static("x-goog-user-project"), project);
        }
    }

    pub(crate) fn check_path(self, base: &Url) -> Result<(), &'static str> {
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

/// Placeholder for the region in [`Profile::base_url`].
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

/// The name of no vendor.
#[derive(Debug, thiserror::Error)]
#[error("kind \"{given}\" is not known; use {}", known.join(", "))]
pub struct UnknownVendor {
    pub(crate) given: String,
    pub(crate) known: Vec<&'static str>,
}

/// Which of OpenAI's two APIs a provider speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// `POST /chat/completions`: OpenAI and all compatible servers.
    #[default]
    ChatCompletions,
    /// `POST /responses`: OpenAI's newer API, with `store` switched off.
    Responses,
}

/// The field that carries the output bound to an OpenAI-compatible server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputCap {
    /// `max_tokens`: known to every compatible server. Some accept `max_completion_tokens` and
    /// **ignore** it silently (<https://github.com/ollama/ollama/issues/7125>), so that the output
    /// is unbounded.
    MaxTokens,
    /// `max_completion_tokens`: required by OpenAI's reasoning models, which reject the other
    /// field.
    MaxCompletionTokens,
}
