//! `ProcessShard`: a sliding window over one shard's documents.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use std::ops::Range;

use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, ChildWorkflowOptions, ContinueAsNewOptions,
    ParentClosePolicy, SignalWorkflowOptions, SyncWorkflowContext, WorkflowCancellationToken,
    WorkflowContext, WorkflowContextView, WorkflowResult, WorkflowTermination, workflows,
};

use crate::{
    contract::{
        Activities, DocumentOutcome, DocumentTask, FailedDocument, LongDocument, LongOutcome,
        PackOutcome, PackTask, Parts, SealShard, ShardInput, ShardProgress, ShardReport, Taken,
        Totals,
    },
    failure,
    layout::Layout,
    parts, payload, policy,
    process_parts::ProcessParts,
    provider_batch,
};

/// A shard tells its batch how far it is this many times: each report costs the batch a workflow
/// task.
const REPORTS: u64 = 5;

/// One shard of a batch.
#[workflow]
pub struct ProcessShard {
    /// The input, brought forward with every document: what a continued run begins with.
    pub(crate) input: ShardInput,
    /// Which commands this run gives.
    pub(crate) layout: Layout,
    /// No more documents are handed out in this run: its history is long enough.
    pub(crate) draining: bool,
    /// What the last report said.
    reported: Totals,
    /// Every window lane has ended.
    over: bool,
}

#[workflow_methods]
impl ProcessShard {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, input: ShardInput) -> Self {
        let reported = input.totals;
        Self { input, layout: Layout::default(), draining: false, reported, over: false }
    }

    #[run(name = "ProcessShard")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Totals> {
        let layout = Layout::of(ctx);
        ctx.state_mut(|shard| shard.layout = layout);
        let work = async {
            if let Some(batching) = ctx.state(|shard| shard.input.provider_batching) {
                provider_batch::run(ctx, batching).await?;
            }
            let places = ctx.state(Self::places);
            workflows::join_all((0..places).map(|_| Self::place(ctx.clone())).collect::<Vec<_>>())
                .await;
            Ok(())
        };
        let work = async {
            let worked: Result<(), ActivityExecutionError> = work.await;
            ctx.state_mut(|shard| shard.over = true);
            worked
        };
        let (mut worked, ()) = workflows::join!(work, Self::report_now_and_then(ctx.clone()));

        let cancelled = ctx.cancellation_token().is_cancelled();
        if let Some(batching) = ctx.state(|shard| shard.input.provider_batching)
            && cancelled
            && worked.is_ok()
        {
            // The next run was to wait for the provider; there will be none.
            worked = provider_batch::run(ctx, batching).await;
        }
        if cancelled || worked.is_err() {
            ctx.state_mut(Self::cancel_the_rest);
        }
        let input = ctx.state(|shard| shard.input.clone());
        if input.next < input.documents && !cancelled && worked.is_ok() {
            ctx.continue_as_new(input.clone(), ContinueAsNewOptions::default())?;
        }
        let sealed = Self::seal(ctx, &input).await;
        if cancelled || sealed.is_err() || worked.is_err() {
            // A child that is cancelled or fails has no result: the batch learns the last numbers
            // from a report.
            Self::report(ctx, &input).await;
        }
        worked?;
        sealed?;
        if cancelled { Err(WorkflowTermination::cancelled()) } else { Ok(input.totals) }
    }

    /// Hand out no more documents. Those in flight go on.
    #[signal(name = "pause")]
    pub fn pause(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.input.paused = true;
    }

    /// Hand out documents again.
    #[signal(name = "resume")]
    pub fn resume(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.input.paused = false;
    }

    #[query(name = "progress")]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Totals {
        self.input.totals
    }
}

impl ProcessShard {
    /// One place of the window: takes a document, waits for its end, takes the next. No barrier
    /// anywhere.
    async fn place(ctx: WorkflowContext<Self>) {
        loop {
            if ctx.wait_condition(|shard| !shard.input.paused || shard.exhausted()).await.is_err() {
                return;
            }
            if ctx.continue_as_new_suggested() {
                ctx.state_mut(|shard| shard.draining = true);
            }
            let Some(taken) = ctx.state_mut(Self::take) else { return };
            let left =
                if taken.len() > 1 { Self::pack(&ctx, taken).await } else { Some(taken.collect()) };
            let Some(left) = left else { return };
            let alone: Vec<_> = left.into_iter().map(|index| Self::document(&ctx, index)).collect();
            if workflows::join_all(alone).await.contains(&false) {
                return;
            }
        }
    }

    /// Several documents in one call; those that must be sent alone, if it goes on.
    async fn pack(ctx: &WorkflowContext<Self>, taken: Range<u32>) -> Option<Vec<u32>> {
        let (job, shard) = ctx.state(|shard| (shard.input.job.clone(), shard.input.shard));
        let task = PackTask { job, shard, from: taken.start, to: taken.end };
        let ended = ctx.execute_activity(Activities::process_pack, task, Self::options(ctx)).await;
        ctx.state_mut(|shard| shard.record_pack(taken, ended))
    }

