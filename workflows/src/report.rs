//! Reports of a shard or a group to its parent workflow.

use std::time::SystemTime;

use temporalio_workflow::{SignalWorkflowOptions, WorkflowCancellationToken, WorkflowContext};

use crate::{
    contract::{ShardProgress, ShardReport, Totals},
    payload,
};

/// The state that the batch knows of a shard or a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    /// Totals of the last report.
    pub(crate) totals: Totals,
    /// When it was sent, or when the run began.
    pub(crate) at: Option<SystemTime>,
    /// Places of the window that are still held.
    pub(crate) places: u32,
}

/// Sends a report, even from a cancelled workflow. If the parent has ended, the report is dropped.
pub(crate) async fn send<W>(ctx: &WorkflowContext<W>, parent: String, report: &ShardReport) {
    let Ok(report) = payload::encode(report) else { return };
    let options = SignalWorkflowOptions::builder()
        .cancellation_token(WorkflowCancellationToken::new())
        .build();
    let _ = ctx.external_workflow(parent, None).signal(ShardProgress, report, options).await;
}
