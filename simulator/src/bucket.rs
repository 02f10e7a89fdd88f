//! A token bucket with continuous refill.

use std::time::Duration;

use crate::measure::Measure;

#[derive(Debug)]
pub(crate) struct Bucket {
    depth: f64,
    a_second: f64,
    level: f64,
    at: Duration,
}

impl Bucket {
    pub(crate) fn new(limit: u64, holds: Duration) -> Self {
        let a_second = limit as f64 / 60.0;
        // Less than one call could never be let in.
        let depth = (a_second * holds.as_secs_f64()).max(1.0);
        Self { depth, a_second, level: depth, at: Duration::ZERO }
    }

    fn refill(&mut self, now: Duration) {
        let since = now.saturating_sub(self.at).as_secs_f64();
        self.level = self.a_second.mul_add(since, self.level).min(self.depth);
        self.at = self.at.max(now);
    }
}

impl Measure for Bucket {
    fn wait(&mut self, now: Duration, amount: u64) -> Option<Duration> {
        self.refill(now);
        let missing = (amount as f64).min(self.depth) - self.level;
        // A millionth of a token is rounding.
        (missing > 1e-6).then(|| Duration::from_secs_f64(missing / self.a_second))
    }

    fn take(&mut self, now: Duration, amount: u64) {
        self.refill(now);
        self.level -= amount as f64;
    }

    fn give_back(&mut self, now: Duration, _: Duration, amount: u64) {
        self.refill(now);
        self.level = (self.level + amount as f64).min(self.depth);
    }

    // A level lies between 0 and the limit.
    fn remaining(&mut self, now: Duration) -> u64 {
        self.refill(now);
        (self.level + 1e-6).max(0.0) as u64
    }

    fn reset(&mut self, now: Duration) -> Duration {
        self.refill(now);
        Duration::from_secs_f64((self.depth - self.level).max(0.0) / self.a_second)
    }
}
