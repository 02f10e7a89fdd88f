//! How failures are reported to Temporal, and the meaning of those that no call causes.
//!
//! [`tidegate_calls::failure`] decides whether and when a call is made again. The other failures
//! are:
//!
//! | what happened | type | retried | delay of the next attempt |
//! |---|---|---|---|
//! | workers die during a step of a batch, or a call of the Temporal door | Temporal's own, then `InvalidInput` | until [`MAX_DEAD_STEPS`] have died | |
//! | workers die while they process a document | Temporal's own, then `UnreadableDocument` | until [`MAX_DEAD_STEPS`] have died | |
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

use std::time::{Duration, SystemTime};

use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use tidegate_calls::failure::MAX_MESSAGE_CHARS;
use tidegate_workflows::contract::{FailureDetails, FailureType, WaitsFor};

pub use tidegate_calls::{
    Backoff,
    failure::{Failure, RETRIES_PER_DOCUMENT, Retry, Shortfall, StoreFault},
};

use crate::{
    attempt::{Attempt, StoreFaults},
    storage,
};

/// Converts a failure for Temporal, with its type, its delay and the document's use so far. `attempt` is
/// the activity's attempt, counted from 1.
pub fn into_application_failure(
    failure: Failure,
    details: impl Into<FailureDetails>,
    backoff: Backoff,
    attempt: u32,
) -> ApplicationFailure {
    let message: String =
        failure.message.chars().flat_map(printable).take(MAX_MESSAGE_CHARS).collect();
    let delay = failure.retry.delay(backoff, attempt);
    ApplicationFailure::builder(Message(message))
        .type_name(failure.kind.as_str().to_owned())
        .non_retryable(delay.is_none())
        .maybe_next_retry_delay(delay)
        .category(if failure.benign {
            ApplicationErrorCategory::Benign
        } else {
            ApplicationErrorCategory::Unspecified
        })
        .details(FailureDetails { waits_for: failure.waits_for, ..details.into() })
        .build()
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

/// Attempts to submit a provider's batch. After these the workflow waits, because it handles
/// pauses, deadlines and cancellation.
pub const MAX_BATCH_SUBMITS: u32 = 3;

/// Attempts to cancel a provider's batch. A batch that continues is still waited for.
pub const MAX_BATCH_CANCELS: u32 = 3;

/// Attempts to collect a provider's batch: about an hour. After that the documents take the direct
/// path.
pub const MAX_BATCH_COLLECTS: u32 = 60;

/// Attempts at an operation that a store forbids or is not set up for. More than one, because
/// rights, keys and a share that is just being mounted take time; few, because waiting alone seldom
/// helps.
pub const MAX_STORE_REFUSALS: u32 = 4;

/// Time for which a store may be busy or away without a break: longer than any outage of the large
/// clouds' stores so far.
pub const STORE_DEADLINE: Duration = Duration::from_hours(24);

/// Like [`STORE_DEADLINE`], while a batch is planned: nothing has been paid for, and its author waits.
pub const PLAN_DEADLINE: Duration = Duration::from_hours(1);

/// The delays between the writes of an attempt that holds an answer.
pub const WRITE_AGAIN: Backoff = Backoff {
    base: Duration::from_secs(1),
    max: Duration::from_secs(30),
    max_quota_wait: Duration::ZERO,
};

/// Delay of a document while its batch's results cannot be written. It makes no call.
pub const UNWRITABLE: Duration = Duration::from_secs(5);

/// Workers in a row that may die while they read a document, before it is no longer read.
pub const MAX_DEAD_READERS: u32 = 2;

/// Workers in a row that may die during one step of a batch, one document, or one call. Each attempt
/// continues it, and workers that are killed for another reason do not fail it.
pub const MAX_DEAD_STEPS: u32 = 5;

/// Interval at which a worker tries to write the answers in its spool.
pub const DRAIN_SPOOL: Duration = Duration::from_secs(15);

/// Delay of a document whose answer is in the spool of another worker; a little jitter is added.
pub const SPOOLED: Duration = Duration::from_secs(15);

/// Maximum wait of such a document. A restarted worker is back in minutes; one whose machine is
/// lost never returns.
pub const SPOOL_PATIENCE: Duration = Duration::from_hours(1);

/// Interval at which one call tests whether results can be written again, if no attempt holds an
/// answer.
pub const PROBE_UNWRITTEN: Duration = Duration::from_secs(30);

/// Does the work, unless [`MAX_DEAD_STEPS`] workers in a row have died during this activity.
///
/// # Errors
/// The work's, or `failure` of the number of workers.
pub(crate) async fn unless_deadly<T>(
    attempt: &Attempt,
    failure: impl FnOnce(u32) -> Failure,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match attempt.deaths() {
        dead if dead >= MAX_DEAD_STEPS => Err(failure(dead)),
        _ => work.await,
    }
}

/// The failure of a bad location in a field of the input: the field is wrong, or the store failed.
pub fn field_fault(field: &str, error: storage::Error) -> Failure {
    match error {
        storage::Error::Missing(_) | storage::Error::Invalid(_) => {
            Failure::invalid_input(format!("{field}: {error}"))
        }
        error => {
            let failure = Failure::from(error);
            Failure { message: format!("{field}: {}", failure.message), ..failure }
        }
    }
}

/// The failure of a document that the store does not return.
pub fn document_fault(error: storage::Error) -> Failure {
    let failure = Failure::from(error);
    let last = FailureType::UnreadableDocument;
    match failure.retry {
        Retry::ByStore { fault, .. } => {
            Failure { retry: Retry::ByStore { fault, last }, ..failure }
        }
        _ => Failure { kind: last, ..failure },
    }
}

/// Whether a store refused, so that waiting alone does not help.
pub fn is_store_refusal(failure: &Failure) -> bool {
    matches!(failure.retry, Retry::ByStore { fault: StoreFault::Refused, .. })
}

/// Counts a fault of a store with the activity's earlier ones: the delay grows with them, and after
/// [`MAX_STORE_REFUSALS`] or `deadline` the failure is final. Returns other failures unchanged.
pub fn count_store_fault(failure: Failure, attempt: &Attempt, deadline: Duration) -> Failure {
    let Retry::ByStore { fault, last } = failure.retry else { return failure };
    after_store_faults(failure, last, attempt.store_failed(fault), deadline, SystemTime::now())
}

/// The failure after `dead` workers have died while they read the document.
pub fn kills_its_reader(dead: u32) -> Failure {
    deadly_document(dead, "read")
}

/// The failure after `dead` workers have died while they processed the document.
pub fn document_kills_its_worker(dead: u32) -> Failure {
    deadly_document(dead, "processed")
}

/// The failure after `dead` workers have died during this step of a batch, or this call.
pub fn kills_its_worker(dead: u32) -> Failure {
    Failure::invalid_input(format!(
        "{dead} workers died during this step; it is not tried again; the logs of the workers and of their machines give the cause; raise the workers' memory, or leave out large documents"
    ))
}

/// The failure while results of the batch cannot be written because an answer could not be stored. No
/// call was made.
pub fn unwritable(fault: &str) -> Failure {
    let message = format!("no model is asked while results cannot be written: {fault}");
    unwritten(message, UNWRITABLE)
}

/// The failure while a bought answer is in the spool of a worker that is away or is writing it.
pub fn spooled() -> Failure {
    let message = "the answer was bought and lies in the spool of another worker; the document waits until that worker writes it";
    unwritten(message.to_owned(), SPOOLED)
}

fn deadly_document(dead: u32, during: &str) -> Failure {
    let message = format!(
        "{dead} workers died while they {during} this document; it is not tried again; raise the memory of the workers' machines, lower worker.max-concurrent-documents, or leave the document out"
    );
    Failure::never(FailureType::UnreadableDocument, message)
}

pub(super) fn after_store_faults(
    failure: Failure,
    last: FailureType,
    so_far: StoreFaults,
    deadline: Duration,
    now: SystemTime,
) -> Failure {
    let lasting = so_far.lasting(now);
    if so_far.refusals >= MAX_STORE_REFUSALS {
        let message = format!("given up after {} tries: {}", so_far.refusals, failure.message);
        return Failure::never(last, message);
    }
    if lasting >= deadline {
        let hours = lasting.as_secs() / 3_600;
        return Failure::never(last, format!("given up after {hours} h: {}", failure.message));
    }
    let before = so_far.faults.saturating_sub(1);
    Failure { retry: Retry::ByFaults { before, at_least: Duration::ZERO }, ..failure }
}

fn unwritten(message: String, delay: Duration) -> Failure {
    let waits_for = Some(WaitsFor::Unwritten);
    Failure {
        waits_for,
        ..Failure::new(FailureType::Transient, message, Retry::AfterSpread(delay))
    }
}

/// A store that fails may work later; one that refuses is tried a few times.
impl From<storage::Error> for Failure {
    fn from(error: storage::Error) -> Self {
        let (fault, last) = match &error {
            storage::Error::Invalid(_) => return Self::invalid_input(error.to_string()),
            storage::Error::Failed(_) => (StoreFault::Busy, FailureType::Transient),
            storage::Error::Missing(_)
            | storage::Error::Exists(_)
            | storage::Error::Forbidden(_)
            | storage::Error::Misconfigured(_) => (StoreFault::Refused, FailureType::InvalidInput),
        };
        Self::new(FailureType::Transient, error.to_string(), Retry::ByStore { fault, last })
    }
}

#[cfg(test)]
mod tests;
