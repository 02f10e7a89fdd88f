//! The shards of a batch that began before [`Layout::Places`](crate::layout::Layout): a few lanes,
//! each of which starts a shard, waits for its end, and starts the next.

use temporalio_workflow::{WorkflowContext, workflows};

use crate::{
    children::{self, Child, Children, Start},
    contract::{SHARD_WINDOW, SLEEPING_SHARDS_AT_ONCE, ShardInput},
    holds::{Holds, Inside},
};

/// Two keep a server busy.
const AT_ONCE: u32 = 2;

/// Starts shards until all have ended.
pub(crate) async fn run<W: Holds<Children> + 'static>(ctx: &WorkflowContext<W>) {
    ctx.change(|children| children.window = children.window.min(SHARD_WINDOW));
    let lanes = async {
        let lanes = (0..ctx.look(at_once)).map(|place| lane(ctx.clone(), place));
        workflows::join_all(lanes.collect::<Vec<_>>()).await;
    };
    children::beside_news(ctx, lanes).await;
}

async fn lane<W: Holds<Children> + 'static>(ctx: WorkflowContext<W>, place: u32) {
    loop {
        if ctx.cancellation_token().is_cancelled() {
            return;
        }
        let Some(input) = ctx.change(|children| take(children, place)) else { return };
        children::one(ctx.clone(), Child::Shard(input.shard), Start::Shard(input)).await;
    }
}

/// Never more shards than documents may be in flight: each hands out one at least.
fn at_once(children: &Children) -> u32 {
    let asleep = children.shard.provider_batching.is_some();
    let most = if asleep { SLEEPING_SHARDS_AT_ONCE } else { AT_ONCE };
    most.min(children.planned).min(children.window).max(1)
}

/// The next shard for this lane, with its part of the window: over all lanes they add up to it.
fn take(children: &mut Children, place: u32) -> Option<ShardInput> {
    if children.is_at_its_end() {
        return None;
    }
    let (at_once, shard) = (at_once(children), children.next);
    let extra = u32::from(place < children.window % at_once);
    let window = (children.window / at_once + extra).max(1);
    let documents = children.shard_documents(shard);
    children.next += 1;
    children.has_taken(Child::Shard(shard), window, documents);
    let paused = children.paused;
    Some(ShardInput { shard, documents, window, paused, ..children.shard.clone() })
}
