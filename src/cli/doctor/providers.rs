//! Checks the needed providers: each is asked for its list of models, which costs nothing.

use std::time::Duration;

use futures::{StreamExt, stream};
use tidegate_providers::{
    Kind, SecretError, Settings, SetupError, Vendor,
    probe::{self, ProbeError, Probed},
};

use crate::{
    cli::advice,
    config::{Config, mask, provider},
};

use super::check::{Check, State};

/// Time limit for a provider's list of models.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Providers that are asked at once.
const AT_ONCE: usize = 8;

pub(super) async fn check_all(config: &Config) -> Vec<Check> {
    let used = config.used_providers();
    let used = used.iter().filter_map(|name| Some((name, config.providers.get(name)?)));
    let checks = used.map(|(name, provider)| async move {
        let of = |model: &&String| model.split_once(':').is_some_and(|(of, _)| of == name);
        let models: Vec<&str> = config.models.keys().filter(of).map(String::as_str).collect();
        one(name, provider, &models).await
    });
    stream::iter(checks).buffered(AT_ONCE).collect().await
}

/// Checks the provider of these models.
async fn one(name: &str, provider: &provider::Provider, models: &[&str]) -> Check {
    let (label, key) = (format!("provider {name}"), provider.key(name));
    let endpoint = provider.endpoint(name).map(|url| mask::url(&url)).unwrap_or_default();
    let settings = match provider.settings(name) {
        Ok(settings) => settings.request_timeout(ANSWER_WITHIN),
        Err(error) => {
            let seen = format!("{error:#}");
            if error.chain().any(|cause| cause.is::<SecretError>()) {
                return no_key(&label, &seen, &key, name);
            }
            return Check::fail(&label, seen, correct(name));
        }
    };
    let check = asked(name, &label, &endpoint, (&settings, &key), models).await;
    if check.state == State::Ok && is_open(&settings) {
        let seen = format!("{}; the key goes over the network for all to read", check.seen);
        return Check::doubtful(&label, seen, "write https:// in base-url");
    }
    check
}

async fn asked(
    name: &str,
    label: &str,
    endpoint: &str,
    (settings, key): (&Settings, &provider::Key),
    models: &[&str],
) -> Check {
    match probe::models(name, settings).await {
        Ok(Probed::Accepted(listed)) => {
            let seen = format!("{endpoint} answers, and takes the key ({key})");
            let listed = listed.unwrap_or_default();
            let unlisted: Vec<&str> =
                models.iter().copied().filter(|model| !is_listed(model, &listed)).collect();
            if listed.is_empty() || unlisted.is_empty() {
                return Check::ok(label, seen);
            }
            let unlisted = unlisted.join(", ");
            Check::doubtful(
                label,
                format!("{seen}; the provider does not list {unlisted}"),
                "correct the name in [models.…], in routes and in batches, unless it is an alias that the provider knows",
            )
        }
        Ok(Probed::NotAsked) => Check::ok(
            label,
            format!("{endpoint}, not asked: the AWS credentials of each worker sign its calls"),
        ),
        Ok(Probed::NoList(status)) => no_list(name, label, endpoint, (settings, key), status),
        Err(ProbeError::Setup(error @ SetupError::NoKey { .. })) => {
            no_key(label, &error.to_string(), key, name)
        }
        Err(ProbeError::Setup(error)) => Check::fail(label, error.to_string(), correct(name)),
        Err(ProbeError::Refused(error)) => {
            let seen = format!("{endpoint}: {}", error.message);
            match error.kind {
                Kind::Unauthorized => no_key(label, &seen, key, name),
                Kind::RateLimited | Kind::Overloaded | Kind::QuotaExhausted => Check::doubtful(
                    label,
                    seen,
                    "it is there, and has no room now: ask again later",
                ),
                _ => Check::fail(
                    label,
                    seen,
                    format!(
                        "correct {}, or let this machine reach it: its name, the network and proxies, and certificates",
                        advice::setting(name, "base-url")
                    ),
                ),
            }
        }
    }
}

