//! Checkpoints of a budget outside Redis, which survive a loss in Redis.
//!
//! A checkpoint has a ceiling: the maximum that may be spent before the next checkpoint. It is
//! written first and in force after that; no call is held beyond it. So the newest checkpoint is
//! never below the amount spent.

use std::time::SystemTime;

use tidegate_types::seconds_since_1970;

use super::{
    Budget, Budgets, Payer,
    ledger::{MAX_NANOS, daily, dollars, key, nanos},
};
use crate::{error::Error, wire};

/// A checkpoint to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint {
    /// The ceiling in US dollars.
    pub ceiling_usd: f64,
    /// US dollars that were spent or held when it began.
    pub spent_usd: f64,
    /// Grows with each checkpoint, also after a loss.
    pub generation: u64,
    /// The budget's day, counted from 1970-01-01; 0 without days.
    pub day: u64,
}

impl Budgets {
    /// Opens a budget with `spent_usd` US dollars spent, unless it exists. Returns true if it was
    /// opened. With `checkpoints`, one is due before the first call.
    ///
    /// # Errors
    /// Redis is away.
    pub async fn open(
        &self,
        payer: &Payer,
        spent_usd: f64,
        checkpoints: bool,
    ) -> Result<bool, Error> {
        let ceiling = if checkpoints { nanos(spent_usd) } else { MAX_NANOS };
        self.write(payer, nanos(spent_usd), ceiling, false).await
    }

    /// Sets the spending of a budget, in US dollars, apart from the holds of calls under way.
    ///
    /// # Errors
    /// Redis is away.
    pub async fn set_spent(&self, payer: &Payer, spent_usd: f64) -> Result<(), Error> {
        self.write(payer, nanos(spent_usd), MAX_NANOS, true).await.map(drop)
    }

    /// US dollars of the budget that are spent or held; for a tenant, today's.
    ///
    /// # Errors
    /// Redis is away.
    pub async fn spent(&self, payer: &Payer) -> Result<f64, Error> {
        let store = &self.ledger()?.store;
        let mut get = redis::cmd("HMGET");
        get.arg(key(store, payer)).arg("spent").arg("day");
        let (spent, day): (Option<i64>, Option<u64>) = store.connection.command(&get).await?;
        let today = seconds_since_1970(SystemTime::now());
        // An earlier day's spending does not count today.
        let is_past = daily(payer) == 1 && day.unwrap_or_default() < today / 86_400;
        Ok(if is_past { 0.0 } else { dollars(spent.unwrap_or_default()) })
    }

    async fn write(
        &self,
        payer: &Payer,
        spent: u64,
        ceiling: u64,
        overwrite: bool,
    ) -> Result<bool, Error> {
        let store = &self.ledger()?.store;
        let numbers = [spent, ceiling, daily(payer), u64::from(overwrite), store.clock()];
        let arguments = numbers.map(|number| number.to_string().into_bytes());
        let keys = [key(store, payer)];
        let reply = store.run(&store.scripts.budget_open, &keys, &arguments).await?;
        let [done] = wire::read_integers(&reply)?;
        Ok(done == 1)
    }

    /// Begins a checkpoint that allows `more_usd` US dollars beyond the amounts spent and held now.
    /// Write it, then pass it to [`Self::end_checkpoint`]. `None` if the budget does not exist.
    ///
    /// # Errors
    /// Redis is away.
    pub async fn begin_checkpoint(
        &self,
        budget: &Budget,
        more_usd: f64,
    ) -> Result<Option<Checkpoint>, Error> {
        let [done, ceiling, generation, spent, day] =
            self.checkpoint(budget, 0, nanos(more_usd)).await?;
        Ok((done == 1).then(|| Checkpoint {
            ceiling_usd: dollars(ceiling),
            spent_usd: dollars(spent),
            generation: wire::unsigned(generation),
            day: wire::unsigned(day),
        }))
    }

    /// Puts the ceiling of a written checkpoint in force, unless a newer one has begun.
    ///
    /// # Errors
    /// Redis is away.
    pub async fn end_checkpoint(
        &self,
        budget: &Budget,
        checkpoint: &Checkpoint,
    ) -> Result<(), Error> {
        let ceiling = nanos(checkpoint.ceiling_usd);
        self.checkpoint(budget, checkpoint.generation, ceiling).await.map(drop)
    }

    async fn checkpoint(
        &self,
        budget: &Budget,
        generation: u64,
        amount: u64,
    ) -> Result<[i64; 5], Error> {
        let store = &self.ledger()?.store;
        let numbers = [generation, amount, nanos(budget.usd), daily(&budget.payer), store.clock()];
        let arguments = numbers.map(|number| number.to_string().into_bytes());
        let keys = [key(store, &budget.payer)];
        wire::read_integers(&store.run(&store.scripts.budget_checkpoint, &keys, &arguments).await?)
    }
}
