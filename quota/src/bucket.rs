//! A plain token bucket that a fleet shares, for APIs that count calls and not tokens of a model:
//! search, enrichment, a web server that is read from.
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
//! A waiting caller gets its turn when it asks, as in generic cell rate algorithms: one script call
//! for each take, first come first served, and none starves. The disadvantage: the turn of a caller
//! that gives up goes to new callers and not to those behind it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{conversions::format_wait, error::Error, key, redis_store::Store, wire};

/// The script's longest wait, more than a century: its numbers end at 2^53.
const MAX_WAIT_MICROS: i64 = 1 << 52;

/// Passed as the longest wait: charge the amount at any level.
const AT_ANY_LEVEL: i64 = -1;

// The script's outcomes.
const REFUSED: i64 = 0;
const TAKEN: i64 = 1;
const NEVER: i64 = 2;

/// The limit of a bucket: at most `capacity` at once, and `refill` more in each `per`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketLimit {
    capacity: u32,
    refill_per_second: f64,
}

/// A bucket that would give nothing: its capacity is zero or it never refills.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "a bucket of {capacity} that refills by {refill} in {per:?} would give nothing; give each a value above 0"
)]
pub struct BucketLimitError {
    /// As given to [`BucketLimit::new`].
    pub capacity: u32,
    /// As given to [`BucketLimit::new`].
    pub refill: u32,
    /// As given to [`BucketLimit::new`].
    pub per: Duration,
}

/// The reason why [`Bucket::consume`] or [`Bucket::take`] took nothing.
#[derive(Debug, thiserror::Error)]
pub enum BucketRefused {
    /// Not yet.
    #[error("the bucket has {level} and not {amount}; a caller who waits would go in {}", format_wait(*.wait))]
    Wait {
        /// The amount asked for.
        amount: u32,
        /// The wait of a caller that asks now.
        wait: Duration,
        /// The level; below zero when more is promised.
        level: i64,
    },
    /// More than the capacity of the bucket.
    #[error(
        "the bucket never holds {amount}, only {capacity}; take less at once or raise the capacity"
    )]
    Never {
        /// The amount asked for.
        amount: u32,
        /// The bucket's capacity.
        capacity: u32,
    },
    /// Redis does not answer, so the level is unknown. A caller that must go on can use a
    /// [`Bucket::in_memory`].
    #[error("the bucket cannot be asked: {0}")]
    Unknown(#[from] Error),
}

/// A token bucket. Cheap to clone: clones share one level, as do all buckets of one name in one
/// Redis.
#[derive(Debug, Clone)]
pub struct Bucket {
    limit: BucketLimit,
    backing: Backing,
}

#[derive(Debug, Clone)]
enum Backing {
    Redis { store: Store, key: String },
    Memory(Arc<Mutex<Level>>),
}

/// A bucket's level at a moment.
#[derive(Debug)]
struct Level {
    amount: f64,
    at: Instant,
}

/// The script's reply: outcome, wait in microseconds, level.
type Answer = [i64; 3];

impl BucketLimit {
    /// Creates the limit: at most `capacity` at once, and `refill` more in each `per`.
    ///
    /// # Errors
    /// [`BucketLimitError`] if one of them is zero.
    pub fn new(capacity: u32, refill: u32, per: Duration) -> Result<Self, BucketLimitError> {
        if capacity == 0 || refill == 0 || per.is_zero() {
            return Err(BucketLimitError { capacity, refill, per });
        }
        Ok(Self { capacity, refill_per_second: f64::from(refill) / per.as_secs_f64() })
    }

    /// Does the work of `bucket-1.lua` in memory.
    // Amounts and waits lie far below 2^53.
    fn decide(self, level: &mut Level, amount: i64, longest: i64, now: Instant) -> Answer {
        let now = now.max(level.at);
        let (capacity, refill) = (f64::from(self.capacity), self.refill_per_second / 1e6);
        let full = capacity.min(level.amount + (now - level.at).as_micros() as f64 * refill);
        let after = capacity.min(full - amount as f64);
        let waits = amount > 0 && longest != AT_ANY_LEVEL;
        let wait = if waits { (-after / refill).max(0.0).ceil() as i64 } else { 0 };
        if wait > 0 && amount as f64 > capacity {
            return [NEVER, 0, full.floor() as i64];
        }
        if wait > longest.max(0) {
            return [REFUSED, wait, full.floor() as i64];
        }
        if amount != 0 {
            *level = Level { amount: after, at: now };
        }
        [TAKEN, wait, after.floor() as i64]
    }
}

impl Bucket {
    /// A bucket that every process with this Redis, prefix and name shares. All should give the
    /// same limit.
    pub fn in_redis(store: Store, name: &str, limit: BucketLimit) -> Self {
        let key = key::bucket(&store.prefix, name);
        Self { limit, backing: Backing::Redis { store, key } }
    }

