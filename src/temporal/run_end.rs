//! The end of a workflow's run.

use anyhow::anyhow;
use futures::FutureExt;
use temporalio_client::{
    Client, UntypedWorkflowHandle, WorkflowGetResultOptions, errors::WorkflowGetResultError,
};
use temporalio_common::{data_converters::RawValue, error::IncomingError};

use super::connection::Temporal;

/// A run that ended without a result.
pub(super) struct NoResult {
    /// The reason, for people.
    pub(super) why: String,
    /// What a cancelled run has told.
    pub(super) details: Option<RawValue>,
}

impl NoResult {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), details: None }
    }
}

impl Temporal {
    /// Waits for the end of a run of this id. Returns its result, or the reason why there is none.
    ///
    /// # Errors
    /// There is no such run, or the server does not answer.
    pub(super) async fn result_of(
        &self,
        run: UntypedWorkflowHandle<Client>,
        id: &str,
    ) -> anyhow::Result<Result<RawValue, NoResult>> {
        let error = match run.get_result(WorkflowGetResultOptions::builder().build()).boxed().await
        {
            Ok(value) => return Ok(Ok(value)),
            Err(error) => error,
        };
        Ok(Err(match error {
            WorkflowGetResultError::Failed(error) => NoResult::new(join_causes(&error)),
            WorkflowGetResultError::Cancelled { details } => {
                NoResult { details: Some(details.into_raw()), ..NoResult::new("it was cancelled") }
            }
            WorkflowGetResultError::Terminated { .. } => NoResult::new("it was terminated"),
            WorkflowGetResultError::TimedOut => NoResult::new("it timed out"),
            WorkflowGetResultError::NotFound(_) => return Err(no_such_batch(id)),
            error => return Err(self.server_error(&error.to_string())),
        }))
    }
}

pub(super) fn no_such_batch(id: &str) -> anyhow::Error {
    anyhow!("there is no batch called {id}; `tidegate status` lists them")
}

/// The messages of a failure and its causes, without repetitions.
pub(super) fn join_causes(error: &IncomingError) -> String {
    let mut texts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let failure = error.failure();
        if !failure.message.is_empty() && texts.last() != Some(&failure.message) {
            texts.push(failure.message.clone());
        }
        next = error.cause();
    }
    texts.join(": ")
}
