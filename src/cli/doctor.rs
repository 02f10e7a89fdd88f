//! `tidegate doctor`: checks the configuration, Temporal, workers and storage; Redis, the providers and a
//! single store have separate files.

mod check;
mod providers;
mod redis;
mod store;

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_activities::Storage;
use tidegate_calls::{
    route::Route,
    worker_status::{differences, worker_statuses},
};
use tidegate_types::ModelId;

use crate::{
    config::{Config, ConfigError, mask},
    temporal::{Temporal, namespace_remedy},
};

use super::{advice, exit::Outcome, format, keys, output, paths, trouble::Trouble};
use check::{Check, State};

/// Object stores can be slow.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// The name of an object that does not exist, used as a probe.
const PROBE: &str = ".tidegate-doctor";

/// Check Temporal, Redis, the configuration, credentials and storage, and say how to repair each fault
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Check this store alone, such as s3://bucket/prefix, gs://…, az://…, https://… or a folder: which
    /// credential opens it, and what the credential may do (a small object is written and removed)
    #[arg(value_name = "STORE")]
    store: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    args: Args,
    config: Result<Config, ConfigError>,
) -> anyhow::Result<Outcome> {
    if let Some(store) = &args.store {
        let place = paths::output_url(store)?;
        let (checks, json) = Box::pin(store::probe(&place, config.as_ref().ok())).await;
        return report(checks, json, &args, Outcome::Faulty);
    }
    let at_fault = if config.is_ok() { Outcome::Faulty } else { Outcome::WronglySetUp };
    let checks = match config {
        Ok(config) => check_all(&config).await,
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
    report(checks, json!({}), &args, at_fault)
}

/// Prints the checks; returns `at_fault` if any of them fails.
fn report(
    checks: Vec<Check>,
    mut more: Value,
    args: &Args,
    at_fault: Outcome,
) -> anyhow::Result<Outcome> {
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (failed, doubtful) = (count(State::Fail), count(State::Doubtful));
    if args.json {
        more["ok"] = (failed == 0).into();
        more["checks"] = json!(checks);
        output::print_json(&more)?;
    } else {
        output::print_data(&checks.iter().map(|check| check.text()).collect::<String>())?;
        output::print_message(&match (failed, doubtful) {
            (0, 0) => "all is well".to_owned(),
            (0, remarks) => format!("no fault; {}", format::plural(remarks as u64, "warning")),
            (1, _) => "1 fault".to_owned(),
            (many, _) => format!("{many} faults"),
        });
    }
    Ok(if failed == 0 { Outcome::Done } else { at_fault })
}

async fn check_all(config: &Config) -> Vec<Check> {
    let mut checks = vec![configuration(config)];
    checks.extend(fallbacks(config));
    let (temporal, redis, providers, storage) = tokio::join!(
        temporal(config),
        Box::pin(redis::check_all(config)),
        Box::pin(providers::check_all(config)),
        storage(config)
    );
    checks.extend(temporal.into_iter().chain(redis).chain(providers));
    checks.extend(fleet(config).await.into_iter().chain(storage));
    checks
}

fn configuration(config: &Config) -> Check {
    let from = config.file().map_or_else(
        || "no file, so defaults and the environment".to_owned(),
        |file| file.display().to_string(),
    );
    if let Err(error) = config.prices() {
        let seen = format!("{from}; {error:#}");
        return Check::fail("configuration", seen, "correct it: no worker starts with this");
    }
    let mut warnings = config.warnings();
    warnings.extend(config.serve.plain_text_warning());
    let seen = format!("{from}; {}", format::plural(config.models.len() as u64, "model"));
    if warnings.is_empty() {
        Check::ok("configuration", seen)
    } else {
        Check::doubtful("configuration", seen, warnings.join("\n      → "))
    }
}

/// Checks routes that fall back without a stated reason.
fn fallbacks(config: &Config) -> Vec<Check> {
    let routes = config.routes().unwrap_or_default();
    let check = |(name, route): (&String, &Route)| {
        let others: Vec<&str> = route.others().map(ModelId::as_str).collect();
        let (first, others) = (route.models.first()?, others.join(" and "));
        let name = format!("route {name}");
        let compare = format!(
            "compare them: `tidegate compare`, and compared = in its section; or name {others} in equivalent"
        );
        match &route.compared {
            _ if others.is_empty() => None,
            _ if route.unchecked => Some(Check::doubtful(
                &name,
                format!("unchecked: it falls back from {first} to {others} without a comparison"),
                compare,
            )),
            None => Some(Check::doubtful(
                &name,
                format!(
                    "batches with this route are refused: it gives no reason to fall back from {first} to {others}"
                ),
                compare,
            )),
            Some(prefix) => Some(Check::ok(
                &name,
                format!(
                    "it falls back from {first} to {others} for the questions compared in {}",
                    mask::url(prefix)
                ),
            )),
        }
    };
    routes.iter().filter_map(check).collect()
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
            checks.extend(codec(&temporal).await);
            checks
        }
        Err(error) => {
            let why = error.root_cause().to_string();
            let remedy = listing_remedy(&why, temporal.namespace());
            vec![Check::fail(name, format!("{at}: {why}"), remedy)]
        }
    }
}

