//! Provider calls beyond the first of each document, in one run of a batch.

use crate::{key, quota::Quota, wire};

/// The counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The calls so far.
    pub spent: u64,
    /// Calls that documents have added to the run's budget.
    pub added: u64,
}

impl Quota {
    /// Counts one more provider call beyond the first of a document, in this run of a batch. `adds`
    /// names a document and the calls that it adds, once, to the run's budget. `None` while Redis
    /// is away. The counts live for seven days after the last call.
    pub async fn count_retry(&self, run: &str, adds: Option<(&str, u64)>) -> Option<Retries> {
        let redis = self.redis()?;
        let keys = [key::retries(&redis.prefix, run)];
        let (document, calls) = adds.unwrap_or_default();
        let arguments = [document.into(), calls.to_string().into()];
        let reply = redis.run(&redis.scripts.retries, &keys, &arguments).await.ok()?;
        let [spent, added] = wire::read_integers(&reply).ok()?;
        Some(Retries { spent: wire::unsigned(spent), added: wire::unsigned(added) })
    }
}
