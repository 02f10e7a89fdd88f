//! An admitted call until it is settled: joins the quota's permit, the budget holds, the circuit
//! breaker and the metrics.
//!
//! ```text
//! admit ──► Admitted ──sent──► Sent ──┬─ settled   answered: what it used
//!              │                 │    └─ failed    refused, or broken off: what it cost, and what it means for the fleet
//!              │ dropped         │ dropped
//!              ▼                 ▼
//!          given back       stays charged: the provider may have done the work
//! ```

use std::time::Instant;

use tidegate_providers::{Charged, Error, Kind, Observed, Provider};
use tidegate_quota::{Permit, Request, intake::QueuedAttempt};
use tidegate_types::{Spend, Usage};
use tokio::task::JoinHandle;

use crate::{
    attempt::Attempt,
    budget::BudgetHolds,
    failure::{Failure, MAX_FAULTS, MAX_INVALID_OUTPUTS},
    gates::Passed,
    guard::Guard,
    health::BreakerGuard,
    keys::KeyNow,
    metrics::CallTimer,
    settle,
};

/// Permission for one call. If it is dropped before [`Self::sent`], everything is released.
#[derive(Debug)]
#[must_use = "an admission that is dropped is given back"]
pub struct Admitted {
    pub(crate) call: Box<HeldCall>,
    pub(crate) passed: Passed,
}

/// An admitted call and its reservations.
#[derive(Debug)]
pub(crate) struct HeldCall {
    pub(crate) attempt: Attempt,
    pub(crate) request: Request,
    pub(crate) permit: Permit,
    pub(crate) holds: BudgetHolds,
    /// Receives the call's outcome.
    pub(crate) guard: Guard,
    /// Counts the slot as in use until the call is settled.
    pub(crate) _place: QueuedAttempt,
}

impl Admitted {
    /// The request as the limiter admitted it.
    pub fn request(&self) -> &Request {
        &self.call.request
    }

    /// Marks the request as about to leave. It is counted before it leaves, so that a crash cannot
    /// hide it.
    pub fn sent(self) -> Sent {
        let Self { mut call, passed } = self;
        let timer = CallTimer::start(&call.request.model);
        call.guard.call_stats.record_start(&call.request.model, timer.started);
        call.attempt.count_call();
        call.permit.sent();
        call.holds.sent();
        Sent { call, circuit: passed.leave(), timer }
    }

    /// Releases everything, for a call that will not leave. Returns when the limiter knows.
    pub async fn release(self) {
        self.call.permit.release().await;
    }
}

/// A call under way. If it is dropped before it is settled or has failed, everything stays charged.
#[derive(Debug)]
#[must_use = "a call that is dropped stays charged with all that was reserved"]
pub struct Sent {
    call: Box<HeldCall>,
    circuit: Option<BreakerGuard>,
    timer: CallTimer,
}

impl Sent {
    /// Settles an answered call. If the use is unknown, all that was reserved stays charged. A task
    /// of its own updates Redis, so that the caller can write the answer at once: a crash before
    /// that would buy the answer twice. The task ends when Redis knows.
    pub fn settled(self, usage: Option<&Usage>, observed: &Observed) -> JoinHandle<()> {
        let Self { call, circuit, timer } = self;
        let HeldCall { attempt, request, permit, holds, guard, .. } = *call;
        if let Some(circuit) = circuit {
            circuit.succeeded();
        }
        guard.gates.keys.accepted(&request.model);
        guard.gates.accounts.doubts.answered(&request.model, Instant::now());
        guard.gates.unknown_models.answered(&request.model, Instant::now());
        let took = timer.started.elapsed();
        attempt.record_answer(took);
        timer.succeeded(usage);
        let (model, bound) = (&request.model, request.max_output_tokens);
        if let Some(used) = usage.and_then(|usage| guard.quota.used(model, usage, bound)) {
            guard.call_stats.record_end(&request.model, took, used, Instant::now());
        }
        let (usage, observed) = (usage.cloned(), observed.clone());
        let holds = holds.settle(usage.as_ref());
        guard.settling.spawn(async move {
            settle::answered(permit, usage.as_ref(), &observed, took).await;
            holds.await;
        })
    }

    /// Leaves all that was reserved charged, because the call's use cannot be known. Returns when
    /// the limiter knows.
    pub async fn keep_charged(self) {
        let HeldCall { permit, holds, .. } = *self.call;
        permit.keep_charged().await;
        holds.settle(None).await;
    }

    /// Settles a call for which the provider did no work, at no cost. Returns when the limiter
    /// knows.
    pub async fn unused(self) {
        let HeldCall { permit, holds, .. } = *self.call;
        permit.settle_unused().await;
        holds.settle(Some(&Usage::default())).await;
    }

    /// Releases everything, for a call that has not left after all. Returns when the limiter knows.
    pub async fn never_left(self) {
        let HeldCall { attempt, permit, holds, .. } = *self.call;
        attempt.take_back_call();
        permit.release().await;
        holds.settle(Some(&Usage::default())).await;
    }

    /// Settles a call that the provider refused or failed. The call's charge and the effect on the
    /// fleet are settled in one step: a 429 closes the gate, an overload lowers the number of calls
    /// in flight, and a spent account or day closes the gate until its reset.
    pub async fn failed(self, error: &Error) -> Failure {
        self.failed_after(error, KeyNow::TheSame(None)).await
    }

