//! Budgets that pay for calls: the tenant's budget of the day, the batch's, both, or neither.
//!
//! A call without a budget sends no request to Redis.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::Utc;
use futures::future::{BoxFuture, join_all, try_join_all};
use parking_lot::Mutex;
use tidegate_providers::{Charged, Prices};
use tidegate_quota::{
    Budget, Quota, Request, Retries,
    budget::{BudgetHold, BudgetRefused, Payer, Unheld},
};
use tidegate_types::{FailureType, ModelId, Tenant, Usage};

use crate::{
    attempt::Attempt,
    failure::{BUDGET_REFUSED, BUDGET_RETURNS, Failure, RETRIES_PER_DOCUMENT},
    health::Health,
    metrics,
};

/// Longest time until a call is settled: the longest time-out of a provider by default, and a
/// minute.
const LEASE: Duration = Duration::from_secs(660);

/// Longest time until a provider's batch is settled: it may take a day, and is collected after
/// that.
const BATCH_LEASE: Duration = Duration::from_hours(48);

/// The budgets that this worker knows.
#[derive(Debug, Default)]
pub struct Budgets {
    ledger: tidegate_quota::Budgets,
    daily_usd: HashMap<Tenant, f64>,
    prices: Prices,
    refused: Cooldown<BudgetRefused>,
    /// Budgets that this worker has spent from, each with the time until which it must be in Redis.
    seen: Cooldown<()>,
    lease: Option<Duration>,
    checkpoints: Option<Arc<dyn Checkpoints>>,
}

impl Budgets {
    /// Creates them. `daily_usd` is the amount in US dollars that each tenant with a budget may
    /// spend in a day (UTC).
    pub fn new(
        ledger: tidegate_quota::Budgets,
        daily_usd: HashMap<Tenant, f64>,
        prices: Prices,
    ) -> Self {
        Self { ledger, daily_usd, prices, ..Self::default() }
    }

    /// Sets the longest time that a call may take.
    pub fn with_longest_call(self, longest: Duration) -> Self {
        Self { lease: Some(longest.saturating_add(Duration::from_mins(1))), ..self }
    }

    /// Keeps checkpoints of the spending outside Redis, which survive a loss of Redis.
    pub fn with_checkpoints(
        self,
        of: impl FnOnce(tidegate_quota::Budgets) -> Arc<dyn Checkpoints>,
    ) -> Self {
        let checkpoints = of(self.ledger.clone());
        Self { checkpoints: Some(checkpoints), ..self }
    }

    /// Writes a checkpoint of each budget in use every few seconds, until `stop` resolves.
    pub async fn keep(&self, stop: impl Future<Output = ()> + Send) {
        match &self.checkpoints {
            Some(checkpoints) => checkpoints.keep(Box::pin(stop)).await,
            None => stop.await,
        }
    }

    /// Opens the budget of a batch, unless it is open. If Redis lacks an open budget later, Redis
    /// has lost it.
    ///
    /// # Errors
    /// `Transient` when Redis cannot be asked.
    pub async fn open(&self, payers: &Payers<'_>) -> Result<(), Failure> {
        // With checkpoints, each budget is opened when it is first needed.
        if payers.batch_usd.is_none() || self.checkpoints.is_some() {
            return Ok(());
        }
        let payer = Payer::Batch(payers.batch.to_owned());
        self.ledger.open(&payer, 0.0, false).await.map_err(Unheld::from)?;
        Ok(())
    }

    /// Holds `usd` of a budget for one call. A budget that Redis has lost is restored from its last
    /// checkpoint. The attempt waits for no return of the `own_usd` that it holds there itself.
    async fn reserve(
        &self,
        budget: &Budget,
        (id, own_usd): (&str, f64),
        usd: f64,
        lease: Duration,
    ) -> Result<BudgetHold, Failure> {
        let seen = self.seen.get(&budget.payer).is_some();
        let opened = matches!(budget.payer, Payer::Batch(_)) || seen;
        let budget = Budget { opened: opened || self.checkpoints.is_some(), ..budget.clone() };
        let reserve =
            || -> BoxFuture<'_, _> { Box::pin(self.ledger.reserve_for(&budget, id, usd, lease)) };
        let mut held = reserve().await;
        if let Some(checkpoints) = &self.checkpoints {
            held = checkpoints.renewing(&budget, usd, held, &reserve).await?;
        }
        match &mut held {
            Ok(hold) => {
                metrics::budget_left(&budget.payer, budget.usd, hold.left_usd);
                // The budget's key in Redis lives for a day after that.
                let day = hold.reset.unwrap_or_default();
                self.seen.remember(budget.payer.clone(), (), day);
            }
            Err(Unheld::Refused(refused)) => {
                metrics::budget_left(&refused.payer, refused.budget_usd, refused.left_usd);
                self.remember(refused);
                refused.returning_usd = (refused.returning_usd - own_usd).max(0.0);
            }
            Err(_) => {}
        }
        Ok(held?)
    }

