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
//! A caller that waits is promised a turn when it asks, as generic cell rate algorithms do: one
//! question for each call however many wait, first come first served, and none starves. The price
//! is that a caller that gives up leaves its turn to newcomers and not to those behind it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{error::Error, key, number::told, redis_store::Store, wire};

/// Longer waits than a century are one to the script, whose numbers end at 2^53.
const MAX_WAIT_MICROS: i64 = 1 << 52;

/// In place of a longest wait: the amount is charged whatever the level is.
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

/// A bucket that would give nothing: it holds nothing or never refills.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "a bucket of {capacity} that refills by {refill} in {per:?} would give nothing; give each a value above 0"
)]
pub struct BucketLimitError {
    /// As given.
    pub capacity: u32,
    /// As given.
    pub refill: u32,
    /// As given.
    pub per: Duration,
}

/// Why [`Bucket::consume`] or [`Bucket::take`] took nothing.
#[derive(Debug, thiserror::Error)]
pub enum BucketRefused {
    /// Not yet.
    #[error("the bucket has {level} and not {amount}; a caller who waits would go in {}", told(*.wait))]
    Wait {
        /// What was asked for.
        amount: u32,
        /// Until the turn of a caller who asks now and waits.
        wait: Duration,
        /// What there is; below zero when more is promised.
        level: i64,
    },
    /// More than the bucket ever holds.
    #[error(
        "the bucket never holds {amount}, only {capacity}; take less at once or raise the capacity"
    )]
    Never {
        /// What was asked for.
        amount: u32,
        /// The most that it holds.
        capacity: u32,
    },
    /// Redis does not answer, so the level is not known. A caller that must go on takes from a
    /// [`Bucket::in_memory`].
    #[error("the bucket cannot be asked: {0}")]
    Unknown(#[from] Error),
}

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
    Memory(Arc<Mutex<Level>>),
}

/// What a bucket held at a moment.
#[derive(Debug)]
struct Level {
    amount: f64,
    at: Instant,
}

/// What the script says: the outcome, the wait in microseconds, and the level.
type Answer = [i64; 3];

impl BucketLimit {
    /// At most `capacity` at once, and `refill` more in each `per`.
    ///
    /// # Errors
    /// [`BucketLimitError`] if one of them is zero.
    pub fn new(capacity: u32, refill: u32, per: Duration) -> Result<Self, BucketLimitError> {
        if capacity == 0 || refill == 0 || per.is_zero() {
            return Err(BucketLimitError { capacity, refill, per });
        }
        Ok(Self { capacity, refill_per_second: f64::from(refill) / per.as_secs_f64() })
    }

    /// What `bucket-1.lua` does.
    // Amounts and waits lie far below 2^53.
    fn answer(self, level: &mut Level, amount: i64, longest: i64, now: Instant) -> Answer {
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
        Self { limit, place: Place::Redis { store, key } }
    }

    /// A bucket of this process alone, full at first: for tests, for one process, or while Redis is
    /// away.
    pub fn in_memory(limit: BucketLimit) -> Self {
        let level = Level { amount: limit.capacity.into(), at: Instant::now() };
        Self { limit, place: Place::Memory(Arc::new(Mutex::new(level))) }
    }

    /// Takes `amount` now or not at all.
    ///
    /// # Errors
    /// See [`BucketRefused`]; [`BucketRefused::Wait`] says how long a caller who waits would wait.
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
        self.ask(0, 0).await.map(|[_, _, level]| level)
    }

    /// Takes `amount` for a caller that waits by itself, if its turn is at most `longest` away: how
    /// long it is to wait.
    ///
    /// # Errors
    /// See [`BucketRefused`].
    pub async fn promise(&self, amount: u32, longest: Duration) -> Result<Duration, BucketRefused> {
        let longest = i64::try_from(longest.as_micros()).unwrap_or(i64::MAX).min(MAX_WAIT_MICROS);
        let [outcome, wait, level] = self.ask(amount.into(), longest).await?;
        let wait = Duration::from_micros(wire::unsigned(wait));
        match outcome {
            REFUSED => Err(BucketRefused::Wait { amount, wait, level }),
            NEVER => Err(BucketRefused::Never { amount, capacity: self.limit.capacity }),
            _ => Ok(wait),
        }
    }

    async fn ask(&self, amount: i64, longest: i64) -> Result<Answer, Error> {
        match &self.place {
            Place::Memory(level) => {
                Ok(self.limit.answer(&mut level.lock(), amount, longest, Instant::now()))
            }
            Place::Redis { store, key } => {
                let arguments = [
                    amount.to_string(),
                    self.limit.capacity.to_string(),
                    self.limit.refill_per_second.to_string(),
                    longest.to_string(),
                    store.clock().to_string(),
                ];
                let (keys, arguments) =
                    (std::slice::from_ref(key), arguments.map(String::into_bytes));
                wire::integers(&store.run(&store.scripts.bucket, keys, &arguments).await?)
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: Duration = Duration::from_secs(1);

    #[test]
    fn the_same_as_in_redis() {
        let limit = BucketLimit::new(10, 4, SEC * 2).unwrap();
        let start = Instant::now();
        let mut level = Level { amount: 10.0, at: start };
        let mut ask = |amount, longest, after: Duration| {
            limit.answer(&mut level, amount, longest, start + after)
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
