//! Documents that go through their provider's batch API: submits them, waits through days and
//! restarts, and collects the results.
//!
//! Documents still without an answer take the direct path: requests that failed in the batch,
//! documents that it could not take, and all once time is up.

use std::time::{Duration, SystemTime};

use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, TimerOptions, WorkflowCancellationToken,
    WorkflowContext, workflows,
};
use tidegate_types::seconds_since_1970;

use crate::{
    contract::{
        Activities, BatchState, OpenBatches, ProviderBatch, ProviderBatching, STOPPING,
        SubmitBatch, SubmittedBatch, SubmittedBatches,
    },
    policy,
    shard::Shard,
    state_access::{HasPart, StateAccess},
};

/// Delay of a batch's first check; the interval between later checks grows. A result is late by at
/// most half of the batch's duration, and a day has some 150 checks.
const FIRST_CHECK: Duration = Duration::from_secs(5);
const LAST_CHECK: Duration = Duration::from_secs(600);

/// Providers give up a batch after 24 h, and report it by then.
const MAX_WAIT: Duration = Duration::from_secs(25 * 60 * 60);

/// How often a batch without room at the provider is halved, because the account's queue may be
/// smaller than the batch. After that the queue is full, and the halves are submitted unchanged.
const HALVINGS: u32 = 4;

/// Submits the shard's documents and waits for their answers. Returns when none is waited for, even
/// after a cancellation: batches that are paid for are collected. Returns earlier if the history is
/// long enough; the next run continues.
pub(crate) async fn run<W: HasPart<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    batching: ProviderBatching,
) -> Result<(), ActivityExecutionError> {
    let until = batching.until.map_or_else(
        || now(ctx) + MAX_WAIT,
        |until| SystemTime::UNIX_EPOCH + Duration::from_secs(until),
    );
    let SubmittedBatches { open, waiting, unsure } =
        ctx.change(|shard| shard.input.submitted.take()).unwrap_or_else(|| SubmittedBatches {
            waiting: vec![all_documents(ctx, batching.until)],
            ..SubmittedBatches::default()
        });
    let mut run = Run { open, waiting, unsure, stopped: false, refused: None };
    let (mut wait, mut stopping) = (FIRST_CHECK, None);
    loop {
        if stopping.is_none() && is_over(ctx, until) {
            run.stop(ctx).await;
            (stopping, wait) = (Some(now(ctx) + STOPPING), FIRST_CHECK);
        }
        let more = stopping.is_none() && run.refused.is_none();
        if more && ctx.continue_as_new_suggested() {
            let Run { open, waiting, unsure, .. } = run;
            ctx.change(|shard| {
                shard.input.provider_batching =
                    Some(ProviderBatching { until: Some(seconds_since_1970(until)) });
                shard.input.submitted = Some(SubmittedBatches { open, waiting, unsure });
                shard.draining = true;
            });
            return Ok(());
        }
        run.submit(ctx, until).await;
        if run.open.is_empty() && run.waiting.is_empty()
            || stopping.is_some_and(|last| now(ctx) >= last)
        {
            break;
        }
        if run.open.is_empty() && is_paused(ctx) {
            // An error means cancellation, which is checked above.
            let _ = ctx.wait_condition(|workflow| !workflow.part().input.paused).await;
            continue;
        }
        let end = stopping.unwrap_or(until);
        let wait_now = wait.min(end.duration_since(now(ctx)).unwrap_or_default());
        sleep(ctx, wait_now, stopping.is_none()).await;
        wait = (wait * 3 / 2).min(LAST_CHECK);
        run.check(ctx).await;
    }
    // Failed documents are no longer in flight.
    ctx.change(|shard| {
        shard.input.totals.in_flight = 0;
        shard.input.provider_batching = None;
        shard.skip_done();
    });
    run.refused.map_or(Ok(()), Err)
}

/// Sleeps; with `wakes`, a cancellation ends it. The timer itself is never cancelled: if it fires
/// in the same workflow task as the cancellation, the SDK panics and the task is run again.
async fn sleep<W: HasPart<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    length: Duration,
    wakes: bool,
) {
    let mut timer = TimerOptions::from(length);
    timer.cancellation_token = Some(WorkflowCancellationToken::new());
    let mut timer = std::pin::pin!(ctx.timer(timer));
    if wakes {
        let mut cancelled = std::pin::pin!(ctx.cancelled());
        workflows::select! {
            _ = timer => {}
            _ = cancelled => {}
        }
    } else {
        timer.await;
    }
}

/// A shard's documents at their provider.
struct Run {
    /// Batches at the provider.
    open: Vec<ProviderBatch>,
    /// Documents that are still to be submitted.
    waiting: Vec<SubmitBatch>,
    /// Documents whose submission may have reached the provider: no reply came.
    unsure: Vec<SubmitBatch>,
    /// Whether nothing more is submitted.
    stopped: bool,
    /// The reason why nothing can be submitted. The shard fails with it once everything else is
    /// collected.
    refused: Option<ActivityExecutionError>,
}

