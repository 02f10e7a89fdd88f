//! How failures are reported to Temporal, and the meaning of those that no call causes.
//!
//! [`tidegate_calls::failure`] decides whether and when a call is made again. The other failures
//! are:
//!
//! | what happened | type | retried | delay of the next attempt |
//! |---|---|---|---|
//! | workers die during a step of a batch | Temporal's own, then `InvalidInput` | until [`MAX_DEAD_STEPS`] have died | |
//! | workers die while they read a document | Temporal's own, then `UnreadableDocument` | until [`MAX_DEAD_READERS`] have died | |
//! | a document's reader cannot be started | `Transient` | yes | grows with the attempts |
//! | a store is busy or away | `Transient` | for [`STORE_DEADLINE`]; a plan for [`PLAN_DEADLINE`] | grows with the faults |
//! | a store forbids it, is not set up for it, or has lost an object | `Transient`, at the end `InvalidInput` | up to [`MAX_STORE_REFUSALS`] tries | grows with the faults |
//! | results of the batch cannot be written now | `Transient` | yes; an answer is held until then | [`UNWRITABLE`] |
//! | its answer is in the spool of a worker that is away | `Transient` | for [`SPOOL_PATIENCE`]; then it is bought again | [`SPOOLED`], and a little later |
//! | a store is away or refuses, for the document itself | at the end `UnreadableDocument` | like the two rows on stores | grows with the faults |
//! | a step of a provider's batch | by the provider's error | a few times, see below | grows with the attempts |
//!
//! A growing delay has full jitter, like the delays of calls, and never exceeds [`Backoff::max`].

mod bounds;
mod store;

use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use tidegate_calls::failure::MAX_MESSAGE_CHARS;
use tidegate_workflows::contract::FailureDetails;

pub use self::{bounds::*, store::OfStore};
pub use tidegate_calls::{
    Backoff,
    failure::{Failure, RETRIES_PER_DOCUMENT, Retry, Shortfall, StoreFault},
};

/// Converts a failure for Temporal.
pub trait ToTemporal {
    /// The failure with its type, its delay and the document's use so far. `attempt` is the activity's
    /// attempt, counted from 1.
    fn into_application_failure(
        self,
        details: impl Into<FailureDetails>,
        backoff: Backoff,
        attempt: u32,
    ) -> ApplicationFailure;
}

impl ToTemporal for Failure {
    fn into_application_failure(
        self,
        details: impl Into<FailureDetails>,
        backoff: Backoff,
        attempt: u32,
    ) -> ApplicationFailure {
        let message: String =
            self.message.chars().flat_map(printable).take(MAX_MESSAGE_CHARS).collect();
        let delay = self.retry.delay(backoff, attempt);
        ApplicationFailure::builder(Message(message))
            .type_name(self.kind.as_str().to_owned())
            .non_retryable(delay.is_none())
            .maybe_next_retry_delay(delay)
            .category(if self.benign {
                ApplicationErrorCategory::Benign
            } else {
                ApplicationErrorCategory::Unspecified
            })
            .details(FailureDetails { waits_for: self.waits_for, ..details.into() })
            .build()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(String);

/// Escapes control characters: a provider's message or a document's name may contain some that move a
/// terminal's cursor.
fn printable(c: char) -> impl Iterator<Item = char> {
    let (kept, escaped) = match c.is_control() && c != '\n' && c != '\t' {
        true => (None, Some(c.escape_debug())),
        false => (Some(c), None),
    };
    kept.into_iter().chain(escaped.into_iter().flatten())
}

#[cfg(test)]
mod tests;
