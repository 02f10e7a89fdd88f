//! Admit → one call → settle. Every provider call goes through this function.

use std::{sync::Arc, time::Instant};

use tidegate_providers::{Completion, Key, Kind, Provider, Request as Call};
use tidegate_quota::{Quota, Refused, Request, call_stats::CallStats};
use tidegate_types::ModelId;
use tokio_util::sync::CancellationToken;

use crate::{
    call::admission::Admitted,
    call::attempt::Attempt,
    call::budget::CallBudget,
    call::cuts::Cuts,
    call::health::Health,
    call::keys::Keys,
    call::unwritten::Unwritten,
    call::waiting::WaitingRoom,
    failure::{Backoff, Failure},
    metrics,
};

/// Stands between the documents and the providers.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Decides which call may leave.
    pub quota: Quota,
    /// How delays grow.
    pub backoff: Backoff,
    /// Models that should not be asked for a while.
    pub health: Arc<Health>,
    /// Keys that are refused.
    pub keys: Arc<Keys>,
    /// How many attempts may wait in a slot.
    pub waiting: Arc<WaitingRoom>,
    /// Learns how long calls take and what they use.
    pub call_stats: Arc<CallStats>,
    /// Questions whose answers are often cut.
    pub cuts: Arc<Cuts>,
    /// Answers that cannot be written now.
    pub unwritten: Arc<Unwritten>,
    /// Cancelled when this worker stops: from then on no call leaves.
    pub stopping: CancellationToken,
}

impl Guard {
    /// A guard with room for every attempt that waits.
    #[must_use]
    pub fn new(quota: Quota, backoff: Backoff) -> Self {
        Self {
            quota,
            backoff,
            health: Arc::default(),
            keys: Arc::default(),
            waiting: Arc::default(),
            call_stats: Arc::default(),
            cuts: Arc::default(),
            unwritten: Arc::default(),
            stopping: CancellationToken::new(),
        }
    }

    /// Makes one call if the quota allows it now or soon, and the budgets can pay.
    ///
    /// # Errors
    /// A [`Failure`] that says when to come back, if ever. [`Attempt`] then knows the document's
    /// turn.
    pub async fn call(
        &self,
        attempt: &Attempt,
        provider: &dyn Provider,
        request: &Request,
        call: &Call<'_>,
        budget: &CallBudget<'_>,
    ) -> Result<Completion, Failure> {
        let sent = self.admit(attempt, request, budget).await?.sent();
        let version = provider.key().map(Key::version);
        match provider.complete(call).await {
            Ok(completion) => {
                metrics::stopped(&request.model, &completion.stop_reason);
                sent.settled(completion.usage.as_ref(), &completion.observed).await;
                Ok(completion)
            }
            Err(error) => {
                let key = provider.key().filter(|_| error.kind == Kind::Unauthorized);
                let renewed = key.zip(version).is_some_and(|(key, version)| {
                    self.keys.read_again(request.model.provider(), key, version)
                });
                Err(sent.refused_after(&error, renewed).await)
            }
        }
    }

    /// Leave for one call: the worker goes on and could keep the answer, the model is well, the quota has room now or soon,
    /// and the budgets can pay.
    ///
    /// # Errors
    /// As [`Self::call`]; no call is made, and none is counted.
    pub async fn admit<'a>(
        &'a self,
        attempt: &'a Attempt,
        request: &'a Request,
        budget: &'a CallBudget<'a>,
    ) -> Result<Admitted<'a>, Failure> {
        self.check(attempt)?;
        let hand_back = |failure| handed_back(attempt, failure);
        self.keys.check(&request.model, Instant::now()).map_err(hand_back)?;
        budget.check(attempt)?;
        let circuit = self.health.enter(&request.model, Instant::now());
        let breaker = circuit.inspect_err(|_| attempt.deferred(attempt.state().ticket))?;
        let (patient, slot) = self.waiting.enter(request);
        let admitted = self.quota.admit_until(&patient, self.stopping.cancelled()).await;
        let permit = admitted.map_err(|refused| defer(attempt, &refused))?;
        drop(slot);
        let holds = budget.hold(attempt).await?;
        // That may have changed while the call waited; what is held is given back.
        self.check(attempt)?;
        self.keys.enter(&request.model, Instant::now()).map_err(hand_back)?;
        self.unwritten.enter(attempt, Instant::now())?;
        Ok(Admitted {
            attempt,
            request,
            permit,
            holds,
            breaker,
            keys: &self.keys,
            call_stats: &self.call_stats,
            model: self.quota.models().find(|model| model.id == request.model),
            least_pause: self.backoff.base,
        })
    }

    /// Whether a call to the model could be made now, as far as its key and its circuit go: else
    /// another model should be asked, if there is one.
    #[must_use]
    pub fn can_be_asked(&self, model: &ModelId, now: Instant) -> bool {
        self.keys.check(model, now).is_ok() && self.health.can_be_asked(model, now)
    }

    /// Whether the model cannot be asked with this worker's key, but perhaps with another's.
    pub(super) fn has_key_elsewhere(&self, model: &ModelId, now: Instant) -> bool {
        self.keys.check(model, now).is_err_and(|failure| failure.is_retried())
    }

    /// Whether this worker may buy an answer: it goes on, the batch is not paused, and it could keep
    /// it.
    ///
    /// # Errors
    /// A failure that comes back, to another worker or later.
    pub fn check(&self, attempt: &Attempt) -> Result<(), Failure> {
        if self.stopping.is_cancelled() {
            return Err(Failure::worker_stops());
        }
        if let Some(since) = self.quota.batch_held_for(&attempt.batch) {
            attempt.deferred(attempt.state().ticket);
            return Err(Failure::batch_paused(since));
        }
        self.unwritten.check(attempt, Instant::now())
    }
}

/// The document goes to another worker, and keeps its turn.
fn handed_back(attempt: &Attempt, failure: Failure) -> Failure {
    if failure.is_retried() {
        attempt.deferred(attempt.state().ticket);
    }
    failure
}

/// The document goes back to Temporal, and keeps the turn that it was given.
fn defer(attempt: &Attempt, refused: &Refused) -> Failure {
    match refused {
        Refused::Wait { ticket, .. } => attempt.deferred(Some(*ticket)),
        Refused::Paused { ticket, .. } => attempt.deferred(*ticket),
        Refused::Exhausted { .. }
        | Refused::NeverFits { .. }
        | Refused::Outdated(_)
        | Refused::UnknownModel(_)
        | Refused::UnknownLane(_) => {}
    }
    Failure::refused(refused)
}
