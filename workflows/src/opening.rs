//! A shard that begins with a part of its window, because nobody has seen how long calls take:
//! while none of its calls has ended, more are let go at the pace that was expected of them.

use std::time::Duration;

use temporalio_workflow::{TimerOptions, WorkflowCancellationToken, WorkflowContext, workflows};

use crate::{
    holds::{Holds, Inside},
    layout::Layout,
    shard::Shard,
};

/// Each time that a call was expected to take, lets as many more go as at first, until one has told
/// of the queue behind it, which decides from then on ([`crate::pace`]).
pub(crate) async fn widen<W: Holds<Shard> + 'static>(ctx: &WorkflowContext<W>) {
    if ctx.look(|shard| shard.layout < Layout::MorePlaces) {
        return;
    }
    let (first, seconds) =
        ctx.look(|shard| (shard.input.open.unwrap_or_default(), shard.input.call_seconds));
    while ctx.look(Shard::knows_no_queue) {
        // No timer runs in a pause, which may last for days.
        if ctx.wait_condition(|workflow| !workflow.part().input.paused).await.is_err() {
            return;
        }
        let mut timer = TimerOptions::from(Duration::from_secs(seconds.into()));
        // As in `provider_batch`: a timer that is cancelled as it fires makes the SDK panic.
        timer.cancellation_token = Some(WorkflowCancellationToken::new());
        let mut timer = std::pin::pin!(ctx.timer(timer));
        let told = ctx.wait_condition(|workflow| !workflow.part().knows_no_queue());
        let mut told = std::pin::pin!(told);
        workflows::select! {
            _ = timer => ctx.change(|shard| shard.widen(first)),
            // Told, or cancelled.
            _ = told => return,
        }
    }
}

impl Shard {
    /// It began with a part of its window, and no call has told of the queue yet.
    fn knows_no_queue(&self) -> bool {
        let input = &self.input;
        input.call_seconds > 0 && input.open.is_some() && !self.has_handed_out()
    }

    fn widen(&mut self, by: u32) {
        if let Some(open) = self.input.open {
            let open = open.saturating_add(by);
            self.input.open = (open < self.input.window).then_some(open);
        }
    }
}
