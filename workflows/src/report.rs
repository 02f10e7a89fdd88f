//! What a shard or a group tells whoever has started it.

use temporalio_workflow::{SignalWorkflowOptions, WorkflowCancellationToken, WorkflowContext};

use crate::{
    contract::{ShardProgress, ShardReport},
    payload,
};

/// Sends a report, also from a workflow that was cancelled. Whoever is gone needs none.
pub(crate) async fn send<W>(ctx: &WorkflowContext<W>, parent: String, report: &ShardReport) {
    let Ok(report) = payload::encode(report) else { return };
    let options = SignalWorkflowOptions::builder()
        .cancellation_token(WorkflowCancellationToken::new())
        .build();
    let _ = ctx.external_workflow(parent, None).signal(ShardProgress, report, options).await;
}
