//! One shard's documents: a sliding window over them, in whichever workflow holds the shard.

mod provider_batch;

use std::{future::poll_fn, ops::Range, pin::Pin, task::Poll, time::SystemTime};

use futures::future::FusedFuture;
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, ChildWorkflowOptions, ParentClosePolicy,
    WorkflowCancellationToken, WorkflowContext, workflows,
};

use crate::{
    contract::{
        Activities, DocumentOutcome, DocumentTask, FailedDocument, LongDocument, LongOutcome,
        PackOutcome, PackTask, Parts, SealShard, ShardInput, Taken,
    },
    failure,
    holds::{Holds, Inside},
    opening,
    pace::{Ended, Pace, Places},
    policy,
    process_parts::ProcessParts,
};

/// The workflow id of a batch's shard.
pub(crate) fn shard_id(batch: &str, shard: u32) -> String {
    format!("{batch}/shard-{shard:05}")
}

/// A shard's state in its workflow.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// The input, updated with every document; a continued run begins with it.
    pub(crate) input: ShardInput,
    /// No more documents are handed out in this run: its history is long enough.
    pub(crate) draining: bool,
    /// All places of the window have ended.
    pub(crate) over: bool,
    pub(crate) pace: Pace,
    /// Documents that have left the window and wait for their next model.
    pub(crate) escalated: Vec<DocumentTask>,
    /// Documents that have left the window and have not ended.
    pub(crate) outside: u64,
    /// When a document last changed; a condition has no clock of its own.
    pub(crate) latest: Option<SystemTime>,
}

/// Works on the shard's documents until none is left, the workflow is cancelled, or its history is
/// long enough. The outcome is in the shard's state.
///
/// # Errors
/// The provider's batch API refuses further documents.
pub(crate) async fn work<W: Holds<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
) -> Result<(), ActivityExecutionError> {
    let worked = async {
        if let Some(batching) = ctx.look(|shard| shard.input.provider_batching) {
            provider_batch::run(ctx, batching).await?;
        }
        workflows::join!(hand_out(ctx), opening::widen::<W, Shard>(ctx));
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
/// As [`work`].
pub(crate) async fn wind_up<W: Holds<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    mut worked: Result<(), ActivityExecutionError>,
) -> (bool, Result<(), ActivityExecutionError>) {
    let cancelled = ctx.cancellation_token().is_cancelled();
    if let Some(batching) = ctx.look(|shard| shard.input.provider_batching)
        && cancelled
        && worked.is_ok()
    {
        // The next run was to wait for the provider, but there will be none.
        worked = provider_batch::run(ctx, batching).await;
    }
    if cancelled || worked.is_err() {
        ctx.change(Shard::cancel_the_rest);
    }
    let more = ctx.look(|shard| shard.input.next < shard.input.documents);
    (!more || cancelled || worked.is_err(), worked)
}

/// Gathers the shard's results and failures into one object each.
///
/// # Errors
/// The activity's own.
pub(crate) async fn seal<W: Holds<Shard>>(
    ctx: &WorkflowContext<W>,
) -> Result<(), ActivityExecutionError> {
    let shard = ctx.look(|shard| {
        let mut failures = shard.input.failures.clone();
        failures.sort_by_key(|failure| failure.index);
        SealShard { job: shard.input.job.clone(), shard: shard.input.shard, failures }
    });
    let options = policy::batch(Some(WorkflowCancellationToken::new()));
    ctx.execute_activity(Activities::seal_shard, shard, options).await
}

/// Runs all places of the window, and those added later.
async fn hand_out<W: Holds<Shard> + 'static>(ctx: &WorkflowContext<W>) {
    let (mut begun, mut running) = (0, Vec::<Pin<Box<dyn Future<Output = ()>>>>::new());
    loop {
        let places = ctx.look(Shard::places);
        let more: Vec<_> = (begun..places).map(|_| place(ctx.clone())).collect();
        running.push(Box::pin(async { drop(workflows::join_all(more).await) }));
        begun = places;
        for task in ctx.change(|shard| std::mem::take(&mut shard.escalated)) {
            running.push(Box::pin(escalated(ctx.clone(), task)));
        }
        let has_more = ctx.wait_condition(move |workflow| workflow.part().wants_more(begun));
        let mut has_more = std::pin::pin!(has_more);
        let are_over = poll_fn(|task| {
            running.retain_mut(|places| places.as_mut().poll(task).is_pending());
            // After a cancellation, a condition resolves at once.
            let grows = !has_more.is_terminated()
                && matches!(has_more.as_mut().poll(task), Poll::Ready(Ok(_)));
            if running.is_empty() || grows {
                Poll::Ready(running.is_empty())
            } else {
                Poll::Pending
            }
        });
        if are_over.await && ctx.look(|shard| shard.escalated.is_empty()) {
            return;
        }
    }
}

