//! The time of the next attempt, and the growth of delays.

use std::time::Duration;

use tidegate_types::FailureType;

use crate::backoff::Backoff;

/// The kind of a store's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// The store failed, and may work later.
    Busy,
    /// The store forbids the operation, is not set up for it, or has lost the object.
    Refused,
}

/// The time of the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Never: the failure is final.
    Never,
    /// After this long.
    After(Duration),
    /// When the limiter's turn comes, within [`Backoff::max_quota_wait`].
    Turn(Duration),
    /// After this long, plus a random delay of up to the same length, within [`Backoff::base`].
    AfterSpread(Duration),
    /// After this long, plus a random delay of up to half of it. [`Backoff::max`] does not bound
    /// it, because people end a pause.
    WhilePaused(Duration),
    /// Grows with the number of earlier faults.
    ByFaults {
        /// Faults of this document before this one.
        before: u32,
        /// The delay that the provider asked for.
        at_least: Duration,
    },
    /// Grows with the number of earlier attempts.
    ByAttempts,
    /// Grows with the store's faults; the code that uses the store counts them.
    ByStore {
        /// The kind of the store's failure.
        fault: StoreFault,
        /// The failure type once it is no longer retried.
        last: FailureType,
    },
}

impl Retry {
    /// The delay before the next attempt; `None` if there is none. `attempt` is this attempt's
    /// number, counted from 1.
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