    /// One document, alone. Whether to go on.
    async fn document(ctx: &WorkflowContext<Self>, index: u32) -> bool {
        let task = ctx.state(|shard| DocumentTask {
            job: shard.input.job.clone(),
            shard: shard.input.shard,
            index,
            raised: shard.input.raise.binary_search(&index).is_ok(),
            asked: shard.input.asked.binary_search(&index).is_ok(),
        });
        let options = Self::options(ctx);
        let ended = ctx.execute_activity(Activities::process_document, task.clone(), options).await;
        match (ended, ctx.state(|shard| shard.layout)) {
            (Ok(DocumentOutcome { parts: Some(parts), updated, .. }), Layout::First) => {
                let mut taken = Taken::default();
                let read = parts::read(ctx, || Self::options(ctx), &task, parts, &mut taken).await;
                let Taken { spend, cuts } = taken;
                let whole = DocumentOutcome { spend, cuts, updated, ..DocumentOutcome::default() };
                let ended = read.map(|()| whole);
                ctx.state_mut(|shard| shard.record(index, &ended, taken))
            }
            (Ok(DocumentOutcome { parts: Some(parts), updated, .. }), Layout::Bounded) => {
                let ended = Self::in_parts(ctx, task, parts).await;
                let cancelled = ctx.cancellation_token().is_cancelled();
                ctx.state_mut(|shard| shard.record_parts(index, ended, updated, cancelled))
            }
            (ended, _) => ctx.state_mut(|shard| shard.record(index, &ended, Taken::default())),
        }
    }

    /// A document that is read in parts, in a workflow of its own; else why that has no result.
    async fn in_parts(
        ctx: &WorkflowContext<Self>,
        document: DocumentTask,
        parts: Parts,
    ) -> Result<LongOutcome, String> {
        let options = ChildWorkflowOptions::builder()
            .workflow_id(format!("{}/document-{:05}", ctx.workflow_id(), document.index))
            .parent_close_policy(ParentClosePolicy::Terminate)
            .build();
        let (lane, tenant) =
            ctx.state(|shard| (shard.input.lane.clone(), shard.input.tenant.clone()));
        let taken = Taken::default();
        let input = LongDocument { document, parts, lane, tenant, level: 0, next: 0, taken };
        let started = ctx
            .start_child_workflow(ProcessParts::run, input, options)
            .await
            .map_err(|error| error.to_string())?;
        started.result().await.map_err(|error| {
            error.reason().map_or_else(|| error.to_string(), failure::root_message)
        })
    }

    /// How a document's activities are run.
    pub(crate) fn options(ctx: &WorkflowContext<Self>) -> ActivityOptions {
        ctx.state(|shard| {
            policy::document(ctx.task_queue(), &shard.input.lane, &shard.input.tenant)
        })
    }

    fn exhausted(&self) -> bool {
        self.draining || self.input.next >= self.input.documents
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
    fn take(&mut self) -> Option<Range<u32>> {
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

    async fn report_now_and_then(ctx: WorkflowContext<Self>) {
        let step = ctx.state(|shard| u64::from(shard.input.documents).div_ceil(REPORTS).max(1));
        loop {
            let due = ctx.wait_condition(|shard| shard.over || shard.report_is_due(step)).await;
            if due.is_err() || ctx.state(|shard| shard.over) {
                return;
            }
            let input = ctx.state_mut(|shard| {
                shard.reported = shard.input.totals;
                shard.input.clone()
            });
            Self::report(&ctx, &input).await;
        }
    }

    /// After every so many documents, and when the first is handed out or, in a pause, the last
    /// comes back: the batch's number of documents in flight would else be wrong for as long as
    /// nothing ends.
    fn report_is_due(&self, step: u64) -> bool {
        let (now, then) = (&self.input.totals, &self.reported);
        now.ended() >= then.ended() + step || (now.in_flight == 0) != (then.in_flight == 0)
    }

    /// A batch that is gone needs no report.
    async fn report(ctx: &WorkflowContext<Self>, input: &ShardInput) {
        let Ok(report) = payload::encode(&ShardReport { shard: input.shard, totals: input.totals })
        else {
            return;
        };
        let options = SignalWorkflowOptions::builder()
            .cancellation_token(WorkflowCancellationToken::new())
            .build();
        let _ = ctx
            .external_workflow(input.parent.clone(), None)
            .signal(ShardProgress, report, options)
            .await;
    }

    async fn seal(ctx: &WorkflowContext<Self>, input: &ShardInput) -> WorkflowResult<()> {
        let mut failures = input.failures.clone();
        failures.sort_by_key(|failure| failure.index);
        let shard = SealShard { job: input.job.clone(), shard: input.shard, failures };
        let options = policy::batch(Some(WorkflowCancellationToken::new()));
        ctx.execute_activity(Activities::seal_shard, shard, options).await?;
        Ok(())
    }
}
