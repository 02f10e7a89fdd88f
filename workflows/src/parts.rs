//! A document that is read in parts: each part is a step of its own, so that a crash loses one call
//! and no more.

use std::cell::{Cell, RefCell};

use temporalio_workflow::{ActivityExecutionError, WorkflowContext, workflows};

use crate::{
    contract::{
        Activities, DocumentOutcome, DocumentTask, FAN_IN, LongHow, PARTS_AT_ONCE, PartTask, Parts,
        Step,
    },
    process_shard::ProcessShard,
};

/// Answers every part, and makes one result of the answers. `spent` is what the steps came to, in
/// whichever way they ended.
pub(crate) async fn read(
    ctx: &WorkflowContext<ProcessShard>,
    document: &DocumentTask,
    parts: Parts,
    spent: &mut DocumentOutcome,
) -> Result<(), ActivityExecutionError> {
    level(ctx, document, parts, spent, (0..parts.count).map(Step::Part).collect()).await?;
    match parts.how {
        LongHow::PerChunk => level(ctx, document, parts, spent, vec![Step::Join]).await,
        LongHow::MapReduce => {
            let (mut of, mut above) = (parts.count, 1);
            loop {
                let groups = of.div_ceil(FAN_IN);
                let steps =
                    (0..groups).map(|group| Step::Reduce { level: above, group, of }).collect();
                level(ctx, document, parts, spent, steps).await?;
                if groups <= 1 {
                    return Ok(());
                }
                (of, above) = (groups, above + 1);
            }
        }
    }
}

/// Some steps that do not need each other, a few at a time. After a failure no more begin.
async fn level(
    ctx: &WorkflowContext<ProcessShard>,
    document: &DocumentTask,
    parts: Parts,
    spent: &mut DocumentOutcome,
    steps: Vec<Step>,
) -> Result<(), ActivityExecutionError> {
    let before = *spent;
    let (failed, sum) = (RefCell::new(None), RefCell::new(DocumentOutcome::default()));
    let next = Cell::new(0);
    let lane = async || {
        while failed.borrow().is_none() {
            let Some(step) = steps.get(next.replace(next.get() + 1)) else { return };
            let task = PartTask { document: document.clone(), parts, step: *step, spent: before };
            match ctx
                .execute_activity(Activities::process_part, task, ProcessShard::options(ctx))
                .await
            {
                Ok(outcome) => sum.borrow_mut().add(&outcome),
                Err(error) => *failed.borrow_mut() = Some(error),
            }
        }
    };
    workflows::join_all((0..PARTS_AT_ONCE).map(|_| lane()).collect::<Vec<_>>()).await;
    spent.add(&sum.borrow());
    failed.into_inner().map_or(Ok(()), Err)
}
