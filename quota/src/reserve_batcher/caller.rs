//! A call of this process that waits for its answer from Redis.

use std::{sync::Arc, time::Instant};

use tidegate_types::{ModelId, Tenant};
use tokio::sync::oneshot;

use crate::{
    error::Error,
    model::ModelQuota,
    store::{Ask, Decision},
};

/// Calls of one group can share a script call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    model: ModelId,
    lane: usize,
    tenant: Tenant,
    template: u64,
}

impl Group {
    pub(crate) fn from_ask(model: &ModelQuota, ask: &Ask) -> Self {
        Self {
            model: model.id.clone(),
            lane: ask.lane,
            tenant: ask.tenant.clone(),
            template: ask.template,
        }
    }
}

/// A call and the receiver of its answer. The sender is dropped without an answer if Redis is away.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) model: Arc<ModelQuota>,
    pub(crate) ask: Ask,
    /// Time of the call's first ask.
    pub(crate) since: Instant,
    pub(crate) answer: oneshot::Sender<Result<Decision, Error>>,
}

/// Receives the answer.
pub(crate) type Answer = oneshot::Receiver<Result<Decision, Error>>;

impl Caller {
    pub(crate) fn new(model: &Arc<ModelQuota>, ask: &Ask, since: Instant) -> (Self, Answer) {
        let (answer, answered) = oneshot::channel();
        (Self { model: Arc::clone(model), ask: ask.clone(), since, answer }, answered)
    }

    pub(crate) fn group(&self) -> Group {
        Group::from_ask(&self.model, &self.ask)
    }

    pub(crate) fn turn(&self) -> (u64, Instant) {
        turn(&self.ask, self.since)
    }
}

/// Sorts by turn. A call without a ticket comes after all others, in order of arrival.
pub(crate) fn turn(ask: &Ask, since: Instant) -> (u64, Instant) {
    (ask.ticket.map_or(u64::MAX, |ticket| ticket.position), since)
}
