//! Budgets in US dollars: what a tenant may spend in a day, and what a batch may spend in all.
//!
//! A call is held at the most that it should cost before it is made, and settled at what it did
//! cost. So concurrent calls cannot overspend together; a budget is exceeded only by what a single
//! call cost beyond its bound. Quota carries on while Redis is away, budgets do not: what nobody
//! counts may not be spent.
//!
//! ```no_run
//! # async fn call() -> f64 { 0.01 }
//! # async fn example(budgets: tidegate_quota::Budgets) -> Result<(), tidegate_quota::budget::Unheld> {
//! use tidegate_quota::Budget;
//!
//! let budget = Budget::daily("acme".to_owned().try_into().expect("a name"), 10.0);
//! let mut hold = budgets.reserve(&budget, "job-7/attempt-1", 0.04).await?; // one Redis round trip
//! hold.sent(); //                                                             from here on it may have to be paid
//! let cost_usd = call().await;
//! hold.settle(cost_usd).await; //                                             one Redis round trip
//! # Ok(())
//! # }
//! ```

mod hold;
mod refused;

use std::{fmt, sync::Arc, time::Duration};

use tidegate_types::Tenant;

use crate::{error::Error, key, redis_store::Store, wire};

pub use hold::Hold;
pub use refused::{BudgetRefused, Unheld};

/// The wire protocol counts in nano-dollars: a token at 0.01 USD per million tokens costs 10 of
/// them.
const NANOS: f64 = 1e9;

/// The most that the scripts count exactly, some nine million dollars. A larger budget is kept as
/// this.
const MAX_NANOS: u64 = (1 << 53) - 1;

/// Who must not spend more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Payer {
    /// A tenant, in each day from 00:00 UTC.
    Tenant(Tenant),
    /// A batch by its workflow id, over all its runs.
    Batch(String),
}

impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(tenant) => write!(f, "tenant \"{tenant}\""),
            Self::Batch(batch) => write!(f, "batch \"{batch}\""),
        }
    }
}

/// How much somebody may spend.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Who.
    pub payer: Payer,
    /// US dollars. All callers should give the same; whoever gives less is refused sooner.
    pub usd: f64,
}

impl Budget {
    /// What a tenant may spend in a day (UTC).
    #[must_use]
    pub fn daily(tenant: Tenant, usd: f64) -> Self {
        Self { payer: Payer::Tenant(tenant), usd }
    }

    /// What a batch may spend in all. Forgotten 30 days after its last call.
    #[must_use]
    pub fn of_batch(workflow_id: impl Into<String>, usd: f64) -> Self {
        Self { payer: Payer::Batch(workflow_id.into()), usd }
    }
}

/// The budgets of a fleet. Cheap to clone; every clone is the same.
#[derive(Debug, Clone, Default)]
pub struct Budgets(Option<Arc<Ledger>>);

/// Where the budgets lie.
#[derive(Debug)]
struct Ledger {
    store: Store,
}

impl Budgets {
    /// Without a store every budget is closed.
    #[must_use]
    pub fn new(store: Option<Store>) -> Self {
        Self(store.map(|store| Arc::new(Ledger { store })))
    }

    /// Holds up to `usd` US dollars for one call. `id` names this attempt and no other; asking
    /// again under the same id after a lost reply costs nothing.
    ///
    /// Dropping the future gives back what it may have held.
    ///
    /// # Errors
    /// [`Unheld::Refused`] when the budget has less left; [`Unheld::Unknown`] when Redis cannot be
    /// asked: then no call may be made.
    pub async fn reserve(&self, budget: &Budget, id: &str, usd: f64) -> Result<Hold, Unheld> {
        let ledger =
            self.0.as_ref().ok_or_else(|| Error::Away("this limiter has none".to_owned()))?;
        let mut hold =
            Hold::new(Arc::clone(ledger), key(&ledger.store, &budget.payer), id.to_owned());
        let [held, left, reset] = ledger.reserve(&hold, budget, usd).await?;
        hold.left_usd = dollars(left);
        if held == 1 {
            return Ok(hold);
        }
        hold.forget();
        Err(Unheld::Refused(BudgetRefused {
            payer: budget.payer.clone(),
            budget_usd: budget.usd,
            left_usd: dollars(left),
            needed_usd: usd,
            reset: matches!(budget.payer, Payer::Tenant(_))
                .then(|| Duration::from_micros(wire::unsigned(reset))),
        }))
    }
}

impl Budgets {
    /// What another process holds under this id: to be settled by whoever learns what the call
    /// cost. Nothing is asked.
    #[must_use]
    pub fn held(&self, budget: &Budget, id: &str) -> Option<Hold> {
        let ledger = self.0.as_ref()?;
        let mut hold =
            Hold::new(Arc::clone(ledger), key(&ledger.store, &budget.payer), id.to_owned());
        hold.sent();
        Some(hold)
    }
}

impl Ledger {
    async fn reserve(&self, hold: &Hold, budget: &Budget, usd: f64) -> Result<[i64; 3], Error> {
        let daily = u64::from(matches!(budget.payer, Payer::Tenant(_)));
        let numbers = [nanos(usd), nanos(budget.usd), daily, self.store.clock()];
        let mut arguments = vec![hold.id().as_bytes().to_vec()];
        arguments.extend(numbers.map(|number| number.to_string().into_bytes()));
        let keys = [hold.key().to_owned()];
        wire::integers(
            &self.store.run(&self.store.scripts().budget_reserve, &keys, &arguments).await?,
        )
    }

    async fn settle(&self, key: String, id: String, cost_usd: f64) -> Result<(), Error> {
        let arguments = [id.into_bytes(), nanos(cost_usd).to_string().into_bytes()];
        self.store.run(&self.store.scripts().budget_settle, &[key], &arguments).await.map(drop)
    }
}

fn key(store: &Store, payer: &Payer) -> String {
    match payer {
        Payer::Tenant(tenant) => key::tenant_budget(store.prefix(), tenant),
        Payer::Batch(batch) => key::batch_budget(store.prefix(), batch),
    }
}

/// The nearest, so that three times 0.1 fit into 0.3.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn nanos(usd: f64) -> u64 {
    ((usd * NANOS).round() as u64).min(MAX_NANOS)
}

#[expect(clippy::cast_precision_loss, reason = "replies lie below 2^53")]
fn dollars(nanos: i64) -> f64 {
    nanos as f64 / NANOS
}
