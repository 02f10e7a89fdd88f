//! What each failure means to Temporal: the only place that decides it.
//!
//! | what happened | type | retried | delay of the next attempt |
//! |---|---|---|---|
//! | 429 for a limit that refills | `RateLimited` | yes | full jitter, at least Retry-After |
//! | no quota for longer than a slot may be held; gate closed | `QuotaWait`, benign | yes | the turn, a little early |
//! | 529, 503 | `Overloaded` | yes | full jitter, at least Retry-After |
//! | 500, 502, 504, connection faults, time-outs | `Transient` | up to [`MAX_FAULTS`] calls | full jitter, at least Retry-After |
//! | the object store fails | `Transient` | yes | full jitter |
//! | credit, spend, per-day limits, the provider's or ours | `QuotaExhausted` | no | |
//! | a tenant's or a batch's budget is spent, or its retry budget | `BudgetExceeded` | no | |
//! | Redis is away and a budget must be kept | `Transient` | yes | full jitter |
//! | the answer does not satisfy the schema | `InvalidOutput` | once | none |
//! | refused, too large, unreadable, wrong key, bad input | by name | no | |
//!
//! No delay is longer than [`Backoff::max`]: a longer Retry-After keeps the gate closed, and the
//! document waits there.

use std::time::Duration;

use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use tidegate_providers as providers;
use tidegate_quota::{Refused, budget::BudgetRefused};
use tidegate_workflows::contract::{CallCounts, FailureType};

/// Calls that a document may spend on faults of the provider before it is given up. Refusals for
/// quota do not count.
pub const MAX_FAULTS: u32 = 8;

/// A document that waits for its turn elsewhere comes back a little early and waits the rest in
/// place: turns move up when calls use less than was reserved, and a turn must not pass while
/// Temporal dispatches it. By a part of the wait, because turns move the more the further off they
/// are; but not by more than seconds, because who waits long would ask too often.
const EARLY: Duration = Duration::from_millis(500);
const EARLY_PART: f64 = 0.16;
const MAX_EARLY: Duration = Duration::from_secs(10);

/// Longest message in a history.
const MAX_MESSAGE_CHARS: usize = 500;

/// How delays grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Bound of the first delay. Default 10 s.
    pub base: Duration,
    /// Bound of every delay. Default 60 s: after a minute a limit of one minute has refilled.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(10), max: Duration::from_secs(60) }
    }
}

impl Backoff {
    /// Full jitter: anything up to `base × 2^before`, at least `floor`, never above `max`.
    #[must_use]
    pub fn delay(&self, before: u32, floor: Option<Duration>) -> Duration {
        let bound = self.base.saturating_mul(2_u32.saturating_pow(before.min(16))).min(self.max);
        let jittered = bound.mul_f64(rand::random());
        jittered.max(floor.unwrap_or_default()).min(self.max)
    }
}

