//! `tidegate doctor`: the configuration, Temporal, credentials and storage are looked at here, Redis
//! in a file of its own.

mod check;
mod redis;

use std::time::Duration;

use serde_json::json;
use tidegate_activities::{Storage, call::keys::cards};
use tidegate_providers::Providers;

use crate::{
    config::{Config, ConfigError, mask},
    temporal::Temporal,
};

use super::{exit::Outcome, keys, output, place, trouble::Trouble};
use check::{Check, State};

/// Object stores are far away at times.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// The name of an object that does not exist, to be asked for.
const PROBE: &str = ".tidegate-doctor";

/// Look at Temporal, Redis, the configuration, credentials and storage; say how to mend each fault
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    args: Args,
    config: Result<Config, ConfigError>,
) -> anyhow::Result<Outcome> {
    let checks = match config {
        Ok(config) => all(&config).await,
        Err(error) => error
            .faults
            .iter()
            .map(|fault| {
                Check::fail(
                    "configuration",
                    fault.to_string(),
                    "correct it, and run `tidegate doctor` again",
                )
            })
            .collect(),
    };
    let failed = checks.iter().filter(|check| check.state == State::Fail).count();
    if args.json {
        output::json(&json!({ "ok": failed == 0, "checks": checks }))?;
    } else {
        output::data(&checks.iter().map(|check| check.text()).collect::<String>())?;
        output::say(&match failed {
            0 => "all is well".to_owned(),
            1 => "1 fault".to_owned(),
            many => format!("{many} faults"),
        });
    }
    Ok(if failed == 0 { Outcome::Done } else { Outcome::Faulty })
}

async fn all(config: &Config) -> Vec<Check> {
    let mut checks = vec![configuration(config)];
    let (temporal, redis, storage) =
        tokio::join!(temporal(config), Box::pin(redis::all(config)), storage(config));
    checks.extend(temporal.into_iter().chain(redis).chain(credentials(config)));
    checks.extend(refused_keys(config).await.into_iter().chain(storage));
    checks
}

fn configuration(config: &Config) -> Check {
    let from = config.file().map_or_else(
        || "no file, so defaults and the environment".to_owned(),
        |file| file.display().to_string(),
    );
    let warnings = config.warnings();
    let seen = format!("{from}; {} models", config.models.len());
    if warnings.is_empty() {
        Check::ok("configuration", seen)
    } else {
        Check::doubtful("configuration", seen, warnings.join("\n      → "))
    }
}

async fn temporal(config: &Config) -> Vec<Check> {
    let name = "temporal";
    let temporal = match Temporal::open(config).await {
        Ok(temporal) => temporal,
        Err(error) => {
            let seen = error.chain().last().map_or_else(|| error.to_string(), ToString::to_string);
            return vec![Check::fail(name, seen, error.to_string())];
        }
    };
    let at = format!("{}, namespace {}", temporal.address(), temporal.namespace());
    match temporal.list(1).await {
        Ok(_) => {
            let mut checks = vec![Check::ok(name, at)];
            checks.extend(version(config, &temporal).await);
            checks
        }
        Err(error) => {
            let remedy = format!(
                "create the namespace (temporal operator namespace create --namespace {}), or correct temporal.namespace or TEMPORAL_NAMESPACE",
                temporal.namespace()
            );
            vec![Check::fail(name, format!("{at}: {}", error.root_cause()), remedy)]
        }
    }
}

/// Whether workers with this configuration, or those that poll, get new batches.
async fn version(config: &Config, temporal: &Temporal) -> Option<Check> {
    let name = "worker version";
    let versions = match temporal.versions().await {
        Ok(versions) => versions,
        Err(error) => {
            return Some(Check::doubtful(
                name,
                format!("it cannot be seen: {}", error.root_cause()),
                "let this user describe task queues",
            ));
        }
    };
    let own = config.version().filter(|own| versions.current.as_ref() != Some(own));
    let idle = || versions.polling.iter().flatten().next_back().cloned();
    let not_current = match &own {
        Some(own) => Some(own.clone()),
        None if config.version().is_some() || versions.polling.contains(&versions.current) => None,
        None => idle(),
    };
    if let Some(version) = not_current {
        return Some(Check::fail(
            name,
            format!("{version}: this version is not current, and gets no new batches"),
            version.make_current(),
        ));
    }
    versions.current.map(|current| Check::ok(name, format!("{current} is current")))
}

