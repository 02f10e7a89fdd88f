//! `ProcessParts`: reads one document in parts. It has a history of its own, because the history of
//! the shard would grow with all parts of all long documents.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ActivityExecutionError, ContinueAsNewOptions, WorkflowContext, WorkflowContextView,
    WorkflowResult, workflows,
};

use crate::{
    contract::{
        Activities, DocumentOutcome, LongDocument, LongOutcome, PARTS_AT_ONCE, PartTask, Taken,
    },
    failure, policy,
};

/// One document, level by level: see [`crate::contract::Parts::steps`].
#[workflow]
pub struct ProcessParts {
    /// The input, updated with every step; a continued run begins with it.
    input: LongDocument,
    /// Use of the levels before this one.
    before: Taken,
    /// The outcome without a result.
    ended: Option<LongOutcome>,
    /// Whether no more steps start in this run, because its history is long enough.
    draining: bool,
}

#[workflow_methods]
impl ProcessParts {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, input: LongDocument) -> Self {
        let before = input.taken;
        Self { input, before, ended: None, draining: false }
    }

    /// Always returns a result, even if the document has none: a failed or cancelled workflow could
    /// not report what its steps used.
    #[run(name = "ProcessParts")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<LongOutcome> {
        while let Some(steps) = ctx.state(Self::steps) {
            let lanes = (0..steps.min(PARTS_AT_ONCE)).map(|_| Self::run_steps(ctx.clone()));
            workflows::join_all(lanes.collect::<Vec<_>>()).await;
            if let Some(ended) = ctx.state(|parts| parts.ended.clone()) {
                return Ok(ctx.state(|parts| ended.with_taken(parts.input.taken)));
            }
            let input = ctx.state(|parts| parts.input.clone());
            if input.next < steps {
                ctx.continue_as_new(input, ContinueAsNewOptions::default())?;
            }
            ctx.state_mut(Self::next_level);
        }
        let taken = ctx.state(|parts| parts.input.taken);
        Ok(LongOutcome { taken, ..LongOutcome::default() })
    }
}

impl ProcessParts {
    /// Runs one step after the other. After a failure no more start.
    async fn run_steps(ctx: WorkflowContext<Self>) {
        loop {
            if ctx.continue_as_new_suggested() {
                ctx.state_mut(|parts| parts.draining = true);
            }
            let Some(task) = ctx.state_mut(Self::take) else { return };
            let options = ctx.state(|parts| {
                let LongDocument { lane, tenant, heartbeat_seconds, .. } = &parts.input;
                policy::document(ctx.task_queue(), lane, tenant, *heartbeat_seconds)
            });
            let ended = ctx.execute_activity(Activities::process_part, task, options).await;
            ctx.state_mut(|parts| parts.record(ended));
        }
    }

    /// Steps of the current level.
    fn steps(&self) -> Option<u32> {
        self.input.parts.steps(self.input.level)
    }

    fn take(&mut self) -> Option<PartTask> {
        let more = self.steps().is_some_and(|steps| self.input.next < steps);
        if self.ended.is_some() || self.draining || !more {
            return None;
        }
        let LongDocument { document, parts, level, next, .. } = &self.input;
        let task = PartTask {
            document: document.clone(),
            parts: *parts,
            step: parts.step(*level, *next),
            spent: self.before.spend,
        };
        self.input.next += 1;
        Some(task)
    }

    fn record(&mut self, ended: Result<DocumentOutcome, ActivityExecutionError>) {
        let taken = &mut self.input.taken;
        match ended {
            Ok(DocumentOutcome { spend, cuts, .. }) => *taken += Taken { spend, cuts },
            Err(error) => {
                let (failed, lost) = failure::failed_document(self.input.document.index, &error);
                *taken += lost;
                let cancelled = failure::is_cancelled(&error);
                let failed = (!cancelled).then_some(failed);
                let ended = LongOutcome { failed, cancelled, ..LongOutcome::default() };
                // A final failure is reported rather than the cancellation of other steps.
                if self.ended.as_ref().is_none_or(|ended| ended.failed.is_none()) {
                    self.ended = Some(ended);
                }
            }
        }
    }

    fn next_level(&mut self) {
        self.input.level += 1;
        self.input.next = 0;
        self.before = self.input.taken;
    }
}
