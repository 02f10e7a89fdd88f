//! `[providers.<name>]`: how a provider is reached.

use std::{collections::BTreeMap, env, fmt, path::PathBuf, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use tidegate_providers::{
    Api, ApplicationDefault, Dialect, KeySource, OutputCap, Secret, Settings, Vendor,
};

use super::{error_row::ErrorRow, mask, pool::Member, span::Span};

/// One provider. A section named after a vendor needs nothing; any other needs `kind` and
/// `base-url`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Provider {
    /// Whose API it speaks: `anthropic`, `openai` (and anything compatible), `gemini` or `bedrock`; or
    /// a vendor that is known by name, such as `groq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The environment variable that holds the key; beside `api-key-file`, its name in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The file that holds the key, and nothing else; beside `api-key-env` an environment file. It
    /// is read again every few seconds, and when the key is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// The program that prints a token in place of a key, with its arguments, such as `["az", "account",
    /// "get-access-token", …]`. It is asked again every four minutes; the token goes as a bearer's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_command: Vec<String>,
    /// As in the vendor's own SDK: `openai` (and anything compatible) ends in `/v1`, the others
    /// name the host alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Time for one whole call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<Span>,
    /// The field that bounds the output of an OpenAI-compatible server: `max_tokens` or
    /// `max_completion_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_cap: Option<String>,
    /// Which of OpenAI's APIs: `chat-completions` (default) or `responses`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Bedrock: the region, where `base-url` does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Sent with each request, by their names: `{ "OpenAI-Organization" = "org-1" }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What its refusals mean, as `[[providers.<name>.errors]]`: `code`, `status` or `contains`, `is`
    /// (a failure type), `span` (of a limit: minute, hours, day, month or credit). They win over
    /// what is known of all vendors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorRow>,
    /// Several keys, accounts, regions or endpoints behind this one name, each with its own limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<Member>,
}

/// Headers that calls have anyway, and that carry keys.
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

/// Where a provider's key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// In this environment variable, because the configuration says so.
    Env(String),
    /// In this file.
    File(PathBuf),
    /// In the line of a variable in this environment file.
    EnvFile(PathBuf, String),
    /// In the vendor's own environment variable, if it is set.
    Usual(&'static str),
    /// What this program prints.
    Command(Vec<String>),
    /// Google's application-default credentials.
    Google(ApplicationDefault),
    /// None: a server that is self-hosted, for which no key is named.
    None,
}

impl Provider {
    /// Whose API the provider called `name` speaks.
    pub fn vendor(&self, name: &str) -> Option<Vendor> {
        self.kind.as_deref().unwrap_or(name).parse().ok()
    }

    /// The endpoint: as configured, or the vendor's own for a section named after it.
    pub fn endpoint(&self, name: &str) -> Option<String> {
        let usual = || {
            let vendor = self.vendor(name)?;
            // Hosts that are told by their region are the vendor's own, whatever the section is
            // called.
            let own = vendor.has_regions() || vendor.is_preset() || vendor.as_str() == name;
            own.then(|| vendor.base_url(&self.region())).filter(|url| !url.is_empty())
        };
        self.base_url.clone().or_else(usual)
    }

    /// AWS's region: as configured, or as AWS's own tools find it.
    fn region(&self) -> String {
        let variable = |name| env::var(name).ok().filter(|region| !region.is_empty());
        self.region
            .clone()
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .unwrap_or_else(|| "us-east-1".to_owned())
    }

    /// Time for one whole call.
    pub fn timeout(&self) -> Span {
        self.request_timeout.unwrap_or(Span(Duration::from_secs(600)))
    }

