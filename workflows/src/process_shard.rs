//! `ProcessShard`: one shard of a batch, and its reports to the batch.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use std::time::{Duration, SystemTime};

use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView,
    WorkflowResult, WorkflowTermination, workflows,
};

use crate::{
    contract::{ShardInput, ShardReport, Totals},
    payload,
    report::{self, LastReport, Reports},
    shard::{self, Shard},
    state_access::{HasPart, StateAccess},
};

/// One shard of a batch.
#[workflow]
pub struct ProcessShard {
    shard: Shard,
    last_report: LastReport,
}

impl HasPart<Shard> for ProcessShard {
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
        let last_report =
            LastReport { totals: input.totals, at: ctx.start_time(), places: input.window };
        Self { shard: Shard { input, ..Shard::default() }, last_report }
    }

    #[run(name = "ProcessShard")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Totals> {
        ctx.state_mut(Self::assume_full);
        let work = Box::pin(shard::run::work(ctx));
        let (worked, ()) = workflows::join!(work, report::send_when_due(ctx.clone()));

        let (is_over, worked) = shard::run::wind_up(ctx, worked).await;
        let cancelled = ctx.cancellation_token().is_cancelled();
        if !is_over {
            let input = ctx.read(|shard| shard.input.clone());
            ctx.continue_as_new(input, ContinueAsNewOptions::default())?;
        }
        let sealed = shard::run::seal(ctx).await;
        if cancelled || sealed.is_err() || worked.is_err() {
            // A child that is cancelled or fails has no result: the batch learns the last totals
            // from a report.
            report::send(ctx).await;
        }
        worked?;
        sealed?;
        if cancelled {
            Err(WorkflowTermination::cancelled())
        } else {
            Ok(ctx.read(|shard| shard.input.totals))
        }
    }

    /// Hands out no more documents. Those in flight continue.
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
        self.last_report.places = self.last_report.places.saturating_add(places);
    }

    #[query(name = "progress")]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Totals {
        self.shard.input.totals
    }
}

impl ProcessShard {
    /// Records the state that the batch assumes until the first report.
    fn assume_full(&mut self) {
        let input = &self.shard.input;
        if !input.paused {
            self.last_report.totals.in_flight = input.window.into();
        }
    }

    /// Whether a report is due because some time has passed since the last one and something has
    /// happened. No timer runs, because timers cost money.
    fn time_is_due(&self) -> bool {
        let input = &self.shard.input;
        let wait = Duration::from_secs(input.report_seconds.into());
        let since = |then| self.shard.latest?.duration_since(then).ok();
        self.last_report.at.and_then(since).is_some_and(|since| since >= wait)
            && input.totals != self.last_report.totals
    }

    /// Whether enough places are free to report them: half of them, then seven eighths of the rest,
    /// and so on. So reports are few, and slow documents keep few places from other shards.
    fn places_are_due(&self) -> bool {
        let (input, needed) = (&self.shard.input, self.needed());
        let due = if self.last_report.places == input.window {
            input.window / 2
        } else {
            self.last_report.places.div_ceil(8)
        };
        input.returns_places && needed > 0 && needed < self.last_report.places && needed <= due
    }

    /// Places of the window that the shard still needs.
    fn needed(&self) -> u32 {
        let in_flight = self.shard.in_window();
        if self.shard.has_handed_out() {
            u32::try_from(in_flight).unwrap_or(u32::MAX).min(self.last_report.places)
        } else {
            self.last_report.places
        }
    }
}

impl Reports for ProcessShard {
    fn is_over(&self) -> bool {
        self.shard.over
    }

    fn is_report_due(&self) -> bool {
        let input = &self.shard.input;
        self.time_is_due()
            || (self.last_report.totals.in_flight > 0
                && input.paused
                && input.totals.in_flight == 0)
            || self.places_are_due()
    }

    fn next_report(&mut self, now: Option<SystemTime>) -> (String, ShardReport) {
        let (input, places) = (&self.shard.input, self.needed());
        self.last_report = LastReport { totals: input.totals, at: now, places };
        let report = ShardReport {
            shard: input.shard,
            totals: input.totals,
            places: self.shard.has_handed_out().then_some(places),
            open: input.open,
            is_group: false,
        };
        (input.parent.clone(), report)
    }
}
