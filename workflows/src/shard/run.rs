//! Processes a shard's documents, in the workflow that holds the shard.

use std::{future::poll_fn, ops::Range, task::Poll, time::SystemTime};

use futures::{StreamExt as _, future::LocalBoxFuture, stream};
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, ChildWorkflowOptions, ParentClosePolicy,
    WorkflowCancellationToken, WorkflowContext, workflows,
};

use crate::{
    contract::{
        Activities, DocumentOutcome, DocumentTask, LongDocument, LongOutcome, PackTask, Parts,
        SealShard, ShardInput, Taken,
    },
    failure,
    pace::Ended,
    policy,
    process_parts::ProcessParts,
    shard::{Shard, provider_batch, slow_start},
    state_access::{HasPart, StateAccess},
};

/// Processes the shard's documents until none is left, the workflow is cancelled, or its history is
/// long enough. The outcome is in the shard's state.
///
/// # Errors
/// The provider's batch API refuses further documents.
pub(crate) async fn work<W: HasPart<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
) -> Result<(), ActivityExecutionError> {
    let worked = async {
        if let Some(batching) = ctx.read(|shard| shard.input.provider_batching) {
            provider_batch::run(ctx, batching).await?;
        }
        workflows::join!(hand_out(ctx), slow_start::widen(ctx));
        Ok(())
    };
    let worked = worked.await;
    ctx.change(|shard| shard.over = true);
    worked
}

/// Finishes a shard on which no more work starts. Returns whether it is over; otherwise the next
/// run continues it.
///
/// # Errors
/// The errors of [`work`].
pub(crate) async fn wind_up<W: HasPart<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    mut worked: Result<(), ActivityExecutionError>,
) -> (bool, Result<(), ActivityExecutionError>) {
    let cancelled = ctx.cancellation_token().is_cancelled();
    if let Some(batching) = ctx.read(|shard| shard.input.provider_batching)
        && cancelled
        && worked.is_ok()
    {
        // The next run was to wait for the provider, but there will be none.
        worked = provider_batch::run(ctx, batching).await;
    }
    if cancelled || worked.is_err() {
        ctx.change(Shard::cancel_the_rest);
    }
    let more = ctx.read(|shard| shard.input.next < shard.input.documents);
    (!more || cancelled || worked.is_err(), worked)
}

/// Gathers the shard's results and failures into one object each.
///
/// # Errors
/// The errors of the activity.
pub(crate) async fn seal<W: HasPart<Shard>>(
    ctx: &WorkflowContext<W>,
) -> Result<(), ActivityExecutionError> {
    let shard = ctx.read(|shard| {
        let mut failures = shard.input.failures.clone();
        failures.sort_by_key(|failure| failure.index);
        SealShard { job: shard.input.job.clone(), shard: shard.input.shard, failures }
    });
    let options = policy::batch(Some(WorkflowCancellationToken::new()));
    ctx.execute_activity(Activities::seal_shard, shard, options).await
}

/// Starts calls while the window has room, until all documents have ended.
///
/// One future waits for room, not one for each call: the SDK keeps a waker for each poll of a
/// condition until the workflow ends.
async fn hand_out<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>) {
    #[expect(
        clippy::disallowed_types,
        reason = "it is polled within `join_all`, whose wake-ups the SDK accepts"
    )]
    let mut calls = stream::FuturesUnordered::new();
    loop {
        while let Some(call) = next_call(ctx) {
            calls.push(call);
        }
        let cancelled = ctx.cancellation_token().is_cancelled();
        if calls.is_empty() && (cancelled || ctx.read(Shard::exhausted)) {
            return;
        }
        let mut may_start =
            std::pin::pin!(ctx.wait_condition(|workflow| workflow.part().may_start()));
        let change = poll_fn(|task| match calls.poll_next_unpin(task) {
            Poll::Ready(Some(())) => Poll::Ready(()),
            // A condition would resolve at once.
            _ if cancelled => Poll::Pending,
            _ => may_start.as_mut().poll(task).map(drop),
        });
        workflows::join_all([change]).await;
    }
}

/// The next call, if one may start.
fn next_call<'a, W: HasPart<Shard> + 'static>(
    ctx: &'a WorkflowContext<W>,
) -> Option<LocalBoxFuture<'a, ()>> {
    if ctx.continue_as_new_suggested() && !ctx.read(|shard| shard.draining) {
        ctx.change(|shard| shard.draining = true);
    }
    if !ctx.read(Shard::may_start) {
        return None;
    }
    if let Some(task) = ctx.change(|shard| shard.escalated.pop_front()) {
        return Some(Box::pin(run_escalated(ctx, task)));
    }
    if ctx.cancellation_token().is_cancelled() {
        return None;
    }
    let now = ctx.workflow_time();
    let taken = ctx.change(|shard| shard.take(now))?;
    Some(if taken.len() > 1 {
        Box::pin(run_pack(ctx, taken))
    } else {
        Box::pin(run_document(ctx, taken.start))
    })
}