    /// Where the key is.
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
                    Key::Usual(vendor.key_variable())
                }
                _ => Key::None,
            },
        }
    }

    /// Whether Google's application-default credentials are used: there is no token in the
    /// vendor's own variable.
    fn takes_google_credentials(&self, name: &str, vendor: Vendor) -> bool {
        let has_token = env::var_os(vendor.key_variable()).is_some_and(|token| !token.is_empty());
        let endpoint = self.endpoint(name).unwrap_or_default();
        !has_token && vendor.takes_google_credentials(&endpoint)
    }

    /// The bound's field, if it is named and known.
    pub fn cap(&self) -> Option<OutputCap> {
        match self.output_cap.as_deref() {
            Some("max_tokens") => Some(OutputCap::MaxTokens),
            Some("max_completion_tokens") => Some(OutputCap::MaxCompletionTokens),
            _ => None,
        }
    }

    /// OpenAI's API, if it is known.
    pub fn api(&self) -> Option<Api> {
        match self.api.as_deref() {
            None | Some("chat-completions") => Some(Api::ChatCompletions),
            Some("responses") => Some(Api::Responses),
            Some(_) => None,
        }
    }

    /// What is known of how it is asked; `None` where kind or API are not known.
    pub fn dialect(&self, name: &str) -> Option<Dialect> {
        Some(Dialect::new(self.vendor(name)?, self.api()?))
    }

    /// The headers of each request.
    ///
    /// # Errors
    /// The name of one that cannot be sent, and why.
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

    /// The same provider with every default written out.
    pub(crate) fn resolved(&self, name: &str) -> Self {
        Self {
            kind: self.vendor(name).map(|vendor| vendor.to_string()),
            base_url: self.endpoint(name),
            request_timeout: Some(self.timeout()),
            ..self.clone()
        }
    }

    /// Everything that a client of this provider needs, its key included.
    ///
    /// # Errors
    /// A sentence that names the provider and says what to change.
    pub fn settings(&self, name: &str) -> anyhow::Result<Settings> {
        let fault = |what: String| anyhow::anyhow!("providers.{name}: {what}");
        let vendor = self
            .vendor(name)
            .ok_or_else(|| fault(format!("kind must be {}", kinds(known()).replace('"', ""))))?;
        let base_url =
            self.endpoint(name).ok_or_else(|| fault("base-url is missing; add it".to_owned()))?;
        let base_url = base_url.parse().map_err(|_| fault("base-url is no URL".to_owned()))?;
        let key_source = match self.key(name) {
            Key::File(path) => KeySource::File(path),
            Key::EnvFile(path, variable) => KeySource::EnvFile { path, variable },
            Key::Command(command) => KeySource::Command(command),
            Key::Google(found) => KeySource::Google(found),
            Key::Env(variable) => KeySource::Env { variable },
            // Nothing is amiss without one where the machine's credentials do.
            Key::Usual(_) if vendor.takes_machine_credentials() => KeySource::Fixed,
            Key::Usual(variable) => KeySource::Env { variable: variable.to_owned() },
            Key::None => KeySource::Fixed,
        };
        let key = match self.key(name) {
            Key::File(_) | Key::EnvFile(..) | Key::Command(_) | Key::Google(_) => {
                key_source.read().transpose()
            }
            Key::Env(variable) => Some(Secret::from_env(&variable)),
            // A self-hosted server may need none; the registry asks for a key where one is needed.
            Key::Usual(variable) => env::var_os(variable)
                .filter(|value| !value.is_empty())
                .map(|_| Secret::from_env(variable)),
            Key::None => None,
        };
        let api_key = key
            .transpose()
            .map_err(|error| anyhow::Error::new(error).context(format!("providers.{name}")))?;
        Ok(Settings {
            api_key,
            key_source,
            output_cap: self.cap(),
            api: self.api().unwrap_or_default(),
            region: Some(self.region()),
            headers: self
                .header_map()
                .map_err(|(header, why)| fault(format!("headers.{header} {why}")))?,
            errors: self
                .errors
                .iter()
                .enumerate()
                .map(|(at, row)| row.rule().map_err(|why| fault(format!("errors[{at}]: {why}"))))
                .collect::<Result<_, _>>()?,
            ..Settings::new(vendor, base_url).request_timeout(*self.timeout())
        })
    }
}

/// Where a setting of a provider stands: that of a pool's member `openai/eu` beside the member's name.
pub(crate) fn setting(provider: &str, key: &str) -> String {
    match provider.split_once('/') {
        Some((pool, member)) => format!("{key} of \"{member}\" in [[providers.{pool}.pool]]"),
        None => format!("providers.{provider}.{key}"),
    }
}

/// Every value of `kind`.
pub(super) fn known() -> impl Iterator<Item = Vendor> {
    Vendor::known()
}

/// The values of `kind` as a sentence has them, quoted: `"a", "b" or "c"`.
pub(super) fn kinds(vendors: impl IntoIterator<Item = Vendor>) -> String {
    let names: Vec<String> = vendors.into_iter().map(|vendor| format!("\"{vendor}\"")).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

impl fmt::Display for Key {
    /// Says where the key is and whether it is there; never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = |f: &mut fmt::Formatter<'_>, name: &str| {
            if env::var_os(name).is_some_and(|value| !value.is_empty()) {
                write!(f, "set from {name}")
            } else {
                write!(f, "not set ({name})")
            }
        };
        match self {
            Self::Env(name) => variable(f, name),
            Self::Usual(name) => variable(f, name),
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

/// The URL is shown without what may be secret in it.
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