    /// Checks whether the budgets of a batch can be kept.
    ///
    /// # Errors
    /// `InvalidInput` if there are budgets and one of the models has no price.
    pub fn check<'a>(
        &self,
        payers: &Payers<'_>,
        models: impl IntoIterator<Item = &'a ModelId>,
    ) -> Result<(), Failure> {
        let budgets = self.applying(payers);
        models
            .into_iter()
            .try_for_each(|model| self.bound(&budgets, model, &Usage::default()).map(drop))
    }

    /// The budgets that pay for one call. `batch_usd` is the budget of its batch, in US dollars.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub fn call_budget(
        self: &Arc<Self>,
        attempt: &Attempt,
        request: &Request,
        batch_usd: Option<f64>,
    ) -> Result<CallBudget, Failure> {
        let batch = attempt.batch.as_str();
        let budgets = self.applying(&Payers { tenant: &request.tenant, batch, batch_usd });
        let usage = Usage {
            uncached_input: request.input_tokens,
            output: request.likely(),
            ..Usage::default()
        };
        let bound_usd = self.bound(&budgets, &request.model, &usage)?;
        let (source, model) = (Arc::clone(self), request.model.clone());
        Ok(CallBudget { source, model, budgets, bound_usd })
    }

    /// Holds the maximum cost of a provider's batch, in every budget that applies or in none, until
    /// [`Self::settle_batch`]. `id` is unique to the batch.
    ///
    /// # Errors
    /// `BudgetExceeded` when one has too little left; `Transient` when Redis cannot be asked.
    pub async fn hold_batch(&self, payers: &Payers<'_>, id: &str, usd: f64) -> Result<(), Failure> {
        let budgets = self.applying(payers);
        let reserve = |budget| self.reserve(budget, (id, 0.0), usd, BATCH_LEASE);
        let mut holds = try_join_all(budgets.iter().map(reserve)).await?;
        holds.iter_mut().for_each(BudgetHold::sent);
        Ok(())
    }

    /// Holds, in addition to a call's cost, the cost of the calls that may follow it. The amount is
    /// returned when the hold is dropped.
    ///
    /// # Errors
    /// The errors of [`CallBudget::hold`].
    pub async fn hold_beside(
        &self,
        payers: &Payers<'_>,
        id: &str,
        usd: f64,
    ) -> Result<Vec<BudgetHold>, Failure> {
        let (budgets, lease) = (self.applying(payers), self.lease.unwrap_or(LEASE));
        let reserve = |budget| self.reserve(budget, (id, 0.0), usd, lease);
        try_join_all(budgets.iter().map(reserve)).await
    }

    /// Settles a provider's batch with its cost.
    pub async fn settle_batch(&self, payers: &Payers<'_>, id: &str, cost_usd: f64) {
        let budgets = self.applying(payers);
        let holds = budgets.iter().filter_map(|budget| self.ledger.adopt_hold(budget, id));
        join_all(holds.map(|hold| hold.settle(cost_usd))).await;
    }

    fn applying(&self, Payers { tenant, batch, batch_usd }: &Payers<'_>) -> Vec<Budget> {
        let daily = self.daily_usd.get(*tenant);
        let daily = daily.map(|usd| Budget::daily((*tenant).clone(), *usd));
        daily.into_iter().chain(batch_usd.map(|usd| Budget::of_batch(*batch, usd))).collect()
    }

    /// Maximum expected cost of a call, in US dollars.
    fn bound(&self, budgets: &[Budget], model: &ModelId, usage: &Usage) -> Result<f64, Failure> {
        let Some(budget) = budgets.first() else { return Ok(0.0) };
        self.cost_usd(model, usage).ok_or_else(|| {
            Failure::invalid_input(format!(
                "no price is known for {model}, so the budget of {} cannot be kept; add price = {{ input-usd-per-mtok = …, output-usd-per-mtok = … }} to [models.\"{model}\"] in the workers' configuration",
                budget.payer
            ))
        })
    }

    fn cost_usd(&self, model: &ModelId, usage: &Usage) -> Option<f64> {
        self.prices.cost_usd(model, usage, Utc::now().date_naive())
    }

    fn remember(&self, refused: &BudgetRefused) {
        let length = if refused.may_come_back() { BUDGET_RETURNS } else { BUDGET_REFUSED };
        let length = refused.reset.map_or(length, |reset| reset.min(length));
        self.refused.remember(refused.payer.clone(), refused.clone(), length);
    }

    /// The last refusal of `budget`, if it still applies.
    fn remembered(&self, budget: &Budget, needed_usd: f64) -> Option<BudgetRefused> {
        let refused = self.refused.get(&budget.payer)?;
        let stands = refused.budget_usd >= budget.usd && refused.left_usd < needed_usd;
        stands.then_some(BudgetRefused { needed_usd, ..refused })
    }
}