/// Whether each provider that some model needs could be called; nothing is sent.
fn credentials(config: &Config) -> Vec<Check> {
    let used = config.used_providers();
    let check = |name: &String| {
        let provider = config.providers.get(name)?;
        let label = format!("provider {name}");
        let key = provider.key(name);
        let made = provider.settings(name).and_then(|settings| {
            let signed = settings.vendor.takes_machine_credentials() && settings.api_key.is_none();
            Providers::new([(name.clone(), settings)])?;
            Ok(signed)
        });
        Some(match made {
            Ok(signed) => {
                let endpoint =
                    provider.endpoint(name).map(|url| mask::url(&url)).unwrap_or_default();
                let key = if signed {
                    "none: the AWS credentials of each worker sign its calls".to_owned()
                } else {
                    key.to_string()
                };
                Check::ok(&label, format!("{endpoint}, key {key}"))
            }
            Err(error) => Check::fail(
                &label,
                format!("{error:#}"),
                format!(
                    "key {key}; set the variable where the workers run, or name another with providers.{name}.api-key-env or api-key-file"
                ),
            ),
        })
    };
    used.iter().filter_map(check).collect()
}

/// What live workers say of their keys and calls. Without a Redis they say nothing.
async fn refused_keys(config: &Config) -> Vec<Check> {
    let Ok(limiter) = config.quota() else { return Vec::new() };
    let cards = cards(&limiter).await.unwrap_or_default();
    let refused = cards.iter().flat_map(|(worker, card)| {
        card.refused.iter().map(move |key| {
            Check::fail("key of a worker", keys::sentence(worker, key), keys::REMEDY)
        })
    });
    let mut checks: Vec<Check> = refused.collect();
    for trouble in limiter.models().filter_map(|model| Trouble::of(&cards, &model.id)) {
        let (name, seen, next) = (trouble.name(), trouble.sentence(), trouble.advice());
        checks.push(if trouble.is_down() {
            Check::fail(&name, seen, next)
        } else {
            Check::doubtful(&name, seen, next)
        });
    }
    checks
}

async fn storage(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    for root in config.storage.roots.iter().chain(&config.storage.state) {
        checks.push(one_root(root).await);
    }
    if checks.is_empty() {
        checks.push(Check::fail(
            "storage",
            "there are no roots, so nothing may be read or written",
            "add folders or buckets to storage.roots",
        ));
    }
    checks
}

async fn one_root(root: &str) -> Check {
    let label = format!("storage {}", mask::url(root));
    let location = match Storage::new([root]).and_then(|storage| storage.resolve(root)) {
        Ok(location) => location,
        Err(error) => {
            return Check::fail(
                &label,
                error.to_string(),
                "correct storage.roots; credentials come from the environment",
            );
        }
    };
    if location.exists_as_folder_or_file().is_some() {
        return folder(&label, &place::shown(root));
    }
    // The answer that an object does not exist needs the same permission as reading it.
    match tokio::time::timeout(ANSWER_WITHIN, location.child(PROBE).size()).await {
        Ok(Ok(_)) => Check::ok(&label, "can be read"),
        Ok(Err(error)) => Check::fail(
            &label,
            error.to_string(),
            "check the bucket's name, and the vendor's usual variables for credentials and region",
        ),
        Err(_) => Check::fail(
            &label,
            format!("no answer within {ANSWER_WITHIN:?}"),
            "check the network and the endpoint",
        ),
    }
}

fn folder(label: &str, path: &str) -> Check {
    if !std::path::Path::new(path).is_dir() {
        return Check::fail(
            label,
            "there is no such folder",
            format!("make it (mkdir -p {path}), or correct storage.roots"),
        );
    }
    if let Err(error) = std::fs::read_dir(path) {
        return Check::fail(
            label,
            format!("it cannot be read: {error}"),
            "let the user that workers run as read it",
        );
    }
    match tempfile::Builder::new().prefix(PROBE).tempfile_in(path) {
        Ok(_) => Check::ok(label, "can be read and written"),
        Err(error) => Check::doubtful(
            label,
            format!("it can be read, but not written: {error}"),
            "right for sources; results need a root that can be written",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{model, provider};

    #[tokio::test]
    async fn folders_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let url = place::folder_url(folder.path()).unwrap();
        assert_eq!(one_root(&url).await.state, State::Ok);
        let gone = one_root(&format!("{url}gone")).await;
        assert_eq!((gone.state, gone.seen.as_str()), (State::Fail, "there is no such folder"));
        assert!(gone.remedy.unwrap().contains("mkdir -p"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_key_that_is_not_there_is_a_fault() {
        let mut config = Config::default();
        config.models.insert("mine:m".to_owned(), model::Model::default());
        let mine = provider::Provider {
            kind: Some("openai".to_owned()),
            base_url: Some("https://api.openai.com/v1".to_owned()),
            api_key_env: Some("TIDEGATE_TEST_NO_SUCH_KEY".to_owned()),
            ..Default::default()
        };
        config.providers.insert("mine".to_owned(), mine);
        let checks = credentials(&config);
        assert_eq!((checks.len(), checks[0].state), (1, State::Fail));
        assert!(
            checks[0].remedy.as_deref().unwrap().contains("not set (TIDEGATE_TEST_NO_SUCH_KEY)"),
            "{checks:?}"
        );
    }
}