    /// A bucket of this process alone, full at first: for tests, for one process, or while Redis is
    /// away.
    pub fn in_memory(limit: BucketLimit) -> Self {
        let level = Level { amount: limit.capacity.into(), at: Instant::now() };
        Self { limit, backing: Backing::Memory(Arc::new(Mutex::new(level))) }
    }

    /// Takes `amount` now or not at all.
    ///
    /// # Errors
    /// See [`BucketRefused`]; [`BucketRefused::Wait`] has the wait of a caller that would wait.
    pub async fn consume(&self, amount: u32) -> Result<(), BucketRefused> {
        self.promise(amount, Duration::ZERO).await.map(drop)
    }

    /// Takes `amount`, and waits for its turn if that is at most `longest` away. Dropping the
    /// future returns the amount.
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

    /// The level, rounded down; below zero when more is promised.
    ///
    /// # Errors
    /// [`Error`] when Redis does not answer.
    pub async fn peek(&self) -> Result<i64, Error> {
        self.run(0, 0).await.map(|[_, _, level]| level)
    }

    /// Takes `amount` if its turn is at most `longest` away, and returns how long the caller must
    /// wait.
    ///
    /// # Errors
    /// See [`BucketRefused`].
    pub async fn promise(&self, amount: u32, longest: Duration) -> Result<Duration, BucketRefused> {
        let longest = i64::try_from(longest.as_micros()).unwrap_or(i64::MAX).min(MAX_WAIT_MICROS);
        let [outcome, wait, level] = self.run(amount.into(), longest).await?;
        let wait = Duration::from_micros(wire::unsigned(wait));
        match outcome {
            REFUSED => Err(BucketRefused::Wait { amount, wait, level }),
            NEVER => Err(BucketRefused::Never { amount, capacity: self.limit.capacity }),
            _ => Ok(wait),
        }
    }

    async fn run(&self, amount: i64, longest: i64) -> Result<Answer, Error> {
        match &self.backing {
            Backing::Memory(level) => {
                Ok(self.limit.decide(&mut level.lock(), amount, longest, Instant::now()))
            }
            Backing::Redis { store, key } => {
                let arguments = [
                    amount.to_string(),
                    self.limit.capacity.to_string(),
                    self.limit.refill_per_second.to_string(),
                    longest.to_string(),
                    store.clock().to_string(),
                ];
                let (keys, arguments) =
                    (std::slice::from_ref(key), arguments.map(String::into_bytes));
                wire::read_integers(&store.run(&store.scripts.bucket, keys, &arguments).await?)
            }
        }
    }
}

/// Returns the amount of a caller that is dropped before its turn.
struct Promised<'a> {
    bucket: &'a Bucket,
    amount: u32,
}

impl Drop for Promised<'_> {
    fn drop(&mut self) {
        if let (1.., Ok(runtime)) = (self.amount, tokio::runtime::Handle::try_current()) {
            let (bucket, amount) = (self.bucket.clone(), self.amount);
            // If this fails (Redis is away or the runtime ends), the bucket refills by itself.
            runtime
                .spawn(async move { bucket.run(-i64::from(amount), AT_ANY_LEVEL).await.is_ok() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: Duration = Duration::from_secs(1);

    #[test]
    fn the_bucket_in_memory_decides_like_the_script() {
        let limit = BucketLimit::new(10, 4, SEC * 2).unwrap();
        let start = Instant::now();
        let mut level = Level { amount: 10.0, at: start };
        let mut ask = |amount, longest, after: Duration| {
            limit.decide(&mut level, amount, longest, start + after)
        };
        assert_eq!(ask(7, 0, Duration::ZERO), [TAKEN, 0, 3]);
        assert_eq!(ask(4, 0, Duration::ZERO), [REFUSED, 500_000, 3]);
        assert_eq!(ask(4, 0, SEC / 2 - Duration::from_millis(1))[0], REFUSED);
        assert_eq!(ask(4, 0, SEC / 2), [TAKEN, 0, 0]);
        assert_eq!(ask(3, 1_500_000, SEC / 2), [TAKEN, 1_500_000, -3], "promised");
        assert_eq!(ask(3, 1_500_000, SEC / 2), [REFUSED, 3_000_000, -3]);
        assert_eq!(ask(3, AT_ANY_LEVEL, SEC / 2), [TAKEN, 0, -6], "charged");
        assert_eq!(ask(1, 0, SEC / 2), [REFUSED, 3_500_000, -6]);
        assert_eq!(ask(-100, AT_ANY_LEVEL, SEC / 2), [TAKEN, 0, 10], "never above the capacity");
        assert_eq!(ask(11, i64::MAX, SEC / 2), [NEVER, 0, 10]);
        assert_eq!(ask(10, 0, SEC), [TAKEN, 0, 0]);
        assert_eq!(ask(0, 0, SEC / 2), [TAKEN, 0, 0], "time that steps back refills nothing");
        assert_eq!(ask(0, 0, SEC * 3600), [TAKEN, 0, 10]);
    }
}
