//! Delays before a caller comes back: a turn's wait, and delays that grow.

use std::time::Duration;

/// A caller that waits elsewhere comes back a little before its turn and waits the rest in place:
/// turns move up when calls use less than was reserved, and a turn must not pass while the caller
/// is dispatched. The margin grows with the wait, because far turns move more. It is bounded by
/// seconds, because a long wait would otherwise be asked about too often.
const EARLY: Duration = Duration::from_millis(500);
const EARLY_PART: f64 = 0.16;
const MAX_EARLY: Duration = Duration::from_secs(10);

/// When to come back for a turn that is `wait` away.
pub fn until_turn(wait: Duration) -> Duration {
    let early = EARLY + wait.mul_f64(EARLY_PART).min(MAX_EARLY);
    wait.saturating_sub(early).max(Duration::from_secs(1))
}

/// How delays grow: `[gate]` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Bound of the first delay. Default 10 s.
    pub base: Duration,
    /// Bound of every delay. Default 60 s: after a minute a limit of one minute has refilled.
    pub max: Duration,
    /// Bound of a wait for quota, which is no fault and keeps its turn. Default 5 min; behind a
    /// closed gate it is [`Self::max`], because nothing wakes the waiting caller when a gate opens.
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
    /// Full jitter: anything up to `base × 2^before`, at least `floor`, never above `max`.
    pub fn jittered(&self, before: u32, floor: Duration) -> Duration {
        let bound = self.base.saturating_mul(2_u32.saturating_pow(before.min(16))).min(self.max);
        bound.mul_f64(rand::random()).max(floor).min(self.max)
    }
}
