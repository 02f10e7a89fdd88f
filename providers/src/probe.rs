//! Tests a provider with one free request for its list of models: whether the endpoint is reached,
//! and whether the key is accepted.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    error::{Error, Kind},
    exchange::Exchange,
    message::Redactor,
    observed::Observed,
    refusal::Context,
    settings::{Settings, Setup, SetupError},
};

/// The outcome of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    /// The provider answers and accepts the key.
    Accepted(
        /// Every model that it lists; `None` if the list may be incomplete, or calls use other
        /// names.
        Option<Vec<String>>,
    ),
    /// The provider answers but lists no models: the key's state is unknown.
    NoList(
        /// The HTTP status.
        u16,
    ),
    /// Not sent: calls are signed with the machine's credentials, which this request does not use.
    NotAsked,
}

/// The reason why the request failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The settings are invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The provider is not reached, or refuses.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// Asks the provider called `name` for its models. Sends one request; the settings bound its time.
///
/// # Errors
/// [`ProbeError`]: it is not reached, the key is refused, or the settings are invalid.
pub async fn models(name: &str, settings: &Settings) -> Result<Probed, ProbeError> {
    let list = settings.vendor.0.models;
    if settings.vendor.takes_machine_credentials() && settings.api_key.is_none() {
        return Ok(Probed::NotAsked);
    }
    let mut settings = settings.clone();
    if let Some((from, to)) = list.host
        && let Some(host) = settings.base_url.host_str().map(|host| host.replacen(from, to, 1))
    {
        // A host with one part of its name replaced is still a valid host.
        let _ = settings.base_url.set_host(Some(&host));
    }
    let setup = Setup::new(name, &settings);
    let mut headers = HeaderMap::new();
    for (name, value) in list.headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let wire = Exchange::new(&setup, list.path, headers)?;
    let reply = wire.get(&[], list.query).await?;
    if reply.is_success() {
        let all = list.names_as_called.then(|| reply.json().ok().and_then(|body| listed(&body)));
        return Ok(Probed::Accepted(all.flatten()));
    }
    let redactor = Redactor::of_key(&setup.key);
    let observed = Observed::default();
    let errors = &settings.errors;
    let context = Context::new(setup.name, &setup.classifier, errors, redactor, observed);
    let error = context.refused(&reply);
    match (reply.status, error.kind) {
        // Compatible servers need not have a list.
        (status @ (404 | 405 | 501), kind) if kind != Kind::Unauthorized => {
            Ok(Probed::NoList(status))
        }
        _ => Err(error.into()),
    }
}

/// The names in a complete list: in `data`, in Google's `models` as `models/…`, or, at Together, at
/// the top level.
fn listed(body: &Value) -> Option<Vec<String>> {
    let next = body.get("nextPageToken").and_then(Value::as_str);
    let has_more = body.get("has_more").and_then(Value::as_bool).unwrap_or_default();
    if has_more || next.is_some_and(|token| !token.is_empty()) {
        return None;
    }
    let models = ["data", "models"].iter().find_map(|name| body.get(*name)).unwrap_or(body);
    let name = |model: &Value| {
        let name = model.get("id").or_else(|| model.get("name"))?.as_str()?;
        Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
    };
    let names: Vec<String> = models.as_array()?.iter().filter_map(name).collect();
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_known_when_it_was_read_to_its_end() {
        let names = |body: Value| listed(&body).map(|names| names.join(" "));
        let two = json!([{"id": "a"}, {"id": "b"}]);
        assert_eq!(names(json!({"data": two, "has_more": false})).as_deref(), Some("a b"));
        assert_eq!(names(json!({"object": "list", "data": two})).as_deref(), Some("a b"));
        assert_eq!(names(two.clone()).as_deref(), Some("a b"));
        assert_eq!(names(json!({"data": two, "has_more": true})), None);
        let google = json!([{"name": "models/gemini-3"}]);
        assert_eq!(names(json!({"models": google})).as_deref(), Some("gemini-3"));
        assert_eq!(names(json!({"models": google, "nextPageToken": "x"})), None);
        assert_eq!(names(json!({"data": []})), None);
        assert_eq!(names(json!({"detail": "it lists none"})), None);
    }
}
