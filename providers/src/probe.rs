//! One free question to a provider: its list of models. It tells whether the endpoint is reached and
//! whether the key is accepted, and costs nothing.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    error::{Error, Kind},
    exchange::Wire,
    message::Redactor,
    observed::Observed,
    refusal::Context,
    settings::{Settings, Setup, SetupError},
};

/// What came of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probed {
    /// It answers, and takes the key.
    Accepted,
    /// It answers, and lists no models: of the key nothing is known.
    NoList(
        /// The HTTP status.
        u16,
    ),
    /// Calls are signed with the machine's credentials, with which nothing is asked here.
    NotAsked,
}

/// Why the question could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The settings cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The provider is not reached, or refuses.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// Asks the provider called `name` for its models. One request; how long it may take is the
/// settings' to say.
///
/// # Errors
/// [`ProbeError`]: it is not reached, the key is refused, or the settings cannot be used.
pub async fn models(name: &str, settings: &Settings) -> Result<Probed, ProbeError> {
    let list = settings.vendor.0.models;
    if settings.vendor.takes_machine_credentials() && settings.api_key.is_none() {
        return Ok(Probed::NotAsked);
    }
    let mut settings = settings.clone();
    if let Some((from, to)) = list.host
        && let Some(host) = settings.base_url.host_str().map(|host| host.replacen(from, to, 1))
    {
        // A host with another part in its name is a host still.
        let _ = settings.base_url.set_host(Some(&host));
    }
    let setup = Setup::new(name, &settings);
    let mut headers = HeaderMap::new();
    for (name, value) in list.headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let wire = Wire::new(&setup, list.path, headers)?;
    let redactor = Redactor::of_key(&setup.key);
    let reply = wire.get(&[], list.query, &redactor).await?;
    if reply.is_success() {
        return Ok(Probed::Accepted);
    }
    let redactor = Redactor::of_key(&setup.key);
    let observed = Observed::default();
    let codes = &settings.retry_codes;
    let context = Context::new(settings.vendor, &setup.classifier, codes, redactor, observed);
    let error = context.refused(&reply);
    match (reply.status, error.kind) {
        // Compatible servers need not have a list.
        (status @ (404 | 405 | 501), kind) if kind != Kind::Unauthorized => {
            Ok(Probed::NoList(status))
        }
        _ => Err(error.into()),
    }
}
