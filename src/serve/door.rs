//! The door's state.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use parking_lot::Mutex;
use tidegate_activities::{Services, storage::Location};
use tidegate_calls::route::Route;
use tidegate_types::{Lane, ModelId};
use tokio::sync::OnceCell;

use super::{access, keys::Keys, problem::Problem};
use crate::{config::Config, temporal::Temporal};

/// Time after which a model that refused to report a stream's usage is asked for it again.
const USAGE_REFUSED_FOR: Duration = Duration::from_secs(60 * 60);

/// The services, the keys and the settings of one door.
pub(super) struct Door {
    pub(super) services: Services,
    pub(super) bound: SocketAddr,
    pub(super) keys: Keys,
    /// The folder of uploaded files and batches; each key has its own folder below it.
    pub(super) files: Option<Location>,
    /// The configured lanes.
    pub(super) lanes: Vec<Lane>,
    /// Opened for the first batch: other calls need no Temporal.
    temporal: OnceCell<Temporal>,
    pub(super) config: Config,
    /// Names of configured models and of routes.
    pub(super) names: Vec<String>,
    /// Models that refuse to report a stream's usage, and when each was last seen to do so.
    refuse_usage: Mutex<HashMap<ModelId, Instant>>,
}

impl Door {
    /// # Errors
    /// The prefix for files cannot be used.
    pub(super) fn new(
        config: &Config,
        services: Services,
        keys: Keys,
        bound: SocketAddr,
    ) -> anyhow::Result<Self> {
        access::describe();
        let files = config.serve.files.as_deref().map(|files| services.storage.resolve(files));
        let names: BTreeSet<String> =
            config.model_names().into_iter().chain(config.routes.keys().cloned()).collect();
        Ok(Self {
            files: files.transpose().context("serve.files")?,
            lanes: config.quota_lanes()?.iter().map(|(lane, _)| lane.clone()).collect(),
            temporal: OnceCell::new(),
            config: config.clone(),
            services,
            bound,
            keys,
            names: names.into_iter().collect(),
            refuse_usage: Mutex::default(),
        })
    }

    /// Admits no further call, and tells waiting clients to come back.
    pub(super) fn stop(&self) {
        self.services.guard.stopping.cancel();
    }

    /// The models behind a name; `None` if it names neither a model nor a route.
    pub(super) fn route(&self, name: &str) -> Option<Route> {
        if !self.names.iter().any(|known| known == name) {
            return None;
        }
        let routes = &self.services.routes;
        let model = || Some(Route::for_model(&name.parse::<ModelId>().ok()?, routes));
        routes.get(name).cloned().or_else(model)
    }

    /// The connection to Temporal.
    ///
    /// # Errors
    /// Temporal does not answer.
    pub(super) async fn temporal(&self) -> Result<Temporal, Problem> {
        let opened = self.temporal.get_or_try_init(|| Temporal::open(&self.config)).await;
        opened.cloned().map_err(|error| Problem::no_temporal(&error))
    }

    /// Whether a stream of this model is asked for its usage.
    pub(super) fn asks_for_usage(&self, model: &ModelId) -> bool {
        let refused = self.refuse_usage.lock().get(model).copied();
        refused.is_none_or(|at| at.elapsed() >= USAGE_REFUSED_FOR)
    }

    /// Records that this model takes a request only without the question for usage.
    pub(super) fn record_usage_refused(&self, model: &ModelId) {
        self.refuse_usage.lock().insert(model.clone(), Instant::now());
    }
}
