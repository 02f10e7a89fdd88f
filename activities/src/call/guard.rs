//! Admit → one call → settle. Every provider call goes through this function.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate_providers::{
    BoxFuture, Completion, Embedded, EmbeddingRequest, Error, Key, Kind, Observed, Provider,
    Request as Call,
};
use tidegate_quota::{Permit, Quota, Refused, Request, call_stats::CallStats};
use tidegate_types::{ModelId, Usage};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use crate::{
    call::admission::Admitted,
    call::attempt::Attempt,
    call::budget::CallBudget,
    call::counted::can_be,
    call::cuts::Cuts,
    call::doubts::Doubts,
    call::health::Health,
    call::keys::{KeyNow, Keys},
    call::learned_caps::LearnedCaps,
    call::unknown_models::UnknownModels,
    call::unwritten::Unwritten,
    call::waiting::{WaitSlot, WaitingRoom},
    failure::{Backoff, Failure},
    metrics, spans,
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
    /// Accounts that are said to be spent.
    pub accounts: Arc<Doubts>,
    /// Models that their provider does not know.
    pub unknown_models: Arc<UnknownModels>,
    /// Bounds on the answer that models have refused as too large.
    pub learned_caps: Arc<LearnedCaps>,
    /// How many attempts may wait in a slot.
    pub waiting: Arc<WaitingRoom>,
    /// Learns how long calls take and what they use.
    pub call_stats: Arc<CallStats>,
    /// Questions whose answers are often cut.
    pub cuts: Arc<Cuts>,
    /// Answers that cannot be written now.
    pub unwritten: Arc<Unwritten>,
    /// Settlements of answered calls that Redis has not heard of yet.
    pub settling: TaskTracker,
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
            accounts: Arc::new(Doubts::new(Failure::account_may_pass)),
            unknown_models: Arc::default(),
            learned_caps: Arc::default(),
            waiting: Arc::default(),
            call_stats: Arc::default(),
            cuts: Arc::default(),
            unwritten: Arc::default(),
            settling: TaskTracker::new(),
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
        let ask = || provider.complete(call);
        let completion = self.once(attempt, provider, request, ask, budget).await?;
        metrics::stopped(&request.model, &completion.stop_reason);
        Ok(completion)
    }

    /// The same, for vectors.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(crate) async fn embed(
        &self,
        attempt: &Attempt,
        provider: &dyn Provider,
        request: &Request,
        call: &EmbeddingRequest<'_>,
        budget: &CallBudget<'_>,
    ) -> Result<Embedded, Failure> {
        self.once(attempt, provider, request, || provider.embed(call), budget).await
    }

    async fn once<'c, T: Answered>(
        &self,
        attempt: &Attempt,
        provider: &dyn Provider,
        request: &Request,
        ask: impl FnOnce() -> BoxFuture<'c, Result<T, Error>>,
        budget: &CallBudget<'_>,
    ) -> Result<T, Failure> {
        let sent = self.admit(attempt, request, budget).await?.sent();
        let version = provider.key().map(Key::version);
        let span = spans::call(T::OPERATION, request);
        let answer = ask().instrument(span.clone()).await;
        match answer {
            Ok(mut answered) => {
                answered
                    .forget_usage_unless(|usage, has_answer| can_be(usage, request, has_answer));
                let (usage, observed) = answered.told();
                spans::answered(&span, usage, answered.stopped());
                drop(span);
                drop(sent.settled(usage, observed));
                Ok(answered)
            }
            Err(error) => {
                spans::failed(&span, &error);
                drop(span);
                let key = provider.key().filter(|_| error.kind == Kind::Unauthorized);
                let renewed = key.zip(version).is_some_and(|(key, version)| {
                    self.keys.read_again(request.model.provider(), key, version)
                });
                let now = if renewed { KeyNow::Replaced } else { KeyNow::TheSame(provider.key()) };
                Err(sent.refused_after(&error, now).await)
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
        let span = spans::admission(request);
        let admitted = self.leave(attempt, request, budget).instrument(span.clone()).await;
        spans::admitted(&span, &admitted);
        admitted
    }

    async fn leave<'a>(
        &'a self,
        attempt: &'a Attempt,
        request: &'a Request,
        budget: &'a CallBudget<'a>,
    ) -> Result<Admitted<'a>, Failure> {
        self.check(attempt)?;
        let hand_back = |failure| self.handed_back(attempt, request, failure, Duration::MAX);
        self.keys.check(&request.model, &attempt.run, Instant::now()).map_err(hand_back)?;
        self.unknown_models.check(&request.model, &attempt.run, Instant::now())?;
        budget.check(attempt)?;
        let circuit = self.health.enter(&request.model, Instant::now());
        let breaker = circuit.map_err(|open| {
            let wait = open.retry.delay(self.backoff, 1).unwrap_or_default();
            self.handed_back(attempt, request, open, wait)
        })?;
        let (patient, slot) = self.waiting.enter(request);
        let mut place = self.quota.stand(&request.lane, &request.model);
        let admitted = self.permit(attempt, patient, slot.as_ref()).await;
        let permit = admitted.map_err(|refused| defer(attempt, &refused))?;
        place.calls();
        drop(slot);
        let holds = budget.hold(attempt).await?;
        // That may have changed while the call waited; what is held is given back.
        self.check(attempt)?;
        self.keys.enter(&request.model, &attempt.run, Instant::now()).map_err(hand_back)?;
        self.accounts.enter(&request.model, Instant::now()).map_err(hand_back)?;
        let names = self.unknown_models.enter(&request.model, &attempt.run, Instant::now());
        names.map_err(hand_back)?;
        self.unwritten.enter(attempt, Instant::now())?;
        Ok(Admitted { attempt, request, permit, holds, breaker, guard: self, _place: place })
    }

    /// A permit now, or after a wait in place. Who is told of a longer one is sent away, but for one
    /// that keeps watch.
    async fn permit(
        &self,
        attempt: &Attempt,
        mut request: Request,
        slot: Option<&WaitSlot>,
    ) -> Result<Permit, Refused> {
        let mut watch = None;
        loop {
            let refused = match self.quota.admit_until(&request, self.stopping.cancelled()).await {
                Ok(permit) => return Ok(permit),
                Err(refused) => refused,
            };
            let wait = match refused {
                Refused::Wait { wait, ticket, .. } => {
                    request.ticket = Some(ticket);
                    wait
                }
                Refused::Paused { wait, .. } => wait,
                _ => return Err(refused),
            };
            if watch.is_none() {
                let may_wait = !self.quota.longest_wait_in_place().is_zero();
                watch = slot.filter(|_| may_wait).and_then(WaitSlot::watch);
            }
            let Some(watch) = &watch else { return Err(refused) };
            let goes_on = tokio::select! {
                () = self.stopping.cancelled() => false,
                goes_on = watch.rest(wait, self.quota.hears_news()) => goes_on && self.quota.batch_held_for(&attempt.run).is_none(),
            };
            if !goes_on {
                return Err(refused);
            }
        }
    }

    /// The document goes to another worker, or comes back later, and keeps its turn. This worker
    /// takes no others of its kind for so long.
    fn handed_back(
        &self,
        attempt: &Attempt,
        request: &Request,
        failure: Failure,
        wait: Duration,
    ) -> Failure {
        if failure.is_retried() {
            attempt.deferred(attempt.state().ticket);
            self.quota.is_elsewhere(&request.lane, &request.model, wait);
        }
        failure
    }

    /// Whether a call to the model could be made now, as far as its name, its account, its key and its circuit go:
    /// else another model should be asked, if there is one. `run` is that of the batch.
    #[must_use]
    pub fn can_be_asked(&self, model: &ModelId, run: &str, now: Instant) -> bool {
        self.keys.check(model, run, now).is_ok()
            && self.unknown_models.check(model, run, now).is_ok()
            && !self.unknown_models.holds(model, now)
            && !self.accounts.holds(model, now)
            && self.health.can_be_asked(model, now)
    }

    /// Whether the model cannot be asked with this worker's key, but perhaps with another's.
    pub(super) fn has_key_elsewhere(&self, model: &ModelId, run: &str, now: Instant) -> bool {
        self.keys.check(model, run, now).is_err_and(|failure| failure.is_retried())
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
        if let Some(since) = self.quota.batch_held_for(&attempt.run) {
            attempt.deferred(attempt.state().ticket);
            return Err(Failure::batch_paused(since));
        }
        self.unwritten.check(attempt, Instant::now())
    }
}

