//! `ProcessShard`: a sliding window over one shard's documents.

#![allow(missing_docs, missing_debug_implementations, reason = "the macros drop doc comments on what they generate")]

use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, ContinueAsNewOptions, SignalWorkflowOptions, SyncWorkflowContext,
    WorkflowCancellationToken, WorkflowContext, WorkflowContextView, WorkflowResult, WorkflowTermination, workflows,
};

use crate::{
    contract::{Activities, DocumentOutcome, DocumentTask, SealShard, ShardInput, ShardReport, Totals},
    parts, policy,
    process_documents::ProcessDocuments,
    request, tally,
};

/// A shard tells its batch how far it is this many times: each report costs the batch a workflow task.
const REPORTS: u64 = 5;

/// One shard of a batch.
#[workflow]
pub struct ProcessShard {
    /// The input, brought forward with every document: what a continued run begins with.
    input: ShardInput,
    /// No more documents are handed out in this run: its history is long enough.
    draining: bool,
    /// What the batch was last told.
    reported: Totals,
    /// Every window lane has ended.
    over: bool,
}

#[workflow_methods]
impl ProcessShard {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, input: ShardInput) -> Self {
        let reported = input.totals;
        Self { input, draining: false, reported, over: false }
    }

    #[run(name = "ProcessShard")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Totals> {
        let window = ctx.state(|shard| shard.input.window.min(shard.input.documents).max(1));
        let work = async {
            let places: Vec<_> = (0..window).map(|_| Self::place(ctx.clone())).collect();
            workflows::join_all(places).await;
            ctx.state_mut(|shard| shard.over = true);
        };
        workflows::join!(work, Self::report_now_and_then(ctx.clone()));

        let cancelled = ctx.cancellation_token().is_cancelled();
        let input = ctx.state(|shard| shard.input.clone());
        if input.next < input.documents && !cancelled {
            ctx.continue_as_new(input.clone(), ContinueAsNewOptions::default())?;
        }
        let sealed = Self::seal(ctx, &input).await;
        if cancelled || sealed.is_err() {
            // A child that is cancelled or fails has no result: the batch learns the last numbers from a report.
            Self::report(ctx, &input).await;
        }
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
    /// One place of the window: takes a document, waits for its end, takes the next. No barrier anywhere.
    async fn place(ctx: WorkflowContext<Self>) {
        loop {
            if ctx.wait_condition(|shard| !shard.input.paused || shard.exhausted()).await.is_err() {
                return;
            }
            if ctx.continue_as_new_suggested() {
                ctx.state_mut(|shard| shard.draining = true);
            }
            let Some(task) = ctx.state_mut(Self::take) else { return };
            let index = task.index;
            let options = Self::options(&ctx);
            let (mut spent, mut ended) =
                (DocumentOutcome::default(), ctx.execute_activity(Activities::process_document, task.clone(), options).await);
            if let Ok(DocumentOutcome { parts: Some(parts), .. }) = ended {
                ended = parts::read(&ctx, &task, parts, &mut spent).await.map(|()| spent);
            }
            if !ctx.state_mut(|shard| shard.record(index, &ended, &spent)) {
                return;
            }
        }
    }

    /// How a document's activities are run.
    pub(crate) fn options(ctx: &WorkflowContext<Self>) -> ActivityOptions {
        ctx.state(|shard| policy::document(ctx.task_queue(), &shard.input.lane, &shard.input.tenant))
    }

    fn exhausted(&self) -> bool {
        self.draining || self.input.next >= self.input.documents
    }

    fn take(&mut self) -> Option<DocumentTask> {
        if self.exhausted() {
            return None;
        }
        let task = DocumentTask { job: self.input.job.clone(), shard: self.input.shard, index: self.input.next };
        self.input.next += 1;
        self.input.totals.in_flight += 1;
        Some(task)
    }

    /// Whether to go on. `spent` is what a document came to whose parts did not all succeed.
    fn record(&mut self, index: u32, ended: &Result<DocumentOutcome, ActivityExecutionError>, spent: &DocumentOutcome) -> bool {
        let totals = &mut self.input.totals;
        totals.in_flight = totals.in_flight.saturating_sub(1);
        match ended {
            Ok(outcome) => totals.add(outcome),
            Err(error) if error.as_cancelled().is_some() => return false,
            Err(error) => {
                let (mut failed, effort) = tally::failed_document(index, error);
                let mut all = DocumentOutcome { effort, ..DocumentOutcome::default() };
                all.add(spent);
                failed.provider_calls = all.effort.provider_calls;
                totals.add_failed(&all.effort);
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

    /// After every so many documents, and when the first is handed out or, in a pause, the last comes back: the batch's number
    /// of documents in flight would else be wrong for as long as nothing ends.
    fn report_is_due(&self, step: u64) -> bool {
        let (now, told) = (&self.input.totals, &self.reported);
        now.ended() >= told.ended() + step || (now.in_flight == 0) != (told.in_flight == 0)
    }

    /// A batch that is gone needs no report.
    async fn report(ctx: &WorkflowContext<Self>, input: &ShardInput) {
        let Ok(report) = request::encode(&ShardReport { shard: input.shard, totals: input.totals }) else { return };
        let options = SignalWorkflowOptions::builder().cancellation_token(WorkflowCancellationToken::new()).build();
        let _ = ctx.external_workflow(input.parent.clone(), None).signal(ProcessDocuments::shard_progress, report, options).await;
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
