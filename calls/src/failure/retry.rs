//! The time of the next attempt, and the growth of delays.

use std::time::Duration;

use tidegate_types::FailureType;

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

/// Calls that failed by the provider's fault before the document fails for good. Refusals for quota
/// do not count.
pub const MAX_FAULTS: u32 = 8;

/// Default retry budget of a batch: provider calls beyond the first for each of its documents.
pub const RETRIES_PER_DOCUMENT: u64 = 3;

/// Answers of one document that may fail the schema. The next answer may satisfy it.
pub const MAX_INVALID_OUTPUTS: u32 = 2;

/// Maximum random delay of a document that continues at another model, so that documents that
/// failed together do not ask the next model together.
pub const REROUTED: Duration = Duration::from_secs(2);

/// Refusals with the same message and without any answer, after which a run of a batch stops asking
/// a model. A single refusal may concern one document only.
pub const SAME_REFUSALS: u32 = 3;

/// Time for which the run does not ask the model. Names seldom change, and a new run of the batch
/// asks at once.
pub const UNKNOWN_MODEL: Duration = Duration::from_secs(300);

/// Time from a key's refusal until one call tests it again, even if the key has not changed.
pub const KEY_REFUSED: Duration = Duration::from_secs(30);

/// Delay of a document that met a refused key, until another worker takes it; a random delay of up
/// to the same length is added.
pub const KEY_ELSEWHERE: Duration = Duration::from_millis(1_500);

/// Time without any live worker with an accepted key, after which documents fail for good. A worker
/// that starts reports within 5 s, and keys are replaced at times.
pub const KEYS_GONE: Duration = Duration::from_secs(10);

/// Time for which a budget's refusal is remembered: meanwhile the next documents fail without
/// taking quota. Then one asks again, because calls that cost less than was held return the rest.
pub const BUDGET_REFUSED: Duration = Duration::from_secs(5);

/// Like [`BUDGET_REFUSED`], while calls under way may return money. Documents wait this long or, at
/// random, up to three times as long.
pub const BUDGET_RETURNS: Duration = Duration::from_secs(1);

/// Wait of documents whose budget is lost, plus a random delay of up to the same length, repeated
/// until an operator states the spending.
pub const BUDGET_LOST: Duration = Duration::from_secs(10);

/// Different documents in a row whose calls fail before a model's circuit opens. A single document
/// may itself cause the failures.
pub const CIRCUIT_FAULTS: usize = 5;

/// Time for which a circuit first stays open. It doubles with each failed probe, up to
/// [`MAX_CIRCUIT_OPEN`].
pub const CIRCUIT_OPEN: Duration = Duration::from_secs(5);
/// The longest time for which a circuit stays open.
pub const MAX_CIRCUIT_OPEN: Duration = Duration::from_secs(60);

/// Delay of an immediate retry; zero would mean Temporal's own delay.
pub(super) const AT_ONCE: Duration = Duration::from_millis(100);

/// Bounds of the delay for documents of a paused batch. It is half the time since the pause began,
/// so that documents of a long pause seldom ask.
pub const PAUSED: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(300));

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
