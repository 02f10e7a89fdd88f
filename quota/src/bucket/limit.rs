//! How much a bucket holds and how fast it refills.

use std::time::Duration;

use tokio::time::Instant;

use super::{AT_ANY_LEVEL, NEVER, REFUSED};

const TAKEN: i64 = 1;

/// The script's numbers end at 2^53.
const MAX_AMOUNT: f64 = 9e15;

/// The limit of a bucket: at most `capacity` at once, and `refill` more in each `per`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketLimit {
    capacity: f64,
    refill_per_second: f64,
}

/// Why a limit cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BucketLimitError {
    /// A bucket that holds nothing or never refills.
    #[error(
        "a bucket of {capacity} that refills by {refill} in {per:?} would give nothing; give each a value above 0"
    )]
    Nothing {
        /// As given.
        capacity: u32,
        /// As given.
        refill: u32,
        /// As given.
        per: Duration,
    },
    /// Not a number that a limit can be multiplied with.
    #[error(
        "a limit times {multiplier} is no limit; the capacity must stay 1 or more, and below 2^53"
    )]
    Multiplier {
        /// As given.
        multiplier: f64,
    },
}

impl BucketLimit {
    /// At most `capacity` at once, and `refill` more in each `per`.
    ///
    /// # Errors
    /// [`BucketLimitError::Nothing`] if one of them is zero.
    pub fn new(capacity: u32, refill: u32, per: Duration) -> Result<Self, BucketLimitError> {
        if capacity == 0 || refill == 0 || per.is_zero() {
            return Err(BucketLimitError::Nothing { capacity, refill, per });
        }
        Ok(Self {
            capacity: capacity.into(),
            refill_per_second: f64::from(refill) / per.as_secs_f64(),
        })
    }

    /// Capacity and refill times `multiplier`: 10 for an account with ten times the limit, 0.9 to
    /// keep a tenth free, a part for each worker while Redis is away. A bucket keeps what was used
    /// when its multiplier changes.
    ///
    /// # Errors
    /// [`BucketLimitError::Multiplier`] if the result holds less than 1, or is no number.
    pub fn times(self, multiplier: f64) -> Result<Self, BucketLimitError> {
        let (capacity, refill) = (self.capacity * multiplier, self.refill_per_second * multiplier);
        if !(1.0..MAX_AMOUNT).contains(&capacity) || refill >= MAX_AMOUNT {
            return Err(BucketLimitError::Multiplier { multiplier });
        }
        Ok(Self { capacity, refill_per_second: refill })
    }

    pub(super) fn capacity(&self) -> f64 {
        self.capacity
    }

    pub(super) fn refill_per_second(&self) -> f64 {
        self.refill_per_second
    }

    /// What `bucket-1.lua` does.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "amounts and waits lie far below 2^53"
    )]
    pub(super) fn answer(
        &self,
        (level, at): &mut (f64, Instant),
        amount: i64,
        longest: i64,
        now: Instant,
    ) -> [i64; 3] {
        let now = now.max(*at);
        let refill = self.refill_per_second / 1e6;
        let full = self.capacity.min(*level + (now - *at).as_micros() as f64 * refill);
        let after = self.capacity.min(full - amount as f64);
        let waits = amount > 0 && longest != AT_ANY_LEVEL;
        let wait = if waits { (-after / refill).max(0.0).ceil() as i64 } else { 0 };
        if wait > 0 && amount as f64 > self.capacity {
            return [NEVER, 0, full.floor() as i64];
        }
        if wait > longest.max(0) {
            return [REFUSED, wait, full.floor() as i64];
        }
        if amount != 0 {
            (*level, *at) = (after, now);
        }
        [TAKEN, wait, after.floor() as i64]
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
        let mut state = (limit.capacity(), start);
        let mut ask = |amount, longest, after: Duration| {
            limit.answer(&mut state, amount, longest, start + after)
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
