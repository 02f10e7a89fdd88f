//! What is known of a budget beside Redis, so that it outlives what Redis loses.
//!
//! A checkpoint says how much may have been spent before the next one: the ceiling. It is written
//! first, and then in force; no call is held beyond it. So the newest one never says less than was
//! spent.

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
    /// US dollars that may be spent before the next one.
    pub ceiling_usd: f64,
    /// US dollars that were spent and held as it began.
    pub spent_usd: f64,
    /// Newer ones have larger numbers, also after a loss.
    pub generation: u64,
    /// The day that it is for, counted from 1970-01-01; 0 without days.
    pub day: u64,
}

impl Budgets {
    /// Opens a budget of which this much has been spent, unless it is there; whether it was not.
    /// Where checkpoints are kept, one is due before the first call.
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

    /// Says how much has been spent of a budget, beside what calls under way hold.
    ///
    /// # Errors
    /// Redis is away.
    pub async fn set_spent(&self, payer: &Payer, spent_usd: f64) -> Result<(), Error> {
        self.write(payer, nanos(spent_usd), MAX_NANOS, true).await.map(drop)
    }

    /// US dollars of the budget that are spent, or held by calls under way; a tenant's of today.
    ///
    /// # Errors
    /// Redis is away.
    pub async fn spent(&self, payer: &Payer) -> Result<f64, Error> {
        let store = &self.ledger()?.store;
        let mut get = redis::cmd("HMGET");
        get.arg(key(store, payer)).arg("spent").arg("day");
        let (spent, day): (Option<i64>, Option<u64>) = store.connection.command(&get).await?;
        let today = seconds_since_1970(SystemTime::now());
        // What was spent on another day is not of today.
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
        let [done] = wire::integers(&reply)?;
        Ok(done == 1)
    }

    /// Begins a checkpoint that lets `more_usd` be spent beyond what is spent and held now. To be
    /// written, and then given to [`Self::end_checkpoint`]. `None` for a budget that is not there.
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

    /// The checkpoint has been written: from here on its ceiling holds, unless a newer one has begun.
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
        wire::integers(&store.run(&store.scripts.budget_checkpoint, &keys, &arguments).await?)
    }
}
