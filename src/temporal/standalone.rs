//! Activities that belong to no workflow: one call as a durable unit, by an id.

use std::time::Duration;

use anyhow::anyhow;
use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;
use temporalio_client::{
    ActivityDescribeOptions, ActivityExecutionInfoLike as _, ActivityIdConflictPolicy,
    ActivityIdReusePolicy, ActivityStartOptions,
    errors::{ActivityResultError, StartActivityError},
    tonic::Code,
};
use temporalio_common::UntypedActivity;

use super::{
    batch::{causes, json, parse},
    connection::Temporal,
};

/// One attempt: a call of ten minutes, and some wait before it.
const ATTEMPT: Duration = Duration::from_secs(15 * 60);

/// After so long without a beat its worker is given up.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// What became of a submission.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// Its result, now or of an earlier submission of the same.
    Done(Value),
    /// It failed, or was ended; the sentence says why.
    Failed(String),
    /// Something else was submitted by this id.
    Another,
}

impl Temporal {
    /// Starts an activity of this type by an id, or finds the one that runs or has succeeded, and waits
    /// for its end. One that failed is started anew.
    ///
    /// # Errors
    /// The server refuses, is away, or knows no activities without a workflow.
    pub fn submit<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
        task_queue: &'a str,
        input: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<Submitted>> {
        async move {
            let options =
                ActivityStartOptions::with_start_to_close_timeout(task_queue, id, ATTEMPT)
                    .heartbeat_timeout(HEARTBEAT)
                    .id_reuse_policy(ActivityIdReusePolicy::AllowDuplicateFailedOnly)
                    .id_conflict_policy(ActivityIdConflictPolicy::UseExisting)
                    .build();
            let activity = UntypedActivity::new(kind);
            let started = self.client().start_activity(activity, json(input), options).await;
            let handle = match started {
                Ok(handle) => handle,
                Err(StartActivityError::AlreadyStarted { run_id, .. }) => {
                    self.client().get_untyped_activity_handle(id, Some(run_id))
                }
                Err(StartActivityError::Rpc(status)) if status.code() == Code::Unimplemented => {
                    return Err(anyhow!(
                        "the Temporal server at {} knows no activities without a workflow; call {kind} from a workflow",
                        self.address()
                    ));
                }
                Err(error) => return Err(self.refused(&error.to_string())),
            };
            let whole = ActivityDescribeOptions::builder().include_input(true).build();
            let seen = handle.describe(whole).await;
            let seen = seen.map_err(|error| self.refused(&error.to_string()))?;
            let given = seen.input().await?.map(parse::<Value>).transpose()?;
            if seen.activity_type() != kind || given.as_ref() != Some(input) {
                return Ok(Submitted::Another);
            }
            match handle.result().await {
                Ok(value) => Ok(Submitted::Done(parse(value)?)),
                Err(ActivityResultError::ActivityFailed(error)) => {
                    Ok(Submitted::Failed(causes(&error)))
                }
                Err(ActivityResultError::Cancelled { .. }) => {
                    Ok(Submitted::Failed("it was cancelled".to_owned()))
                }
                Err(ActivityResultError::Terminated) => {
                    Ok(Submitted::Failed("it was terminated".to_owned()))
                }
                Err(error) => Err(self.refused(&error.to_string())),
            }
        }
        .boxed()
    }
}
