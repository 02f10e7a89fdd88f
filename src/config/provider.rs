//! `[providers.<name>]`: how to reach a provider.

use std::{collections::BTreeMap, env, fmt, path::PathBuf, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use tidegate_providers::{
    Api, ApplicationDefault, Dialect, KeySource, OutputCap, Secret, Settings, Vendor,
};

use super::{
    duration::HumanDuration, error_row::ErrorRow, fault::alternatives, mask, pool::Member,
};

/// One provider. A section named after a vendor needs no keys; any other needs `kind` and `base-url`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Provider {
    /// The vendor whose API it speaks: `anthropic`, `openai` (and anything compatible), `gemini`,
    /// `bedrock`, or another known vendor, such as `groq`.
    pub kind: Option<String>,
    /// The environment variable that holds the key; with `api-key-file`, the variable's name in that
    /// file.
    pub api_key_env: Option<String>,
    /// The file that holds the key alone; with `api-key-env`, an environment file. It is read again every
    /// few seconds, and when the key is refused.
    pub api_key_file: Option<PathBuf>,
    /// A program that prints a token to use as the key, with its arguments, such as `["az", "account",
    /// "get-access-token", …]`. It runs again every four minutes, for 30 s at most; the token is sent as a
    /// bearer token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_command: Vec<String>,
    /// As in the vendor's own SDK: for `openai` (and anything compatible) it ends in `/v1`, for the
    /// others it is the host alone.
    pub base_url: Option<String>,
    /// Time limit for one whole call: 25 minutes at most.
    pub request_timeout: Option<HumanDuration>,
    /// The field that bounds the output of an OpenAI-compatible server: `max_tokens` or
    /// `max_completion_tokens`.
    pub output_cap: Option<OutputCap>,
    /// Which of OpenAI's APIs to use: `chat-completions` (default) or `responses`.
    pub api: Option<Api>,
    /// Bedrock: the region, if `base-url` does not name it.
    pub region: Option<String>,
    /// Headers of each request: `{ "OpenAI-Organization" = "org-1" }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The meaning of its refusals, as `[[providers.<name>.errors]]`: `code`, `status` or `contains`,
    /// `is` (a failure type), `span` (of a limit: minute, hours, day, month or credit). These rules take
    /// precedence over the built-in ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorRow>,
    /// Several keys, accounts, regions or endpoints behind this one name, each with its own limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<Member>,
}

/// Headers that calls set themselves, and headers that carry keys.
const OWN_HEADERS: [&str; 9] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "content-type",
    "content-length",
    "transfer-encoding",
    "host",
    "connection",
];

/// The source of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// This environment variable, which the configuration names.
    Env(String),
    /// This file.
    File(PathBuf),
    /// The line of a variable in this environment file.
    EnvFile(PathBuf, String),
    /// The vendor's own environment variable, if it is set.
    VendorEnv(String),
    /// The output of this program.
    Command(Vec<String>),
    /// Google's application-default credentials.
    Google(ApplicationDefault),
    /// No key: a self-hosted server for which none is named.
    None,
}

impl Provider {
    /// The vendor whose API the provider called `name` speaks.
    pub fn vendor(&self, name: &str) -> Option<Vendor> {
        self.kind.as_deref().unwrap_or(name).parse().ok()
    }

    /// The endpoint: as configured, or the vendor's own for a section named after it.
    pub fn endpoint(&self, name: &str) -> Option<String> {
        let usual = || {
            let vendor = self.vendor(name)?;
            // A host that depends on the region is the vendor's own, whatever the section's name.
            let own = vendor.has_regions() || vendor.is_preset() || vendor.as_str() == name;
            own.then(|| vendor.base_url(&self.region())).filter(|url| !url.is_empty())
        };
        self.base_url.clone().or_else(usual)
    }

    /// AWS's region: configured, or found as AWS's own tools do.
    fn region(&self) -> String {
        let variable = |name| env::var(name).ok().filter(|region| !region.is_empty());
        self.region
            .clone()
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .unwrap_or_else(|| "us-east-1".to_owned())
    }

    /// Time limit for one whole call.
    pub fn timeout(&self) -> HumanDuration {
        self.request_timeout.unwrap_or(HumanDuration(Duration::from_secs(600)))
    }

    /// The source of the key.
    pub fn key(&self, name: &str) -> Key {
        if !self.token_command.is_empty() {
            return Key::Command(self.token_command.clone());
        }
        match (&self.api_key_file, &self.api_key_env) {
            (Some(file), Some(variable)) => Key::EnvFile(file.clone(), variable.clone()),
            (Some(file), None) => Key::File(file.clone()),
            (None, Some(variable)) => Key::Env(variable.clone()),
            (None, None) => match self.vendor(name) {
                Some(vendor) if self.takes_google_credentials(name, vendor) => {
                    Key::Google(ApplicationDefault::of_environment())
                }
                Some(vendor) if vendor.as_str() == name || vendor.takes_machine_credentials() => {
                    Key::VendorEnv(vendor.key_variable().to_owned())
                }
                _ => Key::None,
            },
        }
    }

    /// Whether Google's application-default credentials are used, because the vendor's own variable holds
    /// no token.
    fn takes_google_credentials(&self, name: &str, vendor: Vendor) -> bool {
        let endpoint = self.endpoint(name).unwrap_or_default();
        !is_set(vendor.key_variable()) && vendor.takes_google_credentials(&endpoint)
    }

    /// The dialect; `None` if the kind is unknown.
    pub fn dialect(&self, name: &str) -> Option<Dialect> {
        Some(Dialect::new(self.vendor(name)?, self.api.unwrap_or_default()))
    }

