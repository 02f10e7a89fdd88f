//! Documents that go through their provider's batch API: handed in, waited for through days and restarts, collected.
//!
//! What has no answer in the end takes the direct path, as if there had been no batch: requests that failed in it, documents
//! that it could not take, everything once time is up.

use std::time::{Duration, SystemTime};

use temporalio_workflow::{ActivityExecutionError, TimerOptions, WorkflowCancellationToken, WorkflowContext};

use crate::{
    contract::{Activities, BatchState, Economy, ProviderBatch, SubmitBatch},
    policy,
    process_shard::ProcessShard,
};

/// The provider is asked how far it is after this long, then ever less often: no batch is late by more than half of what it
/// took, and a day has some 150 questions.
const FIRST_CHECK: Duration = Duration::from_secs(5);
const LAST_CHECK: Duration = Duration::from_secs(600);

/// Providers give up after 24 h, and say so by then.
const PATIENCE: Duration = Duration::from_secs(25 * 60 * 60);

/// Who has been asked to stop may finish what is at hand: Anthropic waits for requests that are under way.
const STOPPING: Duration = Duration::from_secs(10 * 60);

/// Hands in the shard's documents and waits for their answers. Returns when none is waited for, also after the workflow was
/// cancelled: what has been paid for by then is collected.
pub(crate) async fn run(ctx: &WorkflowContext<ProcessShard>, economy: Economy) -> Result<(), ActivityExecutionError> {
    let began = now(ctx);
    let until = economy.until.map_or(began + PATIENCE, |until| SystemTime::UNIX_EPOCH + Duration::from_secs(until));
    let mut open = hand_in(ctx).await?;
    let (mut wait, mut stopping) = (FIRST_CHECK, None);
    while !open.is_empty() {
        let cancelled = ctx.cancellation_token().is_cancelled();
        match stopping {
            None if cancelled || now(ctx) >= until => {
                for batch in &open {
                    // Whether or not it could be told: it is waited for, for a while.
                    let _ = ctx.execute_activity(Activities::cancel_batch, batch.clone(), shielded()).await;
                }
                (stopping, wait) = (Some(now(ctx) + STOPPING), FIRST_CHECK);
            }
            Some(last) if now(ctx) >= last => break,
            _ => {}
        }
        let mut timer: TimerOptions = wait.into();
        if stopping.is_some() {
            timer.cancellation_token = Some(WorkflowCancellationToken::new());
        } else if let Ok(left) = until.duration_since(now(ctx)) {
            timer.duration = wait.min(left);
        }
        ctx.timer(timer).await;
        wait = (wait * 3 / 2).min(LAST_CHECK);
        let mut waiting = Vec::new();
        for batch in open {
            waiting.extend(check(ctx, batch, stopping.is_none()).await?);
        }
        open = waiting;
    }
    // Those that are given up are not in flight any more.
    ctx.state_mut(|shard| {
        shard.input.totals.in_flight = 0;
        shard.input.economy = None;
    });
    Ok(())
}

/// All documents of the shard, in as many batches as they need.
async fn hand_in(ctx: &WorkflowContext<ProcessShard>) -> Result<Vec<ProviderBatch>, ActivityExecutionError> {
    let (job, shard, to) = ctx.state(|shard| (shard.input.job.clone(), shard.input.shard, shard.input.documents));
    let (mut open, mut from) = (Vec::new(), 0);
    while from < to {
        if ctx.wait_condition(|shard| !shard.input.paused).await.is_err() {
            break;
        }
        let task = SubmitBatch { job: job.clone(), shard, from, to, round: 0 };
        match submit(ctx, task).await {
            Ok((batch, next)) => {
                open.extend(batch);
                from = next.max(from + 1);
            }
            Err(error) if error.as_cancelled().is_some() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(open)
}

/// Shielded from the workflow's cancellation: a batch that was handed in and is not known would be paid for, and lost.
async fn submit(
    ctx: &WorkflowContext<ProcessShard>,
    task: SubmitBatch,
) -> Result<(Option<ProviderBatch>, u32), ActivityExecutionError> {
    let submitted = ctx.execute_activity(Activities::submit_batch, task.clone(), shielded()).await?;
    ctx.state_mut(|shard| shard.input.totals.in_flight += u64::from(submitted.requests));
    let batch = submitted.batch.map(|batch| ProviderBatch {
        // Handed in once more, it holds the same documents.
        submitted: SubmitBatch { to: submitted.next, ..task },
        batch,
        requests: submitted.requests,
    });
    Ok((batch, submitted.next))
}

/// The batch if it is waited for still. One that found no room is handed in again.
async fn check(
    ctx: &WorkflowContext<ProcessShard>,
    batch: ProviderBatch,
    again: bool,
) -> Result<Option<ProviderBatch>, ActivityExecutionError> {
    let state = ctx.execute_activity(Activities::check_batch, batch.clone(), shielded()).await?;
    if state == BatchState::Running {
        return Ok(Some(batch));
    }
    ctx.state_mut(|shard| {
        let in_flight = &mut shard.input.totals.in_flight;
        *in_flight = in_flight.saturating_sub(u64::from(batch.requests));
    });
    match state {
        BatchState::Ended => {
            let collected = ctx.execute_activity(Activities::collect_batch, batch, shielded()).await?;
            ctx.state_mut(|shard| {
                shard.input.totals.succeeded += collected.done.len() as u64;
                shard.input.totals.add_spent(&collected.spent);
                shard.input.done.extend(collected.done);
                shard.input.done.sort_unstable();
            });
            Ok(None)
        }
        BatchState::Full if again => {
            let task = SubmitBatch { round: batch.submitted.round + 1, ..batch.submitted };
            submit(ctx, task).await.map(|(batch, _)| batch)
        }
        _ => Ok(None),
    }
}

fn shielded() -> temporalio_workflow::ActivityOptions {
    policy::batch(Some(WorkflowCancellationToken::new()))
}

fn now(ctx: &WorkflowContext<ProcessShard>) -> SystemTime {
    ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH)
}
