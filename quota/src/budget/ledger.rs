//! The budgets of a fleet in Redis, and holds in them.

use std::{sync::Arc, time::Duration};

use tracing::warn;

use super::{Budget, BudgetRefused, Payer, Unheld};
use crate::{error::Error, key, redis_store::Store, wire};

/// Nano-dollars of a dollar: the unit of the wire protocol. A token at 0.01 USD per million tokens
/// costs 10 of them.
const NANOS: f64 = 1e9;

/// The maximum that the scripts count exactly, some nine million dollars. A larger budget is stored
/// as this.
pub(super) const MAX_NANOS: u64 = (1 << 53) - 1;

/// The budgets of a fleet. Cheap to clone; clones share the budgets.
#[derive(Debug, Clone, Default)]
pub struct Budgets(Option<Arc<Ledger>>);

/// The store of the budgets.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) store: Store,
}

/// The lease of a hold: the longest call by default, and a minute. A later settlement is not
/// expected.
const LEASE: Duration = Duration::from_secs(660);

impl Budgets {
    /// Creates them. Without a store every reservation fails.
    pub fn new(store: Option<Store>) -> Self {
        Self(store.map(|store| Arc::new(Ledger { store })))
    }

    /// Holds `usd` US dollars for one call. `id` is unique to this attempt. Asking again under the
    /// same id after a lost reply costs nothing.
    ///
    /// Dropping the future releases a hold that it may have made.
    ///
    /// # Errors
    /// [`Unheld::Refused`] when the budget has less left; [`Unheld::Unknown`] when Redis cannot be
    /// asked: then no call may be made.
    pub async fn reserve(&self, budget: &Budget, id: &str, usd: f64) -> Result<BudgetHold, Unheld> {
        self.reserve_for(budget, id, usd, LEASE).await
    }

    /// Like [`Self::reserve`], for a call that takes up to `lease`. After it, the held amount
    /// counts as spent, so that no other call waits for it.
    ///
    /// # Errors
    /// The errors of [`Self::reserve`]; [`Unheld::Lost`] where a budget that was opened is not there;
    /// [`Unheld::Unsaved`] where a checkpoint is due.
    pub async fn reserve_for(
        &self,
        budget: &Budget,
        id: &str,
        usd: f64,
        lease: Duration,
    ) -> Result<BudgetHold, Unheld> {
        let ledger = self.ledger()?;
        let payer = || budget.payer.clone();
        let mut hold =
            BudgetHold::new(Arc::clone(ledger), key(&ledger.store, &budget.payer), id.to_owned());
        let [outcome, left, reset, returning, day] =
            ledger.reserve(&hold, budget, usd, lease).await?;
        hold.left_usd = dollars(left);
        let reset = Duration::from_micros(wire::unsigned(reset));
        hold.reset = matches!(budget.payer, Payer::Tenant(_)).then_some(reset);
        if outcome == 1 {
            return Ok(hold);
        }
        let reset = hold.reset;
        hold.forget();
        Err(match outcome {
            2 => Unheld::Lost { payer: payer(), day: wire::unsigned(day) },
            3 => Unheld::Unsaved(payer()),
            _ => Unheld::Refused(BudgetRefused {
                payer: payer(),
                budget_usd: budget.usd,
                left_usd: dollars(left),
                needed_usd: usd,
                returning_usd: dollars(returning),
                reset,
            }),
        })
    }

    pub(super) fn ledger(&self) -> Result<&Arc<Ledger>, Error> {
        self.0.as_ref().ok_or_else(|| Error::Away("this limiter has none".to_owned()))
    }

    /// The hold of another process with this id, for the process that learns the cost of the call.
    /// Sends nothing. `None` without a store.
    #[must_use]
    pub fn adopt_hold(&self, budget: &Budget, id: &str) -> Option<BudgetHold> {
        let ledger = self.0.as_ref()?;
        let mut hold =
            BudgetHold::new(Arc::clone(ledger), key(&ledger.store, &budget.payer), id.to_owned());
        hold.sent();
        Some(hold)
    }
}