/// What any call brings.
trait Answered {
    /// Of such a call, in the words of OpenTelemetry's conventions.
    const OPERATION: &'static str;

    /// What it used, and what the provider says of its limits.
    fn told(&self) -> (Option<&Usage>, &Observed);

    /// What it used is not known, unless that can be; said is whether it has an answer, too.
    fn forget_usage_unless(&mut self, can_be: impl Fn(&Usage, bool) -> bool);

    /// Why the answer ended, if one was written.
    fn stopped(&self) -> Option<&str>;
}

impl Answered for Completion {
    const OPERATION: &'static str = "chat";

    fn told(&self) -> (Option<&Usage>, &Observed) {
        (self.usage.as_ref(), &self.observed)
    }

    fn forget_usage_unless(&mut self, can_be: impl Fn(&Usage, bool) -> bool) {
        let has_answer = !self.answer.is_empty();
        self.usage = self.usage.take().filter(|usage| can_be(usage, has_answer));
    }

    fn stopped(&self) -> Option<&str> {
        Some(self.stop_reason.as_str())
    }
}

impl Answered for Embedded {
    const OPERATION: &'static str = "embeddings";

    fn told(&self) -> (Option<&Usage>, &Observed) {
        (self.usage.as_ref(), &self.observed)
    }

    fn forget_usage_unless(&mut self, can_be: impl Fn(&Usage, bool) -> bool) {
        self.usage = self.usage.take().filter(|usage| can_be(usage, false));
    }

    fn stopped(&self) -> Option<&str> {
        None
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
