//! `ProcessGroup`: some shards of a large batch. Their number bounds its history, and keeps them
//! out of the batch's history.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use std::time::{Duration, SystemTime};

use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    SyncWorkflowContext, WorkflowContext, WorkflowContextView, WorkflowResult, WorkflowTermination,
    workflows,
};

use crate::{
    contract::{GroupInput, Live, Progress, ShardInput, ShardReport, Totals},
    failure::failed,
    payload,
    report::{self, LastReport, Reports},
    shard_scheduler::{Children, run},
    state_access::{HasPart, StateAccess},
};

/// Free places are reported in units of this fraction of the window.
const PART: u32 = 16;

/// Several shards of a batch.
#[workflow]
pub struct ProcessGroup {
    group: u32,
    /// The last report to the batch.
    last_report: LastReport,
    children: Children,
}

impl HasPart<Children> for ProcessGroup {
    fn part(&self) -> &Children {
        &self.children
    }

    fn part_mut(&mut self) -> &mut Children {
        &mut self.children
    }
}

#[workflow_methods]
impl ProcessGroup {
    #[init]
    pub fn new(ctx: &WorkflowContextView, input: GroupInput) -> Self {
        let GroupInput { group, batch, from, to, shard_size, documents, window, paused, shard } =
            input;
        let now = ctx.start_time();
        let shard = ShardInput { parent: ctx.workflow_id().to_owned(), ..shard };
        let children = Children {
            batch,
            shard,
            shard_size: shard_size.max(1),
            documents,
            window,
            next: from,
            planned: to,
            complete: true,
            groups_from: None,
            paused,
            latest: now,
            began: now,
            ..Children::default()
        };
        // The batch assumes this number until the group reports.
        let in_flight = if paused { 0 } else { window.into() };
        let totals = Totals { in_flight, ..Totals::default() };
        Self { group, last_report: LastReport { totals, at: now, places: window }, children }
    }

    #[run(name = "ProcessGroup")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Totals> {
        let children = Box::pin(run::run(ctx));
        workflows::join!(children, report::send_when_due(ctx.clone()));
        let (broken, totals) = ctx.read(|children| (children.broken.clone(), children.totals));
        let cancelled = ctx.cancellation_token().is_cancelled();
        if cancelled || broken.is_some() {
            // Without a result, the batch learns the last totals from a report.
            report::send(ctx).await;
        }
        match broken {
            _ if cancelled => Err(WorkflowTermination::cancelled()),
            Some(message) => Err(failed("ShardFailed", &message)),
            None => Ok(totals),
        }
    }

    /// Hands out no more documents. Those in flight continue.
    #[signal(name = "pause")]
    pub fn pause(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.children.paused = true;
    }

    /// Hands out documents again.
    #[signal(name = "resume")]
    pub fn resume(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.children.paused = false;
    }

    /// Adds places to the window.
    #[signal(name = "places")]
    pub fn places(&mut self, _ctx: &mut SyncWorkflowContext<Self>, places: RawValue) {
        let places: u32 = payload::decode(&places).unwrap_or_default();
        self.children.window = self.children.window.saturating_add(places);
        self.last_report.places = self.last_report.places.saturating_add(places);
    }

    /// Takes a shard's report.
    #[signal(name = "shard_progress")]
    pub fn shard_progress(&mut self, ctx: &mut SyncWorkflowContext<Self>, report: RawValue) {
        self.children.take_report(&report, ctx.workflow_time());
    }

    #[query(name = "progress")]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Totals {
        self.children.totals()
    }

    #[query(name = "live")]
    pub fn live(&self, _ctx: &WorkflowContextView) -> Live {
        let progress = Progress { totals: self.children.totals(), ..Progress::default() };
        Live { progress, ended: self.children.totals, running: self.children.live() }
    }
}

impl ProcessGroup {
    /// Whether its own shards have no more use for free places.
    fn has_spare_places(&self) -> bool {
        self.children.has_handed_out() && !self.children.wants_places()
    }

    /// Places that its shards still need.
    fn needed(&self) -> u32 {
        if self.has_spare_places() { self.children.places() } else { self.last_report.places }
    }
}

impl Reports for ProcessGroup {
    fn is_over(&self) -> bool {
        self.children.over
    }

    /// Whether a report is due: after some time, when the group is idle in a pause, and when places
    /// are free that none of its shards needs.
    fn is_report_due(&self) -> bool {
        let (children, totals) = (&self.children, self.children.totals());
        let wait = Duration::from_secs(children.shard.report_seconds.max(1).into());
        let since = |then| children.latest?.duration_since(then).ok();
        let late = self.last_report.at.and_then(since).is_some_and(|since| since >= wait);
        let free = self.last_report.places.saturating_sub(self.needed());
        (late && totals != self.last_report.totals)
            || (children.paused && totals.in_flight == 0 && self.last_report.totals.in_flight > 0)
            || free >= (children.window / PART).max(1)
    }

    fn next_report(&mut self, now: Option<SystemTime>) -> (String, ShardReport) {
        let (totals, places) = (self.children.totals(), self.needed());
        self.last_report = LastReport { totals, at: now, places };
        let report = ShardReport {
            shard: self.group,
            totals,
            places: self.has_spare_places().then_some(places),
            open: self.children.shard.open,
            is_group: true,
        };
        (self.children.batch.clone(), report)
    }
}
