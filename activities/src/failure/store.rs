//! Failures of stores, deaths of readers and workers, and answers that cannot be written.

use std::time::{Duration, SystemTime};

use tidegate_calls::failure::{Failure, Retry, StoreFault};
use tidegate_workflows::contract::{FailureType, WaitsFor};

use super::{MAX_STORE_REFUSALS, SPOOLED, UNWRITABLE};
use crate::{
    attempt::{Attempt, StoreFaults},
    storage,
};

/// Constructors and predicates for these failures.
pub trait OfStore: Sized {
    /// A bad location in a field of the input: the field is wrong, or the store failed.
    fn of_field(field: &str, error: storage::Error) -> Self;

    /// A document that the store does not return.
    fn of_document(error: storage::Error) -> Self;

    /// Whether a store refused, so that waiting alone does not help.
    fn is_store_refusal(&self) -> bool;

    /// Counts a fault of a store with the activity's earlier ones: the delay grows with them, and
    /// after [`MAX_STORE_REFUSALS`] or `deadline` the failure is final. Returns other failures
    /// unchanged.
    fn counting(self, attempt: &Attempt, deadline: Duration) -> Self;

    /// The failure after `dead` workers have died while they read the document.
    fn kills_its_reader(dead: u32) -> Self;

    /// The failure after `dead` workers have died during this step of a batch.
    fn kills_its_worker(dead: u32) -> Self;

    /// The failure while results of the batch cannot be written because an answer could not be
    /// stored. No call was made.
    fn unwritable(fault: &str) -> Self;

    /// The failure while a bought answer is in the spool of a worker that is away or is writing it.
    fn spooled() -> Self;
}

impl OfStore for Failure {
    fn of_field(field: &str, error: storage::Error) -> Self {
        match error {
            storage::Error::Missing(_) | storage::Error::Invalid(_) => {
                Self::invalid_input(format!("{field}: {error}"))
            }
            error => {
                let failure = Self::from(error);
                Self { message: format!("{field}: {}", failure.message), ..failure }
            }
        }
    }

    fn of_document(error: storage::Error) -> Self {
        let failure = Self::from(error);
        let last = FailureType::UnreadableDocument;
        match failure.retry {
            Retry::ByStore { fault, .. } => {
                Self { retry: Retry::ByStore { fault, last }, ..failure }
            }
            _ => Self { kind: last, ..failure },
        }
    }

    fn is_store_refusal(&self) -> bool {
        matches!(self.retry, Retry::ByStore { fault: StoreFault::Refused, .. })
    }

    fn counting(self, attempt: &Attempt, deadline: Duration) -> Self {
        let Retry::ByStore { fault, last } = self.retry else { return self };
        after_store_faults(self, last, attempt.store_failed(fault), deadline, SystemTime::now())
    }

    fn kills_its_reader(dead: u32) -> Self {
        let message = format!(
            "{dead} workers died while they read this document; it is not tried again; raise the memory of the workers' machines, lower worker.max-concurrent-documents, or leave the document out"
        );
        Self::never(FailureType::UnreadableDocument, message)
    }

    fn kills_its_worker(dead: u32) -> Self {
        Self::invalid_input(format!(
            "{dead} workers died during this step of the batch; it is not tried again; the logs of the workers and of their machines give the cause; raise the workers' memory, or leave out large documents"
        ))
    }

    fn unwritable(fault: &str) -> Self {
        let message = format!("no model is asked while results cannot be written: {fault}");
        unwritten(message, UNWRITABLE)
    }

    fn spooled() -> Self {
        let message = "the answer was bought and lies in the spool of another worker; the document waits until that worker writes it";
        unwritten(message.to_owned(), SPOOLED)
    }
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
