//! Holds and releases batches and models, and reads the holds.

use std::time::{Duration, Instant, SystemTime};

use tidegate_types::{ModelId, seconds_since_1970};
use tracing::info;

use crate::{
    dimension::{Change, PerLimit},
    error::Error,
    key,
    operator_holds::{BATCH, EVERY, HeldBatch, LIMITS, MODEL, OperatorHolds},
    quota::Quota,
    redis_store,
};

/// Life of the hash after the last read.
const LIVES: Duration = Duration::from_secs(30 * 86_400);

/// Factor by which checks are rarer while idle.
const IDLE: u32 = 5;

impl Quota {
    /// Holds a run of a batch, or releases it. After [`EVERY`] and a moment no worker starts a call
    /// of a held run. `run` is unique to the run. Without a Redis this affects this process only.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn hold_batch(&self, run: &str, batch: &str, hold: bool) -> Result<(), Error> {
        let held =
            HeldBatch { batch: batch.to_owned(), since: seconds_since_1970(SystemTime::now()) };
        let value = hold.then(|| held.to_string());
        {
            let mut all = self.shared.holds.held.lock();
            if hold {
                all.batches.insert(run.to_owned(), held);
            } else {
                all.batches.remove(run);
            }
        }
        self.write(&format!("{BATCH}{run}"), value.as_deref()).await
    }

    /// Closes a model's gate for the whole fleet until [`Self::resume`]. It survives worker
    /// restarts: the gate is closed again before it could open. It is lost if Redis loses
    /// everything.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn hold_model(&self, model: &ModelId, reason: &str) -> Result<(), Error> {
        self.pause(model, self.shared.options.pause_ttl, reason).await?;
        self.shared.holds.held.lock().models.insert(model.clone(), reason.to_owned());
        self.write(&format!("{MODEL}{model}"), Some(reason)).await
    }

    pub(crate) async fn let_model_go(&self, model: &ModelId) -> Result<(), Error> {
        self.shared.holds.held.lock().models.remove(model);
        self.write(&format!("{MODEL}{model}"), None).await
    }

    /// Time for which a run of a batch has been held, if this process knows that it is.
    pub fn batch_held_for(&self, run: &str) -> Option<Duration> {
        let since = self.shared.holds.held.lock().batches.get(run)?.since;
        Some(Duration::from_secs(seconds_since_1970(SystemTime::now()).saturating_sub(since)))
    }

    /// Sets the time after which limits of [`Self::set_limits`] end, or that they never end. Call
    /// it before setting the limits. Some worker then restores the configured ones; while no worker
    /// runs, there are no calls either.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn set_limits_expiry(
        &self,
        model: &ModelId,
        after: Option<Duration>,
    ) -> Result<(), Error> {
        let until = after.map(|after| seconds_since_1970(SystemTime::now()) + after.as_secs());
        {
            let mut held = self.shared.holds.held.lock();
            match until {
                Some(until) => drop(held.limits.insert(model.clone(), until)),
                None => drop(held.limits.remove(model)),
            }
        }
        let until = until.map(|until| until.to_string());
        self.write(&format!("{LIMITS}{model}"), until.as_deref()).await?;
        self.renew_mark().await
    }

    /// Reads all holds.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn operator_holds(&self) -> Result<OperatorHolds, Error> {
        let Some(redis) = &self.shared.redis else {
            return Ok(self.shared.holds.held.lock().clone());
        };
        let all = redis::Cmd::hgetall(key::holds(&redis.prefix));
        Ok(OperatorHolds::from_fields(redis.connection.command(&all).await?))
    }

    /// Reads the holds repeatedly, and keeps the gates of held models closed, until it is dropped.
    /// While Redis is away, the last known holds stay.
    pub async fn keep_holds(&self) {
        let mut beat = tokio::time::interval(EVERY);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut beats, mut known) = (0_u32, None);
        loop {
            beat.tick().await;
            // An idle worker checks less often: a call that starts now starts before a change could
            // be known.
            let rests = self.shared.poll_schedule.is_idle() && !beats.is_multiple_of(IDLE);
            beats = beats.wrapping_add(1);
            if rests {
                continue;
            }
            let Ok(news) = self.count_changes().await else { continue };
            let is_new = known != Some(news);
            let is_free = *self.shared.holds.held.lock() == OperatorHolds::default();
            if (is_new || !is_free)
                && let Ok(held) = self.operator_holds().await
            {
                *self.shared.holds.held.lock() = held.clone();
                self.close_again(&held).await;
                self.end_limits(&held).await;
                known = Some(news);
            }
            if is_new {
                self.shared.poll_schedule.poll_all();
                self.shared.news.notify_waiters();
            }
        }
    }

    /// The number of changes by operators.
    async fn count_changes(&self) -> Result<Option<u64>, Error> {
        let Some(redis) = &self.shared.redis else { return Ok(None) };
        redis.connection.command(&redis::Cmd::get(key::news(&redis.prefix))).await
    }

    /// Announces an operator's change: every worker reads the holds and the models again.
    pub(crate) async fn announce_change(&self) -> Result<(), Error> {
        self.shared.news.notify_waiters();
        let Some(redis) = &self.shared.redis else { return Ok(()) };
        let key = key::news(&redis.prefix);
        redis.connection.command::<u64>(redis::cmd("INCR").arg(&key)).await?;
        let lives = redis::Cmd::expire(&key, LIVES.as_secs().cast_signed());
        redis.connection.command::<i64>(&lives).await.map(drop)
    }

    /// Resolves when this worker learns of an operator's change.
    pub async fn wait_for_operator_change(&self) {
        self.shared.news.notified().await;
    }

    /// Closes the gates of held models long before they open by themselves. No worker needs to hear
    /// of it.
    async fn close_again(&self, held: &OperatorHolds) {
        let ttl = self.shared.options.pause_ttl;
        let is_due = {
            let mut closed = self.shared.holds.closed.lock();
            let is_due = closed.is_none_or(|closed| closed.elapsed() >= ttl / 3);
            if is_due {
                *closed = Some(Instant::now());
            }
            is_due
        };
        if !is_due || *held == OperatorHolds::default() {
            return;
        }
        for (model, reason) in &held.models {
            // A model of another fleet's configuration is left to that fleet.
            let _ = self.close_gate(model, ttl, reason).await;
        }
        // An operator may have released one since.
        let Ok(still) = self.operator_holds().await else { return };
        for model in held.models.keys().filter(|model| !still.models.contains_key(*model)) {
            let _ = self.resume(model).await;
        }
        if let Some(redis) = &self.shared.redis {
            let _ = extend_life(redis).await;
        }
    }

    /// Restores the configured limits of models whose set limits have ended.
    async fn end_limits(&self, held: &OperatorHolds) {
        let now = seconds_since_1970(SystemTime::now());
        let over = |held: &OperatorHolds, model: &ModelId| {
            held.limits.get(model).is_some_and(|it| *it <= now)
        };
        if !held.limits.keys().any(|model| over(held, model)) {
            return;
        }
        // An operator may have set others since.
        let Ok(still) = self.operator_holds().await else { return };
        for model in still.limits.keys().filter(|model| over(&still, model)) {
            // A model of another fleet's configuration is left to that fleet.
            if self.set_limits(model, &PerLimit::from_fn(|_| Change::Clear)).await.is_ok()
                && self.set_limits_expiry(model, None).await.is_ok()
            {
                info!(%model, "the limits that were set have ended; the configured ones are in force again");
            }
        }
    }

    async fn write(&self, name: &str, reason: Option<&str>) -> Result<(), Error> {
        let Some(redis) = &self.shared.redis else { return Ok(()) };
        let key = key::holds(&redis.prefix);
        match reason {
            Some(reason) => {
                let set = redis::Cmd::hset(key, name, reason);
                redis.connection.command::<i64>(&set).await?;
                extend_life(redis).await?;
            }
            None => {
                redis.connection.command::<i64>(&redis::Cmd::hdel(key, name)).await?;
            }
        }
        self.announce_change().await
    }
}

async fn extend_life(redis: &redis_store::Store) -> Result<(), Error> {
    let lives = redis::Cmd::expire(key::holds(&redis.prefix), LIVES.as_secs().cast_signed());
    redis.connection.command::<i64>(&lives).await.map(drop)
}
