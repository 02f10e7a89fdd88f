//! What pays for a document's call: its tenant's budget of the day, its batch's, both, or neither.
//!
//! Only a call that a budget applies to asks anything of Redis.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use chrono::Utc;
use futures::future::{BoxFuture, join_all, try_join_all};
use tidegate_providers::{Charged, Prices};
use tidegate_quota::{
    Budget, Request,
    budget::{BudgetHold, BudgetRefused, Payer, Unheld},
};
use tidegate_types::{ModelId, Tenant, Usage};

use crate::{
    attempt::Attempt,
    failure::{BUDGET_REFUSED, BUDGET_RETURNS, Failure},
    health::Cooldown,
    metrics,
};

/// A call is settled within this, or never: the longest of a provider by default, and a minute.
const LEASE: Duration = Duration::from_secs(660);

/// The same of a provider's batch: it has a day, and is collected after it.
const BATCH_LEASE: Duration = Duration::from_hours(48);

/// The budgets that this worker knows.
#[derive(Debug, Default)]
pub struct Budgets {
    ledger: tidegate_quota::Budgets,
    daily_usd: HashMap<Tenant, f64>,
    prices: Prices,
    refused: Cooldown<Payer, BudgetRefused>,
    /// Budgets that this worker has spent of, and until when they must be there for it.
    seen: Cooldown<Payer, ()>,
    lease: Option<Duration>,
    checkpoints: Option<Arc<dyn Checkpoints>>,
}

impl Budgets {
    /// `daily_usd` is what each tenant with a budget may spend in a day (UTC), in US dollars.
    pub fn new(
        ledger: tidegate_quota::Budgets,
        daily_usd: HashMap<Tenant, f64>,
        prices: Prices,
    ) -> Self {
        Self { ledger, daily_usd, prices, ..Self::default() }
    }

    /// The same, where a call takes no longer than this.
    pub fn with_longest_call(self, longest: Duration) -> Self {
        Self { lease: Some(longest.saturating_add(Duration::from_mins(1))), ..self }
    }

    /// The same, with what was spent kept beside Redis, so that it survives a loss of it.
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

    /// Opens what a batch may spend, unless it is open: from here on, not to find it in Redis means
    /// that Redis has lost it.
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

    /// Holds so much of a budget for one call. A budget that Redis has lost is taken from its last
    /// checkpoint.
    async fn reserve(
        &self,
        budget: &Budget,
        id: &str,
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
        match &held {
            Ok(hold) => {
                metrics::budget_left(&budget.payer, budget.usd, hold.left_usd);
                // Its key lives on for a day after that.
                let day = hold.reset.unwrap_or_default();
                self.seen.remember(budget.payer.clone(), (), day);
            }
            Err(Unheld::Refused(refused)) => {
                metrics::budget_left(&refused.payer, refused.budget_usd, refused.left_usd);
                self.remember(refused);
            }
            Err(_) => {}
        }
        Ok(held?)
    }

    /// Whether the budgets of a batch can be kept.
    ///
    /// # Errors
    /// `InvalidInput` when there are some and one of the models has no price.
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

    /// What pays for one call. `batch_usd` is what its batch may spend in all, in US dollars.
    ///
    /// # Errors
    /// As [`Self::check`].
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

    /// Holds what a batch of the provider's may cost, in every budget that applies or in none. It
    /// stays held until [`Self::settle_batch`]; `id` names the batch and no other.
    ///
    /// # Errors
    /// `BudgetExceeded` when one has too little left; `Transient` when Redis cannot be asked.
    pub async fn hold_batch(&self, payers: &Payers<'_>, id: &str, usd: f64) -> Result<(), Failure> {
        let budgets = self.applying(payers);
        let reserve = |budget| self.reserve(budget, id, usd, BATCH_LEASE);
        let mut holds = try_join_all(budgets.iter().map(reserve)).await?;
        holds.iter_mut().for_each(BudgetHold::sent);
        Ok(())
    }

    /// Holds, beside a call, what may have to follow it. It is given back when it is dropped.
    ///
    /// # Errors
    /// As [`CallBudget::hold`].
    pub async fn hold_beside(
        &self,
        payers: &Payers<'_>,
        id: &str,
        usd: f64,
    ) -> Result<Vec<BudgetHold>, Failure> {
        let (budgets, lease) = (self.applying(payers), self.lease.unwrap_or(LEASE));
        let reserve = |budget| self.reserve(budget, id, usd, lease);
        try_join_all(budgets.iter().map(reserve)).await
    }

    /// What a batch of the provider's has cost.
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

    /// The most that a call should cost, in US dollars.
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

