//! Activities of a batch that have not ended: what its documents wait for, as the server sees it.

use std::time::{Duration, SystemTime};

use futures::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream};
use serde_json::Value;
use temporalio_client::{
    WorkflowDescribeOptions, WorkflowFetchHistoryOptions, errors::WorkflowInteractionError,
};
use temporalio_common::protos::temporal::api::{
    enums::v1::PendingActivityState, failure::v1::failure::FailureInfo,
    history::v1::history_event::Attributes, workflow::v1::PendingActivityInfo,
    workflowservice::v1::DescribeWorkflowExecutionResponse,
};

use super::{batch::unknown, connection::Temporal};

/// Shards are described so many at a time.
const AT_ONCE: usize = 8;

/// An activity that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// Such as `tidegate.process_document`.
    pub activity: String,
    /// Whether a worker has it.
    pub started: bool,
    /// When the next attempt is due, if it is not now.
    pub next: Option<SystemTime>,
    /// Type and message of the last attempt's failure.
    pub failure: Option<(String, String)>,
}

impl Temporal {
    /// Every activity of a batch and of its shards that has not ended.
    ///
    /// # Errors
    /// There is no such batch, or the server is away.
    pub fn pending<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Vec<Pending>>> {
        async move {
            let batch = self.description(id).await?.ok_or_else(|| unknown(id))?;
            let shards = batch
                .pending_children
                .into_iter()
                .map(|child| async move { self.description(&child.workflow_id).await });
            // A shard that has ended since waits for nothing.
            let described: Vec<_> = stream::iter(shards).buffered(AT_ONCE).try_collect().await?;
            let of_shards =
                described.into_iter().flatten().flat_map(|shard| shard.pending_activities);
            Ok(batch.pending_activities.into_iter().chain(of_shards).map(Pending::from).collect())
        }
        .boxed()
    }

    /// The input of a batch's newest run, as JSON; null for anything else.
    ///
    /// # Errors
    /// There is no such batch, or the server is away.
    pub fn input<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Value>> {
        async move {
            let mut history =
                self.handle(id).fetch_history(WorkflowFetchHistoryOptions::builder().build());
            let first = match history.next().await {
                Some(Ok(event)) => event,
                Some(Err(WorkflowInteractionError::NotFound(_))) | None => return Err(unknown(id)),
                Some(Err(error)) => return Err(self.refused(&error.to_string())),
            };
            let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) =
                first.attributes
            else {
                return Ok(Value::Null);
            };
            let payload = started.input.and_then(|input| input.payloads.into_iter().next());
            Ok(payload
                .and_then(|payload| serde_json::from_slice(&payload.data).ok())
                .unwrap_or_default())
        }
        .boxed()
    }

    async fn description(
        &self,
        id: &str,
    ) -> anyhow::Result<Option<DescribeWorkflowExecutionResponse>> {
        match self.handle(id).describe(WorkflowDescribeOptions::builder().build()).await {
            Ok(seen) => Ok(Some(seen.into_raw())),
            Err(WorkflowInteractionError::NotFound(_)) => Ok(None),
            Err(error) => Err(self.refused(&error.to_string())),
        }
    }
}

impl From<PendingActivityInfo> for Pending {
    fn from(seen: PendingActivityInfo) -> Self {
        let started = matches!(
            seen.state(),
            PendingActivityState::Started
                | PendingActivityState::CancelRequested
                | PendingActivityState::PauseRequested
        );
        let failure = seen.last_failure.map(|failure| {
            let kind = match failure.failure_info {
                Some(FailureInfo::ApplicationFailureInfo(info)) => info.r#type,
                Some(FailureInfo::TimeoutFailureInfo(_)) => "Timeout".to_owned(),
                _ => String::new(),
            };
            (kind, failure.message)
        });
        let next = seen.next_attempt_schedule_time.and_then(|time| {
            let since =
                Duration::new(u64::try_from(time.seconds).ok()?, u32::try_from(time.nanos).ok()?);
            Some(SystemTime::UNIX_EPOCH + since)
        });
        Self {
            activity: seen.activity_type.map(|kind| kind.name).unwrap_or_default(),
            started,
            next: next.filter(|next| !started && *next > SystemTime::now()),
            failure,
        }
    }
}
