//! Whose API a provider speaks, and what is known of each vendor before any call.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tidegate_types::Charge;
use url::Url;

use crate::{
    bounds::Caps, classify::ErrorNames, embedding::Embeds, endpoint, key::Key, parameters::Table,
    schema::Keeps,
};

/// Whose API a provider speaks: one row of the table in `vendors`.
#[derive(Clone, Copy)]
pub struct Vendor(pub(crate) &'static Profile);

/// Where a vendor lists its models, below its base URL, and how to ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelsList {
    pub(crate) path: &'static [&'static str],
    /// For all of them on one page, where there are pages.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The host that lists them, where it is not the one that answers: a part of its name, and what
    /// stands there instead.
    pub(crate) host: Option<(&'static str, &'static str)>,
    /// Whether it names them as calls do: others are called by a deployment's or a profile's name.
    pub(crate) names_as_called: bool,
}

impl ModelsList {
    /// OpenAI's, and that of whoever is compatible with it.
    pub(crate) const OPENAI: Self =
        Self { path: &["models"], query: &[], headers: &[], host: None, names_as_called: true };
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
    pub(crate) parameters: &'static Table,
    /// The same of OpenAI's newer API, where that takes others.
    pub(crate) responses: Option<&'static Table>,
    /// The field that bounds the output; of OpenAI's kind, `None` where the host tells.
    pub(crate) output_cap: Option<OutputCap>,
    /// What a model of it does with a schema.
    pub(crate) schemas: fn(&str) -> Keeps,
    /// The fields that make it put out JSON, whichever.
    pub(crate) json_mode: Option<fn(Api) -> Value>,
    /// How it is asked for vectors, if it has any.
    pub(crate) embeddings: Option<&'static Embeds>,
    /// Whether it has a batch API that is known here.
    pub(crate) batches: bool,
    pub(crate) interface: Interface,
}

/// What is sent to it, and how its replies are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// OpenAI's, either of its two [`Api`]s.
    OpenAi,
    /// OpenAI's Chat Completions at Azure's deployments.
    AzureDeployments,
    /// Anthropic's Messages.
    Messages,
    /// The same at Vertex AI.
    MessagesAtVertex,
    /// Gemini's `generateContent`.
    GenerateContent,
    /// The same at Vertex AI.
    GenerateContentAtVertex,
    /// AWS Bedrock's Converse.
    Converse,
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
    /// A token if there is one, else Google's application-default credentials, whatever the section
    /// is called; at Google's own hosts alone.
    KeyOrGoogle,
    /// A key if there is one: servers of one's own mostly want none.
    IfAny,
}

impl Vendor {
    /// The value of `kind` in configuration.
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// The vendor's own endpoint, in the form that `base-url` takes. The region matters where
    /// [`Self::has_regions`].
    pub fn base_url(self, region: &str) -> String {
        self.0.base_url.replace(REGION, region)
    }

    /// Whether there is an endpoint for each region.
    pub fn has_regions(self) -> bool {
        self.0.base_url.contains(REGION)
    }

    /// What `base-url` has behind the host: `/v1`, or nothing.
    pub fn base_path(self) -> &'static str {
        match self.0.base_path {
            BasePath::HostAlone { .. } => "",
            BasePath::Version(path) => path,
            BasePath::Any => "/v1",
        }
    }

    /// The environment variable that the vendor's own SDK reads the key from.
    pub fn key_variable(self) -> &'static str {
        self.0.key_variable
    }

    /// Whether calls can be made without a key, with credentials that the vendor's own tools find
    /// on the machine.
    pub fn takes_machine_credentials(self) -> bool {
        self.0.credentials == Credentials::KeyOrMachine
    }

    /// Whether calls to this endpoint can be made with Google's application-default credentials:
    /// their token goes to Google's hosts, and over TLS.
    pub fn takes_google_credentials(self, endpoint: &str) -> bool {
        let is_google = |url: &Url| {
            let host = url.host_str().unwrap_or_default();
            url.scheme() == "https" && host.ends_with(".googleapis.com")
        };
        self.0.credentials == Credentials::KeyOrGoogle
            && Url::parse(endpoint).is_ok_and(|url| is_google(&url))
    }

    /// Whether it is compatible with OpenAI's Chat Completions, and known by name.
    pub fn is_preset(self) -> bool {
        Self::PRESETS.contains(&self)
    }

    /// Whether it has a batch API that is known here.
    pub fn has_batches(self) -> bool {
        self.0.batches
    }

    /// Whether it knows its customers by a key alone. Servers that are compatible with it may want
    /// none.
    pub fn always_has_key(self) -> bool {
        self.0.credentials == Credentials::Key
    }

    /// Whether this endpoint takes no call without a key.
    pub(crate) fn wants_key(self, url: &Url) -> bool {
        self.always_has_key() && self.is_official(url)
    }

    /// What the vendor counts towards its limits.
    pub fn charge(self) -> Charge {
        self.0.charge
    }

    /// Whether the limits at this endpoint are known to be those of token buckets: at the vendor's
    /// own host, if the vendor says so. Nothing is known of proxies and compatible servers.
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

/// No vendor of this name.
#[derive(Debug, thiserror::Error)]
#[error("kind \"{given}\" is not known; use {}", known.join(", "))]
pub struct UnknownVendor {
    pub(crate) given: String,
    pub(crate) known: Vec<&'static str>,
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
