//! When an attempt is made again, and how delays grow.

use std::time::Duration;

use tidegate_types::FailureType;

use crate::backoff::Backoff;

/// What a store has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// It failed, and may work later.
    Busy,
    /// It forbids it, is not set up for it, or has lost what was there.
    Refused,
}

/// When an attempt is made again.
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
    /// By what stores have done to the attempts before it: whoever works with stores counts that.
    ByStore {
        /// What the store has done.
        fault: StoreFault,
        /// What the failure is when it is not tried any more.
        last: FailureType,
    },
}

impl Retry {
    /// The delay before the next attempt; `None` never. `attempt` is this one, counted from 1.
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
