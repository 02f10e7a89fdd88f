//! What pays for a document's call: its tenant's budget of the day, its batch's, both, or neither.
//!
//! Only a call that a budget applies to asks anything of Redis.

use std::collections::HashMap;

use chrono::Utc;
use futures::future::{join_all, try_join_all};
use tidegate_providers::{Charged, Prices};
use tidegate_quota::{
    Budget, Request,
    budget::{BudgetRefused, Hold, Payer, Unheld},
};
use tidegate_types::{ModelId, Tenant, Usage};
use tidegate_workflows::contract::Job;

use crate::{
    call::attempt::Attempt,
    call::health::Cooldown,
    failure::{BUDGET_REFUSED, Failure},
    metrics,
};

/// The budgets that this worker knows.
#[derive(Debug, Default)]
pub struct Budgets {
    ledger: tidegate_quota::Budgets,
    daily_usd: HashMap<Tenant, f64>,
    prices: Prices,
    refused: Cooldown<Payer, BudgetRefused>,
}

impl Budgets {
    /// `daily_usd` is what each tenant with a budget may spend in a day (UTC), in US dollars.
    #[must_use]
    pub fn new(
        ledger: tidegate_quota::Budgets,
        daily_usd: HashMap<Tenant, f64>,
        prices: Prices,
    ) -> Self {
        Self { ledger, daily_usd, prices, refused: Cooldown::default() }
    }

    /// Whether the budgets of a batch can be kept.
    ///
    /// # Errors
    /// `InvalidInput` when there are some and one of the models has no price.
    pub fn check<'a>(
        &self,
        job: &Job,
        models: impl IntoIterator<Item = &'a ModelId>,
        batch: &str,
    ) -> Result<(), Failure> {
        let budgets = self.applying(&job.tenant, batch, job.budget_usd);
        models
            .into_iter()
            .try_for_each(|model| self.bound(&budgets, model, &Usage::default()).map(drop))
    }

    /// What pays for one call of a document. `batch_usd` is what its batch may spend in all, in US
    /// dollars.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn call_budget<'a>(
        &'a self,
        attempt: &Attempt,
        request: &'a Request,
        batch_usd: Option<f64>,
    ) -> Result<CallBudget<'a>, Failure> {
        let budgets = self.applying(&request.tenant, &attempt.batch, batch_usd);
        let usage = Usage {
            uncached_input: request.input_tokens,
            output: request.likely(),
            ..Usage::default()
        };
        let bound_usd = self.bound(&budgets, &request.model, &usage)?;
        Ok(CallBudget { source: self, request, budgets, bound_usd })
    }

    /// Holds what a batch of the provider's may cost, in every budget that applies or in none. It
    /// stays held until [`Self::settle_batch`]; `id` names the batch and no other.
    ///
    /// # Errors
    /// `BudgetExceeded` when one has too little left; `Transient` when Redis cannot be asked.
    pub async fn hold_batch(
        &self,
        job: &Job,
        batch: &str,
        id: &str,
        usd: f64,
    ) -> Result<(), Failure> {
        let budgets = self.applying(&job.tenant, batch, job.budget_usd);
        let reserve = |budget| self.ledger.reserve(budget, id, usd);
        let mut holds = try_join_all(budgets.iter().map(reserve)).await?;
        holds.iter_mut().for_each(Hold::sent);
        Ok(())
    }

    /// What a batch of the provider's has cost.
    pub async fn settle_batch(&self, job: &Job, batch: &str, id: &str, cost_usd: f64) {
        let budgets = self.applying(&job.tenant, batch, job.budget_usd);
        let holds = budgets.iter().filter_map(|budget| self.ledger.held(budget, id));
        join_all(holds.map(|hold| hold.settle(cost_usd))).await;
    }

    fn applying(&self, tenant: &Tenant, batch: &str, batch_usd: Option<f64>) -> Vec<Budget> {
        let daily = self.daily_usd.get(tenant).map(|usd| Budget::daily(tenant.clone(), *usd));
        daily.into_iter().chain(batch_usd.map(|usd| Budget::of_batch(batch, usd))).collect()
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
        let length = refused.reset.map_or(BUDGET_REFUSED, |reset| reset.min(BUDGET_REFUSED));
        self.refused.remember(refused.payer.clone(), refused.clone(), length);
    }

    /// What `budget` would say again, if it lately refused as much.
    fn remembered(&self, budget: &Budget, needed_usd: f64) -> Option<BudgetRefused> {
        let refused = self.refused.get(&budget.payer)?;
        let stands = refused.budget_usd >= budget.usd && refused.left_usd < needed_usd;
        stands.then_some(BudgetRefused { needed_usd, ..refused })
    }
}

/// What pays for one call. Most calls have no budget.
#[derive(Debug)]
pub struct CallBudget<'a> {
    source: &'a Budgets,
    request: &'a Request,
    budgets: Vec<Budget>,
    bound_usd: f64,
}

impl CallBudget<'_> {
    /// Fails what a budget refused a moment ago, before it takes quota.
    ///
    /// # Errors
    /// `BudgetExceeded`.
    pub fn check(&self) -> Result<(), Failure> {
        let refused =
            self.budgets.iter().find_map(|budget| self.source.remembered(budget, self.bound_usd));
        refused.map_or(Ok(()), |refused| Err(Failure::over_budget(&refused)))
    }

    /// Holds in every budget what the call may cost: in all of them or in none.
    ///
    /// # Errors
    /// `BudgetExceeded` when one has too little left; `Transient` when Redis cannot be asked.
    pub async fn hold(&self, attempt: &Attempt) -> Result<BudgetHolds<'_>, Failure> {
        let reserve =
            |budget| self.source.ledger.reserve(budget, &self.request.reservation, self.bound_usd);
        match try_join_all(self.budgets.iter().map(reserve)).await {
            Ok(holds) => {
                for (budget, hold) in self.budgets.iter().zip(&holds) {
                    metrics::budget_left(&budget.payer, hold.left_usd);
                }
                Ok(BudgetHolds { call_budget: self, holds })
            }
            Err(unheld) => {
                match &unheld {
                    Unheld::Refused(refused) => {
                        metrics::budget_left(&refused.payer, refused.left_usd);
                        self.source.remember(refused);
                    }
                    Unheld::Unknown(_) => attempt.deferred(None),
                }
                Err(unheld.into())
            }
        }
    }
}

/// What is held for one call. Dropped before it is sent, everything is given back; after it,
/// everything stays charged.
#[derive(Debug)]
#[must_use = "holds that are dropped are given back"]
pub struct BudgetHolds<'a> {
    call_budget: &'a CallBudget<'a>,
    holds: Vec<Hold>,
}

impl BudgetHolds<'_> {
    /// The request is about to leave: from here on it may have to be paid.
    pub fn sent(&mut self) {
        self.holds.iter_mut().for_each(Hold::sent);
    }

    /// What this much costs, in US dollars, where that is known.
    pub(crate) fn cost_usd(&self, usage: &Usage) -> Option<f64> {
        self.call_budget.source.cost_usd(&self.call_budget.request.model, usage)
    }

    /// The call is over and used this much; unknown use stays charged with what was held.
    pub async fn settle(self, usage: Option<&Usage>) {
        let cost_usd = usage.and_then(|usage| self.cost_usd(usage));
        if let Some(cost_usd) = cost_usd {
            join_all(self.holds.into_iter().map(|hold| hold.settle(cost_usd))).await;
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