    /// Like [`Self::failed`], with the provider and the version of the key that the call used.
    pub(crate) async fn failed_by(
        self,
        provider: &dyn Provider,
        version: Option<u64>,
        error: &Error,
    ) -> Failure {
        let HeldCall { request, guard, .. } = &*self.call;
        let key = provider.key().filter(|_| error.kind == Kind::Unauthorized);
        let renewed = key.zip(version).is_some_and(|(key, version)| {
            guard.gates.keys.read_again(request.model.provider(), key, version)
        });
        let now = if renewed { KeyNow::Replaced } else { KeyNow::TheSame(provider.key()) };
        self.failed_after(error, now).await
    }

    /// Like [`Self::failed`], with the state of the call's key.
    pub async fn failed_after(self, error: &Error, key: KeyNow<'_>) -> Failure {
        let Self { call, circuit, timer } = self;
        let HeldCall { attempt, request, permit, holds, guard, _place } = *call;
        if let Some(circuit) = circuit {
            circuit.failed(error, attempt.document(), Instant::now());
        }
        timer.failed(error.kind);
        if error.kind == Kind::RateLimited {
            attempt.count_rate_limited();
        }
        if error.kind == Kind::Unreachable {
            attempt.take_back_call();
        }
        if let Charged::Usage(usage) = &error.charged {
            attempt.discard(Spend::of_tokens(usage, holds.cost_usd(usage)));
        }
        let (failure, settled_as) = find_failure(&guard, &attempt, &request, error, key);
        attempt.record_failure(failure.kind);
        if lets_in(error) {
            guard.gates.keys.accepted(&request.model);
        }
        // A 429 without a Retry-After closes the gate for that long.
        let settled_as = Error { kind: settled_as, ..error.clone() };
        settle::failed(permit, &settled_as, guard.backoff.base).await;
        holds.settle_failure(&error.charged).await;
        failure
    }
}

/// The failure of a call, and the kind of error as which it is settled. Learns from the error what
/// the guard knows of keys, accounts, models and their caps.
fn find_failure(
    guard: &Guard,
    attempt: &Attempt,
    request: &Request,
    error: &Error,
    key: KeyNow<'_>,
) -> (Failure, Kind) {
    let (model, now, faults) = (&request.model, Instant::now(), attempt.faults());
    let from_provider = || Failure::from_provider(error, &attempt.question_counts());
    let no_such_request =
        || guard.gates.unknown_models.refused(model, &attempt.run, error, faults, now);
    let failure = match error.kind {
        Kind::Unauthorized
            if guard.gates.accounts.doubts.has_answered(model, now)
                && guard.gates.keys.is_about_the_document(model, attempt.document(), error) =>
        {
            Failure::document_forbidden(model, &error.message, faults)
        }
        Kind::Unauthorized => guard.gates.keys.refused(model, &attempt.run, error, key, now),
        Kind::UnknownModel | Kind::Unsupported | Kind::InvalidRequest => no_such_request(),
        Kind::OutputCapTooLarge => {
            let asked = u32::try_from(request.max_output_tokens).unwrap_or(u32::MAX);
            let cap = guard.learned_caps.lower(model, asked, &error.message);
            cap.map_or_else(no_such_request, |cap| Failure::bound_too_large(&error.message, cap))
        }
        Kind::QuotaExhausted => {
            let account = (model, None);
            match guard.gates.accounts.doubts.refused(account, &error.message, now) {
                // No verdict yet: the call is settled like any failed call.
                Some(failure) if faults < MAX_FAULTS => return (failure, Kind::Transient),
                _ => from_provider(),
            }
        }
        // The provider itself validated the answer. One more call is made, as after our own
        // validation.
        Kind::InvalidOutput
            if error.status.is_some_and(|status| status >= 400) && faults < MAX_INVALID_OUTPUTS =>
        {
            from_provider().at_once()
        }
        // Only time or an operator can resolve it; until then the circuit holds the documents.
        Kind::Unreachable => Failure::transient(&error.message),
        _ => from_provider(),
    };
    (failure, error.kind)
}

/// Whether a failure shows that the key is good. A provider accepts the key when it refuses the
/// request or the model, lacks quota, or is overloaded. A gateway's 502 shows nothing: it may come
/// before the key was checked.
fn lets_in(error: &Error) -> bool {
    let has_answered = error.status.is_some_and(|status| status < 500);
    error.kind != Kind::Unauthorized && (has_answered || error.kind == Kind::Overloaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_answer_but_a_refused_key_shows_that_it_is_good() {
        let after = |kind, status| {
            lets_in(&Error { kind, status, ..Error::no_reply(String::new(), Charged::No) })
        };
        for (kind, status) in [
            (Kind::InvalidRequest, 400),
            (Kind::UnknownModel, 404),
            (Kind::TooLarge, 413),
            (Kind::RateLimited, 429),
            (Kind::QuotaExhausted, 429),
            (Kind::Overloaded, 529),
            (Kind::Overloaded, 503),
            // An answer that cannot be read.
            (Kind::Transient, 200),
        ] {
            assert!(after(kind, Some(status)), "{kind}, {status}");
        }
        // Gemini refuses a key with a 400.
        for (kind, status) in [
            (Kind::Unauthorized, Some(401)),
            (Kind::Unauthorized, Some(403)),
            (Kind::Unauthorized, Some(400)),
            (Kind::Transient, Some(502)),
            (Kind::Timeout, None),
        ] {
            assert!(!after(kind, status), "{kind}, {status:?}");
        }
    }
}
