//! Time-outs, retries and priorities of every activity. Temporal is the only retry layer.

use std::time::Duration;

use temporalio_common::{ActivityCloseTimeouts, Priority};
use temporalio_workflow::{
    ActivityCancellationType, ActivityOptions, RetryPolicy, WorkflowCancellationToken,
};
use tidegate_types::{Lane, Tenant};

/// Default heartbeat time-out: the time after which a lost worker is noticed. A heartbeat is sent
/// after five elevenths of it, and costs money on Temporal Cloud: a call of up to 25 s needs none,
/// one of up to 50 s one. An attempt that has sent no call sends one every 18 s.
pub const HEARTBEAT: Duration = Duration::from_secs(55);

/// Heartbeat time-out of interactive lanes.
const INTERACTIVE_HEARTBEAT: Duration = Duration::from_secs(10);

/// Delay before a retry without a delay of its own, such as after a lost worker; it doubles each
/// time.
pub const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The longest `request-timeout` of a provider. A call that outlasts its attempt would be paid for
/// and lost.
pub const LONGEST_CALL: Duration = Duration::from_secs(25 * 60);

/// Time-out of one attempt at a document, or at a call that a user submits: the wait in place, the
/// call, reading and writing.
pub const ATTEMPT: Duration = Duration::from_secs(30 * 60);

/// Heartbeat time-out of a call that a user submits.
pub const CALL_HEARTBEAT: Duration = Duration::from_secs(30);

/// Time-out of activities that stream through every document: listing, sealing, finishing.
const BATCH: Duration = Duration::from_secs(6 * 60 * 60);

/// Time for which the end of a run waits until its paused flag is cleared: nothing reads the flag of
/// an ended run.
const LAST_MARK: Duration = Duration::from_secs(60);

/// Time-out of one message to a webhook: longer than the receiver may take.
const WEBHOOK: Duration = Duration::from_secs(60);

/// Time for which a webhook whose receiver is away is retried.
const WEBHOOK_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The task queue of one lane's documents, separate from that of the workflows. A worker reserves a
/// slot before it knows for which task, so only a separate queue protects a lane's slots from other
/// lanes.
pub fn lane_queue(task_queue: &str, lane: &Lane) -> String {
    format!("{task_queue}-lane-{lane}")
}

/// The task queue for submissions to providers' batch APIs. Such a step reads and holds thousands
/// of documents, and few run at once; in the workflows' queue, waiting ones would fill the slots
/// that plans, seals and finishes need.
pub fn submission_queue(task_queue: &str) -> String {
    format!("{task_queue}-submissions")
}

/// Options of `tidegate.process_document`, for a workflow on `task_queue`.
///
/// No schedule-to-close time-out: a delay longer than its rest would fail the document at once.
/// Failures carry their own delay; the policy applies to those without one, such as a lost worker.
/// Never eager: an eager activity bypasses the task queue, and with it priority and fairness. A
/// worker is given up after `heartbeat_seconds` without a heartbeat; 0 is the lane's default.
pub fn document(
    task_queue: &str,
    lane: &Lane,
    tenant: &Tenant,
    heartbeat_seconds: u32,
) -> ActivityOptions {
    let mut priority = Priority::default();
    priority.priority_key = Some(priority_key(lane));
    // Temporal Cloud charges for keys, and equal keys order nothing.
    priority.fairness_key = (*tenant != Tenant::default()).then(|| fairness_key(tenant));
    let mut options = on_lane(task_queue, lane, heartbeat(lane, heartbeat_seconds));
    options.priority = Some(priority);
    options
}

/// Options of `tidegate.call` and `tidegate.embed`, for a workflow on `task_queue`, as given in
/// `docs/temporal-door.md`.
pub fn call(task_queue: &str, lane: &Lane) -> ActivityOptions {
    on_lane(task_queue, lane, CALL_HEARTBEAT)
}

fn on_lane(task_queue: &str, lane: &Lane, heartbeat: Duration) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(ATTEMPT)
        .task_queue(lane_queue(task_queue, lane))
        .heartbeat_timeout(heartbeat)
        .do_not_eagerly_execute(true)
        .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
        .retry_policy(retry())
        .build()
}

/// Options of activities for a whole shard or batch. With a token of its own, the activity also
/// runs after the workflow was cancelled.
pub fn batch(token: Option<WorkflowCancellationToken>) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(BATCH)
        .heartbeat_timeout(HEARTBEAT)
        .do_not_eagerly_execute(true)
        .retry_policy(retry())
        .maybe_cancellation_token(token)
        .build()
}

/// Options of `tidegate.submit_batch`, for a workflow on `task_queue`. It also runs after the
/// workflow was cancelled: an unrecorded batch would be paid for and lost.
pub fn submission(task_queue: &str) -> ActivityOptions {
    let mut options = batch(Some(WorkflowCancellationToken::new()));
    options.task_queue = Some(submission_queue(task_queue));
    options
}

/// Options of the `tidegate.mark_paused` that clears the flag, also after the workflow was cancelled.
pub fn last_mark() -> ActivityOptions {
    let timeouts = ActivityCloseTimeouts::ScheduleToClose(LAST_MARK);
    ActivityOptions::with_close_timeouts(timeouts)
        .do_not_eagerly_execute(true)
        .retry_policy(retry())
        .cancellation_token(WorkflowCancellationToken::new())
        .build()
}

/// Options of `tidegate.notify`: retried for a day, first after 5 s, in the end every half an hour.
pub fn webhook() -> ActivityOptions {
    let retry = RetryPolicy::builder()
        .initial_interval(Duration::from_secs(5))
        .backoff_coefficient(2.0)
        .maximum_interval(Duration::from_secs(30 * 60))
        .maximum_attempts(0)
        .build();
    let timeouts = ActivityCloseTimeouts::ScheduleAndStartToClose {
        start_to_close: WEBHOOK,
        schedule_to_close: WEBHOOK_PATIENCE,
    };
    ActivityOptions::with_close_timeouts(timeouts)
        .do_not_eagerly_execute(true)
        .retry_policy(retry)
        .build()
}

fn retry() -> RetryPolicy {
    RetryPolicy::builder()
        .initial_interval(FIRST_RETRY)
        .backoff_coefficient(2.0)
        .maximum_interval(Duration::from_secs(60))
        .maximum_attempts(0)
        .build()
}

fn heartbeat(lane: &Lane, seconds: u32) -> Duration {
    match (seconds, lane.as_str()) {
        (0, "interactive") => INTERACTIVE_HEARTBEAT,
        (0, _) => HEARTBEAT,
        (seconds, _) => Duration::from_secs(seconds.into()),
    }
}

/// Temporal's priorities go from 1 (first) to 5 (last).
fn priority_key(lane: &Lane) -> u32 {
    match lane.as_str() {
        "interactive" => 1,
        "batch" => 5,
        _ => 3,
    }
}

/// Temporal takes at most 64 bytes.
fn fairness_key(tenant: &Tenant) -> String {
    let mut end = tenant.as_str().len().min(64);
    while !tenant.as_str().is_char_boundary(end) {
        end -= 1;
    }
    tenant.as_str()[..end].to_owned()
}