/// Part of a budget, held for one call. Settle it with the cost of the call.
///
/// * Dropped before [`Self::sent`]: given back, nothing was spent.
/// * Dropped after it: stays charged, because the provider may have to be paid.
#[derive(Debug)]
#[must_use = "a hold that is dropped is given back"]
pub struct BudgetHold {
    /// US dollars that were left in the budget when this was held.
    pub left_usd: f64,
    /// Time until the budget begins anew; `None` if it never does.
    pub reset: Option<Duration>,
    ledger: Arc<Ledger>,
    key: String,
    id: String,
    returns: bool,
}

impl BudgetHold {
    /// Created before the script call, so that its hold is released with any outcome of the call.
    fn new(ledger: Arc<Ledger>, key: String, id: String) -> Self {
        Self { left_usd: 0.0, reset: None, ledger, key, id, returns: true }
    }

    /// Drops the hold without a release.
    fn forget(mut self) {
        self.returns = false;
    }

    /// Marks the call as sent. Call this before the request leaves: from then on the call may have
    /// to be paid.
    pub fn sent(&mut self) {
        self.returns = false;
    }

    /// Settles the call at this many US dollars. While Redis is away, the held amount stays
    /// charged.
    pub async fn settle(mut self, cost_usd: f64) {
        self.returns = false;
        let (key, id) = (std::mem::take(&mut self.key), std::mem::take(&mut self.id));
        if let Err(error) = self.ledger.settle(key, id, cost_usd).await {
            warn!(%error, "a call's cost could not be settled; its budget stays charged with the most that it should cost");
        }
    }

    /// Settles the call at nothing.
    pub async fn release(self) {
        self.settle(0.0).await;
    }

    /// Keeps the held amount charged: the cost is unknown (a time-out, a dropped connection).
    pub fn keep_charged(self) {
        self.forget();
    }
}

impl Drop for BudgetHold {
    fn drop(&mut self) {
        // Outside a runtime no request can be sent; the hold then stays charged.
        if self.returns
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let ledger = Arc::clone(&self.ledger);
            let (key, id) = (std::mem::take(&mut self.key), std::mem::take(&mut self.id));
            runtime.spawn(async move {
                if let Err(error) = ledger.settle(key, id, 0.0).await {
                    warn!(%error, "a call that was never sent could not be given back to its budget, and stays charged");
                }
            });
        }
    }
}

impl Ledger {
    async fn reserve(
        &self,
        hold: &BudgetHold,
        budget: &Budget,
        usd: f64,
        lease: Duration,
    ) -> Result<[i64; 5], Error> {
        let lease = u64::try_from(lease.as_micros()).unwrap_or(MAX_NANOS).min(MAX_NANOS);
        let (daily, opened) = (daily(&budget.payer), u64::from(budget.opened));
        let numbers = [nanos(usd), nanos(budget.usd), daily, self.store.clock(), lease, opened];
        let mut arguments = vec![hold.id.as_bytes().to_vec()];
        arguments.extend(numbers.map(|number| number.to_string().into_bytes()));
        let keys = [hold.key.clone()];
        wire::read_integers(
            &self.store.run(&self.store.scripts.budget_reserve, &keys, &arguments).await?,
        )
    }

    async fn settle(&self, key: String, id: String, cost_usd: f64) -> Result<(), Error> {
        let arguments = [id.into_bytes(), nanos(cost_usd).to_string().into_bytes()];
        self.store.run(&self.store.scripts.budget_settle, &[key], &arguments).await.map(drop)
    }
}

/// The script's argument: 1 for a budget of a day.
pub(super) fn daily(payer: &Payer) -> u64 {
    u64::from(matches!(payer, Payer::Tenant(_)))
}

pub(super) fn key(store: &Store, payer: &Payer) -> String {
    match payer {
        Payer::Tenant(tenant) => key::tenant_budget(&store.prefix, tenant),
        Payer::Batch(batch) => key::batch_budget(&store.prefix, batch),
    }
}

/// Rounds to the nearest, so that three times 0.1 fit into 0.3.
// The cast saturates.
pub(super) fn nanos(usd: f64) -> u64 {
    ((usd * NANOS).round() as u64).min(MAX_NANOS)
}

pub(super) fn dollars(nanos: i64) -> f64 {
    nanos as f64 / NANOS
}