/// Why an attempt ended without a result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind.
    pub kind: FailureType,
    /// A sentence for people.
    pub message: String,
    /// `None` never, else after this long.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// Final.
    #[must_use]
    pub fn never(kind: FailureType, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// Bad input, final: the sentence says what to change.
    #[must_use]
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::never(FailureType::InvalidInput, message)
    }

    /// A fault that has nothing to do with the document.
    #[must_use]
    pub fn transient(message: impl Into<String>, backoff: Backoff, before: u32) -> Self {
        Self {
            kind: FailureType::Transient,
            message: message.into(),
            retry_after: Some(backoff.delay(before, None)),
        }
    }

    /// The limiter gave no permit; no call was made.
    #[must_use]
    pub fn refused(refused: &Refused, backoff: Backoff) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Wait { wait, .. } => {
                let early = EARLY + wait.mul_f64(EARLY_PART).min(MAX_EARLY);
                let delay = wait.saturating_sub(early).max(Duration::from_secs(1)).min(backoff.max);
                Self { kind: FailureType::QuotaWait, message, retry_after: Some(delay) }
            }
            Refused::Paused { wait, .. } => Self {
                kind: FailureType::QuotaWait,
                message,
                retry_after: Some((*wait).min(backoff.max)),
            },
            Refused::Exhausted { .. } => Self::never(FailureType::QuotaExhausted, message),
            Refused::NeverFits { .. } => Self::never(FailureType::TooLarge, message),
            Refused::UnknownModel(_) | Refused::UnknownLane(_) => Self::invalid_input(message),
        }
    }

    /// A budget has too little left; no call was made.
    #[must_use]
    pub fn over_budget(refused: &BudgetRefused) -> Self {
        Self::never(FailureType::BudgetExceeded, refused.to_string())
    }

    /// A provider call failed. `effort` counts it already.
    #[must_use]
    pub fn from_provider(error: &providers::Error, effort: &CallCounts, backoff: Backoff) -> Self {
        use providers::Kind;
        let kind = match error.kind {
            Kind::RateLimited => FailureType::RateLimited,
            Kind::Overloaded => FailureType::Overloaded,
            Kind::Transient | Kind::Timeout => FailureType::Transient,
            Kind::QuotaExhausted => FailureType::QuotaExhausted,
            Kind::Unauthorized => FailureType::Unauthorized,
            Kind::InvalidRequest => FailureType::InvalidRequest,
            Kind::TooLarge => FailureType::TooLarge,
            Kind::ContentRefused => FailureType::ContentRefused,
            Kind::InvalidOutput => FailureType::InvalidOutput,
        };
        let faults = effort.provider_calls.saturating_sub(effort.rate_limited);
        if !error.kind.is_retryable() {
            return Self::never(kind, &error.message);
        }
        if faults >= MAX_FAULTS {
            return Self::never(kind, format!("given up after {faults} calls: {}", error.message));
        }
        let before = if error.kind == Kind::RateLimited { effort.rate_limited } else { faults };
        let retry_after = Some(backoff.delay(before.saturating_sub(1), error.retry_after));
        Self { kind, message: error.message.clone(), retry_after }
    }

    /// As Temporal takes it: with type, delay, and what the document has taken so far.
    #[must_use]
    pub fn into_application_failure(self, effort: CallCounts) -> ApplicationFailure {
        let message: String = self.message.chars().take(MAX_MESSAGE_CHARS).collect();
        let benign = self.kind == FailureType::QuotaWait;
        ApplicationFailure::builder(Message(message))
            .type_name(self.kind.as_str().to_owned())
            .non_retryable(self.retry_after.is_none())
            .maybe_next_retry_delay(self.retry_after)
            .category(if benign {
                ApplicationErrorCategory::Benign
            } else {
                ApplicationErrorCategory::Unspecified
            })
            .details(effort)
            .build()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_keep_their_bounds() {
        let backoff = Backoff::default();
        for before in 0..40 {
            for _ in 0..50 {
                assert!(backoff.delay(before, None) <= backoff.max);
                let floored = backoff.delay(before, Some(Duration::from_secs(7)));
                assert!((Duration::from_secs(7)..=backoff.max).contains(&floored));
                assert_eq!(backoff.delay(before, Some(Duration::from_secs(900))), backoff.max);
            }
        }
        assert!(
            (0..200).any(|_| backoff.delay(0, None) < Duration::from_secs(3)),
            "jitter is full"
        );
    }

    #[test]
    fn every_kind_of_provider_error_has_its_row() {
        use providers::Kind;
        let effort = |provider_calls, rate_limited| CallCounts {
            provider_calls,
            rate_limited,
            deferrals: 0,
        };
        let error = |kind| providers::Error {
            kind,
            message: "m".to_owned(),
            retry_after: None,
            charged: providers::Charged::No,
            status: None,
            observed: Box::default(),
        };
        #[rustfmt::skip]
        let cases = [
            // kind                 calls so far   expected type                     retried
            (Kind::RateLimited,     effort(1, 1),  FailureType::RateLimited,       true),
            (Kind::RateLimited,     effort(90, 90), FailureType::RateLimited,      true),
            (Kind::Overloaded,      effort(1, 0),  FailureType::Overloaded,         true),
            (Kind::Overloaded,      effort(8, 0),  FailureType::Overloaded,         false),
            (Kind::Transient,       effort(7, 0),  FailureType::Transient,          true),
            (Kind::Timeout,         effort(12, 4), FailureType::Transient,          false),
            (Kind::QuotaExhausted,  effort(1, 0),  FailureType::QuotaExhausted,    false),
            (Kind::Unauthorized,    effort(1, 0),  FailureType::Unauthorized,       false),
            (Kind::InvalidRequest,  effort(1, 0),  FailureType::InvalidRequest,    false),
            (Kind::TooLarge,        effort(1, 0),  FailureType::TooLarge,          false),
            (Kind::ContentRefused,  effort(1, 0),  FailureType::ContentRefused,    false),
            (Kind::InvalidOutput,   effort(1, 0),  FailureType::InvalidOutput,     false),
        ];
        for (kind, effort, expected, retried) in cases {
            let failure = Failure::from_provider(&error(kind), &effort, Backoff::default());
            assert_eq!(
                (failure.kind, failure.retry_after.is_some()),
                (expected, retried),
                "{kind:?}"
            );
            let sent = failure.into_application_failure(effort);
            assert_eq!(
                (sent.type_name(), sent.is_non_retryable()),
                (Some(expected.as_str()), !retried)
            );
        }
    }

    #[test]
    fn waiting_for_quota_is_benign_and_ends_in_time() {
        let refused = Refused::Paused {
            model: "a:b".parse().unwrap(),
            wait: Duration::from_secs(500),
            ticket: None,
        };
        let sent = Failure::refused(&refused, Backoff::default())
            .into_application_failure(CallCounts::default());
        assert_eq!(sent.next_retry_delay(), Some(Duration::from_secs(60)));
        assert_eq!(sent.category(), ApplicationErrorCategory::Benign);
        assert!(!sent.is_non_retryable());
    }

    #[test]
    fn messages_are_cut() {
        let long = Failure::never(FailureType::Transient, "ä".repeat(5_000))
            .into_application_failure(CallCounts::default());
        assert_eq!(long.to_string().chars().filter(|c| *c == 'ä').count(), MAX_MESSAGE_CHARS);
    }
}