/// Maximum number of remembered refusals; beyond it, all are forgotten at once, and each costs one
/// more call.
const MAX_REMEMBERED: usize = 1_000;

/// Remembers something of payers for a while.
#[derive(Debug)]
struct Cooldown<V>(Mutex<HashMap<Payer, (Instant, V)>>);

impl<V> Default for Cooldown<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: Clone> Cooldown<V> {
    fn remember(&self, payer: Payer, value: V, length: Duration) {
        let mut all = self.0.lock();
        if all.len() >= MAX_REMEMBERED {
            all.clear();
        }
        all.insert(payer, (Instant::now() + length, value));
    }

    fn get(&self, payer: &Payer) -> Option<V> {
        let all = self.0.lock();
        let known = all.get(payer).filter(|(until, _)| Instant::now() < *until);
        known.map(|(_, value)| value.clone())
    }
}

/// The payers of a call or a batch.
#[derive(Debug, Clone, Copy)]
pub struct Payers<'a> {
    /// The tenant, which may have a budget for the day.
    pub tenant: &'a Tenant,
    /// The batch: its workflow's id.
    pub batch: &'a str,
    /// Budget of the batch, in US dollars.
    pub batch_usd: Option<f64>,
}

/// Stores the spending of budgets outside Redis.
pub trait Checkpoints: fmt::Debug + Send + Sync {
    /// Returns `held`, or the result of `reserve` after the budget was restored or a checkpoint was
    /// written.
    fn renewing<'a>(
        &'a self,
        budget: &'a Budget,
        usd: f64,
        held: Result<BudgetHold, Unheld>,
        reserve: &'a Reserve<'a>,
    ) -> BoxFuture<'a, Result<Result<BudgetHold, Unheld>, Failure>>;

    /// Writes a checkpoint of each budget in use every few seconds, until `stop` resolves.
    fn keep<'a>(&'a self, stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()>;
}

/// Tries again to hold the cost in a budget.
pub type Reserve<'a> = dyn Fn() -> BoxFuture<'a, Result<BudgetHold, Unheld>> + Send + Sync + 'a;

/// The budgets of one call. Most calls have none.
#[derive(Debug, Clone)]
pub struct CallBudget {
    source: Arc<Budgets>,
    model: ModelId,
    budgets: Vec<Budget>,
    bound_usd: f64,
}

impl CallBudget {
    /// Fails a call at once that a budget refused a moment ago, before it takes quota.
    ///
    /// # Errors
    /// `BudgetExceeded`, or `QuotaWait` while calls under way may return money.
    pub fn check(&self) -> Result<(), Failure> {
        let refused =
            self.budgets.iter().find_map(|budget| self.source.remembered(budget, self.bound_usd));
        refused.map_or(Ok(()), |refused| Err(Failure::over_budget(&refused)))
    }

