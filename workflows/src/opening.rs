//! A shard that begins with a part of its window, because nobody has seen how long calls take:
//! while none of its calls has ended, more are let go at the pace that was expected of them.

use std::time::Duration;

use temporalio_workflow::{TimerOptions, WorkflowCancellationToken, WorkflowContext, workflows};

use crate::{
    contract::ShardInput,
    holds::{Holds, Inside},
};

/// Each time that a call was expected to take, lets as many more go as at first, until one has told
/// of the queue behind it, which decides from then on ([`crate::pace`]).
pub(crate) async fn widen<W, S>(ctx: &WorkflowContext<W>)
where
    W: Holds<S> + 'static,
    S: AsRef<ShardInput> + AsMut<ShardInput>,
{
    let (first, seconds) = ctx.look(|shard| {
        let input = shard.as_ref();
        (input.open.unwrap_or_default(), input.call_seconds)
    });
    while ctx.look(|shard| knows_no_queue(shard.as_ref())) {
        // No timer runs in a pause, which may last for days.
        if ctx.wait_condition(|workflow| !workflow.part().as_ref().paused).await.is_err() {
            return;
        }
        let mut timer = TimerOptions::from(Duration::from_secs(seconds.into()));
        // As in `provider_batch`: a timer that is cancelled as it fires makes the SDK panic.
        timer.cancellation_token = Some(WorkflowCancellationToken::new());
        let mut timer = std::pin::pin!(ctx.timer(timer));
        let told = ctx.wait_condition(|workflow| !knows_no_queue(workflow.part().as_ref()));
        let mut told = std::pin::pin!(told);
        workflows::select! {
            _ = timer => ctx.change(|shard| open_further(shard.as_mut(), first)),
            // Told, or cancelled.
            _ = told => return,
        }
    }
}

/// It began with a part of its window, and no call has told of the queue yet.
fn knows_no_queue(shard: &ShardInput) -> bool {
    shard.call_seconds > 0 && shard.open.is_some() && shard.next < shard.documents
}

fn open_further(shard: &mut ShardInput, by: u32) {
    if let Some(open) = shard.open {
        let open = open.saturating_add(by);
        shard.open = (open < shard.window).then_some(open);
    }
}
