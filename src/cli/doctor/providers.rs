//! The providers that some model needs: each is asked for its models, which costs nothing.

use std::time::Duration;

use futures::{StreamExt, stream};
use tidegate_providers::{
    Kind, Settings,
    probe::{self, ProbeError, Probed},
};

use crate::{
    cli::advice,
    config::{Config, mask, provider},
};

use super::check::{Check, State};

/// A provider that takes longer for its list is not well.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// So many are asked at a time.
const AT_ONCE: usize = 8;

pub(super) async fn all(config: &Config) -> Vec<Check> {
    let used = config.used_providers();
    let used = used.iter().filter_map(|name| Some((name, config.providers.get(name)?)));
    stream::iter(used.map(|(name, provider)| one(name, provider))).buffered(AT_ONCE).collect().await
}

async fn one(name: &str, provider: &provider::Provider) -> Check {
    let (label, key) = (format!("provider {name}"), provider.key(name));
    let endpoint = provider.endpoint(name).map(|url| mask::url(&url)).unwrap_or_default();
    let settings = match provider.settings(name) {
        Ok(settings) => settings.request_timeout(ANSWER_WITHIN),
        Err(error) => return no_key(&label, &format!("{error:#}"), &key, name),
    };
    let check = asked(name, &label, &endpoint, &settings, &key).await;
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
    settings: &Settings,
    key: &provider::Key,
) -> Check {
    match probe::models(name, settings).await {
        Ok(Probed::Accepted) => {
            Check::ok(label, format!("{endpoint} answers, and takes the key ({key})"))
        }
        Ok(Probed::NotAsked) => Check::ok(
            label,
            format!("{endpoint}, not asked: the AWS credentials of each worker sign its calls"),
        ),
        Ok(Probed::NoList(status)) => Check::ok(
            label,
            format!(
                "{endpoint} answers; it lists no models ({status}), so of the key ({key}) nothing is known"
            ),
        ),
        Err(ProbeError::Setup(error)) => no_key(label, &error.to_string(), key, name),
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

/// Whether anybody on the way can read the key.
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

    /// What is said of a provider at this address, with the key in this file.
    async fn seen(kind: &str, url: &str, key: &str) -> Check {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), key).unwrap();
        let provider = provider::Provider {
            kind: Some(kind.to_owned()),
            base_url: Some(url.to_owned()),
            api_key_file: Some(file.path().to_owned()),
            ..Default::default()
        };
        one("mine", &provider).await
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
        assert_eq!(seen("openai", &url, "good").await.state, State::Ok, "no list, but an answer");
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
