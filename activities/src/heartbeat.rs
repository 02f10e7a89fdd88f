//! The frame around an activity's work: heartbeats, cancellation, and a failure as Temporal takes it.

use std::time::Duration;

use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tidegate_workflows::contract::FailureDetails;

use crate::{
    call::attempt::Attempt,
    failure::{Backoff, Failure},
};

/// A third of the heartbeat time-out that the workflows set: cancellation arrives with a beat, and
/// two may be lost.
const BEAT: Duration = Duration::from_secs(3);

/// Does the work under a steady heartbeat, and drops it when the activity is cancelled or the
/// worker stops. The last beat carries the attempt's state to the next; a failure says when that
/// one comes.
///
/// # Errors
/// The work's failure with its type, delay and details; or the cancellation.
pub async fn beating<T>(
    ctx: &ActivityContext,
    attempt: Option<&Attempt>,
    backoff: Backoff,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, ActivityError> {
    let mut beat = tokio::time::interval(BEAT);
    let mut work = Box::pin(work);
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            () = ctx.cancelled() => {
                record(ctx, attempt).await;
                return Err(ActivityError::cancelled());
            }
            _ = beat.tick() => record(ctx, attempt).await,
        }
    };
    match result {
        Ok(value) => Ok(value),
        Err(failure) => {
            if attempt.is_some() {
                record(ctx, attempt).await;
            }
            let details = attempt.map_or_else(FailureDetails::default, Attempt::details);
            Err(failure.into_application_failure(details, backoff, ctx.info().attempt).into())
        }
    }
}

/// A beat that does not arrive is made good by the next.
async fn record(ctx: &ActivityContext, attempt: Option<&Attempt>) {
    let recorded = match attempt {
        Some(attempt) => ctx.record_heartbeat(attempt.state()).await,
        None => ctx.record_heartbeat(()).await,
    };
    if let Err(error) = recorded {
        tracing::warn!(%error, "a heartbeat could not be recorded");
    }
}
