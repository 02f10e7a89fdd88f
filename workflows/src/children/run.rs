//! Runs children: starts them, signals them, and waits for their end.

use std::{future::poll_fn, task::Poll};

use futures::future::{FusedFuture, LocalBoxFuture};
use temporalio_common::{WorkflowDefinition, data_converters::RawValue};
use temporalio_workflow::{
    ChildWorkflowOptions, ParentClosePolicy, SignalWorkflowOptions, WorkflowContext, workflows,
};

use super::{Child, Children, News, Start, group_id};
use crate::{
    contract::Totals,
    failure,
    holds::{Holds, Inside},
    payload,
    process_group::ProcessGroup,
    process_shard::ProcessShard,
    shard::shard_id,
};

/// Starts children as places become free, until all have ended.
pub(crate) async fn run<W: Holds<Children> + 'static>(ctx: &WorkflowContext<W>) {
    beside_news(ctx, start(ctx)).await;
}

/// Starts children, and signals those that run.
pub(crate) async fn beside_news<W: Holds<Children> + 'static>(
    ctx: &WorkflowContext<W>,
    start: impl Future<Output = ()>,
) {
    let start = async {
        start.await;
        ctx.change(|children| children.over = true);
    };
    workflows::join!(start, tell(ctx));
}

async fn start<W: Holds<Children> + 'static>(ctx: &WorkflowContext<W>) {
    let mut running: Vec<LocalBoxFuture<'static, ()>> = Vec::new();
    loop {
        let cancelled = ctx.cancellation_token().is_cancelled();
        let now = ctx.workflow_time();
        ctx.change(|children| {
            children.draining |= cancelled;
            while let Some((child, start)) = children.take(now) {
                running.push(Box::pin(one(ctx.clone(), child, start)));
            }
        });
        if running.is_empty() && ctx.look(Children::is_at_its_end) {
            return;
        }
        let idle = running.is_empty();
        let mut more = std::pin::pin!(ctx.wait_condition(|workflow| {
            let children = workflow.part();
            children.can_start() || (idle && children.is_at_its_end())
        }));
        // In order, like everything in a workflow.
        poll_fn(|task| {
            let before = running.len();
            running.retain_mut(|child| child.as_mut().poll(task).is_pending());
            // After a cancellation, a condition resolves at once.
            let has_more = !more.is_terminated() && more.as_mut().poll(task).is_ready();
            if running.len() < before || (has_more && !cancelled) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Runs one child from its start to its end.
pub(crate) async fn one<W: Holds<Children> + 'static>(
    ctx: WorkflowContext<W>,
    child: Child,
    start: Start,
) {
    let ended = match start {
        Start::Shard(input) => {
            let id = shard_id(&ctx.look(|it| it.batch.clone()), input.shard);
            to_its_end(&ctx, child, ProcessShard::run, input, id).await
        }
        Start::Group(input) => {
            let id = group_id(&input.batch, input.group);
            to_its_end(&ctx, child, ProcessGroup::run, input, id).await
        }
    };
    ctx.change(|children| children.record(child, ended));
    if ctx.continue_as_new_suggested() {
        ctx.change(Children::has_long_history);
    }
}

/// Waits for the child's result, or for the reason why there is none.
async fn to_its_end<W, C>(
    ctx: &WorkflowContext<W>,
    child: Child,
    workflow: C,
    input: C::Input,
    id: String,
) -> Result<Totals, String>
where
    W: Holds<Children> + 'static,
    C: WorkflowDefinition<Output = Totals> + 'static,
{
    let options = ChildWorkflowOptions::builder()
        .workflow_id(id)
        .parent_close_policy(ParentClosePolicy::Terminate)
        .build();
    let started = ctx.start_child_workflow(workflow, input, options).await;
    let started = started.map_err(|error| error.to_string())?;
    ctx.change(|children| children.has_started(child));
    started
        .result()
        .await
        .map_err(|error| error.reason().map_or_else(|| error.to_string(), failure::root_message))
}

/// Signals a pause, its end, and more places to running children; a later child starts with them.
async fn tell<W: Holds<Children> + 'static>(ctx: &WorkflowContext<W>) {
    loop {
        let news =
            ctx.wait_condition(|workflow| workflow.part().over || workflow.part().news().is_some());
        if news.await.is_err() || ctx.look(|children| children.over) {
            return;
        }
        let Some((id, child, news)) = ctx.change(Children::next_news) else { continue };
        let workflow = ctx.external_workflow(id, None);
        let options = SignalWorkflowOptions::default();
        // A child that has ended meanwhile needs no signal.
        let _ = match (child, news) {
            (Child::Shard(_), News::Paused(true)) => {
                workflow.signal(ProcessShard::pause, RawValue::default(), options).await
            }
            (Child::Shard(_), News::Paused(false)) => {
                workflow.signal(ProcessShard::resume, RawValue::default(), options).await
            }
            (Child::Group(_), News::Paused(true)) => {
                workflow.signal(ProcessGroup::pause, RawValue::default(), options).await
            }
            (Child::Group(_), News::Paused(false)) => {
                workflow.signal(ProcessGroup::resume, RawValue::default(), options).await
            }
            (child, News::Places(places)) => {
                let Ok(places) = payload::encode(&places) else { continue };
                match child {
                    Child::Shard(_) => workflow.signal(ProcessShard::places, places, options).await,
                    Child::Group(_) => workflow.signal(ProcessGroup::places, places, options).await,
                }
            }
        };
    }
}