/// One place of the window: takes a document, waits for its end, takes the next. There are no
/// barriers.
async fn place<W: Holds<Shard> + 'static>(ctx: WorkflowContext<W>) {
    loop {
        if ctx.wait_condition(|workflow| workflow.part().may_go_on()).await.is_err() {
            return;
        }
        if ctx.continue_as_new_suggested() {
            ctx.change(|shard| shard.draining = true);
        }
        let now = ctx.workflow_time();
        let Some(taken) = ctx.change(|shard| shard.take(now)) else { return };
        let left = if taken.len() > 1 { pack(&ctx, taken).await } else { Some(taken.collect()) };
        let Some(left) = left else { return };
        let alone: Vec<_> = left.into_iter().map(|index| document(&ctx, index)).collect();
        if workflows::join_all(alone).await.contains(&false) {
            return;
        }
    }
}

/// Asks several documents in one call; then those that must be sent alone. Returns whether to go
/// on.
async fn pack<W: Holds<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    taken: Range<u32>,
) -> Option<Vec<u32>> {
    let task = ctx.look(|shard| PackTask {
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
    follow(ctx, first, began, queued);
    left
}

/// Asks one document alone. Returns whether to go on.
async fn document<W: Holds<Shard> + 'static>(ctx: &WorkflowContext<W>, index: u32) -> bool {
    let task = ctx.look(|shard| DocumentTask {
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
            let ended = in_parts(ctx, task, parts).await;
            let cancelled = ctx.cancellation_token().is_cancelled();
            ctx.change(|shard| shard.record_parts(index, ended, updated, cancelled))
        }
        Ok(outcome) if outcome.escalates => {
            ctx.change(|shard| shard.escalate(task, &outcome));
            follow(ctx, index, began, Some(outcome.queued_seconds));
            true
        }
        ended => {
            let goes_on = ctx.change(|shard| shard.record(index, &ended, Taken::default()));
            let queued = ended.ok().filter(|it| !it.skipped).map(|it| it.queued_seconds);
            follow(ctx, index, began, queued);
            goes_on
        }
    }
}

/// Asks the route's next model about a document. It takes no place of the window, which is sized by
/// the first model's limits; the number of pending activities bounds it.
async fn escalated<W: Holds<Shard> + 'static>(ctx: WorkflowContext<W>, task: DocumentTask) {
    let ended =
        ctx.execute_activity(Activities::process_document, task.clone(), options(&ctx)).await;
    ctx.change(|shard| {
        shard.outside = shard.outside.saturating_sub(1);
        match ended {
            Ok(outcome) if outcome.escalates => shard.escalate(task, &outcome),
            ended => drop(shard.record(task.index, &ended, Taken::default())),
        }
    });
}

