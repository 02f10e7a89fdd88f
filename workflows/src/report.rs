//! Reports of a shard or a group to its parent workflow.

use std::time::SystemTime;

use temporalio_workflow::{SignalWorkflowOptions, WorkflowCancellationToken, WorkflowContext};

use crate::{
    contract::{ShardProgress, ShardReport, Totals},
    payload,
};

/// The state that the batch knows of a shard or a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LastReport {
    /// Totals of the last report.
    pub(crate) totals: Totals,
    /// The time of the last report, or of the run's beginning.
    pub(crate) at: Option<SystemTime>,
    /// Places of the window that are still held.
    pub(crate) places: u32,
}

/// A workflow that reports its progress to its parent.
pub(crate) trait Reports {
    /// Whether no report is due any more.
    fn is_over(&self) -> bool;

    /// Whether the parent should receive newer numbers than those of the last report.
    fn is_report_due(&self) -> bool;

    /// Records a report as sent now. Returns the parent's workflow id, and the report.
    fn next_report(&mut self, now: Option<SystemTime>) -> (String, ShardReport);
}

/// Sends every report that becomes due, until the workflow is over.
pub(crate) async fn send_when_due<W: Reports + 'static>(ctx: WorkflowContext<W>) {
    loop {
        let due = ctx.wait_condition(|it| it.is_over() || it.is_report_due()).await;
        if due.is_err() || ctx.state(W::is_over) {
            return;
        }
        send(&ctx).await;
    }
}

/// Sends a report, even from a cancelled workflow. If the parent has ended, the report is dropped.
pub(crate) async fn send<W: Reports>(ctx: &WorkflowContext<W>) {
    let now = ctx.workflow_time();
    let (parent, report) = ctx.state_mut(|it| it.next_report(now));
    let Ok(report) = payload::encode(&report) else { return };
    let options = SignalWorkflowOptions::builder()
        .cancellation_token(WorkflowCancellationToken::new())
        .build();
    let _ = ctx.external_workflow(parent, None).signal(ShardProgress, report, options).await;
}
