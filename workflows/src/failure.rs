//! Reads failures of activities and children, and converts them to the workflow's own failure.

use std::fmt::Display;

use temporalio_common::error::{ApplicationFailure, IncomingError, RetryState};
use temporalio_workflow::{ActivityExecutionError, WorkflowTermination};

use crate::contract::{FailedDocument, FailureDetails, FailureFacts, Taken};

/// Longest message that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// The failed document of an activity: its failure and its use.
pub(crate) fn failed_document(
    index: u32,
    error: &ActivityExecutionError,
) -> (FailedDocument, Taken) {
    let (error_type, message, details) = match error.reason() {
        Some(IncomingError::Application(failure)) => (
            failure.type_name().unwrap_or("Unknown").to_owned(),
            failure
                .failure()
                .map_or_else(|| failure.to_string(), |failure| failure.message.clone()),
            failure.details::<FailureDetails>().ok().flatten().unwrap_or_default(),
        ),
        Some(IncomingError::Timeout(timeout)) => {
            ("Timeout".to_owned(), timeout.failure().message.clone(), FailureDetails::default())
        }
        _ => ("Unknown".to_owned(), error.to_string(), FailureDetails::default()),
    };
    let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
    let FailureDetails { counts, discarded: mut taken, kept, failed_checks, asked, .. } = details;
    taken.spend += counts.into();
    let provider_calls = taken.spend.provider_calls;
    let facts = FailureFacts { error_type, message, provider_calls, kept, failed_checks, asked };
    (FailedDocument { index, facts }, taken)
}

/// Whether a document's activity ended because the batch was cancelled. Its attempt may also have
/// failed, but would have been retried.
pub(crate) fn is_cancelled(error: &ActivityExecutionError) -> bool {
    let given_up = |error: &IncomingError| matches!(error, IncomingError::Application(failure) if failure.is_non_retryable());
    error.as_cancelled().is_some()
        || matches!(error, ActivityExecutionError::Failed(failure)
            if failure.retry_state() == RetryState::CancelRequested && !failure.cause().is_some_and(given_up))
}

/// Returns the innermost message of an error's reason, because outer messages only say that
/// something failed; the error's own message if it has no reason.
pub(crate) fn message(reason: Option<&IncomingError>, error: &impl Display) -> String {
    let Some(mut root) = reason else { return error.to_string() };
    while let Some(cause) = root.cause() {
        root = cause;
    }
    root.failure().message.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Fails a workflow for good, with this type and message.
pub(crate) fn failed(kind: &str, message: &str) -> WorkflowTermination {
    let failure = ApplicationFailure::builder(anyhow::anyhow!(message.to_owned()))
        .type_name(kind.to_owned())
        .non_retryable(true)
        .build();
    WorkflowTermination::failed_application(failure)
}

/// Fails the workflow with the type and the message of an activity's failure.
pub(crate) fn termination(error: ActivityExecutionError) -> WorkflowTermination {
    match error.reason() {
        Some(IncomingError::Application(failure)) => {
            let message = failure
                .failure()
                .map_or_else(|| failure.to_string(), |failure| failure.message.clone());
            failed(failure.type_name().unwrap_or("Unknown"), &message)
        }
        _ if error.as_cancelled().is_some() => WorkflowTermination::cancelled(),
        _ => failed("Unknown", &error.to_string()),
    }
}
