//! A live worker, from its own report.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use serde::Serialize;
use tidegate_calls::{
    health::RecentCalls,
    worker_status::{RefusedKey, WorkerStatus},
};
use tidegate_types::ModelId;

/// A worker in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(in crate::cli) struct WorkerView {
    pub(in crate::cli) worker: String,
    pub(in crate::cli) version: String,
    /// The fingerprint of its configuration; equal within one fleet.
    pub(in crate::cli) configuration: String,
    pub(in crate::cli) queue: String,
    /// Seconds since its start.
    pub(in crate::cli) seconds: u64,
    pub(in crate::cli) slots: u64,
    pub(in crate::cli) providers: BTreeSet<String>,
    pub(in crate::cli) refused_keys: Vec<RefusedKey>,
    /// The outcomes of its calls in the last minutes, by model.
    pub(in crate::cli) calls: BTreeMap<ModelId, RecentCalls>,
}

impl WorkerView {
    pub(in crate::cli) fn new(worker: &str, card: &WorkerStatus) -> Self {
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(card.about.started);
        Self {
            worker: worker.to_owned(),
            version: card.about.version.clone(),
            configuration: card.configured.clone(),
            queue: card.queue.clone(),
            seconds: started.elapsed().unwrap_or_default().as_secs(),
            slots: card.about.slots,
            providers: card.providers.clone(),
            refused_keys: card.refused.clone(),
            calls: card.calls.clone(),
        }
    }

    /// All workers, sorted by name.
    pub(in crate::cli) fn all(cards: &[(String, WorkerStatus)]) -> Vec<Self> {
        let mut all: Vec<Self> = cards.iter().map(|(name, card)| Self::new(name, card)).collect();
        all.sort_by(|a, b| a.worker.cmp(&b.worker));
        all
    }

    /// Answered calls of the last minutes.
    pub(in crate::cli) fn answered(&self) -> u64 {
        self.calls.values().map(|calls| calls.answered).sum()
    }

    /// Failed calls of the last minutes.
    pub(in crate::cli) fn failed(&self) -> u64 {
        self.calls.values().flat_map(|calls| calls.failed.values()).sum()
    }
}
