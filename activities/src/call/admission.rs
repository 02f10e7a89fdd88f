//! An admitted call, from its leave to its settlement: the quota's permit, what the budgets hold,
//! the circuit breaker and the metrics as one.
//!
//! ```text
//! admit ──► Admitted ──sent──► Sent ──┬─ settled   answered: what it used
//!              │                 │    └─ refused   failed: what it cost, and what it means for the fleet
//!              │ dropped         │ dropped
//!              ▼                 ▼
//!          given back       stays charged: the provider may have done the work
//! ```

use std::time::{Duration, Instant};

use tidegate_calls::settle;
use tidegate_providers::{Charged, Error, Kind, Observed};
use tidegate_quota::{ModelQuota, Permit, Request, call_stats::CallStats};
use tidegate_types::{Spend, Usage};
use tidegate_workflows::contract::Taken;

use crate::{
    call::attempt::Attempt, call::budget::BudgetHolds, call::health::BreakerGuard,
    call::keys::Keys, failure::Failure, metrics,
};

/// Leave for one call. Dropped before [`Self::sent`], everything is given back.
#[derive(Debug)]
#[must_use = "an admission that is dropped is given back"]
pub struct Admitted<'a> {
    pub(super) attempt: &'a Attempt,
    pub(super) request: &'a Request,
    pub(super) permit: Permit,
    pub(super) holds: BudgetHolds<'a>,
    pub(super) breaker: BreakerGuard,
    pub(super) keys: &'a Keys,
    pub(super) call_stats: &'a CallStats,
    /// The model's limits, and what its provider counts.
    pub(super) model: Option<&'a ModelQuota>,
    /// How long a 429 without a Retry-After closes the gate.
    pub(super) least_pause: Duration,
}

impl<'a> Admitted<'a> {
    /// The request is about to leave. Counted before, so that a crash cannot hide it.
    pub fn sent(mut self) -> Sent<'a> {
        let timer = metrics::Call::start(&self.request.model);
        self.call_stats.begun(&self.request.model, timer.started());
        self.attempt.calling();
        self.permit.sent();
        self.holds.sent();
        Sent { admitted: self, timer }
    }
}

/// A call under way. Dropped before it is settled or refused, everything stays charged.
#[derive(Debug)]
#[must_use = "a call that is dropped stays charged with all that was reserved"]
pub struct Sent<'a> {
    admitted: Admitted<'a>,
    timer: metrics::Call,
}

impl Sent<'_> {
    /// The provider answered. Unknown use stays charged with what was reserved.
    pub async fn settled(self, usage: Option<&Usage>, observed: &Observed) {
        let Self { admitted, timer } = self;
        let Admitted { request, permit, holds, breaker, keys, call_stats, model, .. } = admitted;
        breaker.succeeded();
        keys.accepted(&request.model);
        let took = timer.started().elapsed();
        timer.succeeded(usage);
        if let Some((model, usage)) = model.zip(usage) {
            let used = model.used(usage, request.max_output_tokens);
            call_stats.ended(&request.model, took, used, Instant::now());
        }
        settle::answered(permit, usage, observed).await;
        holds.settle(usage).await;
    }

    /// The provider refused or failed. What that has cost, and what it means for the fleet, is
    /// settled in the same step: a 429 closes the gate, an overload lowers the number of calls in
    /// flight, and a spent account or day closes the gate until its reset.
    pub async fn refused(self, error: &Error) -> Failure {
        self.refused_after(error, false).await
    }

    /// The same; `renewed` says that a key that was refused has been replaced meanwhile.
    pub(super) async fn refused_after(self, error: &Error, renewed: bool) -> Failure {
        let Self { admitted, timer } = self;
        let Admitted { attempt, request, permit, holds, breaker, keys, least_pause, .. } = admitted;
        breaker.failed(error, attempt.document(), Instant::now());
        timer.failed(error.kind);
        if error.kind == Kind::RateLimited {
            attempt.rate_limited();
        }
        if let Charged::Usage(usage) = &error.charged {
            let spend = Spend::of_tokens(usage, holds.cost_usd(usage));
            attempt.discard(Taken { spend, ..Taken::default() });
        }
        let failure = match error.kind {
            Kind::Unauthorized => keys.refused(&request.model, error, renewed),
            kind => {
                // Who is refused for quota has been let in.
                if matches!(kind, Kind::RateLimited | Kind::QuotaExhausted) {
                    keys.accepted(&request.model);
                }
                Failure::from_provider(error, &attempt.counts())
            }
        };
        settle::failed(permit, error, least_pause).await;
        holds.settle_failure(&error.charged).await;
        failure
    }
}
