//! A plain token bucket that a fleet shares, for APIs that count calls and not tokens of a model:
//! search, enrichment.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use tidegate_quota::{Bucket, BucketLimit, redis_store::Store};
//! # async fn search() {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let limit = BucketLimit::new(20, 10, Duration::from_secs(1))?; // 10 a second, 20 at once
//! let store = Store::open("redis://127.0.0.1:6379", "tidegate", Duration::from_secs(300))?;
//! let bucket = Bucket::in_redis(store, "search", limit);
//! bucket.take(1, Duration::from_secs(30)).await?; // one Redis round trip, and at most one sleep
//! search().await;
//! # Ok(())
//! # }
//! ```
//!
//! Whoever waits is promised a turn when it asks, as generic cell rate algorithms do: one question
//! for each call however many wait, first come first served, and nobody starves. The price is that
//! a caller who gives up leaves its turn to newcomers and not to those behind it.

mod limit;
mod refused;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{error::Error, key, redis_store::Store, wire};

pub use limit::{BucketLimit, BucketLimitError};
pub use refused::BucketRefused;

/// Longer waits than a century are one to the script, whose numbers end at 2^53.
const MAX_WAIT_MICROS: i64 = 1 << 52;

/// Charges whatever the level is.
const AT_ANY_LEVEL: i64 = -1;

/// A token bucket. Cheap to clone; every clone is the same, and so is every bucket of one name in
/// one Redis.
#[derive(Debug, Clone)]
pub struct Bucket {
    limit: BucketLimit,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Redis { store: Store, key: String },
    Memory(Arc<Mutex<(f64, Instant)>>),
}

/// What the script says.
struct Answer {
    outcome: i64,
    wait: Duration,
    level: i64,
}

const REFUSED: i64 = 0;
const NEVER: i64 = 2;

impl Bucket {
    /// A bucket that every process with this Redis, prefix and name shares. All should give the
    /// same limit.
    #[must_use]
    pub fn in_redis(store: Store, name: &str, limit: BucketLimit) -> Self {
        let key = key::bucket(store.prefix(), name);
        Self { limit, place: Place::Redis { store, key } }
    }

    /// A bucket of this process alone, full at first: for tests, for one process, or for a part of
    /// the limit ([`BucketLimit::times`]) while Redis is away.
    #[must_use]
    pub fn in_memory(limit: BucketLimit) -> Self {
        Self {
            limit,
            place: Place::Memory(Arc::new(Mutex::new((limit.capacity(), Instant::now())))),
        }
    }

    /// Takes `amount` now or not at all.
    ///
    /// # Errors
    /// See [`BucketRefused`]; [`BucketRefused::Wait`] says how long somebody who waits would wait.
    pub async fn consume(&self, amount: u32) -> Result<(), BucketRefused> {
        self.promise(amount, Duration::ZERO).await.map(drop)
    }

    /// Takes `amount`, and waits for its turn if that is at most `longest` away. Dropping the
    /// future gives back what was promised.
    ///
    /// # Errors
    /// See [`BucketRefused`].
    pub async fn take(&self, amount: u32, longest: Duration) -> Result<(), BucketRefused> {
        let wait = self.promise(amount, longest).await?;
        let mut promised = Promised { bucket: self, amount };
        tokio::time::sleep(wait).await;
        promised.amount = 0;
        Ok(())
    }

    /// How much there is, rounded down; below zero when more is promised.
    ///
    /// # Errors
    /// [`Error`] when Redis does not answer.
    pub async fn peek(&self) -> Result<i64, Error> {
        self.ask(0, 0).await.map(|answer| answer.level)
    }

    /// Adds `by`, never above the capacity: above zero gives back, below zero charges what was used
    /// beyond what was taken, whatever the level is. Returns the level.
    ///
    /// # Errors
    /// [`Error`] when Redis does not answer.
    pub async fn adjust(&self, by: i32) -> Result<i64, Error> {
        self.ask(-i64::from(by), AT_ANY_LEVEL).await.map(|answer| answer.level)
    }

    /// Takes `amount` for a caller that waits by itself, if its turn is at most `longest` away: how
    /// long it is to wait.
    ///
    /// # Errors
    /// See [`BucketRefused`].
    pub async fn promise(&self, amount: u32, longest: Duration) -> Result<Duration, BucketRefused> {
        let longest = i64::try_from(longest.as_micros()).unwrap_or(i64::MAX).min(MAX_WAIT_MICROS);
        let Answer { outcome, wait, level } = self.ask(amount.into(), longest).await?;
        match outcome {
            REFUSED => Err(BucketRefused::Wait { amount, wait, level }),
            NEVER => Err(BucketRefused::Never { amount, capacity: self.limit.capacity() }),
            _ => Ok(wait),
        }
    }

    async fn ask(&self, amount: i64, longest: i64) -> Result<Answer, Error> {
        let [outcome, wait, level] = match &self.place {
            Place::Memory(held) => {
                let mut held = held.lock();
                self.limit.answer(&mut held, amount, longest, Instant::now())
            }
            Place::Redis { store, key } => {
                let (capacity, refill) = (self.limit.capacity(), self.limit.refill_per_second());
                let arguments = [
                    amount.to_string(),
                    capacity.to_string(),
                    refill.to_string(),
                    longest.to_string(),
                    store.clock().to_string(),
                ];
                let arguments = arguments.map(String::into_bytes);
                let keys = std::slice::from_ref(key);
                wire::integers(&store.run(&store.scripts().bucket, keys, &arguments).await?)?
            }
        };
        Ok(Answer { outcome, wait: Duration::from_micros(wire::unsigned(wait)), level })
    }
}

/// Gives back what was promised to a caller that is dropped before its turn.
struct Promised<'a> {
    bucket: &'a Bucket,
    amount: u32,
}

impl Drop for Promised<'_> {
    fn drop(&mut self) {
        if let (1.., Ok(runtime)) = (self.amount, tokio::runtime::Handle::try_current()) {
            let (bucket, amount) = (self.bucket.clone(), self.amount);
            // What is not given back, because Redis is away or the runtime ends, refills by itself.
            runtime
                .spawn(async move { bucket.ask(-i64::from(amount), AT_ANY_LEVEL).await.is_ok() });
        }
    }
}
