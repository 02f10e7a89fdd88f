//! Differences between the configurations of a fleet's workers.
//!
//! Each request to the limiter is decided by the limits and shares of the worker that asks, and the
//! use of all workers is counted together. So the fleet never exceeds the highest of the limits,
//! and workers with a lower one find it full. Redis stores each lane's number, so that workers with
//! different lanes do not mix up the counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::worker_status::WorkerStatus;

/// One configuration key of one model that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The model.
    pub model: String,
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
        write!(f, "{} of {}: {}", self.key, self.model, values.join("; "))
    }
}

/// Finds the differences. A model that only some workers have is not a difference; a worker without
/// a configuration is ignored.
pub fn differences(statuses: &[(String, WorkerStatus)]) -> Vec<Difference> {
    let mut seen: BTreeMap<(&str, &str), BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    let models: BTreeSet<&String> =
        statuses.iter().flat_map(|(_, status)| status.configuration.keys()).collect();
    for model in models {
        let of_model: Vec<(&str, &BTreeMap<String, String>)> = statuses
            .iter()
            .filter_map(|(worker, status)| {
                Some((worker.as_str(), status.configuration.get(model)?))
            })
            .collect();
        let keys: BTreeSet<&String> = of_model.iter().flat_map(|(_, keys)| keys.keys()).collect();
        for key in keys {
            for (worker, keys) in &of_model {
                let value = keys.get(key).map_or("", String::as_str);
                let values = seen.entry((model, key)).or_default();
                values.entry(value).or_default().insert(worker);
            }
        }
    }
    let owned = |workers: BTreeSet<&str>| workers.into_iter().map(str::to_owned).collect();
    let differs = seen.into_iter().filter(|(_, values)| values.len() > 1);
    differs
        .map(|((model, key), values)| Difference {
            model: model.to_owned(),
            key: key.to_owned(),
            values: values.into_iter().map(|(it, by)| (it.to_owned(), owned(by))).collect(),
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    fn status(worker: &str, keys: &[(&str, &str)]) -> (String, WorkerStatus) {
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let configuration = [("a:b".to_owned(), keys.collect())].into();
        (worker.to_owned(), WorkerStatus { configuration, ..WorkerStatus::default() })
    }

    #[test]
    fn differences_are_named_with_their_workers() {
        let same = [("rpm", "100"), ("lanes", "batch 1 to 1")];
        let mut statuses = vec![status("one", &same), status("two", &same)];
        statuses.push(("old".to_owned(), WorkerStatus::default()));
        assert_eq!(differences(&statuses), []);
        statuses.push(status("three", &[("rpm", "50"), ("lanes", "batch 1 to 1"), ("tpm", "9")]));
        let found: Vec<String> = differences(&statuses).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "rpm of a:b: 100 at one, two; 50 at three",
                "tpm of a:b: not set at one, two; 9 at three"
            ]
        );
    }
}