    /// Holds the call's maximum cost under the name of its attempt, in every budget or in none.
    ///
    /// # Errors
    /// `BudgetExceeded` if a budget is spent; `QuotaWait` while calls under way may return money,
    /// or if Redis lost what was spent; `Transient` if Redis cannot be asked.
    pub async fn hold(&self, attempt: &Attempt, reservation: &str) -> Result<BudgetHolds, Failure> {
        let lease = self.source.lease.unwrap_or(LEASE);
        let name = (reservation, attempt.held_beside_usd());
        let reserve = |budget| self.source.reserve(budget, name, self.bound_usd, lease);
        let held = try_join_all(self.budgets.iter().map(reserve)).await;
        let holds = held.inspect_err(|failure| {
            if failure.is_retried() {
                attempt.defer(None);
            }
        })?;
        Ok(BudgetHolds { call_budget: self.clone(), holds })
    }
}

/// Holds for one call. Dropped before the call is sent, they are returned; dropped after it, they
/// stay charged.
#[derive(Debug)]
#[must_use = "holds that are dropped are given back"]
pub struct BudgetHolds {
    call_budget: CallBudget,
    holds: Vec<BudgetHold>,
}

impl BudgetHolds {
    /// Marks the request as about to leave: its cost may have to be paid.
    pub fn sent(&mut self) {
        self.holds.iter_mut().for_each(BudgetHold::sent);
    }

    /// The cost of this usage in US dollars, if the price is known.
    pub(crate) fn cost_usd(&self, usage: &Usage) -> Option<f64> {
        self.call_budget.source.cost_usd(&self.call_budget.model, usage)
    }

    /// Settles the holds with this use. If the use is unknown, the held amount is charged. The
    /// returned future need not be awaited for the money to be free.
    pub fn settle(self, usage: Option<&Usage>) -> impl Future<Output = ()> + use<> {
        let cost_usd = usage.and_then(|usage| self.cost_usd(usage));
        let cost_usd = cost_usd.unwrap_or(self.call_budget.bound_usd);
        let settlements = join_all(self.holds.into_iter().map(move |hold| hold.settle(cost_usd)));
        async move {
            settlements.await;
        }
    }

    /// Settles the holds of a failed call.
    pub async fn settle_failure(self, charged: &Charged) {
        match charged {
            Charged::No => self.settle(Some(&Usage::default())).await,
            Charged::Usage(usage) => self.settle(Some(usage)).await,
            Charged::Unknown => self.settle(None).await,
        }
    }
}

/// Maximum number of retries of one run of a batch.
#[derive(Debug, Clone)]
pub struct RetryBudget {
    /// Unique name of the run: two runs of one workflow id differ.
    pub run: String,
    /// Retries of all its documents together.
    pub calls: u64,
    /// Whether no number was configured: a document in parts then adds the budget of as many
    /// documents as it has calls.
    pub parts_add: bool,
}

impl RetryBudget {
    /// Pays for the next call, if it is a retry. An attempt that only waits for quota has paid
    /// already, so it pays again only after a call.
    ///
    /// # Errors
    /// The failure of the document's last call, if the budget is spent.
    pub async fn pay(
        &self,
        quota: &Quota,
        health: &Health,
        attempt: &Attempt,
        model: &ModelId,
    ) -> Result<(), Failure> {
        if !attempt.must_pay_for_retry() {
            return Ok(());
        }
        let adds = attempt.of_document.as_ref().filter(|_| self.parts_add);
        let adds = adds.map(|(document, calls)| {
            let more = calls.saturating_sub(1);
            (document.as_str(), more.saturating_mul(RETRIES_PER_DOCUMENT))
        });
        match quota.count_retry(&self.run, adds).await {
            Some(Retries { spent, added }) if spent > self.calls.saturating_add(added) => {
                let budget = self.calls.saturating_add(added);
                let last_failure = health.words(model);
                let last_failure =
                    last_failure.map_or_else(String::new, |it| format!("; the last failure: {it}"));
                let last = attempt.state().failed_as;
                let calls = if budget == 1 { "call" } else { "calls" };
                Err(Failure::never(
                    last.unwrap_or(FailureType::BudgetExceeded),
                    format!(
                        "the batch's retry budget of {budget} provider {calls} beyond the first of each document is spent{last_failure}"
                    ),
                ))
            }
            // While Redis is away, only the bound on each document's own faults applies.
            _ => {
                attempt.mark_retry_paid();
                Ok(())
            }
        }
    }
}
