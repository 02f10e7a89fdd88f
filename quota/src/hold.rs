//! Holding batches and models, letting them go, and learning what is held.

use std::time::{Duration, Instant, SystemTime};

use tidegate_types::{ModelId, seconds_since_1970};
use tracing::info;

use crate::{
    dimension::{Change, PerLimit},
    error::Error,
    holds::{BATCH, EVERY, Held, HeldBatch, LIMITS, MODEL},
    key,
    quota::Quota,
    redis_store,
};

/// The hash lives so long after somebody has last read it.
const LIVES: Duration = Duration::from_secs(30 * 86_400);

/// Every so many-th look while nothing goes on.
const IDLE: u32 = 5;

impl Quota {
    /// Holds a run of a batch back, or lets it go on: no worker begins a call of it from [`EVERY`] and
    /// a moment later on. `run` names it, in words that no other run has. Without a Redis it is this
    /// process that does not.
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

    /// Closes a model's gate for the whole fleet until [`Self::resume`], whoever comes and goes: it
    /// is closed again before it could open. A Redis that loses everything forgets it.
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

    /// For how long a run of a batch has been held, if this process knows it to be.
    pub fn batch_held_for(&self, run: &str) -> Option<Duration> {
        let since = self.shared.holds.held.lock().batches.get(run)?.since;
        Some(Duration::from_secs(seconds_since_1970(SystemTime::now()).saturating_sub(since)))
    }

    /// When limits that are set by [`Self::set_limits`] end: `after` so long, or never. To be said
    /// before they are set. Some worker then gives the configured ones back; while none runs, nobody
    /// calls.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn limits_end(&self, model: &ModelId, after: Option<Duration>) -> Result<(), Error> {
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

    /// Everything that is held.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn held(&self) -> Result<Held, Error> {
        let Some(redis) = &self.shared.redis else {
            return Ok(self.shared.holds.held.lock().clone());
        };
        let mut all = redis::cmd("HGETALL");
        all.arg(key::holds(&redis.prefix));
        Ok(Held::read(redis.connection.command(&all).await?))
    }

    /// Learns what is held, again and again, and keeps the gates of held models closed, until it is
    /// dropped. While Redis is away, what was known last stands.
    pub async fn keep_holds(&self) {
        let mut beat = tokio::time::interval(EVERY);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut beats, mut known) = (0_u32, None);
        loop {
            beat.tick().await;
            // While nothing goes on, some of the looks will do: a call that begins meanwhile begins
            // before it could be known of.
            let rests = self.shared.watch.is_idle() && !beats.is_multiple_of(IDLE);
            beats = beats.wrapping_add(1);
            if rests {
                continue;
            }
            let Ok(news) = self.news().await else { continue };
            let is_new = known != Some(news);
            let is_free = *self.shared.holds.held.lock() == Held::default();
            if (is_new || !is_free)
                && let Ok(held) = self.held().await
            {
                *self.shared.holds.held.lock() = held.clone();
                self.close_again(&held).await;
                self.end_limits(&held).await;
                known = Some(news);
            }
            if is_new {
                self.shared.watch.looks_at_all();
                self.shared.news.notify_waiters();
            }
        }
    }

    /// How often operators have changed something.
    async fn news(&self) -> Result<Option<u64>, Error> {
        let Some(redis) = &self.shared.redis else { return Ok(None) };
        let mut get = redis::cmd("GET");
        redis.connection.command(get.arg(key::news(&redis.prefix))).await
    }

    /// An operator has changed something: every worker looks anew.
    pub(crate) async fn tell_news(&self) -> Result<(), Error> {
        self.shared.news.notify_waiters();
        let Some(redis) = &self.shared.redis else { return Ok(()) };
        let key = key::news(&redis.prefix);
        redis.connection.command::<u64>(redis::cmd("INCR").arg(&key)).await?;
        let mut lives = redis::cmd("EXPIRE");
        redis.connection.command::<i64>(lives.arg(&key).arg(LIVES.as_secs())).await.map(drop)
    }

    /// Resolves when an operator has changed something, as far as this worker hears of it.
    pub async fn hears_news(&self) {
        self.shared.news.notified().await;
    }

    /// Long before they open by themselves.
    async fn close_again(&self, held: &Held) {
        let ttl = self.shared.options.pause_ttl;
        let is_due = {
            let mut closed = self.shared.holds.closed.lock();
            let is_due = closed.is_none_or(|closed| closed.elapsed() >= ttl / 3);
            if is_due {
                *closed = Some(Instant::now());
            }
            is_due
        };
        if !is_due || *held == Held::default() {
            return;
        }
        for (model, reason) in &held.models {
            // A model of another fleet's configuration is that fleet's to close.
            let _ = self.pause(model, ttl, reason).await;
        }
        // An operator may have let one go in between.
        let Ok(still) = self.held().await else { return };
        for model in held.models.keys().filter(|model| !still.models.contains_key(*model)) {
            let _ = self.resume(model).await;
        }
        if let Some(redis) = &self.shared.redis {
            let _ = lives(redis).await;
        }
    }

    /// Gives back the configured limits of models whose time is over.
    async fn end_limits(&self, held: &Held) {
        let now = seconds_since_1970(SystemTime::now());
        let over =
            |held: &Held, model: &ModelId| held.limits.get(model).is_some_and(|it| *it <= now);
        if !held.limits.keys().any(|model| over(held, model)) {
            return;
        }
        // An operator may have set others in between.
        let Ok(still) = self.held().await else { return };
        for model in still.limits.keys().filter(|model| over(&still, model)) {
            // A model of another fleet's configuration is that fleet's.
            if self.set_limits(model, &PerLimit::from_fn(|_| Change::Clear)).await.is_ok()
                && self.limits_end(model, None).await.is_ok()
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
                let mut set = redis::cmd("HSET");
                redis.connection.command::<i64>(set.arg(key).arg(name).arg(reason)).await?;
                lives(redis).await?;
            }
            None => {
                let mut remove = redis::cmd("HDEL");
                redis.connection.command::<i64>(remove.arg(key).arg(name)).await?;
            }
        }
        self.tell_news().await
    }
}

async fn lives(redis: &redis_store::Store) -> Result<(), Error> {
    let mut lives = redis::cmd("EXPIRE");
    lives.arg(key::holds(&redis.prefix)).arg(LIVES.as_secs());
    redis.connection.command::<i64>(&lives).await.map(drop)
}
