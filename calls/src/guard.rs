//! Admit → one call → settle: the steps of a call of any kind to a provider.

use std::{sync::Arc, time::Instant};

use tidegate_providers::{
    BoxFuture, Completion, Embedded, Error, Key, Observed, Provider, StopReason, passive::Whole,
};
use tidegate_quota::{Quota, Request, call_stats::CallStats};
use tidegate_types::{ModelId, Usage};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use crate::{
    attempt::Attempt,
    budget::CallBudget,
    failure::{Backoff, Failure},
    gates::{Check, CheckedCall, Gates},
    learned_caps::LearnedCaps,
    metrics, spans,
    waiting::WaitingRoom,
};

/// Controls all calls from this process to providers. Clones share their state.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Decides when a call may leave.
    pub quota: Quota,
    /// The growth of delays.
    pub backoff: Backoff,
    /// Other reasons to hold a call.
    pub gates: Gates,
    /// Output bounds that models have refused as too large.
    pub learned_caps: Arc<LearnedCaps>,
    /// Bounds the attempts that may wait in a slot.
    pub waiting: Arc<WaitingRoom>,
    /// Tracks latency and token use of this process's calls.
    pub call_stats: Arc<CallStats>,
    /// Settlements of answered calls that Redis has not received yet.
    pub settling: TaskTracker,
    /// Cancelled when this worker stops: from then on no call leaves.
    pub stopping: CancellationToken,
}

impl Guard {
    /// Creates a guard with room for every attempt that waits.
    #[must_use]
    pub fn new(quota: Quota, backoff: Backoff) -> Self {
        let stopping = CancellationToken::new();
        Self {
            gates: Gates::new(quota.clone(), stopping.clone()),
            quota,
            backoff,
            learned_caps: Arc::default(),
            waiting: Arc::default(),
            call_stats: Arc::default(),
            settling: TaskTracker::new(),
            stopping,
        }
    }

    /// Adds the gate `results`, which knows whether a batch's results can be written.
    #[must_use]
    pub fn with_results(self, results: Arc<dyn Check>) -> Self {
        Self { gates: self.gates.with_results(results), ..self }
    }

    /// Makes one call if the quota allows it now or soon, and the budgets can pay. `operation` is its
    /// name in OpenTelemetry's conventions.
    ///
    /// # Errors
    /// A [`Failure`] with the time of the next attempt, if any. The [`Attempt`] then keeps its
    /// ticket.
    pub async fn call<'c, T: Answered>(
        &self,
        operation: &'static str,
        attempt: &Attempt,
        provider: &dyn Provider,
        request: &Request,
        ask: impl FnOnce() -> BoxFuture<'c, Result<T, Error>>,
        budget: &CallBudget,
    ) -> Result<T, Failure> {
        let sent = self.admit(attempt, request, budget).await?.sent();
        let version = provider.key().map(Key::version);
        let span = spans::call(operation, request);
        let share = &attempt.reply_share;
        let answer = share.hold_for(ask()).instrument(span.clone()).await;
        if !answer.as_ref().is_ok_and(Answered::has_text) {
            share.give_back();
        }
        match answer {
            Ok(mut answered) => {
                answered.forget_impossible_usage(request);
                let (usage, observed) = answered.usage_and_limits();
                spans::record_answer(&span, usage, answered.stop_reason().map(StopReason::as_str));
                drop(span);
                drop(sent.settled(usage, observed));
                if let Some(reason) = answered.stop_reason() {
                    metrics::count_stop_reason(&request.model, reason);
                }
                Ok(answered)
            }
            Err(error) => {
                spans::record_failure(&span, &error);
                drop(span);
                Err(sent.failed_by(provider, version, &error).await)
            }
        }
    }

    /// Whether a call to the model could be made now, as far as its name, account, key and circuit
    /// allow. If not, another model should be asked.
    #[must_use]
    pub fn can_be_asked(&self, attempt: &Attempt, model: &ModelId, now: Instant) -> bool {
        self.gates.let_ask(checked_call(attempt, model, now))
    }

    /// Whether the model cannot be asked with this worker's key, but perhaps with another worker's.
    pub(crate) fn has_key_elsewhere(
        &self,
        attempt: &Attempt,
        model: &ModelId,
        now: Instant,
    ) -> bool {
        let checked = self.gates.keys.check(checked_call(attempt, model, now));
        checked.is_err_and(|failure| failure.is_retried())
    }

    /// Whether this worker may buy an answer: it is not stopping, the batch is not paused, and its
    /// results can be written.
    ///
    /// # Errors
    /// A retryable failure: another worker may buy it, or this one later.
    pub fn check(&self, attempt: &Attempt, model: &ModelId) -> Result<(), Failure> {
        Ok(self.gates.of_batch(checked_call(attempt, model, Instant::now()))?)
    }
}

