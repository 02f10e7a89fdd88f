//! When an activity is tried again, and how delays grow.

use std::time::Duration;

use tidegate_workflows::contract::FailureType;

use crate::call::attempt::StoreFault;

/// How delays grow: `[gate]` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Bound of the first delay. Default 10 s.
    pub base: Duration,
    /// Bound of every delay. Default 60 s: after a minute a limit of one minute has refilled.
    pub max: Duration,
    /// Bound of a wait for quota, which is no fault and keeps its turn. Default 5 min; behind a closed
    /// gate it is [`Self::max`], because nothing wakes who waits in Temporal when a gate opens.
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
    pub(super) fn jittered(&self, before: u32, floor: Duration) -> Duration {
        let bound = self.base.saturating_mul(2_u32.saturating_pow(before.min(16))).min(self.max);
        bound.mul_f64(rand::random()).max(floor).min(self.max)
    }
}

/// When an activity is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Never: the failure is final.
    Never,
    /// After this long.
    After(Duration),
    /// When the turn comes that the limiter has given, within [`Backoff::max_quota_wait`].
    Turn(Duration),
    /// After this long, and by chance up to as long again, within [`Backoff::base`].
    AfterSpread(Duration),
    /// After this long, and by chance up to half as long again: a pause that people end is no
    /// matter of [`Backoff::max`].
    WhilePaused(Duration),
    /// The more faults there were before, the later.
    ByFaults {
        /// Faults of this document before this one.
        before: u32,
        /// What the provider asks for.
        at_least: Duration,
    },
    /// The more attempts there were before, the later.
    ByAttempts,
    /// As [`Failure::counting`] says.
    ByStore {
        /// What the store has done.
        fault: StoreFault,
        /// What the failure is when it is not tried any more.
        last: FailureType,
    },
}

impl Retry {
    /// The delay before the next attempt; `None` never. `attempt` is this one, counted from 1.
    #[must_use]
    pub fn delay(self, backoff: Backoff, attempt: u32) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(delay) => Some(delay.min(backoff.max)),
            Self::Turn(delay) => Some(delay.min(backoff.max_quota_wait)),
            Self::AfterSpread(delay) => {
                let spread = backoff.jittered(0, Duration::ZERO).min(delay);
                Some(delay.saturating_add(spread).min(backoff.max))
            }
            Self::WhilePaused(delay) => Some(delay.mul_f64(1.0 + 0.5 * rand::random::<f64>())),
            Self::ByFaults { before, at_least } => Some(backoff.jittered(before, at_least)),
            Self::ByAttempts | Self::ByStore { .. } => {
                Some(backoff.jittered(attempt.saturating_sub(1), Duration::ZERO))
            }
        }
    }
}
