//! Runs children: starts them, signals them, and waits for their end.

use std::{future::poll_fn, task::Poll};

use futures::future::{FusedFuture, LocalBoxFuture};
use temporalio_common::{WorkflowDefinition, data_converters::RawValue};
use temporalio_workflow::{
    ChildWorkflowOptions, ParentClosePolicy, SignalWorkflowOptions, WorkflowContext, workflows,
};

use crate::{
    contract::{GroupWorkflow, Totals},
    failure, payload,
    process_shard::ProcessShard,
    shard::shard_id,
    shard_scheduler::{Child, Children, News, Start, group_id},
    state_access::{HasPart, StateAccess},
};

/// Starts children as places become free, until all have ended.
pub(crate) async fn run<W: HasPart<Children> + 'static>(ctx: &WorkflowContext<W>) {
    beside_news(ctx, start(ctx)).await;
}

/// Starts children, and signals those that run.
pub(crate) async fn beside_news<W: HasPart<Children> + 'static>(
    ctx: &WorkflowContext<W>,
    start: impl Future<Output = ()>,
) {
    let start = async {
        start.await;
        ctx.change(|children| children.over = true);
    };
    workflows::join!(start, send_news(ctx));
}

async fn start<W: HasPart<Children> + 'static>(ctx: &WorkflowContext<W>) {
    let mut running: Vec<LocalBoxFuture<'static, ()>> = Vec::new();
    loop {
        let cancelled = ctx.cancellation_token().is_cancelled();
        let now = ctx.workflow_time();
        ctx.change(|children| {
            children.draining |= cancelled;
            while let Some((child, start)) = children.take(now) {
                running.push(Box::pin(run_child(ctx.clone(), child, start)));
            }
        });
        if running.is_empty() && ctx.read(Children::is_at_its_end) {
            return;
        }
        let idle = running.is_empty();
        let mut more = std::pin::pin!(ctx.wait_condition(|workflow| {
            let children = workflow.part();
            children.can_start() || (idle && children.is_at_its_end())
        }));
        // Polled in order, because a workflow must be deterministic.
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
pub(crate) async fn run_child<W: HasPart<Children> + 'static>(
    ctx: WorkflowContext<W>,
    child: Child,
    start: Start,
) {
    let ended = match start {
        Start::Shard(input) => {
            let id = shard_id(&ctx.read(|it| it.batch.clone()), input.shard);
            await_child(&ctx, child, ProcessShard::run, input, id).await
        }
        Start::Group(input) => {
            let id = group_id(&input.batch, input.group);
            await_child(&ctx, child, GroupWorkflow, input, id).await
        }
    };
    ctx.change(|children| children.record(child, ended));
    if ctx.continue_as_new_suggested() {
        ctx.change(Children::end_long_run);
    }
}

/// Waits for the child's result, or for the reason of its absence.
async fn await_child<W, C>(
    ctx: &WorkflowContext<W>,
    child: Child,
    workflow: C,
    input: C::Input,
    id: String,
) -> Result<Totals, String>
where
    W: HasPart<Children> + 'static,
    C: WorkflowDefinition<Output = Totals> + 'static,
{
    let options = ChildWorkflowOptions::builder()
        .workflow_id(id)
        .parent_close_policy(ParentClosePolicy::Terminate)
        .build();
    let started = ctx.start_child_workflow(workflow, input, options).await;
    let started = started.map_err(|error| error.to_string())?;
    ctx.change(|children| children.mark_started(child));
    started.result().await.map_err(|error| failure::message(error.reason(), &error))
}

/// Signals a pause, its end, and more places to running children; a later child starts with them.
async fn send_news<W: HasPart<Children> + 'static>(ctx: &WorkflowContext<W>) {
    loop {
        let news =
            ctx.wait_condition(|workflow| workflow.part().over || workflow.part().news().is_some());
        if news.await.is_err() || ctx.read(|children| children.over) {
            return;
        }
        let Some((id, news)) = ctx.change(Children::next_news) else { continue };
        let input = match news {
            News::Paused(_) => RawValue::default(),
            News::Places(places) => match payload::encode(&places) {
                Ok(places) => places,
                Err(_) => continue,
            },
        };
        let options = SignalWorkflowOptions::default();
        // A child that has ended since needs no signal.
        let _ = ctx.external_workflow(id, None).signal(news, input, options).await;
    }
}
