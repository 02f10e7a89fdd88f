//! One shard's documents: a sliding window over them, in whichever workflow holds it.

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

/// A shard as far as its workflow has come with it.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// The input, brought forward with every document: what a continued run begins with.
    pub(crate) input: ShardInput,
    /// No more documents are handed out in this run: its history is long enough.
    pub(crate) draining: bool,
    /// Every place of the window has ended.
    pub(crate) over: bool,
    pub(crate) pace: Pace,
    /// Documents that have left the window, and whose next model is not asked yet.
    pub(crate) escalated: Vec<DocumentTask>,
    /// All that have left it and have not ended.
    pub(crate) outside: u64,
    /// When something last happened to a document: a condition has no clock of its own.
    pub(crate) latest: Option<SystemTime>,
}

/// Works on the shard's documents until none is left, the workflow is cancelled, or its history is
/// long enough. What it has come to is in the shard.
///
/// # Errors
/// The provider's batch API takes nothing more.
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

/// What remains to be done of a shard on which nothing is worked any more. Whether it is over, or to
/// be continued in the next run.
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
        // The next run was to wait for the provider; there will be none.
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

/// All places of the window, and those that it is given later.
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
            // Once cancelled, a condition is over at once.
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

/// One place of the window: takes a document, waits for its end, takes the next. No barrier
/// anywhere.
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

/// Several documents in one call; those that must be sent alone, if it goes on.
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

/// One document, alone. Whether to go on.
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

/// A document at its route's next model. The window is as large as the first one's limits allow, and
/// it takes no place there; no shard has more documents than may be pending.
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

/// A document that is read in parts, in a workflow of its own; else why that has no result.
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

/// A call has ended, and tells how long it lay in the queue, if it was in one.
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

/// How a document's activities are run.
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
    /// It is neither paused nor has as many in flight as the quota admits, or has nothing more to
    /// hand out.
    fn may_go_on(&self) -> bool {
        (!self.input.paused && self.has_room()) || self.exhausted()
    }

    fn has_room(&self) -> bool {
        self.input.open.is_none_or(|open| self.in_window() < open.into())
    }

    /// In flight after a call has ended, were there always a next document: what is missing at the
    /// shard's end or in a pause is not missing because of the quota.
    fn would_be_in_flight(&self) -> u64 {
        let ShardInput { window, open, paused, .. } = &self.input;
        if !paused && !self.exhausted() {
            return self.in_window();
        }
        let others = open.unwrap_or(*window).saturating_sub(self.in_one_call());
        self.in_window().max(others.into())
    }

    /// Documents in flight that have a place of the window.
    pub(crate) fn in_window(&self) -> u64 {
        self.input.totals.in_flight.saturating_sub(self.outside)
    }

    /// There are more places than have begun, or documents that have left theirs.
    fn wants_more(&self, begun: u32) -> bool {
        self.places() > begun || !self.escalated.is_empty()
    }

    /// A document leaves the window, and is in flight as before.
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

    /// The shard's workflow id, or that which it would have.
    fn id<W>(&self, ctx: &WorkflowContext<W>) -> String {
        if self.input.parent == ctx.workflow_id() {
            shard_id(&self.input.parent, self.input.shard)
        } else {
            ctx.workflow_id().to_owned()
        }
    }

    /// How many calls are open at once: a call may hold several documents.
    fn places(&self) -> u32 {
        self.input.window.min(self.input.documents).div_ceil(self.in_one_call()).max(1)
    }

    /// Never more documents in a call than may be in flight.
    fn in_one_call(&self) -> u32 {
        self.input.pack.min(self.input.window).max(1)
    }

    /// The next documents that go into one call.
    fn take(&mut self, now: Option<SystemTime>) -> Option<Range<u32>> {
        self.latest = now;
        if self.exhausted() {
            return None;
        }
        let most = self.input.next.saturating_add(self.in_one_call()).min(self.input.documents);
        let (first, input) = (self.input.next, &mut self.input);
        // Up to the next one that is done.
        let place = input.done.partition_point(|done| *done < first);
        input.next = input.done.get(place).map_or(most, |done| most.min(*done));
        input.totals.in_flight += u64::from(input.next - first);
        let taken = first..input.next;
        self.skip_done();
        Some(taken)
    }

    /// What a provider's batch has answered is not handed out.
    pub(crate) fn skip_done(&mut self) {
        while self.input.done.binary_search(&self.input.next).is_ok() {
            self.input.next += 1;
        }
    }

    /// Which of a pack's documents must be sent alone; they are in flight until then. All of them,
    /// where the pack failed.
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

    /// These were asked together, and are asked alone.
    fn come_back(&mut self, asked: impl IntoIterator<Item = u32>) {
        self.input.asked.extend(asked);
        self.input.asked.sort_unstable();
    }

    /// Whatever has not come to its end is not taken up any more.
    fn cancel_the_rest(&mut self) {
        let totals = &mut self.input.totals;
        totals.cancelled = u64::from(self.input.documents).saturating_sub(totals.ended());
    }

    /// Whether to go on, after a document that was read in parts.
    fn record_parts(
        &mut self,
        index: u32,
        ended: Result<LongOutcome, String>,
        updated: bool,
        cancelled: bool,
    ) -> bool {
        let totals = &mut self.input.totals;
        totals.in_flight = totals.in_flight.saturating_sub(1);
        // A workflow without a result was not begun any more, or was ended by hand: nobody knows
        // what it took.
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

    /// Whether to go on. `parts` is what the parts took of a document whose parts did not all
    /// succeed.
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
                    // Not given up: the next run of the batch takes it up again.
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
