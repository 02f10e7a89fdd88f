//! The shared services of the activities.

use std::{collections::BTreeMap, sync::Arc};

use tidegate_calls::{
    Backoff,
    budget::Budgets,
    caller::Caller,
    guard::Guard,
    route::{Queues, Routes},
    warm_cache::Warmth,
};
use tidegate_documents::Reader;
use tidegate_providers::{Prices, Providers};
use tidegate_quota::Quota;
use tidegate_types::{Lane, ModelId, Usage};

use crate::{
    archives::Archives,
    memory::Memory,
    output::{
        answers::Answers,
        job::Shards,
        pending_writes::{PendingWrites, Results},
    },
    storage::{Error, Location, Storage},
    truncation_stats::TruncationStats,
    webhooks::Webhooks,
};

/// Shared services, created once for each worker process.
#[derive(Debug)]
pub struct Services {
    /// Where documents and results are stored.
    pub storage: Storage,
    /// Answers shared between batches, if configured.
    pub answers: Option<Answers>,
    /// Where answers of calls are stored, if configured.
    pub calls: Option<Calls>,
    /// Turns bytes into text.
    pub reader: Reader,
    /// The provider APIs.
    pub providers: Providers,
    /// Prices of models.
    pub prices: Prices,
    /// The webhooks that batches may name.
    pub webhooks: Webhooks,
    /// Lists of models to choose from.
    pub routes: Routes,
    /// Seconds without a heartbeat after which a worker is given up, for lanes that state it.
    pub heartbeats: BTreeMap<Lane, u32>,
    /// Statistics of the lanes' queues.
    pub queues: Queues,
    /// State of prompt caches.
    pub warmth: Arc<Warmth>,
    /// Budgets of tenants and batches.
    pub budgets: Arc<Budgets>,
    /// The guard before every call.
    pub guard: Guard,
    /// Answers that cannot be written now.
    pub pending_writes: Arc<PendingWrites>,
    /// How often answers to each question are cut.
    pub truncation_stats: Arc<TruncationStats>,
    /// Memory for documents.
    pub memory: Memory,
    /// Cached archives.
    pub archives: Arc<Archives>,
    /// Cached manifests.
    pub shards: Shards,
    /// Documents that this worker processes at once.
    pub slots: usize,
}

/// Creates the guard of a worker's calls, with the gate that holds calls while results cannot be
/// written.
#[must_use]
pub fn guard(quota: Quota, backoff: Backoff, pending_writes: &Arc<PendingWrites>) -> Guard {
    Guard::new(quota, backoff).with_results(Arc::new(Results(Arc::clone(pending_writes))))
}

impl Services {
    /// The location of a bought object: under a root, or among the answers of calls.
    ///
    /// # Errors
    /// [`Error::Invalid`] where this worker does not write there.
    pub fn place(&self, uri: &str) -> Result<Location, Error> {
        let of_a_call = self.calls.as_ref().and_then(|calls| calls.place(uri).ok());
        of_a_call.map_or_else(|| self.storage.resolve(uri), Ok)
    }

    /// A reader for documents of a lane. Lanes share the reader processes.
    pub(crate) fn reader_for(&self, lane: &Lane) -> Reader {
        self.reader.for_party(lane.as_str())
    }

    /// The price of a use today; `None` if the model has no price.
    pub(crate) fn cost_usd(&self, model: &ModelId, usage: &Usage) -> Option<f64> {
        self.prices.cost_usd(model, usage, chrono::Utc::now().date_naive())
    }

    /// The services that a call needs.
    pub fn caller(&self) -> Caller<'_> {
        let Self { providers, queues, warmth, budgets, guard, .. } = self;
        Caller { providers, queues, warmth, budgets, guard }
    }
}

/// The storage of calls.
#[derive(Debug, Clone)]
pub struct Calls {
    pub(crate) answers: Location,
    pub(crate) inputs: Storage,
    /// Largest outcome that is returned inline, in bytes of JSON; a larger one is returned by its URI.
    pub(crate) inline: u64,
}

impl Calls {
    /// Stores answers under one prefix and reads inputs under others; none of them need lie under the
    /// roots for documents. Outcomes larger than `inline` bytes are not returned inline.
    ///
    /// # Errors
    /// [`Error::Invalid`] states the remedy.
    pub fn open(answers: &str, inputs: &[String], inline: u64) -> Result<Self, Error> {
        let answers = Storage::new([answers])?.resolve(answers)?;
        let inputs = Storage::new(inputs.iter().map(String::as_str))?;
        let inputs = inputs.with_setting("inputs in the [calls] section");
        Ok(Self { answers, inputs, inline })
    }

    /// The location of a stored answer.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the URI is not under the prefix for answers.
    pub fn place(&self, uri: &str) -> Result<Location, Error> {
        self.answers.elsewhere(uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_outside_is_refused_with_the_setting_to_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = url::Url::from_directory_path(folder.path()).unwrap().to_string();
        let calls = Calls::open(&root, std::slice::from_ref(&root), 1).unwrap();
        let refused = calls.inputs.resolve("file:///elsewhere/a.json").unwrap_err().to_string();
        assert!(refused.contains("or add it to inputs in the [calls] section"), "{refused}");
        assert!(!refused.contains("[storage]"), "{refused}");
    }
}
