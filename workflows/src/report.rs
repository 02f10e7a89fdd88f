//! What a shard or a group tells whoever has started it.

use std::time::SystemTime;

use temporalio_workflow::{SignalWorkflowOptions, WorkflowCancellationToken, WorkflowContext};

use crate::{
    contract::{ShardProgress, ShardReport, Totals},
    payload,
};

/// What its batch knows of a shard or a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    /// What the last report said.
    pub(crate) totals: Totals,
    /// When that was, or when the run began.
    pub(crate) at: Option<SystemTime>,
    /// Places of the window that are not given back.
    pub(crate) places: u32,
}

/// Sends a report, also from a workflow that was cancelled. Whoever is gone needs none.
pub(crate) async fn send<W>(ctx: &WorkflowContext<W>, parent: String, report: &ShardReport) {
    let Ok(report) = payload::encode(report) else { return };
    let options = SignalWorkflowOptions::builder()
        .cancellation_token(WorkflowCancellationToken::new())
        .build();
    let _ = ctx.external_workflow(parent, None).signal(ShardProgress, report, options).await;
}