/// Asks several documents in one call, and then those alone that it left.
async fn run_pack<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>, taken: Range<u32>) {
    let task = ctx.read(|shard| PackTask {
        job: shard.input.job.clone(),
        workflow: shard.input.workflow.clone(),
        shard: shard.input.shard,
        from: taken.start,
        to: taken.end,
    });
    let (first, began) = (taken.start, ctx.workflow_time());
    let ended = ctx.execute_activity(Activities::process_pack, task, options(ctx)).await;
    let queued = ended.as_ref().ok().map(|packed| packed.queued_seconds);
    let left = ctx.change(|shard| shard.record_pack(taken, ended));
    adapt_pace(ctx, first, began, queued);
    let alone = left.into_iter().map(|index| run_document(ctx, index));
    workflows::join_all(alone).await;
}

/// Asks one document alone.
async fn run_document<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>, index: u32) {
    let task = ctx.read(|shard| DocumentTask {
        job: shard.input.job.clone(),
        workflow: shard.input.workflow.clone(),
        shard: shard.input.shard,
        index,
        raised: shard.input.raise.binary_search(&index).is_ok(),
        asked: shard.input.asked.binary_search(&index).is_ok(),
        escalated: None,
    });
    let began = ctx.workflow_time();
    let ended =
        ctx.execute_activity(Activities::process_document, task.clone(), options(ctx)).await;
    match ended {
        Ok(DocumentOutcome { parts: Some(parts), updated, .. }) => {
            // In a box, because few documents are so long, and each call's future has room for this.
            let ended = Box::pin(in_parts(ctx, task, parts)).await;
            let cancelled = ctx.cancellation_token().is_cancelled();
            ctx.change(|shard| shard.record_parts(index, ended, updated, cancelled));
        }
        Ok(outcome) if outcome.escalates => {
            ctx.change(|shard| shard.escalate(task, &outcome));
            adapt_pace(ctx, index, began, Some(outcome.queued_seconds));
        }
        ended => {
            ctx.change(|shard| shard.record(index, &ended));
            let queued = ended.ok().filter(|it| !it.skipped).map(|it| it.queued_seconds);
            adapt_pace(ctx, index, began, queued);
        }
    }
}

/// Asks the route's next model about a document. It takes no place of the window, which is sized by
/// the first model's limits; the number of pending activities bounds it.
async fn run_escalated<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>, task: DocumentTask) {
    let ended =
        ctx.execute_activity(Activities::process_document, task.clone(), options(ctx)).await;
    ctx.change(|shard| {
        shard.outside = shard.outside.saturating_sub(1);
        match ended {
            Ok(outcome) if outcome.escalates => shard.escalate(task, &outcome),
            ended => shard.record(task.index, &ended),
        }
    });
}

/// Reads a document in parts, in a workflow of its own; returns the reason if there is no result.
async fn in_parts<W: HasPart<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    document: DocumentTask,
    parts: Parts,
) -> Result<LongOutcome, String> {
    let id = ctx.read(|shard| shard.id(ctx));
    let options = ChildWorkflowOptions::builder()
        .workflow_id(format!("{id}/document-{:05}", document.index))
        .parent_close_policy(ParentClosePolicy::Terminate)
        .build();
    let input = ctx.read(|shard| LongDocument {
        document,
        parts,
        lane: shard.input.lane.clone(),
        tenant: shard.input.tenant.clone(),
        heartbeat_seconds: shard.input.heartbeat_seconds,
        level: 0,
        next: 0,
        taken: Taken::default(),
    });
    let started = ctx
        .start_child_workflow(ProcessParts::run, input, options)
        .await
        .map_err(|error| error.to_string())?;
    started.result().await.map_err(|error| failure::message(error.reason(), &error))
}

/// Adapts the pace after a call that waited in the queue.
fn adapt_pace<W: HasPart<Shard>>(
    ctx: &WorkflowContext<W>,
    document: u32,
    began: Option<SystemTime>,
    queued: Option<u32>,
) {
    let Some(queued) = queued else { return };
    let took =
        ctx.workflow_time().zip(began).and_then(|(now, began)| now.duration_since(began).ok());
    let ended = Ended { document, queued: queued.into(), took: took.unwrap_or_default().as_secs() };
    ctx.change(|shard| shard.adapt_pace(ended));
}

/// Options of a document's activities.
pub(crate) fn options<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>) -> ActivityOptions {
    ctx.read(|shard| {
        let ShardInput { lane, tenant, heartbeat_seconds, .. } = &shard.input;
        policy::document(ctx.task_queue(), lane, tenant, *heartbeat_seconds)
    })
}
