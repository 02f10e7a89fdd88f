//! Growing delays.

use std::time::Duration;

/// The growth of delays: `[gate]` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Bound of the first delay. Default 10 s.
    pub base: Duration,
    /// Bound of every delay. Default 60 s: after a minute a limit of one minute has refilled.
    pub max: Duration,
    /// Bound of a wait for quota, which is no fault and keeps its turn. Default 5 min. Behind a
    /// closed gate the bound is [`Self::max`], because an opening gate wakes no caller that waits
    /// elsewhere.
    pub max_quota_wait: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(10),
            max: Duration::from_secs(60),
            max_quota_wait: Duration::from_mins(5),
        }
    }
}

impl Backoff {
    /// Full jitter: a random delay up to `base × 2^before`, at least `floor`, never above `max`.
    pub fn jittered(&self, before: u32, floor: Duration) -> Duration {
        let bound = self.base.saturating_mul(2_u32.saturating_pow(before.min(16))).min(self.max);
        bound.mul_f64(rand::random()).max(floor).min(self.max)
    }
}
