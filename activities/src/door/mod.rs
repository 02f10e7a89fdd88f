//! The Temporal door: activities that workflows of any SDK call by name. They use the same guard as
//! calls about documents.
//!
//! * `call`: `tidegate.call`; `embed`: `tidegate.embed`
//! * `call_context`: the caller of both, the call with its waits, and its stored answer
//! * `input`: fetches the parts of an input that are in a store

mod call;
mod call_context;
mod embed;
mod input;

use futures::{FutureExt as _, future::BoxFuture};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tidegate_workflows::contract::{CallOutcome, EmbedOutcome};

use crate::{
    attempt::Attempt,
    document::read::earlier,
    door::{
        call_context::{CallContext, Large, StoredAnswer, WaitPolicy, lane, workflow},
        input::ResolvedInput,
    },
    failure::{self, Failure, STORE_DEADLINE, count_store_fault, unless_deadly},
    fingerprint::hash,
    heartbeat,
    services::Services,
};

/// Answers a call, once.
///
/// # Errors
/// The failure, with its type and delay; or the cancellation.
pub async fn call(
    services: &Services,
    ctx: &ActivityContext,
    input: &RawValue,
) -> Result<CallOutcome, ActivityError> {
    buy_once(services, ctx, input, |asked, input| call::ask(asked, input).boxed()).await
}

/// Embeds some texts, once.
///
/// # Errors
/// The errors of [`call`].
pub async fn embed(
    services: &Services,
    ctx: &ActivityContext,
    input: &RawValue,
) -> Result<EmbedOutcome, ActivityError> {
    buy_once(services, ctx, input, |asked, input| embed::ask(asked, input).boxed()).await
}

/// Buys an answer under heartbeats, unless it was bought before.
async fn buy_once<T: Large + Serialize + DeserializeOwned>(
    services: &Services,
    ctx: &ActivityContext,
    input: &RawValue,
    ask: impl for<'a> FnOnce(CallContext<'a>, ResolvedInput) -> BoxFuture<'a, Result<T, Failure>>,
) -> Result<T, ActivityError> {
    let info = ctx.info();
    let text = input.get();
    let input: Value = serde_json::from_str(text).unwrap_or_default();
    let patience = WaitPolicy::from_context(ctx);
    // Hashed, because an activity's id may contain data that the limiter should not store.
    let name = format!("{:016x}", hash([info.activity_id.as_bytes()]));
    let attempt = Attempt::from_context(ctx, &name).with_last(patience.is_last);
    // Calls of one workflow belong together, unless the caller names a batch.
    let batch = input.get("batch").and_then(Value::as_str).or_else(|| workflow(info));
    let run = if attempt.call.run.is_empty() { name.clone() } else { attempt.call.run.clone() };
    let attempt = attempt.for_batch(batch.unwrap_or(&name), &run);
    let work = async {
        let calls = services.calls.as_ref().ok_or_else(no_store)?;
        let lane = lane(services, &info.task_queue)?;
        let stored = StoredAnswer::new(calls, info, &input);
        if let Some(bought) = stored.find(services, &attempt).await? {
            return Ok(bought);
        }
        let (attempt, patience, stored) = (&attempt, &patience, &stored);
        let bought = async {
            let input = input::fetch(services, calls, text, input).await?;
            let asked = CallContext { services, attempt, lane: &lane, patience, stored };
            ask(asked, input).await
        };
        let outcome = unless_deadly(attempt, failure::kills_its_worker, bought).await?;
        let saved = stored.save(services, attempt, outcome).await?;
        earlier::forget(attempt, &stored.part).await;
        Ok(saved)
    };
    let counted = async {
        Box::pin(work)
            .await
            .map_err(|failure: Failure| count_store_fault(failure, &attempt, STORE_DEADLINE))
    };
    heartbeat::run(ctx, &attempt, &services.guard, heartbeat::UNSENT, counted).await
}

/// Error for a call whose answer cannot be stored: none is bought.
fn no_store() -> Failure {
    Failure::invalid_input(
        "calls.answers is not set for this worker; set answers in the [calls] section of all workers' configuration, such as file:///data/calls or s3://bucket/calls",
    )
}
