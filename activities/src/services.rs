//! What the activities work with.

use std::{collections::BTreeMap, sync::Arc};

use tidegate_documents::Reader;
use tidegate_providers::{Prices, Providers};
use tidegate_types::Lane;

use crate::{
    batch::job::Shards,
    call::{
        ask::Caller,
        budget::Budgets,
        guard::Guard,
        route::{Queues, Routes},
        warm_cache::Warmth,
    },
    document::{answers::Answers, archived::Archives},
    memory::Memory,
    storage::Storage,
};

/// Made once for each worker process.
#[derive(Debug)]
pub struct Services {
    /// Where documents and results lie.
    pub storage: Storage,
    /// Answers that batches share, if they do.
    pub answers: Option<Answers>,
    /// From their bytes to text.
    pub reader: Reader,
    /// The APIs that answer.
    pub providers: Providers,
    /// What it costs.
    pub prices: Prices,
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
    /// Documents that are in memory.
    pub memory: Memory,
    /// Archives at hand.
    pub archives: Archives,
    /// Manifests at hand.
    pub shards: Shards,
}

impl Services {
    /// From bytes to text, for documents of a lane: places for the processes are shared out by that.
    pub(crate) fn reader_for(&self, lane: &Lane) -> Reader {
        self.reader.for_party(lane.as_str())
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        let Self { providers, queues, warmth, budgets, guard, .. } = self;
        Caller { providers, queues, warmth, budgets, guard }
    }
}
