//! The names of all keys in Redis; no other file contains one.

use tidegate_types::{ModelId, Tenant};

use crate::layout::KEYS as LAYOUT;

/// The keys of one quota, all in one cluster slot by their hash tag: `{provider:model}`, or the name
/// of the group of models that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelKeys {
    stem: String,
}

impl ModelKeys {
    /// Keys under `<prefix>:v1:{<quota>}:`.
    pub fn new(prefix: &str, quota: &str) -> Self {
        Self { stem: format!("{prefix}:{LAYOUT}:{{{quota}}}") }
    }

    /// The common keys of the scripts: ledger, entries, state, leases, day.
    pub fn common(&self) -> [String; 5] {
        ["ledger", "entries", "state", "leases", "day"].map(|what| format!("{}:{what}", self.stem))
    }

    /// The gate as text for people.
    pub fn gate(&self) -> String {
        format!("{}:gate", self.stem)
    }

    /// Observations since the policy last ran.
    pub fn log(&self) -> String {
        format!("{}:log", self.stem)
    }

    /// The policy's knowledge.
    pub fn known(&self) -> String {
        format!("{}:known", self.stem)
    }

    /// A model's last hour and last days.
    pub fn history(&self, model: &ModelId) -> String {
        format!("{}:history:{}", self.stem, model.as_str().replace(['{', '}'], "_"))
    }

    /// A model's batches that wait at its provider.
    pub fn enqueued(&self, model: &ModelId) -> String {
        format!("{}:enqueued:{}", self.stem, model.as_str().replace(['{', '}'], "_"))
    }

    /// The tenants' lines in a lane; lanes are counted from 1.
    pub fn tenants(&self, lane: u64) -> String {
        format!("{}:tenants:{lane}", self.stem)
    }

    /// The learned use of one template's calls.
    pub fn learned(&self, template: u64) -> String {
        format!("{}:learned:{template:016x}", self.stem)
    }
}

/// The sorted set of live workers, by the time of their last beat.
pub fn workers(prefix: &str) -> String {
    format!("{prefix}:{LAYOUT}:workers")
}

/// The status of each live worker.
pub fn worker_statuses(prefix: &str) -> String {
    format!("{prefix}:{LAYOUT}:words")
}

/// A text that workers share, by its name.
pub fn common(prefix: &str, name: &str) -> String {
    format!("{prefix}:{LAYOUT}:common:{name}")
}

/// A mark that exists until Redis loses everything.
pub fn mark(prefix: &str) -> String {
    format!("{prefix}:{LAYOUT}:mark")
}

/// The numbers of lanes.
pub fn lanes(prefix: &str) -> String {
    format!("{prefix}:{LAYOUT}:lanes")
}

/// The batches and models that operators hold.
pub fn holds(prefix: &str) -> String {
    format!("{prefix}:{LAYOUT}:holds")
}

/// The number of changes by operators.
pub fn news(prefix: &str) -> String {
    format!("{prefix}:{LAYOUT}:news")
}

/// The count of provider calls beyond the first of each document, of one run of a batch.
pub fn retries(prefix: &str, run: &str) -> String {
    format!("{prefix}:{LAYOUT}:{{batch:{}}}:retries", run.replace(['{', '}'], "_"))
}

/// The turns kept for callers of a door's key: by the times at which they lapse, and by name.
pub fn turns(prefix: &str, door: &str) -> [String; 2] {
    let door = door.replace(['{', '}'], "_");
    ["turns", "turn_names"].map(|what| format!("{prefix}:{LAYOUT}:{{door:{door}}}:{what}"))
}

/// A tenant's spending today.
pub fn tenant_budget(prefix: &str, tenant: &Tenant) -> String {
    format!("{prefix}:{LAYOUT}:{{tenant:{tenant}}}:budget")
}

/// A batch's spending.
pub fn batch_budget(prefix: &str, batch: &str) -> String {
    format!("{prefix}:{LAYOUT}:{{batch:{}}}:budget", batch.replace(['{', '}'], "_"))
}

/// A bucket's level.
pub fn bucket(prefix: &str, name: &str) -> String {
    format!("{prefix}:{LAYOUT}:{{bucket:{}}}:level", name.replace(['{', '}'], "_"))
}

/// Checks whether a prefix can be used.
///
/// # Errors
/// A sentence that states the remedy.
pub fn check_prefix(prefix: &str) -> Result<(), String> {
    if prefix.is_empty()
        || prefix.len() > 64
        || !prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
    {
        return Err(format!(
            "key-prefix \"{}\" must be 1 to 64 letters, digits, '-', '_', '.' or ':'",
            prefix.escape_debug()
        ));
    }
    Ok(())
}

/// Checks whether a group of models can have this name.
///
/// # Errors
/// A sentence that states the remedy.
pub fn check_group(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !"{}".contains(c);
    if name.is_empty() || name.len() > 128 || !name.chars().all(is_plain) {
        return Err("must be 1 to 128 printable characters without spaces and braces".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_model_share_one_hash_tag() {
        let keys = ModelKeys::new("tidegate", "openai:gpt-6-mini");
        let mut all = keys.common().to_vec();
        all.extend([keys.learned(7), keys.gate(), keys.tenants(1), keys.log(), keys.known()]);
        let model = "openai:gpt-6-mini".parse().unwrap();
        all.extend([keys.history(&model), keys.enqueued(&model)]);
        assert!(
            all.iter().all(|key| key.starts_with("tidegate:v1:{openai:gpt-6-mini}:")),
            "{all:?}"
        );
    }

    #[test]
    fn a_prefix_cannot_move_the_hash_tag() {
        assert!(check_prefix("team{a}").is_err());
        assert!(check_prefix("").is_err());
        assert_eq!(check_prefix("team-a:prod"), Ok(()));
    }
}
