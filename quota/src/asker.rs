//! A call of this process that is to be asked about.

use std::{sync::Arc, time::Instant};

use tidegate_types::{ModelId, Tenant};
use tokio::sync::oneshot;

use crate::{
    error::Error,
    model::ModelQuota,
    store::{Ask, Decision},
};

/// Calls that one question may be about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    model: ModelId,
    lane: usize,
    tenant: Tenant,
    template: u64,
}

/// One that is asked about by whoever puts the next question. It has no answer if Redis has none.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) model: Arc<ModelQuota>,
    pub(crate) ask: Ask,
    /// When it came.
    pub(crate) since: Instant,
    pub(crate) answer: oneshot::Sender<Result<Decision, Error>>,
}

/// Where its answer comes.
pub(crate) type Answer = oneshot::Receiver<Result<Decision, Error>>;

impl Asker {
    pub(crate) fn new(model: &Arc<ModelQuota>, ask: &Ask, since: Instant) -> (Self, Answer) {
        let (answer, answered) = oneshot::channel();
        (Self { model: Arc::clone(model), ask: ask.clone(), since, answer }, answered)
    }

    pub(crate) fn group(&self) -> Group {
        Group {
            model: self.model.id.clone(),
            lane: self.ask.lane,
            tenant: self.ask.tenant.clone(),
            template: self.ask.template,
        }
    }

    /// Its turn. Newcomers have none, and stand behind all others as they came.
    pub(crate) fn turn(&self) -> (u64, Instant) {
        (self.ask.ticket.map_or(u64::MAX, |ticket| ticket.position), self.since)
    }
}
