//! What the activities work with.

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
use tidegate_types::Lane;

use crate::{
    archives::Archives,
    calls::Calls,
    memory::Memory,
    output::{
        answers::Answers,
        job::Shards,
        pending_writes::{PendingWrites, Results},
        spool::Spool,
    },
    storage::{Error, Location, Storage},
    truncation_stats::TruncationStats,
    webhooks::Webhooks,
};

/// Made once for each worker process.
#[derive(Debug)]
pub struct Services {
    /// Where documents and results lie.
    pub storage: Storage,
    /// Answers that batches share, if they do.
    pub answers: Option<Answers>,
    /// Where the answers of calls are kept, if any are made.
    pub calls: Option<Calls>,
    /// From their bytes to text.
    pub reader: Reader,
    /// The APIs that answer.
    pub providers: Providers,
    /// What it costs.
    pub prices: Prices,
    /// Who may be told of a batch's end.
    pub webhooks: Webhooks,
    /// Lists of models to choose from.
    pub routes: Routes,
    /// After how many seconds a silent worker is given up, in lanes that say it.
    pub heartbeats: BTreeMap<Lane, u32>,
    /// How long their queues are.
    pub queues: Queues,
    /// Prompt caches that are warm.
    pub warmth: Arc<Warmth>,
    /// What tenants and batches may spend.
    pub budgets: Arc<Budgets>,
    /// Stands before every call.
    pub guard: Guard,
    /// Answers that cannot be written now.
    pub pending_writes: Arc<PendingWrites>,
    /// Questions whose answers are often cut.
    pub truncation_stats: Arc<TruncationStats>,
    /// Documents that are in memory.
    pub memory: Memory,
    /// Archives at hand.
    pub archives: Archives,
    /// Manifests at hand.
    pub shards: Shards,
    /// Documents that this worker works on at once.
    pub slots: usize,
}

/// The guard of a worker's calls: nothing is bought that could not be kept.
#[must_use]
pub fn guard(quota: Quota, backoff: Backoff, pending_writes: &Arc<PendingWrites>) -> Guard {
    Guard::new(quota, backoff).with_results(Arc::new(Results(Arc::clone(pending_writes))))
}

impl Services {
    /// The same, with a folder for answers that cannot be written.
    pub fn with_spool(self, spool: Spool) -> Self {
        let pending_writes = Arc::new(PendingWrites::with_spool(spool));
        let results = Arc::new(Results(Arc::clone(&pending_writes)));
        Self { guard: self.guard.with_results(results), pending_writes, ..self }
    }

    /// The place of what may have been bought: under a root, or among the answers of calls.
    ///
    /// # Errors
    /// [`Error::Invalid`] where this worker writes to no such place.
    pub fn place(&self, uri: &str) -> Result<Location, Error> {
        let of_a_call = self.calls.as_ref().and_then(|calls| calls.place(uri).ok());
        of_a_call.map_or_else(|| self.storage.resolve(uri), Ok)
    }

    /// From bytes to text, for documents of a lane: places for the processes are shared out by that.
    pub(crate) fn reader_for(&self, lane: &Lane) -> Reader {
        self.reader.for_party(lane.as_str())
    }

    /// What a process asks with.
    pub fn caller(&self) -> Caller<'_> {
        let Self { providers, queues, warmth, budgets, guard, .. } = self;
        Caller { providers, queues, warmth, budgets, guard }
    }
}