    /// The faults of the rules for refusals, each with its row, counted from 1.
    pub(super) fn error_faults(&self) -> impl Iterator<Item = (usize, String)> {
        (1..).zip(&self.errors).filter_map(|(at, row)| Some((at, row.rule().err()?)))
    }

    /// The headers of each request.
    ///
    /// # Errors
    /// The name of a header that cannot be sent, and why.
    pub fn header_map(&self) -> Result<HeaderMap, (&str, &'static str)> {
        let header = |(name, value): (&'_ String, &'_ String)| {
            let key = HeaderName::try_from(name.as_str()).map_err(|_| "is no header's name")?;
            if OWN_HEADERS.contains(&key.as_str()) {
                return Err("is written by tidegate itself; for a key there is api-key-env");
            }
            let mut value = HeaderValue::try_from(value.as_str())
                .map_err(|_| "has a value that no header can have")?;
            value.set_sensitive(true);
            Ok((key, value))
        };
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| header((name, value)).map_err(|why| (name.as_str(), why)))
            .collect()
    }

    /// This provider with all defaults written out.
    pub(crate) fn with_defaults(&self, name: &str) -> Self {
        Self {
            kind: self.vendor(name).map(|vendor| vendor.to_string()),
            base_url: self.endpoint(name),
            request_timeout: Some(self.timeout()),
            ..self.clone()
        }
    }

    /// The settings that a client of this provider needs, its key included.
    ///
    /// # Errors
    /// A sentence that names the provider and the remedy.
    pub fn settings(&self, name: &str) -> anyhow::Result<Settings> {
        let fault = |what: String| anyhow::anyhow!("providers.{name}: {what}");
        let vendor = self.vendor(name).ok_or_else(|| {
            fault(format!("kind must be {}", quote_kinds(Vendor::known()).replace('"', "")))
        })?;
        let base_url =
            self.endpoint(name).ok_or_else(|| fault("base-url is missing; add it".to_owned()))?;
        let base_url = base_url.parse().map_err(|_| fault("base-url is no URL".to_owned()))?;
        let key_source = match self.key(name) {
            Key::File(path) => KeySource::File(path),
            Key::EnvFile(path, variable) => KeySource::EnvFile { path, variable },
            Key::Command(command) => KeySource::Command(command),
            Key::Google(found) => KeySource::Google(found),
            // The machine's credentials replace a key.
            Key::VendorEnv(_) if vendor.takes_machine_credentials() => KeySource::Fixed,
            Key::Env(variable) | Key::VendorEnv(variable) => KeySource::Env { variable },
            Key::None => KeySource::Fixed,
        };
        let key = match self.key(name) {
            Key::Env(variable) => Some(Secret::from_env(&variable)),
            Key::VendorEnv(variable) if is_set(&variable) => Some(Secret::from_env(&variable)),
            // A self-hosted server may need no key; the registry asks for one where it is needed.
            _ => key_source.read().transpose(),
        };
        let api_key = key
            .transpose()
            .map_err(|error| anyhow::Error::new(error).context(format!("providers.{name}")))?;
        Ok(Settings {
            api_key,
            key_source,
            output_cap: self.output_cap,
            api: self.api.unwrap_or_default(),
            region: Some(self.region()),
            headers: self.header_map().map_err(|(header, why)| {
                fault(format!("headers.{} {why}", header.escape_debug()))
            })?,
            errors: self
                .errors
                .iter()
                .enumerate()
                .map(|(at, row)| {
                    row.rule().map_err(|why| fault(format!("errors, row {}: {why}", at + 1)))
                })
                .collect::<Result<_, _>>()?,
            ..Settings::new(vendor, base_url).request_timeout(*self.timeout())
        })
    }
}

/// Whether an environment variable holds a text.
pub(crate) fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The dotted path of a provider's setting; for a pool's member, such as `openai/eu`, the path of the
/// pool and the member's name.
pub(crate) fn setting(provider: &str, key: &str) -> String {
    match provider.split_once('/') {
        Some((pool, member)) => format!("{key} of \"{member}\" in [[providers.{pool}.pool]]"),
        None => format!("providers.{provider}.{key}"),
    }
}

/// Quoted values of `kind` for a sentence: `"a", "b" or "c"`.
pub(super) fn quote_kinds(vendors: impl IntoIterator<Item = Vendor>) -> String {
    alternatives(&vendors.into_iter().map(Vendor::as_str).collect::<Vec<_>>())
}

impl fmt::Display for Key {
    /// Shows the source of the key and whether the key is there; never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) | Self::VendorEnv(name) if is_set(name) => write!(f, "set from {name}"),
            Self::Env(name) | Self::VendorEnv(name) => write!(f, "not set ({name})"),
            Self::EnvFile(path, name) if path.is_file() => {
                write!(f, "{name} in {}", path.display())
            }
            Self::File(path) if path.is_file() => write!(f, "set from {}", path.display()),
            Self::File(path) | Self::EnvFile(path, _) => {
                write!(f, "not set ({} is absent)", path.display())
            }
            Self::Command(command) => {
                write!(f, "printed by {}", command.first().map_or("", String::as_str))
            }
            Self::Google(found) => write!(f, "application-default credentials, {found}"),
            Self::None => f.write_str("none"),
        }
    }
}

/// Shows the URL without possible secrets.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("api_key_env", &self.api_key_env)
            .field("api_key_file", &self.api_key_file)
            .field("base_url", &self.base_url.as_deref().map(mask::url))
            .finish_non_exhaustive()
    }
}
