//! Checkpoints of budgets outside Redis: `[storage] state`.
//!
//! `<state>/budgets/<payer>/<day>/<generation>.json` states the maximum that may be spent before
//! the next checkpoint is written. Objects are only created, never replaced, so that any store
//! suffices and workers need no agreement. The newest one counts; spending beyond it waits for the
//! next. After a loss of Redis, the newest checkpoint's maximum counts as spent.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_calls::budget::{self, Reserve};
use tidegate_quota::{
    Budget, Budgets,
    budget::{BudgetHold, Checkpoint, Payer, Unheld},
};
use tidegate_types::seconds_since_1970;
use tracing::{info, warn};

use crate::{
    failure::Failure,
    fingerprint::hash,
    storage::{self, Entry, Location},
};

/// Interval between checkpoints of each budget in use, apart from those that a call waits for.
const EVERY: Duration = Duration::from_secs(10);

/// Share of a budget that may be spent between two checkpoints. At most this share is lost after a
/// loss of Redis.
const PART: f64 = 0.05;

/// Minimum number of calls that fit between two checkpoints.
const CALLS: f64 = 4.0;

/// Maximum tries of one call, while other calls use up each new checkpoint.
const MAX_ASKED: u32 = 5;

/// The content of one object.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    /// For people only.
    payer: String,
    /// The most that may have been spent before the next checkpoint.
    ceiling_usd: f64,
    /// Spent and held, in US dollars, when it was written. For people only.
    spent_usd: f64,
    /// Seconds since 1970. For people only.
    at: u64,
}

/// The checkpoints of one fleet.
#[derive(Debug)]
pub struct Checkpoints {
    folder: Location,
    ledger: Budgets,
    /// Serializes the writes of this worker.
    turn: tokio::sync::Mutex<()>,
    /// Budgets used since their last checkpoint, with the largest amount in US dollars that a call
    /// needed.
    used: Mutex<HashMap<Payer, (Budget, f64)>>,
    /// The newest that this worker has written.
    written: Mutex<HashMap<Payer, Location>>,
}

impl Checkpoints {
    /// Checkpoints in this folder, of the budgets in `ledger`.
    pub fn new(folder: Location, ledger: Budgets) -> Self {
        let (turn, used, written) = Default::default();
        Self { folder: folder.child("budgets"), ledger, turn, used, written }
    }

    /// Restores a budget that is missing from Redis, with its newest checkpoint as the amount
    /// spent.
    async fn find(&self, budget: &Budget, day: u64) -> Result<(), Failure> {
        let folder = self.folder(&budget.payer, day);
        let mut newest: Option<Location> = None;
        let look = |entry| {
            if let Entry::Object(object, _) = entry
                && newest.as_ref().is_none_or(|newest| newest.name() < object.name())
            {
                newest = Some(object);
            }
        };
        folder.entries(look).await.map_err(|error| unread(&error))?;
        let spent_usd = match &newest {
            Some(object) => {
                let bytes = object.read().await.map_err(|error| unread(&error))?;
                let stored: Stored = serde_json::from_slice(&bytes)
                    .map_err(|error| Failure::transient(format!("{object} is damaged: {error}")))?;
                warn!(
                    payer = %budget.payer, spent_usd = stored.ceiling_usd,
                    "Redis has lost what was spent of a budget; the last checkpoint counts as spent"
                );
                stored.ceiling_usd
            }
            None => 0.0,
        };
        self.ledger.open(&budget.payer, spent_usd, true).await.map_err(Unheld::from)?;
        Ok(())
    }

    async fn write(&self, budget: &Budget, usd: f64) -> Result<(), Fault> {
        let more = (budget.usd * PART).max(usd * CALLS);
        let Some(checkpoint) = self.ledger.begin_checkpoint(budget, more).await? else {
            return Ok(());
        };
        let Checkpoint { ceiling_usd, spent_usd, generation, day } = checkpoint;
        let at = seconds_since_1970(SystemTime::now());
        let payer = budget.payer.to_string();
        let stored = Stored { payer, ceiling_usd, spent_usd, at };
        let object = self.folder(&budget.payer, day).child(&format!("{generation:020}.json"));
        object.write(serde_json::to_vec(&stored).unwrap_or_default()).await?;
        self.ledger.end_checkpoint(budget, &checkpoint).await?;
        let before = self.written.lock().insert(budget.payer.clone(), object);
        if let Some(before) = before
            && let Err(error) = before.delete().await
        {
            info!(%error, "an old checkpoint stays behind");
        }
        Ok(())
    }

    /// Returns the folder, named by a hash of the payer, because a batch's id may contain any
    /// characters.
    fn folder(&self, payer: &Payer, day: u64) -> Location {
        let (kind, name) = match payer {
            Payer::Tenant(tenant) => ("tenant", tenant.as_str()),
            Payer::Batch(batch) => ("batch", batch.as_str()),
        };
        let folder = format!("{kind}-{:016x}", hash([name.as_bytes()]));
        self.folder.child(&folder).child(&day.to_string())
    }

    async fn write_all(&self) {
        let used = std::mem::take(&mut *self.used.lock());
        for (budget, usd) in used.into_values() {
            let _turn = self.turn.lock().await;
            if let Err(error) = self.write(&budget, usd).await {
                warn!(%error, payer = %budget.payer, "a checkpoint of a budget could not be written");
                self.used.lock().entry(budget.payer.clone()).or_insert((budget, usd));
            }
        }
    }
}

impl budget::Checkpoints for Checkpoints {
    fn renewing<'a>(
        &'a self,
        budget: &'a Budget,
        usd: f64,
        mut held: Result<BudgetHold, Unheld>,
        reserve: &'a Reserve<'a>,
    ) -> BoxFuture<'a, Result<Result<BudgetHold, Unheld>, Failure>> {
        Box::pin(async move {
            self.used.lock().insert(budget.payer.clone(), (budget.clone(), usd));
            for asked in 0..MAX_ASKED {
                let unsaved = match &held {
                    Err(Unheld::Unsaved(_)) => true,
                    Err(Unheld::Lost { .. }) => false,
                    _ => break,
                };
                let _turn = self.turn.lock().await;
                // Another worker may have written one in the meantime.
                if unsaved && asked == 0 {
                    held = reserve().await;
                    if !matches!(held, Err(Unheld::Unsaved(_))) {
                        continue;
                    }
                }
                match held {
                    Err(Unheld::Lost { day, .. }) => self.find(budget, day).await?,
                    _ => self.write(budget, usd).await.map_err(|error| unwritten(&error))?,
                }
                held = reserve().await;
            }
            Ok(held)
        })
    }

    fn keep<'a>(&'a self, mut stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut beat = tokio::time::interval(EVERY);
            beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = &mut stop => break,
                    _ = beat.tick() => self.write_all().await,
                }
            }
            self.write_all().await;
        })
    }
}

/// The reason why no checkpoint was written.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Redis(#[from] tidegate_quota::Error),
    #[error(transparent)]
    Store(#[from] storage::Error),
}

fn unwritten(error: &Fault) -> Failure {
    Failure::transient(format!(
        "no call is made while its cost cannot be written to [storage] state: {error}"
    ))
}

fn unread(error: &storage::Error) -> Failure {
    Failure::transient(format!(
        "no call is made while earlier costs cannot be read from [storage] state: {error}"
    ))
}