pub(crate) fn checked_call<'a>(
    attempt: &'a Attempt,
    model: &'a ModelId,
    now: Instant,
) -> CheckedCall<'a> {
    CheckedCall { attempt, model, now }
}

/// Parts of any call's reply that the guard needs.
pub trait Answered {
    /// Tokens used, and the provider's statement of its limits.
    fn usage_and_limits(&self) -> (Option<&Usage>, &Observed);

    /// Drops the reported usage if the request cannot have it.
    fn forget_impossible_usage(&mut self, _: &Request) {}

    /// Whether it has about as many bytes as the reply, so that the attempt keeps the reply's share
    /// of memory to its end.
    fn has_text(&self) -> bool {
        true
    }

    /// Returns the reason why the answer ended, if there is an answer.
    fn stop_reason(&self) -> Option<&StopReason> {
        None
    }
}

impl Answered for Completion {
    fn usage_and_limits(&self) -> (Option<&Usage>, &Observed) {
        (self.usage.as_ref(), &self.observed)
    }

    fn forget_impossible_usage(&mut self, request: &Request) {
        let has_answer = !self.answer.is_empty();
        self.usage = self.usage.take().filter(|usage| is_plausible(usage, request, has_answer));
    }

    fn stop_reason(&self) -> Option<&StopReason> {
        Some(&self.stop_reason)
    }
}

impl Answered for Whole {
    fn usage_and_limits(&self) -> (Option<&Usage>, &Observed) {
        (self.facts.usage.as_ref(), &self.facts.observed)
    }
}

impl Answered for Embedded {
    fn has_text(&self) -> bool {
        false
    }

    fn usage_and_limits(&self) -> (Option<&Usage>, &Observed) {
        (self.usage.as_ref(), &self.observed)
    }

    fn forget_impossible_usage(&mut self, request: &Request) {
        self.usage = self.usage.take().filter(|usage| is_plausible(usage, request, false));
    }
}

/// Factor below which estimates of tokens are wrong: a script with two tokens a character has eight
/// for each estimated token.
const FAR_OFF: u64 = 10;

/// Tokens that vendors add around a short prompt, such as those of a schema or a tool.
const AROUND: u64 = 500;

/// Whether a call can have this usage. Its input is above zero and at most a few times the
/// estimate. Its output is above zero if there is an answer, and at most a few times the bound,
/// which not all servers keep.
pub(crate) fn is_plausible(usage: &Usage, request: &Request, has_answer: bool) -> bool {
    let bound = |tokens: u64| tokens.saturating_add(AROUND).saturating_mul(FAR_OFF);
    let input = usage.input();
    input > 0
        && input <= bound(request.input_tokens)
        && usage.output <= bound(request.max_output_tokens)
        && (usage.output > 0 || !has_answer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod plausible_usage_tests {
    use super::*;

    #[test]
    fn nothing_and_far_too_much_cannot_be() {
        let request = Request::new("a:b".parse().unwrap(), "r").tokens(1_000, 100);
        let can = |uncached_input, output, has_answer| {
            is_plausible(
                &Usage { uncached_input, output, ..Usage::default() },
                &request,
                has_answer,
            )
        };
        assert!(can(900, 80, true) && can(8_000, 400, true) && can(900, 0, false));
        assert!(!can(0, 80, true) && !can(900, 0, true));
        assert!(!can(1_000_000, 80, true) && !can(900, 1_000_000, true));
        let cached = Usage { cache_read: 900, output: 5, ..Usage::default() };
        assert!(is_plausible(&cached, &request, true));
    }
}
