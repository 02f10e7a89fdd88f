//! Slow start: a shard begins with a part of its window while the length of calls is unknown. Until
//! one of its calls has ended, it hands out more at the expected pace.

use std::time::Duration;

use temporalio_workflow::{TimerOptions, WorkflowCancellationToken, WorkflowContext, workflows};

use crate::{
    contract::ShardInput,
    shard::Shard,
    state_access::{HasPart, StateAccess},
};

/// After each expected call time, hands out as many more as at first, until a call has shown the
/// task queue's delay; from then on [`crate::pace`] decides.
pub(crate) async fn widen<W: HasPart<Shard> + 'static>(ctx: &WorkflowContext<W>) {
    let (first, seconds) =
        ctx.read(|shard| (shard.input.open.unwrap_or_default(), shard.input.call_seconds));
    while ctx.read(|shard| knows_no_queue(&shard.input)) {
        // No timer runs during a pause, which may last for days.
        if ctx.wait_condition(|workflow| !workflow.part().input.paused).await.is_err() {
            return;
        }
        let mut timer = TimerOptions::from(Duration::from_secs(seconds.into()));
        // The SDK panics if a timer is cancelled as it fires; see `provider_batch`.
        timer.cancellation_token = Some(WorkflowCancellationToken::new());
        let mut timer = std::pin::pin!(ctx.timer(timer));
        let queue_known = ctx.wait_condition(|workflow| !knows_no_queue(&workflow.part().input));
        let mut queue_known = std::pin::pin!(queue_known);
        workflows::select! {
            _ = timer => ctx.change(|shard| open_further(&mut shard.input, first)),
            // The queue's delay is known, or the workflow is cancelled.
            _ = queue_known => return,
        }
    }
}

/// Whether it began with a part of its window and knows no queue delay yet.
fn knows_no_queue(shard: &ShardInput) -> bool {
    shard.call_seconds > 0 && shard.open.is_some() && shard.next < shard.documents
}

fn open_further(shard: &mut ShardInput, by: u32) {
    if let Some(open) = shard.open {
        let open = open.saturating_add(by);
        shard.open = (open < shard.window).then_some(open);
    }
}
