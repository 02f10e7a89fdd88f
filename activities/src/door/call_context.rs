//! A call of the Temporal door: its caller, its waits, and its stored answer.
//!
//! A far turn goes back to Temporal as `QuotaWait`, and the next attempt keeps it. If the caller
//! allows no further attempt, or the activity times out before the turn, the call waits in its
//! slot. It stops waiting when just enough time for the request is left. Such waits have the
//! worker's usual bounds.
//!
//! The answer is stored under `[calls] answers` before its attempt returns, so that it is bought once. The
//! location is a hash of namespace, workflow and run (a standalone activity has a run of its own), activity,
//! the time at which it was first scheduled, and the question. So every attempt finds the answer of an
//! earlier one, while another run, or a workflow that was reset, buys its own.

use std::time::{Duration, Instant, SystemTime};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use temporalio_client::{
    ActivityDescribeOptions, NamespacedClient as _, UntypedWorkflow, WorkflowDescribeOptions,
    WorkflowExecutionInfo, WorkflowHandle,
};
use temporalio_sdk::activities::{ActivityContext, ActivityInfo};
use tidegate_calls::{attempt, route::Route};
use tidegate_types::{FailureType, Lane};
use tidegate_workflows::contract::{CallOutcome, EmbedOutcome};

use crate::{
    attempt::Attempt,
    failure::Failure,
    fingerprint::Fingerprint,
    output::pending_writes::Bought,
    services::{Calls, Services},
    storage::Location,
};

/// The inputs of a call of the Temporal door.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    pub(super) services: &'a Services,
    pub(super) attempt: &'a Attempt,
    /// The lane of the activity's task queue.
    pub(super) lane: &'a Lane,
    pub(super) patience: &'a WaitPolicy<'a>,
    /// Where the answer is stored.
    pub(super) stored: &'a StoredAnswer,
}