/// Advice on the server's reply to a request for the list of batches.
fn listing_remedy(words: &str, namespace: &str) -> String {
    let words = words.to_lowercase();
    if words.contains("not found") {
        namespace_remedy(namespace)
    } else if words.contains("unauthorized") || words.contains("permission") {
        format!("give this key or certificate the right to list workflows in {namespace}")
    } else {
        "see the Temporal server's log".to_owned()
    }
}

async fn codec(temporal: &Temporal) -> Option<Check> {
    let name = format!("codec {}", mask::url(temporal.codec()?));
    Some(match temporal.probe_codec().await {
        Ok(()) => Check::ok(&name, "it returns payloads unchanged"),
        Err(error) => Check::fail(
            &name,
            error.to_string(),
            "start the codec server, or correct TEMPORAL_CODEC_ENDPOINT and TEMPORAL_CODEC_AUTH; until then batches stand still",
        ),
    })
}

/// Checks whether workers with this configuration, or polling workers, get new batches.
async fn version(config: &Config, temporal: &Temporal) -> Option<Check> {
    let name = "worker version";
    let versions = match temporal.versions(temporal.task_queue()).await {
        Ok(versions) => versions,
        Err(error) => {
            return Some(Check::doubtful(
                name,
                format!("the task queue cannot be described: {}", error.root_cause()),
                "let this user describe task queues",
            ));
        }
    };
    if versions.polling.is_empty() {
        let queue = temporal.task_queue();
        return Some(Check::doubtful(
            "workers",
            format!("no worker polls the task queue \"{queue}\"; batches wait"),
            advice::START_WORKER,
        ));
    }
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
    if silent(config, temporal).await {
        return Some(Check::doubtful(
            "workers",
            format!(
                "workers polled the task queue \"{}\" in the last minutes, but this Redis knows no live worker: they stopped, or use another Redis",
                temporal.task_queue()
            ),
            "see `tidegate workers`; start one with `tidegate worker`",
        ));
    }
    Some(match versions.current {
        Some(current) => Check::ok(name, format!("{current} is current")),
        None => Check::ok(
            "workers",
            format!("workers poll the task queue \"{}\"", temporal.task_queue()),
        ),
    })
}

/// Whether Redis answers but has no live worker of this task queue. Temporal lists lost workers for some
/// minutes.
async fn silent(config: &Config, temporal: &Temporal) -> bool {
    let Ok(limiter) = config.quota() else { return false };
    let queue = temporal.queue();
    worker_statuses(&limiter)
        .await
        .is_ok_and(|cards| !cards.iter().any(|(_, card)| card.queue == queue))
}