    /// What `budget` would say again, if it lately refused as much.
    fn remembered(&self, budget: &Budget, needed_usd: f64) -> Option<BudgetRefused> {
        let refused = self.refused.get(&budget.payer)?;
        let stands = refused.budget_usd >= budget.usd && refused.left_usd < needed_usd;
        stands.then_some(BudgetRefused { needed_usd, ..refused })
    }
}

/// Who pays for a call or a batch.
#[derive(Debug, Clone, Copy)]
pub struct Payers<'a> {
    /// The tenant, who may have a budget for the day.
    pub tenant: &'a Tenant,
    /// The batch, by its workflow's id.
    pub batch: &'a str,
    /// What the batch may spend in all, in US dollars.
    pub batch_usd: Option<f64>,
}

/// Where what was spent is kept beside Redis.
pub trait Checkpoints: fmt::Debug + Send + Sync {
    /// What was `held`, or what `reserve` holds after the budget was found again or a checkpoint was
    /// written.
    fn renewing<'a>(
        &'a self,
        budget: &'a Budget,
        usd: f64,
        held: Result<BudgetHold, Unheld>,
        reserve: &'a Reserve<'a>,
    ) -> BoxFuture<'a, Result<Result<BudgetHold, Unheld>, Failure>>;

    /// Writes one of each budget in use every few seconds, until `stop` resolves.
    fn keep<'a>(&'a self, stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()>;
}

/// Asks for so much of a budget.
pub type Reserve<'a> = dyn Fn() -> BoxFuture<'a, Result<BudgetHold, Unheld>> + Send + Sync + 'a;

/// What pays for one call. Most calls have no budget.
#[derive(Debug, Clone)]
pub struct CallBudget {
    source: Arc<Budgets>,
    model: ModelId,
    budgets: Vec<Budget>,
    bound_usd: f64,
}

impl CallBudget {
    /// Fails what a budget refused a moment ago, before it takes quota.
    ///
    /// # Errors
    /// `BudgetExceeded`, or `QuotaWait` while calls under way may give something back.
    pub fn check(&self) -> Result<(), Failure> {
        let refused =
            self.budgets.iter().find_map(|budget| self.source.remembered(budget, self.bound_usd));
        refused.map_or(Ok(()), |refused| Err(Failure::over_budget(&refused)))
    }

    /// Holds in every budget what the call may cost, under the name of its attempt: in all of them
    /// or in none.
    ///
    /// # Errors
    /// `BudgetExceeded` when one is spent; `QuotaWait` while calls under way may give something
    /// back, or what was spent is lost; `Transient` when Redis cannot be asked.
    pub async fn hold(&self, attempt: &Attempt, reservation: &str) -> Result<BudgetHolds, Failure> {
        let lease = self.source.lease.unwrap_or(LEASE);
        let reserve = |budget| self.source.reserve(budget, reservation, self.bound_usd, lease);
        let held = try_join_all(self.budgets.iter().map(reserve)).await;
        let holds = held.inspect_err(|failure| {
            if failure.is_retried() {
                attempt.deferred(None);
            }
        })?;
        Ok(BudgetHolds { call_budget: self.clone(), holds })
    }
}

/// What is held for one call. Dropped before it is sent, everything is given back; after it,
/// everything stays charged.
#[derive(Debug)]
#[must_use = "holds that are dropped are given back"]
pub struct BudgetHolds {
    call_budget: CallBudget,
    holds: Vec<BudgetHold>,
}

impl BudgetHolds {
    /// The request is about to leave: from here on it may have to be paid.
    pub fn sent(&mut self) {
        self.holds.iter_mut().for_each(BudgetHold::sent);
    }

    /// What this much costs, in US dollars, where that is known.
    pub(crate) fn cost_usd(&self, usage: &Usage) -> Option<f64> {
        self.call_budget.source.cost_usd(&self.call_budget.model, usage)
    }

    /// The call is over and used this much; unknown use is charged with what was held, and nobody
    /// waits for it to come back.
    pub fn settle(self, usage: Option<&Usage>) -> impl Future<Output = ()> + use<> {
        let cost_usd = usage.and_then(|usage| self.cost_usd(usage));
        let cost_usd = cost_usd.unwrap_or(self.call_budget.bound_usd);
        let settlements = join_all(self.holds.into_iter().map(move |hold| hold.settle(cost_usd)));
        async move {
            settlements.await;
        }
    }

    /// The call failed.
    pub async fn settle_failure(self, charged: &Charged) {
        match charged {
            Charged::No => self.settle(Some(&Usage::default())).await,
            Charged::Usage(usage) => self.settle(Some(usage)).await,
            Charged::Unknown => self.settle(None).await,
        }
    }
}
