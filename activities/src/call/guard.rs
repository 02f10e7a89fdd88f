//! Admit → one call → settle. Every provider call goes through this function.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate_providers::{Charged, Completion, Error, Kind, Observed, Provider, Request as Call};
use tidegate_quota::{Permit, Quota, Refused, Request, call_stats::CallStats, store::Meter};
use tidegate_types::Usage;
use tidegate_workflows::contract::FailureType;

use crate::{
    call::attempt::Attempt,
    call::breaker::Breakers,
    call::budget::CallBudget,
    call::stopped::Stopped,
    call::waiting::WaitingRoom,
    failure::{Backoff, Failure},
    metrics,
};

/// A spent account says when its day or month ends, or nothing. Then one call finds out again after
/// this long, unless somebody opens the gate sooner.
const UNKNOWN_RESET: Duration = Duration::from_secs(900);

/// Stands between the documents and the providers.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Decides who may call.
    pub quota: Quota,
    /// How delays grow.
    pub backoff: Backoff,
    /// Models that nobody should ask for a while.
    pub stopped: Arc<Stopped>,
    /// Models whose provider is down.
    pub breakers: Arc<Breakers>,
    /// Who may wait in a slot.
    pub waiting: Arc<WaitingRoom>,
    /// Learns how long calls take and what they use.
    pub call_stats: Arc<CallStats>,
}

impl Guard {
    /// Makes one call if the quota allows it now or soon, and the purse can pay.
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
        call_budget: &CallBudget<'_>,
    ) -> Result<Completion, Failure> {
        self.stopped.check(&request.model)?;
        call_budget.check()?;
        let enter = self.breakers.enter(&request.model, Instant::now());
        let breaker = enter.map_err(|open| self.circuit_open(attempt, request, open))?;
        let (patient, place) = self.waiting.enter(request);
        let mut permit =
            self.quota.admit(&patient).await.map_err(|refused| self.defer(attempt, &refused))?;
        drop(place);
        let mut holds = call_budget.hold(attempt, self.backoff).await?;
        let clock = Instant::now();
        self.call_stats.begun(&request.model, clock);
        let started = metrics::Call::start(&request.model);
        attempt.calling();
        permit.sent();
        holds.sent();
        match provider.complete(call).await {
            Ok(completion) => {
                breaker.succeeded();
                started.succeeded(completion.usage.as_ref());
                permit.observed(meter(&completion.observed));
                self.learn(request, clock, completion.usage.as_ref());
                match &completion.usage {
                    Some(usage) => permit.settle(usage).await,
                    None => permit.keep_charged().await,
                }
                holds.settle(completion.usage.as_ref()).await;
                Ok(completion)
            }
            Err(error) => {
                breaker.failed(error.kind, attempt.document(), Instant::now());
                started.failed(error.kind);
                permit.observed(meter(&error.observed));
                self.settle_failure(permit, attempt, request, &error).await;
                holds.settle_failure(&error.charged).await;
                Err(Failure::from_provider(&error, &attempt.effort(), self.backoff))
            }
        }
    }

    /// How long the call took, and what it used.
    fn learn(&self, request: &Request, clock: Instant, usage: Option<&Usage>) {
        let model = self.quota.models().find(|model| model.id == request.model);
        let used =
            model.zip(usage).map(|(model, usage)| model.used(usage, request.max_output_tokens));
        if let Some(used) = used {
            self.call_stats.ended(&request.model, clock.elapsed(), used, Instant::now());
        }
    }

    /// No call is made, and none is counted.
    fn circuit_open(&self, attempt: &Attempt, request: &Request, open: Duration) -> Failure {
        attempt.deferred(attempt.notes().ticket);
        let delay = open + self.backoff.delay(0, None).min(open);
        let message = format!(
            "{} has failed several times in a row; one call tries it again in {open:.0?}",
            request.model
        );
        Failure {
            kind: FailureType::Overloaded,
            message,
            retry_after: Some(delay.min(self.backoff.max)),
        }
    }

    fn defer(&self, attempt: &Attempt, refused: &Refused) -> Failure {
        match refused {
            Refused::Wait { ticket, .. } => attempt.deferred(Some(*ticket)),
            Refused::Paused { ticket, .. } => attempt.deferred(*ticket),
            Refused::Exhausted { .. }
            | Refused::NeverFits { .. }
            | Refused::UnknownModel(_)
            | Refused::UnknownLane(_) => {}
        }
        Failure::refused(refused, self.backoff)
    }

    /// What a failed call has cost, and what it means for the fleet in the same step: a 429 closes
    /// the gate, an overload lowers the number of calls in flight, and a spent account or day
    /// closes the gate until its reset.
    async fn settle_failure(
        &self,
        permit: Permit,
        attempt: &Attempt,
        request: &Request,
        error: &Error,
    ) {
        match error.kind {
            Kind::RateLimited => {
                attempt.rate_limited();
                return permit
                    .refused(error.retry_after.unwrap_or(self.backoff.base), "rate_limited")
                    .await;
            }
            Kind::Overloaded => return permit.overloaded().await,
            Kind::QuotaExhausted => {
                return permit
                    .exhausted(error.retry_after.unwrap_or(UNKNOWN_RESET), &error.message)
                    .await;
            }
            Kind::Unauthorized => self.stopped.stop(
                &request.model,
                FailureType::Unauthorized,
                &error.message,
                Duration::from_secs(30),
            ),
            _ => {}
        }
        match &error.charged {
            Charged::No => permit.settle_unused().await,
            Charged::Usage(usage) => permit.settle(usage).await,
            Charged::Unknown => permit.keep_charged().await,
        }
    }
}

/// The provider's own count, in the limiter's order. Where input is told apart, Anthropic's
/// `tokens` repeats the tightest of the others.
fn meter(observed: &Observed) -> Meter {
    let combined = if observed.input_tokens.is_some() { None } else { observed.tokens };
    let windows = [observed.requests, observed.input_tokens, observed.output_tokens, combined];
    Meter {
        used: windows.map(|window| {
            window.and_then(|window| Some(window.limit?.saturating_sub(window.remaining?)))
        }),
        limits: windows.map(|window| window.and_then(|window| window.limit)),
    }
}