/// Checks live workers' keys and calls, and differences of their configurations. Empty without Redis.
async fn fleet(config: &Config) -> Vec<Check> {
    let Ok(limiter) = config.quota() else { return Vec::new() };
    let cards = worker_statuses(&limiter).await.unwrap_or_default();
    let refused = cards.iter().flat_map(|(worker, card)| {
        card.refused.iter().map(move |key| {
            let remedy = keys::remedy_for(key);
            Check::fail("key of a worker", keys::sentence(worker, key), remedy)
        })
    });
    let mut checks: Vec<Check> = refused.collect();
    let held = limiter.operator_holds().await.unwrap_or_default();
    checks.extend(held.models.iter().map(|(model, reason)| {
        Check::doubtful(
            &format!("pause of {model}"),
            format!("it is paused until it is resumed: {reason}"),
            format!("`tidegate resume {model}`; the pause ends, too, if Redis loses its data"),
        )
    }));
    for trouble in limiter.models().filter_map(|model| Trouble::from_cards(&cards, &model.id)) {
        let (name, seen, next) = (trouble.name(), trouble.sentence(), trouble.advice());
        checks.push(if trouble.is_down() {
            Check::fail(&name, seen, next)
        } else {
            Check::doubtful(&name, seen, next)
        });
    }
    for model in limiter.models() {
        let other = limiter.inspect(&model.id).await.ok().and_then(|seen| seen.other_fingerprint);
        if let Some((plan, own)) = other {
            checks.push(Check::doubtful(
                &format!("plan of {}", model.id),
                format!(
                    "programs with other limits, or of another version, made the plan in force: its fingerprint is {plan:x}, this configuration's {own:x}"
                ),
                "give all programs that share the quota one configuration and one version; until then the program that started last decides, at most once a minute",
            ));
        }
    }
    checks.extend(differences(&cards).into_iter().map(|difference| {
        Check::fail(
            "configuration of workers",
            difference.to_string(),
            "give all workers of this fleet one configuration, and restart those that differ",
        )
    }));
    checks
}

async fn storage(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    for root in &config.storage.roots {
        checks.push(one_root("storage.roots", root).await);
    }
    if checks.is_empty() {
        checks.push(Check::fail(
            "storage",
            "storage.roots is empty, so nothing may be read or written",
            "add folders or buckets to storage.roots",
        ));
    }
    if let Some(state) = &config.storage.state {
        checks.push(one_root("storage.state", state).await);
    }
    for (setting, prefix) in [
        ("storage.answers", &config.storage.answers),
        ("calls.answers", &config.calls.answers),
        ("serve.files", &config.serve.files),
    ] {
        // The first write makes a local folder that does not exist.
        if let Some(prefix) = prefix.as_ref().filter(|prefix| !is_missing_folder(prefix)) {
            checks.push(one_root(setting, prefix).await);
        }
    }
    if config.calls.answers.is_none() {
        checks.push(Check::ok(
            "calls",
            "tidegate.call and tidegate.embed are refused, because calls.answers is not set",
        ));
    }
    for inputs in &config.calls.inputs {
        checks.push(one_root("calls.inputs", inputs).await);
    }
    // A worker makes a spool that does not exist.
    if let Some(spool) = config.worker.spool.as_ref().filter(|spool| spool.exists()) {
        let path = spool.display().to_string();
        checks.push(folder(&format!("spool {path}"), "worker.spool", &path));
    }
    checks.extend(config.webhooks.iter().map(|(name, webhook)| {
        let name = format!("webhook {name}");
        match webhook.open() {
            Ok(_) => Check::ok(&name, "it has a URL and a secret"),
            Err(why) => Check::fail(&name, why, "correct it; batches that name it are refused"),
        }
    }));
    checks
}

fn is_missing_folder(prefix: &str) -> bool {
    prefix.starts_with("file://") && !std::path::Path::new(&paths::display_url(prefix)).exists()
}

