//! `ProcessGroup`: some shards of a large batch. Its history is bounded by their number, and the
//! batch's history does not grow with them.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use std::time::Duration;

use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    SyncWorkflowContext, WorkflowContext, WorkflowContextView, WorkflowResult, WorkflowTermination,
    workflows,
};

use crate::{
    children::{Children, run},
    contract::{GroupInput, Live, Progress, ShardInput, ShardReport, Totals},
    failure::failed,
    holds::{Holds, Inside},
    payload,
    report::{self, Told},
};

/// Free places are reported in units of this fraction of the window.
const PART: u32 = 16;

/// Several shards of a batch.
#[workflow]
pub struct ProcessGroup {
    group: u32,
    /// The last report to the batch.
    told: Told,
    children: Children,
}

impl Holds<Children> for ProcessGroup {
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
            groups_from: u32::MAX,
            paused,
            latest: now,
            began: now,
            ..Children::default()
        };
        // The batch assumes as much until the group reports.
        let in_flight = if paused { 0 } else { window.into() };
        let totals = Totals { in_flight, ..Totals::default() };
        Self { group, told: Told { totals, at: now, places: window }, children }
    }

    #[run(name = "ProcessGroup")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Totals> {
        let children = Box::pin(run::run(ctx));
        workflows::join!(children, Self::report_now_and_then(ctx.clone()));
        let (broken, totals) = ctx.look(|children| (children.broken.clone(), children.totals));
        let cancelled = ctx.cancellation_token().is_cancelled();
        if cancelled || broken.is_some() {
            // Without a result, the batch learns the last totals from a report.
            Self::report(ctx).await;
        }
        match broken {
            _ if cancelled => Err(WorkflowTermination::cancelled()),
            Some(message) => Err(failed("ShardFailed", &message)),
            None => Ok(totals),
        }
    }

    /// Hands out no more documents. Those in flight go on.
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
        self.told.places = self.told.places.saturating_add(places);
    }

    /// Takes a shard's report.
    #[signal(name = "shard_progress")]
    pub fn shard_progress(&mut self, ctx: &mut SyncWorkflowContext<Self>, report: RawValue) {
        self.children.reported(&report, ctx.workflow_time());
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
    async fn report_now_and_then(ctx: WorkflowContext<Self>) {
        loop {
            let due = ctx.wait_condition(|it| it.children.over || it.report_is_due()).await;
            if due.is_err() || ctx.look(|children| children.over) {
                return;
            }
            Self::report(&ctx).await;
        }
    }

    /// Whether to report: after some time, when the group is idle in a pause, or when places are
    /// free that none of its shards needs.
    fn report_is_due(&self) -> bool {
        let (children, totals) = (&self.children, self.children.totals());
        let wait = Duration::from_secs(children.shard.report_seconds.max(1).into());
        let since = |then| children.latest?.duration_since(then).ok();
        let late = self.told.at.and_then(since).is_some_and(|since| since >= wait);
        let free = self.told.places.saturating_sub(self.needed());
        (late && totals != self.told.totals)
            || (children.paused && totals.in_flight == 0 && self.told.totals.in_flight > 0)
            || free >= (children.window / PART).max(1)
    }

    /// Whether its own shards have no more use for free places.
    fn gives_back(&self) -> bool {
        self.children.has_handed_out() && !self.children.wants_places()
    }

    /// Places that its shards still need.
    fn needed(&self) -> u32 {
        if self.gives_back() { self.children.places() } else { self.told.places }
    }

    async fn report(ctx: &WorkflowContext<Self>) {
        let now = ctx.workflow_time();
        let (parent, report) = ctx.state_mut(|it| {
            it.told = Told { totals: it.children.totals(), at: now, places: it.needed() };
            let places = it.gives_back().then_some(it.told.places);
            let report = ShardReport {
                shard: it.group,
                totals: it.told.totals,
                places,
                open: it.children.shard.open,
                is_group: true,
            };
            (it.children.batch.clone(), report)
        });
        report::send(ctx, parent, &report).await;
    }
}
