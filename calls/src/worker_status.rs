//! A worker's status for the other workers, in Redis, and differences between their configurations.
//!
//! Each request to the limiter is decided by the limits and shares of the worker that asks, and the
//! use of all workers is counted together. So the fleet never exceeds the highest of the limits,
//! and workers with a lower one find it full. Redis stores each lane's number, so that workers with
//! different lanes do not mix up the counts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tidegate_quota::Quota;
use tidegate_types::ModelId;

use crate::health::RecentCalls;

/// Limits where configurations differ: workers named for each configuration, and configurations
/// read.
const NAMED: usize = 3;
const KINDS: usize = 20;

/// The settings that all workers of a fleet must share, by key.
pub type Configuration = BTreeMap<String, String>;

/// A configuration as stored for the fleet: its fingerprint of twelve hexadecimal digits, and its
/// text.
pub fn stored_configuration(configuration: &Configuration) -> (String, String) {
    let text = serde_json::to_string(configuration).unwrap_or_default();
    let digest = Sha256::digest(text.as_bytes());
    (digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect(), text)
}

/// A worker's status for the other workers. It contains nothing of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerStatus {
    /// The task queue that it works on. It cannot take documents of another queue.
    pub queue: String,
    /// The providers that it can ask.
    pub providers: BTreeSet<String>,
    /// Keys that were refused and have not been accepted since.
    pub refused: Vec<RefusedKey>,
    /// Fingerprint of its configuration; all workers of one fleet have the same. The text is stored
    /// once for all workers that share it: in each status it would be much data for a large fleet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub configured: String,
    /// The configuration itself, read for a few workers of each kind if workers differ.
    #[serde(skip)]
    pub configuration: Configuration,
    /// Outcomes of its recent calls, by model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<ModelId, RecentCalls>,
    /// Further facts.
    #[serde(flatten)]
    pub about: WorkerFacts,
}

/// Facts about one worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerFacts {
    /// The program's version.
    pub version: String,
    /// When it began to work, in seconds since 1970.
    pub started: u64,
    /// The maximum number of documents at once.
    pub slots: u64,
}

/// A key that a provider does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedKey {
    /// The provider.
    pub provider: String,
    /// The model, if the key is refused for this model only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// The HTTP status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Since when it is refused, in seconds since 1970.
    pub since: u64,
    /// Where the worker reads the key, if known: the name of a variable or of a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

impl WorkerStatus {
    /// Whether this worker could ask `model`, as far as keys allow.
    pub fn can_ask(&self, model: &ModelId) -> bool {
        let refuses = |key: &RefusedKey| {
            key.provider == model.provider() && key.model.as_ref().is_none_or(|it| it == model)
        };
        self.providers.contains(model.provider()) && !self.refused.iter().any(refuses)
    }
}

/// The statuses of all live workers, by worker name.
///
/// # Errors
/// Redis cannot be reached.
pub async fn worker_statuses(
    quota: &Quota,
) -> Result<Vec<(String, WorkerStatus)>, tidegate_quota::Error> {
    let mut statuses = read(quota.worker_statuses().await?);
    load_differing(quota, &mut statuses).await?;
    Ok(statuses)
}

/// Reads the configurations of a few workers of each kind, if workers are configured differently.
pub(crate) async fn load_differing(
    quota: &Quota,
    statuses: &mut [(String, WorkerStatus)],
) -> Result<(), tidegate_quota::Error> {
    let mut kinds: BTreeMap<String, Vec<&mut WorkerStatus>> = BTreeMap::new();
    for (_, status) in statuses.iter_mut().filter(|(_, status)| !status.configured.is_empty()) {
        kinds.entry(status.configured.clone()).or_default().push(status);
    }
    if kinds.len() <= 1 {
        return Ok(());
    }
    for (name, statuses) in kinds.into_iter().take(KINDS) {
        let kept = quota.fleet_text(&name).await?;
        let Some(kept) = kept.and_then(|kept| serde_json::from_str::<Configuration>(&kept).ok())
        else {
            continue;
        };
        for status in statuses.into_iter().take(NAMED) {
            status.configuration.clone_from(&kept);
        }
    }
    Ok(())
}

/// Parses statuses. Omits those of another version that cannot be parsed.
pub(crate) fn read(texts: Vec<(String, String)>) -> Vec<(String, WorkerStatus)> {
    let status = |(worker, words): (String, String)| {
        Some((worker, serde_json::from_str::<WorkerStatus>(&words).ok()?))
    };
    texts.into_iter().filter_map(status).collect()
}