/// Checks that the prefix of this setting can be read.
async fn one_root(setting: &str, root: &str) -> Check {
    let label = format!("storage {}", mask::url(root));
    let location = match Storage::new([root]).and_then(|storage| storage.resolve(root)) {
        Ok(location) => location,
        Err(error) => {
            return Check::fail(
                &label,
                error.to_string(),
                format!("correct {setting}; credentials come from the environment"),
            );
        }
    };
    if location.exists_as_folder_or_file().is_some() {
        return folder(&label, setting, &paths::display_url(root));
    }
    // The answer that an object does not exist needs the permission to read it.
    match tokio::time::timeout(ANSWER_WITHIN, location.child(PROBE).size()).await {
        Ok(Ok(_)) => Check::ok(&label, "can be read"),
        Ok(Err(error)) => Check::fail(
            &label,
            error.to_string(),
            format!(
                "`tidegate doctor {}` says which credential it is and what it may do",
                mask::url(root)
            ),
        ),
        Err(_) => Check::fail(
            &label,
            format!("no answer within {ANSWER_WITHIN:?}"),
            "check the network and the endpoint",
        ),
    }
}

fn folder(label: &str, setting: &str, path: &str) -> Check {
    if !std::path::Path::new(path).is_dir() {
        return Check::fail(
            label,
            "there is no such folder",
            format!("make it (mkdir -p {path}), or correct {setting}"),
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

    #[test]
    fn routes_that_fall_back_say_why() {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        let models = "models = [\"openai:a\", \"openai:b\"]\n";
        let of = |more: &str| {
            let limits = "[providers.openai]\n[models.\"openai:a\"]\nrpm = 9\n[models.\"openai:b\"]\nrpm = 9\n";
            std::fs::write(file.path(), format!("{limits}[routes.r]\n{models}{more}")).unwrap();
            fallbacks(&Config::from_layers(Some(file.path()), []).unwrap()).pop()
        };
        assert_eq!(of("equivalent = [\"openai:b\"]"), None);
        let unchecked = of("unchecked = true").unwrap();
        assert!(unchecked.seen.starts_with("unchecked: it falls back from openai:a to openai:b"));
        assert_eq!((&*unchecked.name, unchecked.state), ("route r", State::Doubtful));
        assert!(of("").unwrap().seen.contains("are refused"));
        assert_eq!(of("compared = \"file:///c/\"").unwrap().state, State::Ok);
    }

    #[test]
    fn a_refused_listing_names_its_own_remedy() {
        let missing = listing_remedy("Namespace n is not found.", "n");
        assert!(missing.contains("namespace create --namespace n"), "{missing}");
        let forbidden = listing_remedy("Request unauthorized.", "n");
        assert!(forbidden.contains("the right to list workflows"), "{forbidden}");
        assert!(listing_remedy("internal error", "n").contains("log"));
    }

    #[tokio::test]
    async fn webhooks_and_spools_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let (file, spool) = (folder.path().join("t.toml"), folder.path().display().to_string());
        let text = format!(
            "[storage]\nroots = []\n[worker]\nspool = \"{spool}\"\n[webhooks.w]\nurl = \"http://h/\"\nsecret-file = \"/no/such\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let checks = storage(&Config::from_layers(Some(&file), []).unwrap()).await;
        let state = |name: &str| checks.iter().find(|check| check.name == name).unwrap().state;
        assert_eq!(state(&format!("spool {spool}")), State::Ok);
        assert_eq!(state("webhook w"), State::Fail);
    }

    #[tokio::test]
    async fn folders_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let url = paths::folder_url(folder.path()).unwrap();
        assert_eq!(one_root("storage.roots", &url).await.state, State::Ok);
        let gone = one_root("serve.files", &format!("{url}gone")).await;
        assert_eq!((gone.state, gone.seen.as_str()), (State::Fail, "there is no such folder"));
        let remedy = gone.remedy.unwrap();
        assert!(remedy.contains("mkdir -p") && remedy.contains("serve.files"), "{remedy}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
