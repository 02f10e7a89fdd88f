//! A document that is read in parts: each part is a step of its own, so that a crash loses one call
//! and no more.

use std::cell::{Cell, RefCell};

use crate::contract::{
    Activities, DocumentOutcome, DocumentTask, FAN_IN, LongHow, PARTS_AT_ONCE, PartTask, Parts,
    Step, Taken,
};
use temporalio_workflow::{ActivityExecutionError, ActivityOptions, WorkflowContext, workflows};

/// Answers every part, and makes one result of the answers. `taken` is what the steps took, in
/// whichever way they ended; `options` are those of each step's activity.
pub(crate) async fn read<W>(
    ctx: &WorkflowContext<W>,
    options: impl Fn() -> ActivityOptions + Copy,
    document: &DocumentTask,
    parts: Parts,
    taken: &mut Taken,
) -> Result<(), ActivityExecutionError> {
    level(ctx, options, document, parts, taken, (0..parts.count).map(Step::Part).collect()).await?;
    match parts.how {
        LongHow::PerChunk => level(ctx, options, document, parts, taken, vec![Step::Join]).await,
        LongHow::MapReduce => {
            let (mut of, mut above) = (parts.count, 1);
            loop {
                let groups = of.div_ceil(FAN_IN);
                let steps =
                    (0..groups).map(|group| Step::Reduce { level: above, group, of }).collect();
                level(ctx, options, document, parts, taken, steps).await?;
                if groups <= 1 {
                    return Ok(());
                }
                (of, above) = (groups, above + 1);
            }
        }
    }
}

/// Some steps that do not need each other, a few at a time. After a failure no more begin.
async fn level<W>(
    ctx: &WorkflowContext<W>,
    options: impl Fn() -> ActivityOptions + Copy,
    document: &DocumentTask,
    parts: Parts,
    taken: &mut Taken,
    steps: Vec<Step>,
) -> Result<(), ActivityExecutionError> {
    let before = taken.spend;
    let (failed, sum) = (RefCell::new(None), RefCell::new(Taken::default()));
    let next = Cell::new(0);
    let lane = async || {
        while failed.borrow().is_none() {
            let Some(step) = steps.get(next.replace(next.get() + 1)) else { return };
            let task = PartTask { document: document.clone(), parts, step: *step, spent: before };
            match ctx.execute_activity(Activities::process_part, task, options()).await {
                Ok(DocumentOutcome { spend, cuts, .. }) => {
                    *sum.borrow_mut() += Taken { spend, cuts };
                }
                Err(error) => *failed.borrow_mut() = Some(error),
            }
        }
    };
    workflows::join_all((0..PARTS_AT_ONCE).map(|_| lane()).collect::<Vec<_>>()).await;
    *taken += *sum.borrow();
    failed.into_inner().map_or(Ok(()), Err)
}