/// Reads a document in parts, in a workflow of its own; returns why there is no result, if there is
/// none.
async fn in_parts<W: Holds<Shard> + 'static>(
    ctx: &WorkflowContext<W>,
    document: DocumentTask,
    parts: Parts,
) -> Result<LongOutcome, String> {
    let id = ctx.look(|shard| shard.id(ctx));
    let options = ChildWorkflowOptions::builder()
        .workflow_id(format!("{id}/document-{:05}", document.index))
        .parent_close_policy(ParentClosePolicy::Terminate)
        .build();
    let input = ctx.look(|shard| LongDocument {
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
    started
        .result()
        .await
        .map_err(|error| error.reason().map_or_else(|| error.to_string(), failure::root_message))
}

/// Adapts the pace after a call that lay in the queue.
fn follow<W: Holds<Shard>>(
    ctx: &WorkflowContext<W>,
    document: u32,
    began: Option<SystemTime>,
    queued: Option<u32>,
) {
    let Some(queued) = queued else { return };
    let took =
        ctx.workflow_time().zip(began).and_then(|(now, began)| now.duration_since(began).ok());
    let ended = Ended { document, queued: queued.into(), took: took.unwrap_or_default().as_secs() };
    ctx.change(|shard| {
        shard.input.call_seconds = 0;
        let places = Places {
            window: shard.input.window,
            open: shard.input.open,
            in_flight: shard.would_be_in_flight(),
            call: shard.in_one_call(),
            next: shard.input.next,
        };
        shard.input.open = shard.pace.after(ended, places);
    });
}

/// Options of a document's activities.
pub(crate) fn options<W: Holds<Shard> + 'static>(ctx: &WorkflowContext<W>) -> ActivityOptions {
    ctx.look(|shard| {
        let ShardInput { lane, tenant, heartbeat_seconds, .. } = &shard.input;
        policy::document(ctx.task_queue(), lane, tenant, *heartbeat_seconds)
    })
}

impl AsRef<ShardInput> for Shard {
    fn as_ref(&self) -> &ShardInput {
        &self.input
    }
}

impl AsMut<ShardInput> for Shard {
    fn as_mut(&mut self) -> &mut ShardInput {
        &mut self.input
    }
}

impl Shard {
    /// Whether a place may take the next document, or will never get one: the shard is not paused
    /// and the quota admits more, or nothing is left to hand out.
    fn may_go_on(&self) -> bool {
        (!self.input.paused && self.has_room()) || self.exhausted()
    }

    fn has_room(&self) -> bool {
        self.input.open.is_none_or(|open| self.in_window() < open.into())
    }

    /// Documents that would be in flight after a call has ended if there were always a next one:
    /// documents missing at the shard's end or in a pause are not missing because of the quota.
    fn would_be_in_flight(&self) -> u64 {
        let ShardInput { window, open, paused, .. } = &self.input;
        if !paused && !self.exhausted() {
            return self.in_window();
        }
        let others = open.unwrap_or(*window).saturating_sub(self.in_one_call());
        self.in_window().max(others.into())
    }

    /// Documents in flight that hold a place of the window.
    pub(crate) fn in_window(&self) -> u64 {
        self.input.totals.in_flight.saturating_sub(self.outside)
    }

    /// Whether there are more places than have begun, or documents that have left the window.
    fn wants_more(&self, begun: u32) -> bool {
        self.places() > begun || !self.escalated.is_empty()
    }

    /// Moves a document out of the window; it stays in flight.
    fn escalate(&mut self, task: DocumentTask, outcome: &DocumentOutcome) {
        self.input.totals.spend += outcome.spend;
        self.input.totals.cuts += outcome.cuts;
        let before = task.escalated.unwrap_or_default();
        self.escalated.push(DocumentTask { escalated: Some(before + outcome.spend), ..task });
        self.outside += 1;
    }

    fn exhausted(&self) -> bool {
        self.draining || self.has_handed_out()
    }

    /// Every document has been handed out.
    pub(crate) fn has_handed_out(&self) -> bool {
        self.input.next >= self.input.documents
    }

    /// The workflow id of the shard, or the one that it would have.
    fn id<W>(&self, ctx: &WorkflowContext<W>) -> String {
        if self.input.parent == ctx.workflow_id() {
            shard_id(&self.input.parent, self.input.shard)
        } else {
            ctx.workflow_id().to_owned()
        }
    }

    /// How many calls are open at once; a call may hold several documents.
    fn places(&self) -> u32 {
        self.input.window.min(self.input.documents).div_ceil(self.in_one_call()).max(1)
    }

    /// Documents in a call: never more than may be in flight.
    fn in_one_call(&self) -> u32 {
        self.input.pack.min(self.input.window).max(1)
    }

    /// Takes the next documents that go into one call.
    fn take(&mut self, now: Option<SystemTime>) -> Option<Range<u32>> {
        self.latest = now;
        if self.exhausted() {
            return None;
        }
        let most = self.input.next.saturating_add(self.in_one_call()).min(self.input.documents);
        let (first, input) = (self.input.next, &mut self.input);
        // Up to the next document that is done.
        let place = input.done.partition_point(|done| *done < first);
        input.next = input.done.get(place).map_or(most, |done| most.min(*done));
        input.totals.in_flight += u64::from(input.next - first);
        let taken = first..input.next;
        self.skip_done();
        Some(taken)
    }

    /// Skips documents that a provider's batch has answered.
    pub(crate) fn skip_done(&mut self) {
        while self.input.done.binary_search(&self.input.next).is_ok() {
            self.input.next += 1;
        }
    }

    /// Records a pack; returns its documents that must be sent alone (all if the pack failed),
    /// which stay in flight until then.
    fn record_pack(
        &mut self,
        taken: Range<u32>,
        ended: Result<PackOutcome, ActivityExecutionError>,
    ) -> Option<Vec<u32>> {
        let totals = &mut self.input.totals;
        match ended {
            Ok(packed) => {
                totals.in_flight =
                    totals.in_flight.saturating_sub(u64::from(packed.succeeded + packed.skipped));
                totals.succeeded += u64::from(packed.succeeded);
                totals.skipped += u64::from(packed.skipped);
                totals.updated += u64::from(packed.updated);
                totals.spend += packed.spent;
                totals.reused += packed.reused;
                self.come_back(packed.asked);
                Some(packed.left)
            }
            Err(error) if error.as_cancelled().is_some() => {
                totals.in_flight = totals.in_flight.saturating_sub(taken.len() as u64);
                None
            }
            Err(error) => {
                let (_, spent) = failure::failed_document(taken.start, &error);
                totals.spend += spent.spend;
                totals.cuts += spent.cuts;
                if spent.spend.provider_calls > 0 {
                    self.come_back(taken.clone());
                }
                Some(taken.collect())
            }
        }
    }

    /// Marks documents that were asked together and are now asked alone.
    fn come_back(&mut self, asked: impl IntoIterator<Item = u32>) {
        self.input.asked.extend(asked);
        self.input.asked.sort_unstable();
    }

    /// Counts all documents that have not ended as cancelled.
    fn cancel_the_rest(&mut self) {
        let totals = &mut self.input.totals;
        totals.cancelled = u64::from(self.input.documents).saturating_sub(totals.ended());
    }

    /// Records a document that was read in parts. Returns whether to go on.
    fn record_parts(
        &mut self,
        index: u32,
        ended: Result<LongOutcome, String>,
        updated: bool,
        cancelled: bool,
    ) -> bool {
        let totals = &mut self.input.totals;
        totals.in_flight = totals.in_flight.saturating_sub(1);
        // No result: never started, or terminated; its cost is unknown.
        let ended = ended.unwrap_or_else(|message| {
            let failed = FailedDocument {
                index,
                error_type: "Unknown".to_owned(),
                message,
                provider_calls: 0,
                kept: None,
                failed_checks: Vec::new(),
                asked: Vec::new(),
            };
            let failed = (!cancelled).then_some(failed);
            LongOutcome { failed, cancelled, ..LongOutcome::default() }
        });
        totals.spend += ended.taken.spend;
        totals.cuts += ended.taken.cuts;
        match ended.failed {
            Some(failed) => {
                totals.fail(&failed.error_type);
                self.input.failures.push(failed);
            }
            None if ended.cancelled => return false,
            None => {
                totals.succeeded += 1;
                totals.updated += u64::from(updated);
            }
        }
        true
    }

    /// Records a document's end; returns whether to go on. `parts` is the use of a document's parts
    /// that did not all succeed.
    fn record(
        &mut self,
        index: u32,
        ended: &Result<DocumentOutcome, ActivityExecutionError>,
        parts: Taken,
    ) -> bool {
        let totals = &mut self.input.totals;
        totals.in_flight = totals.in_flight.saturating_sub(1);
        match ended {
            Ok(outcome) => totals.add(outcome),
            Err(error) if error.as_cancelled().is_some() => return false,
            Err(error) => {
                let (mut failed, mut taken) = failure::failed_document(index, error);
                taken += parts;
                if failure::is_cancelled(error) {
                    // Not a failure: the next run of the batch takes the document up again.
                    totals.spend += taken.spend;
                    totals.cuts += taken.cuts;
                    return true;
                }
                failed.provider_calls = taken.spend.provider_calls;
                totals.fail(&failed.error_type);
                totals.spend += taken.spend;
                totals.cuts += taken.cuts;
                self.input.failures.push(failed);
            }
        }
        true
    }
}
