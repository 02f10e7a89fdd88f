//! Makes one call durable, by an id: as an activity without a workflow, or as a workflow if the server
//! does not support such activities.

use futures::FutureExt;
use serde_json::Value;
use temporalio_client::{
    ActivityDescribeOptions, ActivityExecutionInfoLike as _, ActivityIdConflictPolicy,
    ActivityIdReusePolicy, ActivityStartOptions, UntypedWorkflow, WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy, WorkflowStartOptions,
    errors::{ActivityResultError, StartActivityError, WorkflowStartError},
    tonic::Code,
};
use temporalio_common::UntypedActivity;
use tidegate_workflows::{contract::SubmittedCall, policy};

use super::{
    batch::{json, parse},
    connection::Temporal,
    run_end::{NoResult, join_causes},
};

/// The outcome of a submission.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// The result of this submission, or of an earlier identical one.
    Done(Value),
    /// It failed or was stopped, for this reason.
    Failed(String),
    /// The id belongs to another call.
    Another,
}

impl Temporal {
    /// Starts a call by an id, or finds the call that runs or has succeeded, and waits for its end. A
    /// failed call is started again.
    ///
    /// # Errors
    /// The server refuses or does not answer.
    pub async fn submit(&self, id: &str, call: &SubmittedCall) -> anyhow::Result<Submitted> {
        match self.by_activity(id, call).await? {
            Some(submitted) => Ok(submitted),
            None => self.by_workflow(id, call).await,
        }
    }

    /// `None` if the server does not support activities without a workflow.
    async fn by_activity(
        &self,
        id: &str,
        call: &SubmittedCall,
    ) -> anyhow::Result<Option<Submitted>> {
        let SubmittedCall { activity: kind, lane, input } = call;
        let queue = policy::lane_queue(self.task_queue(), lane);
        let options = ActivityStartOptions::with_start_to_close_timeout(queue, id, policy::ATTEMPT)
            .heartbeat_timeout(policy::CALL_HEARTBEAT)
            .id_reuse_policy(ActivityIdReusePolicy::AllowDuplicateFailedOnly)
            .id_conflict_policy(ActivityIdConflictPolicy::UseExisting)
            .build();
        let activity = UntypedActivity::new(kind.as_str());
        let handle =
            match self.client().start_activity(activity, json(input), options).boxed().await {
                Ok(handle) => handle,
                Err(StartActivityError::AlreadyStarted { run_id, .. }) => {
                    self.client().get_untyped_activity_handle(id, Some(run_id))
                }
                Err(StartActivityError::Rpc(status)) if status.code() == Code::Unimplemented => {
                    return Ok(None);
                }
                Err(error) => return Err(self.server_error(&error.to_string())),
            };
        let whole = ActivityDescribeOptions::builder().include_input(true).build();
        let seen = handle.describe(whole).boxed().await;
        let seen = seen.map_err(|error| self.server_error(&error.to_string()))?;
        let given = seen.input().await?.map(parse::<Value>).transpose()?;
        if seen.activity_type() != kind.as_str() || given.as_ref() != Some(input) {
            return Ok(Some(Submitted::Another));
        }
        Ok(Some(match handle.result().boxed().await {
            Ok(value) => Submitted::Done(parse(value)?),
            Err(ActivityResultError::ActivityFailed(error)) => {
                Submitted::Failed(join_causes(&error))
            }
            Err(ActivityResultError::Cancelled { .. }) => {
                Submitted::Failed("it was cancelled".to_owned())
            }
            Err(ActivityResultError::Terminated) => {
                Submitted::Failed("it was terminated".to_owned())
            }
            Err(ActivityResultError::TimedOut(_)) => Submitted::Failed("it timed out".to_owned()),
            Err(error) => return Err(self.server_error(&error.to_string())),
        }))
    }

    /// Makes the call in a workflow of its own.
    async fn by_workflow(&self, id: &str, call: &SubmittedCall) -> anyhow::Result<Submitted> {
        let options = WorkflowStartOptions::new(self.task_queue().to_owned(), id.to_owned())
            .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicateFailedOnly)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .build();
        let workflow = UntypedWorkflow::new("ProcessCall");
        match self.client().start_workflow(workflow, json(call), options).boxed().await {
            Ok(_) | Err(WorkflowStartError::AlreadyStarted { .. }) => {}
            Err(error) => return Err(self.server_error(&error.to_string())),
        }
        // As for an activity, the lane is no part of the question.
        let given = self.first_input(id).await?;
        if given["activity"] != call.activity || given["input"] != call.input {
            return Ok(Submitted::Another);
        }
        Ok(match self.result_of(self.handle(id), id).await? {
            Ok(value) => Submitted::Done(parse(value)?),
            Err(NoResult { why, .. }) => Submitted::Failed(why),
        })
    }
}
