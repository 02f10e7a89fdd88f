//! Whether and when each failure of a call is retried. Only this module decides it.
//! `tidegate-activities` decides the same for faults of stores, readers and steps of a batch, and
//! converts failures for Temporal.
//!
//! | what happened | type | retried | delay of the next attempt |
//! |---|---|---|---|
//! | 429 for a limit that refills | `RateLimited` | yes | grows with the 429s, at least Retry-After |
//! | no quota within the time that a slot may wait | `QuotaWait`, benign | yes | the turn, a little early, within [`Backoff::max_quota_wait`](crate::Backoff::max_quota_wait) |
//! | the gate is closed | `QuotaWait`, benign | yes | until it opens |
//! | Redis is away, and this worker cannot decide alone | `QuotaWait`, benign | yes | seconds, spread like the end of a pause |
//! | this worker is older than the one that keeps the quota | `QuotaWait`, benign | yes | ten seconds |
//! | 529, 503 | `Overloaded` | up to [`MAX_FAULTS`] calls | grows with the faults, at least Retry-After |
//! | 500, 502, 504, connection faults, time-outs | `Transient` | up to [`MAX_FAULTS`] calls | grows with the faults, at least Retry-After |
//! | a model's circuit is open | `Overloaded` | yes | at the next probe, and a little later |
//! | the batch is paused | `QuotaWait`, benign | yes | half of the time that it has been paused, within [`PAUSED`] |
//! | this worker stops before its call has left | `QuotaWait`, benign | yes | at once, or the turn |
//! | Redis is away and there is a budget | `Transient` | yes | grows with the attempts |
//! | credit, spend, per-day limits, the provider's or ours | `QuotaExhausted` | no | |
//! | too little is left of a budget, and calls under way may return money | `QuotaWait`, benign | yes | [`BUDGET_RETURNS`], up to three times that |
//! | Redis has lost the spending of a budget | `QuotaWait`, benign | yes | [`BUDGET_LOST`], up to twice that |
//! | a tenant's or a batch's budget is spent | `BudgetExceeded` | no | |
//! | a batch's retry budget is spent | type of the last failure | no | |
//! | no connection to the provider is possible as configured | `Transient` | yes, not counted as a call | grows with the attempts |
//! | the answer is cut or empty, and more room can be had | `Truncated` | twice | at once |
//! | the answer is cut or empty, and more room is impossible or not wanted | `Truncated` | no | |
//! | the answer does not satisfy the schema | `InvalidOutput` | once | at once |
//! | a key is refused, and another worker may have a good one | `Unauthorized` | yes | [`KEY_ELSEWHERE`], up to twice that |
//! | a key is refused, and no call was made | `Unauthorized`, benign | yes | [`KEY_ELSEWHERE`], up to twice that |
//! | no live worker has had an accepted key for [`KEYS_GONE`] | `Unauthorized` | no | |
//! | no live worker has an accepted key, and this run of the batch has not seen a refusal yet | `Unauthorized`, benign | yes, until one call has tested a key | until that test, at least [`KEY_ELSEWHERE`], up to twice that |
//! | the provider does not know the model | `InvalidRequest` | no | |
//! | refused, too large, unreadable, invalid input | by name | no | |
//! | any of these, and the route has another model | as above | yes | within [`REROUTED`] |
//!
//! A growing delay has full jitter: anything up to [`Backoff::base`](crate::Backoff::base) × 2ⁿ.
//! Except for a turn's and a paused batch's, no delay is longer than
//! [`Backoff::max`](crate::Backoff::max): a longer Retry-After keeps the gate closed, and the
//! document waits there.

mod answer;
mod limiter;
pub mod provider;
mod retry;

use std::fmt;

use tidegate_types::{FailureType, WaitsFor};

pub use self::retry::*;

/// Longest message that is passed on, in characters.
pub const MAX_MESSAGE_CHARS: usize = 500;

/// Reason why an attempt ended without a result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The failure type.
    pub kind: FailureType,
    /// A message for people.
    pub message: String,
    /// The time of the next attempt.
    pub retry: Retry,
    /// The resource that a document without quota waits for.
    pub waits_for: Option<WaitsFor>,
    /// Whether it is not a fault: no call was made, and the document comes back.
    pub benign: bool,
    /// The subject that has to change, if it is not the document.
    pub concerns: Concerns,
}

/// The subject that has to change before a call can succeed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Concerns {
    /// The document, or the question about it; or only time has to pass.
    #[default]
    TheCall,
    /// The model's name: the provider does not know it.
    TheModel,
    /// A limit that an operator has set.
    AnOperatorsLimit,
}

impl Failure {
    /// Creates a failure of this kind, with its retry.
    pub fn new(kind: FailureType, message: impl Into<String>, retry: Retry) -> Self {
        let benign = kind == FailureType::QuotaWait;
        let (message, concerns) = (message.into(), Concerns::default());
        Self { kind, message, retry, waits_for: None, benign, concerns }
    }

    /// Creates a final failure.
    pub fn never(kind: FailureType, message: impl Into<String>) -> Self {
        Self::new(kind, message, Retry::Never)
    }

    /// Creates a final failure of invalid input: the message says what to change.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::never(FailureType::InvalidInput, message)
    }

    /// Adds the URI of the document that a template was filled for.
    pub fn asked_of(self, uri: &str) -> Self {
        Self { message: format!("{}; this is asked of {uri}", self.message), ..self }
    }

    /// Creates a failure for a fault of this worker or its services, not of the document.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(FailureType::Transient, message, Retry::ByAttempts)
    }

    /// Retries it at once.
    pub fn at_once(self) -> Self {
        Self { retry: Retry::After(AT_ONCE), ..self }
    }

    /// Retries it soon, at another model of the route.
    pub fn at_another_model(self) -> Self {
        Self { retry: Retry::After(REROUTED.mul_f64(rand::random())), ..self }
    }

    /// Whether the same attempt may succeed later.
    pub fn is_retried(&self) -> bool {
        self.retry != Retry::Never
    }
}

/// Reason why an answer is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// It is empty: a reasoning model may have spent all its tokens on thinking.
    pub is_empty: bool,
    /// The output tokens that it had room for.
    pub room: u32,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_empty, room } = self;
        match is_empty {
            true => write!(f, "the answer is empty (it had {room} output tokens)"),
            false => write!(f, "the answer was cut at {room} output tokens"),
        }
    }
}