impl CallContext<'_> {
    /// Asks, and asks again after a wait that must be held in this slot.
    ///
    /// # Errors
    /// The failure with which the attempt ends.
    pub(super) async fn ask<T, F: Future<Output = Result<T, Failure>>>(
        self,
        route: &Route,
        mut ask: impl FnMut(Attempt) -> F,
    ) -> Result<T, Failure> {
        let Self { services, attempt, lane, patience, .. } = self;
        let guard = &services.guard;
        let until = patience.until(services, route);
        let mut stays = patience.stays;
        loop {
            let call = attempt.call.clone().deadline(until);
            let call = if stays { call.patience(attempt::Patience::Whole) } else { call };
            let failure = match ask(attempt.clone().with_call(call)).await {
                Err(failure) if failure.kind == FailureType::QuotaWait => failure,
                ended => return ended,
            };
            let Some(delay) = failure.retry.delay(guard.backoff, patience.ctx.info().attempt)
            else {
                return Err(failure);
            };
            if !stays {
                if !patience.closes_within(delay).await {
                    return Err(failure);
                }
                stays = true;
                continue;
            }
            // The wait is not for quota, or there is no time or slot for it.
            let is_late = until.is_some_and(|until| Instant::now() + delay > until);
            let slot = route.models.first().and_then(|model| {
                let request = attempt.call.request(model.clone()).lane(lane.clone());
                guard.waiting.enter(&request).1
            });
            if is_late || slot.is_none() {
                return Err(failure);
            }
            tokio::select! {
                () = guard.stopping.cancelled() => return Err(failure),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}

/// Precedes a lane's name in the name of its task queue: `tidegate_workflows::policy::lane_queue`.
const LANE: &str = "-lane-";

/// The workflow that an activity belongs to; `None` for a standalone activity.
pub(super) fn workflow(info: &ActivityInfo) -> Option<&str> {
    info.workflow_id.as_deref().filter(|workflow| !workflow.is_empty())
}

/// The lane of a task queue.
pub(super) fn lane(services: &Services, task_queue: &str) -> Result<Lane, Failure> {
    let lanes = services.guard.quota.models().take(1).flat_map(|model| model.lanes.iter());
    let of_queue = |lane: &&Lane| {
        task_queue.strip_suffix(lane.as_str()).is_some_and(|before| before.ends_with(LANE))
    };
    let mut lanes = lanes.map(|(lane, _)| lane);
    lanes.find(of_queue).cloned().ok_or_else(|| {
        Failure::invalid_input(format!(
            "the task queue \"{task_queue}\" belongs to no lane; use the task queue of a lane, such as {task_queue}{LANE}interactive"
        ))
    })
}

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

/// An outcome that may be returned without its large parts.
pub(super) trait Large {
    /// Replaces its large parts by the URI of the stored outcome.
    fn replaced_by_uri(self, uri: String) -> Self;
}

impl Large for CallOutcome {
    fn replaced_by_uri(self, uri: String) -> Self {
        Self { answer: None, value: None, reply: None, answer_uri: Some(uri), ..self }
    }
}

impl Large for EmbedOutcome {
    fn replaced_by_uri(self, uri: String) -> Self {
        Self { vectors: None, answer_uri: Some(uri), ..self }
    }
}

/// The location of one activity's answer.
#[derive(Debug)]
pub(super) struct StoredAnswer {
    /// Fingerprint of the question, independent of the caller.
    pub(super) asks: Fingerprint,
    location: Location,
    /// Where an answer that is not accepted is stored.
    pub(super) part: Location,
    inline: u64,
}

impl StoredAnswer {
    /// The location for the running activity's input.
    pub(super) fn new(calls: &Calls, info: &ActivityInfo, input: &Value) -> Self {
        let scheduled =
            info.scheduled_time.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        // To the nanosecond: it tells apart the runs of a standalone activity, which the SDK does not.
        let scheduled = scheduled.unwrap_or_default().as_nanos().to_string();
        let run = workflow(info).and(info.workflow_run_id.as_deref());
        let asks = Fingerprint::of_json(input);
        let whose = json!([info.namespace, workflow(info), run, info.activity_id, scheduled, asks]);
        let name = Fingerprint::of_json(&whose).to_string();
        let folder = calls.answers.child(&name[..2]);
        let [location, part] =
            ["json", "part.json"].map(|kind| folder.child(&format!("{name}.{kind}")));
        Self { asks, location, part, inline: calls.inline }
    }

    /// Finds the answer that an earlier attempt has bought.
    ///
    /// # Errors
    /// `Transient` while the store fails, or the answer is in the spool of a worker that is away.
    pub(super) async fn find<T: Large + DeserializeOwned>(
        &self,
        services: &Services,
        attempt: &Attempt,
    ) -> Result<Option<T>, Failure> {
        services.pending_writes.recover(attempt, &self.location).await?;
        let found = self.read().await?;
        if found.is_none() {
            services.pending_writes.check_spooled(attempt)?;
        }
        Ok(found)
    }

    /// Stores the answer that this attempt has bought. Returns the answer that was stored first.
    ///
    /// # Errors
    /// The errors of [`Self::find`].
    pub(super) async fn save<T: Large + Serialize + DeserializeOwned>(
        &self,
        services: &Services,
        attempt: &Attempt,
        outcome: T,
    ) -> Result<T, Failure> {
        let json = serde_json::to_vec(&outcome)
            .map_err(|error| Failure::invalid_input(error.to_string()))?;
        let length = json.len();
        if services.pending_writes.write(attempt, &Bought::new(&self.location, json)).await? {
            return Ok(self.without_large_parts(outcome, length));
        }
        let first = self.read().await?;
        Ok(first.unwrap_or_else(|| self.without_large_parts(outcome, length)))
    }

    async fn read<T: Large + DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let Some(bytes) = self.location.read_if_there().await? else { return Ok(None) };
        let outcome = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::invalid_input(format!(
                "{} is no answer of this activity ({error}); remove it",
                self.location
            ))
        })?;
        Ok(Some(self.without_large_parts(outcome, bytes.len())))
    }

    fn without_large_parts<T: Large>(&self, outcome: T, length: usize) -> T {
        match length as u64 > self.inline {
            true => outcome.replaced_by_uri(self.location.uri()),
            false => outcome,
        }
    }
}
