//! Bounds of a call's wait, by its caller's time-outs and retry policy.
//!
//! A far turn goes back to Temporal as `QuotaWait`, and the next attempt keeps it. If the caller
//! allows no further attempt, or the activity times out before the turn, the call waits in its
//! slot. It stops waiting when just enough time for the request is left. Such waits have the
//! worker's usual bounds.

use std::time::{Duration, Instant, SystemTime};

use temporalio_client::{
    ActivityDescribeOptions, NamespacedClient as _, UntypedWorkflow, WorkflowDescribeOptions,
    WorkflowExecutionInfo, WorkflowHandle,
};
use temporalio_sdk::activities::{ActivityContext, ActivityInfo};
use tidegate_calls::route::Route;
use tidegate_types::FailureType;

use super::caller::workflow;
use crate::services::Services;

/// The waits that the caller allows.
pub(super) struct WaitPolicy<'a> {
    pub(super) ctx: &'a ActivityContext,
    /// Whether this is the last attempt.
    pub(super) is_last: bool,
    /// Whether no attempt follows a wait.
    pub(super) stays: bool,
    began: Instant,
}

impl<'a> WaitPolicy<'a> {
    /// Reads the limits of the running activity.
    pub(super) fn from_context(ctx: &'a ActivityContext) -> Self {
        let policy = ctx.info().retry_policy.as_ref();
        let is_last =
            policy.is_some_and(|it| (1..=ctx.info().attempt).contains(&it.maximum_attempts()));
        let waits = FailureType::QuotaWait.as_str();
        let fails = policy
            .is_some_and(|it| it.non_retryable_error_types().iter().any(|kind| kind == waits));
        Self { ctx, is_last, stays: is_last || fails, began: Instant::now() }
    }

    /// The latest time until which a call may wait here. After it, just enough time is left for the
    /// request, or half of the time if a request may take longer.
    pub(super) fn until(&self, services: &Services, route: &Route) -> Option<Instant> {
        let info = self.ctx.info();
        let left = since(info.deadline?, info)?;
        let request = |model| Some(services.providers.get(model)?.bounds(model.model()).time)?;
        let longest = route.models.iter().filter_map(request).max().unwrap_or_default();
        Some(self.began + left.saturating_sub(longest).max(left / 2))
    }

    /// Whether the activity times out within this delay.
    pub(super) async fn closes_within(&self, delay: Duration) -> bool {
        let info = self.ctx.info();
        let at = self.began.elapsed() + delay;
        let left = info.deadline.and_then(|deadline| since(deadline, info));
        // The earlier of two time-outs: the attempt's own, which the next attempt does not share,
        // and the activity's. After it has passed, the server reports which one it was.
        if left.is_none_or(|left| at < left) {
            return false;
        }
        let closes = self.closes().await;
        closes.and_then(|closes| since(closes, info)).is_some_and(|left| at >= left)
    }

    /// The time at which the activity times out, over all its attempts.
    async fn closes(&self) -> Option<SystemTime> {
        let (info, client) = (self.ctx.info(), self.ctx.client());
        let closes = match workflow(info) {
            Some(workflow) => {
                let execution = WorkflowExecutionInfo::builder()
                    .namespace(client.namespace())
                    .workflow_id(workflow.to_owned())
                    .maybe_run_id(info.workflow_run_id.clone())
                    .build();
                let handle = WorkflowHandle::<_, UntypedWorkflow>::new(client, execution);
                let seen = handle.describe(WorkflowDescribeOptions::default()).await.ok()?;
                let mut pending = seen.raw().pending_activities.iter();
                pending.find(|it| it.activity_id == info.activity_id)?.expiration_time
            }
            None => {
                let run = info.activity_run_id.clone();
                let handle = client.get_untyped_activity_handle(&info.activity_id, run);
                let seen = handle.describe(ActivityDescribeOptions::default()).await.ok()?;
                return seen.expiration_time();
            }
        };
        closes?.try_into().ok()
    }
}

/// Time from the attempt's start to `time`, by the server's clock.
fn since(time: SystemTime, info: &ActivityInfo) -> Option<Duration> {
    Some(time.duration_since(info.started_time?).unwrap_or_default())
}