/// The check of a server without a list of models. A compatible server need not have one. But a
/// wrong address has none either, and a missing key is not noticed without one.
fn no_list(
    name: &str,
    label: &str,
    endpoint: &str,
    (settings, key): (&Settings, &provider::Key),
    status: u16,
) -> Check {
    let seen = format!("{endpoint} answers; it lists no models ({status})");
    let is_openais = settings.vendor == Vendor::OPENAI || settings.vendor.is_preset();
    let base_url = advice::setting(name, "base-url");
    if is_openais && !names_version(settings) {
        return Check::doubtful(
            label,
            seen,
            format!("{base_url}: should it end in /v1? A server without a list answers so too"),
        );
    }
    let wants_key = !matches!(key, provider::Key::None) && settings.vendor.always_has_key();
    if settings.api_key.is_none() && wants_key {
        return Check { state: State::Doubtful, ..no_key(label, &seen, key, name) };
    }
    Check::ok(label, format!("{seen}, so of the key ({key}) nothing is known"))
}

/// Whether the URL's path names a version, such as `/v1`.
fn names_version(settings: &Settings) -> bool {
    let mut segments = settings.base_url.path().split('/');
    segments.any(|it| {
        it.strip_prefix('v').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Whether a provider's list contains a model. Lists have dated names; calls may use aliases of them
/// (`-latest`, Anthropic's `-0`) and variants (`:free`).
fn is_listed(model: &str, listed: &[String]) -> bool {
    let name = model.split_once(':').map_or(model, |(_, name)| name).to_ascii_lowercase();
    let name = name.trim_end_matches("-latest").trim_end_matches("-0");
    let known = |id: &String| {
        let id = id.to_ascii_lowercase();
        id.starts_with(name) || name.starts_with(id.as_str())
    };
    listed.iter().any(known)
}

/// The remedy for a section from which no client can be made.
fn correct(name: &str) -> String {
    format!("correct [providers.{name}] as said")
}

/// Whether the key travels unencrypted.
fn is_open(settings: &Settings) -> bool {
    let url = &settings.base_url;
    let is_near = url.host_str().is_some_and(|host| {
        host == "localhost" || !host.contains('.') || host.parse::<std::net::IpAddr>().is_ok()
    });
    url.scheme() == "http" && settings.api_key.is_some() && !is_near
}

fn no_key(label: &str, seen: &str, key: &provider::Key, name: &str) -> Check {
    Check::fail(
        label,
        seen,
        format!(
            "key {key}; set the variable where the workers run, or name another with {} or api-key-file",
            advice::setting(name, "api-key-env")
        ),
    )
}

#[cfg(test)]
mod tests {
    use tidegate_providers::{Secret, Vendor};
    use tidegate_simulator::Simulator;

    use super::*;

    /// The check of a provider at this address, with the key in this file.
    async fn seen(kind: &str, url: &str, key: &str) -> Check {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), key).unwrap();
        let provider = provider::Provider {
            kind: Some(kind.to_owned()),
            base_url: Some(url.to_owned()),
            api_key_file: Some(file.path().to_owned()),
            ..Default::default()
        };
        one("mine", &provider, &["mine:m-1"]).await
    }

    /// The check of a vendor without a key.
    async fn without_key(vendor: &str, url: &str) -> Check {
        let base_url = Some(url.to_owned());
        one(vendor, &provider::Provider { base_url, ..Default::default() }, &[]).await
    }

    #[test]
    fn a_name_is_listed_under_its_aliases_too() {
        let listed = ["claude-sonnet-4-20250514", "gpt-6-luna"].map(str::to_owned);
        for (model, expected) in [
            ("a:gpt-6-luna", true),
            ("a:gpt-6-luna:free", true),
            ("a:claude-sonnet-4", true),
            ("a:claude-sonnet-4-0", true),
            ("a:claude-sonnet-4-latest", true),
            ("a:claude-sonet-4", false),
            ("a:gpt-7", false),
        ] {
            assert_eq!(is_listed(model, &listed), expected, "{model}");
        }
    }

    #[tokio::test]
    async fn a_model_that_is_not_listed_and_a_key_that_is_not_set_are_to_be_looked_at() {
        let config = "[models.\"m-1-2026\"]\n[models.\"other\"]\n";
        let config = tidegate_simulator::Config::from_toml(config).unwrap();
        let simulator = Simulator::start(config).await.unwrap();
        let url = format!("{}/v1", simulator.base_url());
        assert_eq!(seen("openai", &url, "good").await.state, State::Ok);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "good").unwrap();
        let provider = provider::Provider {
            kind: Some("openai".to_owned()),
            base_url: Some(url.clone()),
            api_key_file: Some(file.path().to_owned()),
            ..Default::default()
        };
        let wrong = one("mine", &provider, &["mine:m-1", "mine:m-2"]).await;
        assert_eq!(wrong.state, State::Doubtful, "{wrong:?}");
        assert!(wrong.seen.ends_with("the provider does not list mine:m-2"), "{wrong:?}");
        // No server is there, so nothing is known of a key either.
        let nowhere = format!("{}/nowhere/v1", simulator.base_url());
        let keyless = without_key("mistral", &nowhere).await;
        assert_eq!(keyless.state, State::Doubtful, "{keyless:?}");
        assert!(keyless.remedy.unwrap().contains("MISTRAL_API_KEY"));
        let versioned = seen("anthropic", &url, "good").await;
        assert_eq!(versioned.state, State::Fail, "{versioned:?}");
        assert!(versioned.seen.contains("leave out /v1"), "{versioned:?}");
        let remedy = versioned.remedy.unwrap();
        assert!(remedy.contains("[providers.mine]") && !remedy.contains("variable"), "{remedy}");
        simulator.shutdown().await;
    }

    #[tokio::test]
    async fn each_provider_is_asked_for_its_models() {
        let config = "[[refused-keys]]\nkey = \"bad\"\n";
        let config = tidegate_simulator::Config::from_toml(config).unwrap();
        let simulator = Simulator::start(config).await.unwrap();
        let url = simulator.base_url();
        for (kind, path) in [("anthropic", ""), ("openai", "/v1"), ("gemini", ""), ("bedrock", "")]
        {
            let url = format!("{url}{path}");
            let good = seen(kind, &url, "good").await;
            assert!(good.state == State::Ok && good.seen.contains("takes the key"), "{good:?}");
            let bad = seen(kind, &url, "bad").await;
            assert_eq!(bad.state, State::Fail, "{kind}: {bad:?}");
            let remedy = bad.remedy.unwrap();
            assert!(
                remedy.contains("api-key-file") && !remedy.contains("base-url"),
                "{kind}: {remedy}"
            );
        }
        let no_version = seen("openai", &url, "good").await;
        assert_eq!(no_version.state, State::Doubtful, "no list, but an answer");
        assert!(no_version.remedy.unwrap().contains("should it end in /v1?"));
        let no_list = seen("openai", &format!("{url}/nowhere/v1"), "good").await;
        assert_eq!(no_list.state, State::Ok, "{no_list:?}");
        simulator.shutdown().await;
        let away = seen("anthropic", &url, "good").await;
        assert_eq!(away.state, State::Fail, "{away:?}");
        assert!(away.remedy.unwrap().contains("providers.mine.base-url"));
        let empty = seen("anthropic", &url, " \n").await;
        assert!(empty.state == State::Fail && empty.remedy.is_some(), "{empty:?}");
        let open = |url: &str| {
            let settings = Settings::new(Vendor::OPENAI, url.parse().unwrap());
            is_open(&settings.api_key(Secret::new("k").unwrap()))
        };
        assert!(open("http://api.example.com/v1") && !open("https://api.example.com/v1"));
        assert!(!open("http://10.0.0.1/v1") && !open("http://gateway:4000/v1"));
    }
}
