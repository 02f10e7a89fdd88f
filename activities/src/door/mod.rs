//! The Temporal door: activities that workflows of any SDK call by name, behind the same guard as a
//! document's call.
//!
//! * [`calls`]: where answers are kept, and from where inputs are read
//! * `call`: `tidegate.call`; `embed`: `tidegate.embed`
//! * `given`: an input, parts of which may lie in a store
//! * `kept`: an answer that is bought once, and what of it is returned
//! * `patience`: how long a call may wait, by its caller's time-outs and retry policy

mod call;
pub mod calls;
mod embed;
mod given;
mod kept;
mod patience;

pub use calls::Calls;

use futures::{FutureExt as _, future::BoxFuture};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use temporalio_sdk::activities::{ActivityContext, ActivityError, ActivityInfo};
use tidegate_types::Lane;
use tidegate_workflows::contract::{CallOutcome, EmbedOutcome};

use crate::{
    call::attempt::Attempt,
    failure::{Failure, OfStore as _, STORE_DEADLINE},
    hash::hash,
    heartbeat,
    services::Services,
};

use self::{
    kept::{Kept, Large},
    patience::Patience,
};

/// Before the name of a lane in the name of its task queue: `tidegate_workflows::policy::lane_queue`.
const LANE: &str = "-lane-";

/// Answers a call, once.
///
/// # Errors
/// The failure, with its type and delay; or the cancellation.
pub async fn call(
    services: &Services,
    ctx: &ActivityContext,
    input: Value,
) -> Result<CallOutcome, ActivityError> {
    once(services, ctx, input, |asked, input| call::ask(asked, input).boxed()).await
}

/// Embeds some texts, once.
///
/// # Errors
/// As [`call`].
pub async fn embed(
    services: &Services,
    ctx: &ActivityContext,
    input: Value,
) -> Result<EmbedOutcome, ActivityError> {
    once(services, ctx, input, |asked, input| embed::ask(asked, input).boxed()).await
}

/// What an activity is asked with.
#[derive(Clone, Copy)]
struct Asked<'a> {
    services: &'a Services,
    attempt: &'a Attempt,
    lane: &'a Lane,
    patience: &'a Patience<'a>,
    kept: &'a Kept,
}

/// Buys an answer unless it was bought before, under heartbeats.
async fn once<T: Large + Serialize + DeserializeOwned>(
    services: &Services,
    ctx: &ActivityContext,
    input: Value,
    ask: impl for<'a> FnOnce(Asked<'a>, Value) -> BoxFuture<'a, Result<T, Failure>>,
) -> Result<T, ActivityError> {
    let info = ctx.info();
    let patience = Patience::of(ctx);
    // An activity's id may say more than the limiter should know.
    let name = format!("{:016x}", hash([info.activity_id.as_bytes()]));
    let attempt = Attempt::of(ctx, &name).last(patience.is_last);
    // Those that belong together are those of a workflow, unless their caller says so.
    let batch = input.get("batch").and_then(Value::as_str).or_else(|| workflow(info));
    let run = if attempt.call.run.is_empty() { name.clone() } else { attempt.call.run.clone() };
    let attempt = attempt.of_batch(batch.unwrap_or(&name), &run);
    let work = async {
        let calls = services.calls.as_ref().ok_or_else(calls::missing)?;
        let lane = lane(services, &info.task_queue)?;
        let kept = Kept::of(calls, info, &input);
        if let Some(bought) = kept.find(services, &attempt).await? {
            return Ok(bought);
        }
        let input = given::fetched(services, calls, input).await?;
        let (attempt, patience, kept) = (&attempt, &patience, &kept);
        let asked = Asked { services, attempt, lane: &lane, patience, kept };
        let outcome = ask(asked, input).await?;
        kept.keep(services, attempt, outcome).await
    };
    let counted = async {
        Box::pin(work).await.map_err(|failure: Failure| failure.counting(&attempt, STORE_DEADLINE))
    };
    heartbeat::beating(ctx, &attempt, &services.guard, heartbeat::UNSENT, counted).await
}

/// The workflow that an activity belongs to; a standalone one belongs to none.
fn workflow(info: &ActivityInfo) -> Option<&str> {
    info.workflow_id.as_deref().filter(|workflow| !workflow.is_empty())
}

/// The lane of a task queue.
fn lane(services: &Services, task_queue: &str) -> Result<Lane, Failure> {
    let lanes = services.guard.quota.models().take(1).flat_map(|model| model.lanes.iter());
    let of_queue = |lane: &&Lane| {
        task_queue.strip_suffix(lane.as_str()).is_some_and(|before| before.ends_with(LANE))
    };
    let mut lanes = lanes.map(|(lane, _)| lane);
    lanes.find(of_queue).cloned().ok_or_else(|| {
        Failure::invalid_input(format!(
            "the task queue \"{task_queue}\" is no lane's; call it on one of a lane, such as {task_queue}{LANE}interactive"
        ))
    })
}
