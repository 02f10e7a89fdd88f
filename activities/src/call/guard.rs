//! Admit → one call → settle. Every provider call goes through this function.

use std::{sync::Arc, time::Instant};

use tidegate_providers::{Completion, Provider, Request as Call};
use tidegate_quota::{Quota, Refused, Request, call_stats::CallStats};
use tokio_util::sync::CancellationToken;

use crate::{
    call::admission::Admitted,
    call::attempt::Attempt,
    call::budget::CallBudget,
    call::cuts::Cuts,
    call::health::Health,
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
        match provider.complete(call).await {
            Ok(completion) => {
                metrics::stopped(&request.model, &completion.stop_reason);
                sent.settled(completion.usage.as_ref(), &completion.observed).await;
                Ok(completion)
            }
            Err(error) => Err(sent.refused(&error).await),
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
        self.health.check(&request.model)?;
        budget.check()?;
        let circuit = self.health.enter(&request.model, Instant::now());
        let breaker = circuit.inspect_err(|_| attempt.deferred(attempt.state().ticket))?;
        let (patient, slot) = self.waiting.enter(request);
        let admitted = self.quota.admit_until(&patient, self.stopping.cancelled()).await;
        let permit = admitted.map_err(|refused| defer(attempt, &refused))?;
        drop(slot);
        let holds = budget.hold(attempt).await?;
        // That may have changed while the call waited; what is held is given back.
        self.check(attempt)?;
        self.unwritten.enter(attempt, Instant::now())?;
        Ok(Admitted {
            attempt,
            request,
            permit,
            holds,
            breaker,
            health: &self.health,
            call_stats: &self.call_stats,
            model: self.quota.models().find(|model| model.id == request.model),
            least_pause: self.backoff.base,
        })
    }

    /// Whether this worker may buy an answer: it goes on, and could keep it.
    ///
    /// # Errors
    /// A failure that comes back, to another worker or later.
    pub fn check(&self, attempt: &Attempt) -> Result<(), Failure> {
        if self.stopping.is_cancelled() {
            return Err(Failure::worker_stops());
        }
        self.unwritten.check(attempt, Instant::now())
    }
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