/// One configuration key that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The key.
    pub key: String,
    /// Each value, with its workers; an empty value if the key is not set.
    pub values: BTreeMap<String, BTreeSet<String>>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = |(value, workers): (&String, &BTreeSet<String>)| {
            let value = if value.is_empty() { "not set" } else { value };
            let workers: Vec<&str> = workers.iter().map(String::as_str).collect();
            format!("{value} at {}", workers.join(", "))
        };
        let values: Vec<String> = self.values.iter().map(value).collect();
        write!(f, "{}: {}", self.key, values.join("; "))
    }
}

/// Finds the differences. A worker without a configuration is ignored.
pub fn differences(statuses: &[(String, WorkerStatus)]) -> Vec<Difference> {
    let known = || statuses.iter().filter(|(_, status)| !status.configuration.is_empty());
    let keys: BTreeSet<&String> =
        known().flat_map(|(_, status)| status.configuration.keys()).collect();
    let difference = |key: &String| {
        let mut values = BTreeMap::<String, BTreeSet<String>>::new();
        for (worker, status) in known() {
            let value = status.configuration.get(key).cloned().unwrap_or_default();
            values.entry(value).or_default().insert(worker.clone());
        }
        (values.len() > 1).then(|| Difference { key: key.clone(), values })
    };
    keys.into_iter().filter_map(difference).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use tidegate_quota::Options;
    use tidegate_testkit::{PATIENCE, Redis, unique};

    use super::*;

    /// Fifty settings.
    fn settings(tokens: u64) -> Configuration {
        let key = |number| format!("models.\"anthropic:claude-with-a-long-name-{number}\".tpm");
        (0..50).map(|number| (key(number), tokens.to_string())).collect()
    }

    #[tokio::test]
    async fn a_shared_configuration_is_stored_once_and_differences_are_found() {
        let Some(redis) = Redis::shared() else { return };
        let options =
            Options { key_prefix: unique("alike"), answer_within: PATIENCE, ..Options::default() };
        let quota = Quota::with_redis(&redis.url, [], options).unwrap();
        let say = async |worker: &str, settings: &Configuration| {
            let (configured, configuration) = stored_configuration(settings);
            quota.keep_fleet_text(&configured, &configuration).await.unwrap();
            let words =
                serde_json::to_string(&WorkerStatus { configured, ..WorkerStatus::default() })
                    .unwrap();
            quota.publish_status(worker, &words, false).await.unwrap();
            (words.len(), configuration.len())
        };
        let mut lengths = (0, 0);
        for number in 0..10 {
            lengths = say(&format!("w{number}"), &settings(1_000)).await;
        }
        assert!(lengths.0 < 200 && lengths.1 > 2_500, "{lengths:?}");
        let alike = worker_statuses(&quota).await.unwrap();
        assert!(alike.len() == 10 && differences(&alike).is_empty());
        assert!(
            alike.iter().all(|(_, status)| status.configuration.is_empty()),
            "alike configurations are not read"
        );

        say("x", &settings(2_000)).await;
        let found = differences(&worker_statuses(&quota).await.unwrap());
        assert_eq!(found.len(), 50);
        let difference = found.first().unwrap().to_string();
        assert!(difference.contains("1000") && difference.contains("2000 at x"), "{difference}");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod config_drift_tests {
    use super::*;

    fn status(worker: &str, keys: &[(&str, &str)]) -> (String, WorkerStatus) {
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let configuration = keys.collect();
        (worker.to_owned(), WorkerStatus { configuration, ..WorkerStatus::default() })
    }

    #[test]
    fn differences_are_named_with_their_workers() {
        let same = [("models.m.rpm", "100"), ("lanes.batch.share", "1.0")];
        let mut statuses = vec![status("one", &same), status("two", &same)];
        statuses.push(("unread".to_owned(), WorkerStatus::default()));
        assert_eq!(differences(&statuses), []);
        let other = [("models.m.rpm", "50"), same[1], ("tenants.acme.daily-budget-usd", "9.0")];
        statuses.push(status("three", &other));
        let found: Vec<String> = differences(&statuses).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "models.m.rpm: 100 at one, two; 50 at three",
                "tenants.acme.daily-budget-usd: not set at one, two; 9.0 at three"
            ]
        );
    }
}