impl Run {
    /// Submits waiting documents until the provider has no room or time is up. A cancellation of
    /// the workflow does not stop it: an unrecorded batch would be paid for and lost.
    async fn submit<W: HasPart<Shard> + 'static>(
        &mut self,
        ctx: &WorkflowContext<W>,
        until: SystemTime,
    ) {
        while let Some(task) = self.waiting.pop() {
            if is_over(ctx, until) || is_paused(ctx) {
                self.waiting.push(task);
                return;
            }
            let submitted = match ctx
                .execute_activity(Activities::submit_batch, task.clone(), submission(ctx))
                .await
            {
                Ok(submitted) => submitted,
                Err(error) => {
                    self.refused = Some(error);
                    self.waiting.clear();
                    return;
                }
            };
            self.unsure.retain(|unsure| unsure.from != task.from);
            if submitted.unsure {
                self.unsure.push(task.clone());
            }
            if submitted.later {
                self.waiting.push(task);
                return;
            }
            let next = submitted.next.max(task.from + 1);
            if next < task.to {
                self.waiting.push(SubmitBatch { from: next, ..task.clone() });
            }
            let again = task.round > 0;
            self.record_open(ctx, task, submitted);
            if again {
                // Without room, submit one batch at a time: each refused one costs another round.
                return;
            }
        }
    }

    /// Records a batch at the provider.
    fn record_open<W: HasPart<Shard> + 'static>(
        &mut self,
        ctx: &WorkflowContext<W>,
        task: SubmitBatch,
        submitted: SubmittedBatch,
    ) {
        let SubmittedBatch { batch: Some(batch), requests, next, .. } = submitted else { return };
        ctx.change(|shard| shard.input.totals.in_flight += u64::from(requests));
        // A second submission would contain the same documents.
        self.open.push(ProviderBatch {
            submitted: SubmitBatch { to: next, only_find: false, ..task },
            batch,
            requests,
        });
    }

    /// Checks the batches and collects ended ones. A batch that found no room is submitted again in
    /// halves, because the queue may be smaller than it.
    async fn check<W: HasPart<Shard> + 'static>(&mut self, ctx: &WorkflowContext<W>) {
        let checked = OpenBatches { batches: std::mem::take(&mut self.open) };
        let states = if checked.batches.is_empty() {
            Vec::new()
        } else {
            // A failure of this activity does not affect the batches: the provider continues.
            ctx.execute_activity(Activities::check_batches, checked.clone(), shielded())
                .await
                .unwrap_or_default()
        };
        let states = states.into_iter().chain(std::iter::repeat(BatchState::Running));
        for (batch, state) in checked.batches.into_iter().zip(states) {
            match state {
                BatchState::Running => {
                    self.open.push(batch);
                    continue;
                }
                BatchState::Ended => {
                    if !Self::collect(ctx, &batch).await {
                        self.open.push(batch);
                        continue;
                    }
                }
                BatchState::Full if !self.stopped => self.waiting.extend(halves(batch.submitted)),
                BatchState::Full | BatchState::Failed => {}
            }
            ctx.change(|shard| {
                let in_flight = &mut shard.input.totals.in_flight;
                *in_flight = in_flight.saturating_sub(u64::from(batch.requests));
            });
        }
    }

    /// Collects a batch; returns whether it succeeded. A failure is retried, perhaps on another
    /// worker.
    async fn collect<W: HasPart<Shard> + 'static>(
        ctx: &WorkflowContext<W>,
        batch: &ProviderBatch,
    ) -> bool {
        let Ok(collected) =
            ctx.execute_activity(Activities::collect_batch, batch.clone(), shielded()).await
        else {
            return false;
        };
        ctx.change(|shard| {
            let input = &mut shard.input;
            input.totals.succeeded += collected.done.len() as u64;
            for failed in &collected.failed {
                input.totals.fail(&failed.facts.error_type);
            }
            input.totals.spend += collected.spent;
            input.totals.cuts += collected.cuts;
            input.totals.updated += collected.updated;
            input.raise.extend(collected.raise);
            input.raise.sort_unstable();
            input.asked.extend(collected.asked);
            input.asked.sort_unstable();
            input.done.extend(
                collected
                    .done
                    .iter()
                    .copied()
                    .chain(collected.failed.iter().map(|failed| failed.index)),
            );
            input.done.sort_unstable();
            input.failures.extend(collected.failed);
        });
        true
    }

    /// Stops submitting, and asks the provider to cancel. Its batches are waited for in any case.
    async fn stop<W: HasPart<Shard> + 'static>(&mut self, ctx: &WorkflowContext<W>) {
        self.stopped = true;
        self.waiting.clear();
        for task in std::mem::take(&mut self.unsure) {
            let find = SubmitBatch { only_find: true, ..task };
            if let Ok(found) =
                ctx.execute_activity(Activities::submit_batch, find.clone(), submission(ctx)).await
            {
                self.record_open(ctx, find, found);
            }
        }
        for batch in &self.open {
            let _ = ctx.execute_activity(Activities::cancel_batch, batch.clone(), shielded()).await;
        }
    }
}

fn all_documents<W: HasPart<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    until: Option<u64>,
) -> SubmitBatch {
    ctx.read(|shard| {
        let input = &shard.input;
        SubmitBatch {
            job: input.job.clone(),
            workflow: input.workflow.clone(),
            shard: input.shard,
            from: 0,
            to: input.documents,
            round: 0,
            only_find: false,
            until,
        }
    })
}

/// Splits a submission; the first half comes last, so that it is submitted first.
fn halves(task: SubmitBatch) -> impl Iterator<Item = SubmitBatch> {
    let length = task.to - task.from;
    let (round, first) =
        (task.round + 1, if task.round < HALVINGS { length.div_ceil(2) } else { length });
    let middle = task.from + first;
    let second = SubmitBatch { from: middle, round, ..task.clone() };
    let first = SubmitBatch { to: middle, round, ..task };
    [second, first].into_iter().filter(|half| half.from < half.to)
}

fn is_over<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>, until: SystemTime) -> bool {
    ctx.cancellation_token().is_cancelled() || now(ctx) >= until
}

fn is_paused<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>) -> bool {
    ctx.read(|shard| shard.input.paused)
}

fn shielded() -> ActivityOptions {
    policy::batch(Some(WorkflowCancellationToken::new()))
}

fn submission<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>) -> ActivityOptions {
    policy::submission(ctx.task_queue())
}

fn now<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>) -> SystemTime {
    ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH)
}
