//! Makes one call durable, by an id: as an activity without a workflow, or as a workflow if the server
//! does not support such activities.

use anyhow::Context;
use futures::FutureExt;
use serde_json::Value;
use temporalio_client::{
    ActivityDescribeOptions, ActivityExecutionInfoLike as _, ActivityIdConflictPolicy,
    ActivityIdReusePolicy, ActivityStartOptions, UntypedWorkflow, WorkflowGetResultOptions,
    WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowStartOptions,
    errors::{ActivityResultError, StartActivityError, WorkflowGetResultError, WorkflowStartError},
    tonic::Code,
};
use temporalio_common::UntypedActivity;
use tidegate_workflows::{contract::SubmittedCall, policy};

use super::{
    batch::{join_causes, json, parse},
    connection::Temporal,
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
        let options = ActivityStartOptions::with_start_to_close_timeout(queue, id, policy::CALL)
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
            Err(ActivityResultError::Cancelled { .. }) => cancelled(),
            Err(ActivityResultError::Terminated) => terminated(),
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
        let given = serde_json::to_value(call).context("writing the call")?;
        if self.first_input(id).await? != given {
            return Ok(Submitted::Another);
        }
        let run = self.handle(id);
        Ok(match run.get_result(WorkflowGetResultOptions::builder().build()).boxed().await {
            Ok(value) => Submitted::Done(parse(value)?),
            Err(WorkflowGetResultError::Failed(error)) => Submitted::Failed(join_causes(&error)),
            Err(WorkflowGetResultError::Cancelled { .. }) => cancelled(),
            Err(WorkflowGetResultError::Terminated { .. }) => terminated(),
            Err(error) => return Err(self.server_error(&error.to_string())),
        })
    }
}

fn cancelled() -> Submitted {
    Submitted::Failed("it was cancelled".to_owned())
}

fn terminated() -> Submitted {
    Submitted::Failed("it was terminated".to_owned())
}
