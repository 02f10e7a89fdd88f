//! A paused batch hands out no more documents. This flag also makes documents wait that are already
//! handed out: workers read it together with the quota. An activity writes it, because a workflow
//! cannot.

use temporalio_workflow::{WorkflowCancellationToken, WorkflowContext, workflows};

use crate::{
    contract::{Activities, MarkPaused},
    policy,
};

/// Keeps the job's flag equal to `paused` until the run is `over`, then clears it. While the batch
/// is planned, it has no job and hands out nothing.
pub(crate) async fn keep<W>(
    ctx: WorkflowContext<W>,
    paused: impl Fn(&W) -> (bool, String),
    over: impl Fn(&W) -> bool,
) {
    let mut raised = false;
    loop {
        let is_due = |batch: &W| {
            let (paused, job) = paused(batch);
            over(batch) || !job.is_empty() && paused != raised
        };
        let due = ctx.wait_condition(is_due).await;
        if due.is_err() || ctx.state(&over) {
            break;
        }
        raised = !raised;
        let mark = MarkPaused { job: ctx.state(|batch| paused(batch).1), paused: raised };
        // Waits while the flag cannot be written, but not beyond the run's work.
        let token = WorkflowCancellationToken::new();
        let options = policy::batch(Some(token.clone()));
        let mut written =
            std::pin::pin!(ctx.execute_activity(Activities::mark_paused, mark, options));
        let mut ended = std::pin::pin!(ctx.wait_condition(&over));
        workflows::select! {
            _ = written => {}
            _ = ended => token.cancel(),
        }
    }
    if raised {
        let mark = MarkPaused { job: ctx.state(|batch| paused(batch).1), paused: false };
        let _ = ctx.execute_activity(Activities::mark_paused, mark, policy::last_mark()).await;
    }
}
