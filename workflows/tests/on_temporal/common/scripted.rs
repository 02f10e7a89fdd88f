//! Shards without documents, for tests of the workflows that start them.

use std::time::Duration;

use serde_json::json;
use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    SignalWorkflowOptions, WorkflowContext, WorkflowContextView, WorkflowResult,
};
use tidegate_workflows::contract::{ShardInput, ShardProgress, ShardReport, Totals};

use super::json_payload;

/// A shard without documents: it returns its places in two reports, as if its documents ended one
/// after the other, and reports all of them as answered.
#[workflow]
pub struct Scripted {
    input: ShardInput,
}

#[workflow_methods]
impl Scripted {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, input: ShardInput) -> Self {
        Self { input }
    }

    #[run(name = "ProcessShard")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Totals> {
        let input = ctx.state(|shard| shard.input.clone());
        let answered = |succeeded| Totals { succeeded, ..Totals::default() };
        for part in [2, 16] {
            ctx.timer(Duration::from_millis(250)).await;
            let left = input.window / part;
            if !input.returns_places || left == 0 {
                continue;
            }
            let totals = Totals {
                in_flight: left.into(),
                ..answered(u64::from(input.documents.saturating_sub(left)))
            };
            let report = ShardReport {
                shard: input.shard,
                totals,
                places: Some(left),
                open: None,
                is_group: false,
            };
            let report = RawValue::new(vec![json_payload(&json!(report))]);
            let parent = ctx.external_workflow(input.parent.clone(), None);
            // If the parent has ended, the report is dropped.
            let _ = parent.signal(ShardProgress, report, SignalWorkflowOptions::default()).await;
        }
        Ok(answered(input.documents.into()))
    }
}
