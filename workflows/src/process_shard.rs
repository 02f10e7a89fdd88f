//! `ProcessShard`: one shard of a batch, and its reports to the batch.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use std::time::Duration;

use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView,
    WorkflowResult, WorkflowTermination, workflows,
};

use crate::{
    contract::{ShardInput, ShardReport, Totals},
    holds::{Holds, Inside},
    payload,
    report::{self, Told},
    shard::{self, Shard},
};

/// One shard of a batch.
#[workflow]
pub struct ProcessShard {
    shard: Shard,
    told: Told,
}

impl Holds<Shard> for ProcessShard {
    fn part(&self) -> &Shard {
        &self.shard
    }

    fn part_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

#[workflow_methods]
impl ProcessShard {
    #[init]
    pub fn new(ctx: &WorkflowContextView, input: ShardInput) -> Self {
        let told = Told { totals: input.totals, at: ctx.start_time(), places: input.window };
        Self { shard: Shard { input, ..Shard::default() }, told }
    }

    #[run(name = "ProcessShard")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Totals> {
        ctx.state_mut(Self::is_taken_to_be_full);
        let work = Box::pin(shard::work(ctx));
        let (worked, ()) = workflows::join!(work, Self::report_now_and_then(ctx.clone()));

        let (is_over, worked) = shard::wind_up(ctx, worked).await;
        let cancelled = ctx.cancellation_token().is_cancelled();
        if !is_over {
            let input = ctx.look(|shard| shard.input.clone());
            ctx.continue_as_new(input, ContinueAsNewOptions::default())?;
        }
        let sealed = shard::seal(ctx).await;
        if cancelled || sealed.is_err() || worked.is_err() {
            // A child that is cancelled or fails has no result: the batch learns the last totals
            // from a report.
            Self::report(ctx).await;
        }
        worked?;
        sealed?;
        if cancelled {
            Err(WorkflowTermination::cancelled())
        } else {
            Ok(ctx.look(|shard| shard.input.totals))
        }
    }

    /// Hands out no more documents. Those in flight go on.
    #[signal(name = "pause")]
    pub fn pause(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.shard.input.paused = true;
    }

    /// Hands out documents again.
    #[signal(name = "resume")]
    pub fn resume(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.shard.input.paused = false;
    }

    /// Adds places to the window.
    #[signal(name = "places")]
    pub fn places(&mut self, _ctx: &mut SyncWorkflowContext<Self>, places: RawValue) {
        let places: u32 = payload::decode(&places).unwrap_or_default();
        let window = &mut self.shard.input.window;
        *window = window.saturating_add(places);
        self.told.places = self.told.places.saturating_add(places);
    }

    #[query(name = "progress")]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Totals {
        self.shard.input.totals
    }
}

impl ProcessShard {
    async fn report_now_and_then(ctx: WorkflowContext<Self>) {
        loop {
            let due = ctx.wait_condition(|it| it.shard.over || it.report_is_due()).await;
            if due.is_err() || ctx.look(|shard| shard.over) {
                return;
            }
            Self::report(&ctx).await;
        }
    }

    /// Records what the batch assumes until the first report.
    fn is_taken_to_be_full(&mut self) {
        let input = &self.shard.input;
        if !input.paused {
            self.told.totals.in_flight = input.window.into();
        }
    }

    fn report_is_due(&self) -> bool {
        let input = &self.shard.input;
        self.time_is_due()
            || (self.told.totals.in_flight > 0 && input.paused && input.totals.in_flight == 0)
            || self.places_are_due()
    }

    /// Whether a report is due, some time after the last one and only when something has happened
    /// since. No timer runs, because timers cost money.
    fn time_is_due(&self) -> bool {
        let input = &self.shard.input;
        let wait = Duration::from_secs(input.report_seconds.into());
        let since = |then| self.shard.latest?.duration_since(then).ok();
        self.told.at.and_then(since).is_some_and(|since| since >= wait)
            && input.totals != self.told.totals
    }

    /// Whether enough places are free to report them: half of them, then seven eighths of the rest,
    /// and so on. So reports are few, and slow documents keep few places from other shards.
    fn places_are_due(&self) -> bool {
        let (input, needed) = (&self.shard.input, self.needed());
        let due = if self.told.places == input.window {
            input.window / 2
        } else {
            self.told.places.div_ceil(8)
        };
        input.returns_places && needed > 0 && needed < self.told.places && needed <= due
    }

    /// Places of the window that the shard still needs.
    fn needed(&self) -> u32 {
        let in_flight = self.shard.in_window();
        if self.shard.has_handed_out() {
            u32::try_from(in_flight).unwrap_or(u32::MAX).min(self.told.places)
        } else {
            self.told.places
        }
    }

    /// If the batch has ended, the report is dropped.
    async fn report(ctx: &WorkflowContext<Self>) {
        let now = ctx.workflow_time();
        let (parent, report) = ctx.state_mut(|it| {
            it.told = Told { totals: it.shard.input.totals, at: now, places: it.needed() };
            let input = &it.shard.input;
            let places = it.shard.has_handed_out().then_some(it.told.places);
            let report = ShardReport {
                shard: input.shard,
                totals: input.totals,
                places,
                open: input.open,
                is_group: false,
            };
            (input.parent.clone(), report)
        });
        report::send(ctx, parent, &report).await;
    }
}
