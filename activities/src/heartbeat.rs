//! The frame around an activity's work: heartbeats, cancellation, and failures as Temporal expects
//! them.

use std::{pin::pin, time::Duration};

use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tidegate_calls::guard::Guard;
use tidegate_workflows::policy;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    attempt::Attempt,
    failure::{Failure, into_application_failure},
    spans,
};

/// Grace period, when a worker stops, of an attempt that has sent no call. An attempt that waits
/// for quota ends at once and keeps its turn.
pub const UNSENT: Duration = Duration::from_secs(2);

/// Longest time between heartbeats of an attempt that has sent no call: it reads or waits, and
/// hears of a cancellation in this time.
const UNSENT_BEAT: Duration = Duration::from_secs(18);

/// Reason why work has no result.
#[derive(Debug)]
pub(crate) enum WorkEnd<E> {
    /// Its own error.
    Failed(E),
    /// The worker stops, and no call was sent.
    Stopped,
    /// The activity was cancelled.
    Cancelled,
}

/// Runs the work and sends heartbeats at the intervals of [`interval`]. The work is dropped when the
/// activity is cancelled, or, if it has sent no call, `patience` after the worker was told to stop.
/// The last heartbeat carries the attempt's state to the next attempt; a failure states its delay.
///
/// # Errors
/// The work's failure with its type, delay and details; or the cancellation.
pub async fn run<T>(
    ctx: &ActivityContext,
    attempt: &Attempt,
    guard: &Guard,
    patience: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, ActivityError> {
    let over = match run_with_errors(ctx, attempt, guard, patience, work).await {
        Ok(value) => return Ok(value),
        Err(over) => over,
    };
    Err(match over {
        WorkEnd::Failed(failure) => failed(ctx, attempt, guard, failure),
        WorkEnd::Stopped => failed(ctx, attempt, guard, Failure::worker_stops()),
        WorkEnd::Cancelled => ActivityError::cancelled(),
    })
}

/// Like [`run`], for work with an error type of its own, which is not turned into Temporal's.
pub(crate) async fn run_with_errors<T, E>(
    ctx: &ActivityContext,
    attempt: &Attempt,
    guard: &Guard,
    patience: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, WorkEnd<E>> {
    let timeout = ctx.info().heartbeat_timeout;
    let mut last_beat = Instant::now();
    let mut work = Box::pin(work.instrument(spans::attempt(ctx, attempt)));
    let mut given_up = pin!(wait_until_given_up(&guard.stopping, attempt, patience));
    let result = loop {
        tokio::select! {
            result = &mut work => break result.map_err(WorkEnd::Failed),
            () = &mut given_up => break Err(WorkEnd::Stopped),
            () = attempt.state_changed() => send(ctx, attempt).await,
            () = ctx.cancelled() => break Err(WorkEnd::Cancelled),
            () = wait_for_beat(last_beat, timeout, attempt) => {
                last_beat = Instant::now();
                send(ctx, attempt).await;
            }
        }
    };
    if result.is_err() {
        attempt.mark_ended();
        send(ctx, attempt).await;
    }
    result
}

/// Turns a failure into Temporal's, with the attempt's use.
pub(crate) fn failed(
    ctx: &ActivityContext,
    attempt: &Attempt,
    guard: &Guard,
    failure: Failure,
) -> ActivityError {
    let (details, number) = (attempt.details(), ctx.info().attempt);
    into_application_failure(failure, details, guard.backoff, number).into()
}

/// Returns the interval between heartbeats, from the time-out that the workflow set. Each heartbeat
/// is paid for, so work that ends before the first sends none; one may be lost. Cancellation
/// arrives with a heartbeat; before the first call it comes within [`UNSENT_BEAT`].
fn interval(timeout: Option<Duration>, has_sent: bool) -> Duration {
    let interval =
        timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(policy::HEARTBEAT) * 5 / 11;
    if has_sent { interval } else { interval.min(UNSENT_BEAT) }
}

/// Resolves when the next heartbeat is due.
async fn wait_for_beat(last: Instant, timeout: Option<Duration>, attempt: &Attempt) {
    let unsent = last + interval(timeout, false);
    tokio::time::sleep_until(unsent).await;
    if attempt.has_sent() {
        tokio::time::sleep_until(last + interval(timeout, true)).await;
    }
}

/// Resolves when the worker stops and the work should be dropped: no call was sent, and `patience`
/// has passed. A call that was sent is waited for until Temporal's SDK cancels it, after the
/// worker's `shutdown-grace`.
async fn wait_until_given_up(stopping: &CancellationToken, attempt: &Attempt, patience: Duration) {
    stopping.cancelled().await;
    tokio::time::sleep(patience).await;
    if attempt.has_sent() {
        std::future::pending::<()>().await;
    }
}

/// Sends a heartbeat with the attempt's state. A lost one is replaced by the next.
async fn send(ctx: &ActivityContext, attempt: &Attempt) {
    if let Err(error) = ctx.record_heartbeat(attempt.state()).await {
        tracing::warn!(%error, "a heartbeat could not be recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::AttemptState;

    const PATIENCE: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_millis(200);

    #[test]
    fn a_call_of_twenty_five_seconds_needs_no_beat_and_one_may_be_lost() {
        let seconds = Duration::from_secs;
        assert_eq!(interval(Some(seconds(55)), true), seconds(25));
        assert_eq!(interval(None, true), seconds(25));
        for timeout in [1, 10, 55, 600].map(seconds) {
            assert!(2 * interval(Some(timeout), true) < timeout, "{timeout:?}");
        }
    }

    #[test]
    fn an_attempt_that_has_sent_no_call_beats_within_twenty_seconds() {
        let seconds = Duration::from_secs;
        for (timeout, expected) in [(10, 50.0 / 11.0), (33, 15.0), (55, 18.0), (600, 18.0)] {
            let interval = interval(Some(seconds(timeout)), false).as_secs_f64();
            assert!((interval - expected).abs() < 1e-6, "{timeout}: {interval}");
        }
    }

    #[tokio::test]
    async fn only_what_has_been_sent_is_waited_for() {
        let attempt = || Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default());
        let (unsent, sent, stopping) = (attempt(), attempt(), CancellationToken::new());
        sent.call.count_call();
        let early =
            tokio::time::timeout(LONG, wait_until_given_up(&stopping, &unsent, PATIENCE)).await;
        assert!(early.is_err(), "a worker that goes on gives nothing up");
        stopping.cancel();
        let began = tokio::time::Instant::now();
        wait_until_given_up(&stopping, &unsent, PATIENCE).await;
        assert!(began.elapsed() >= PATIENCE);
        let late =
            tokio::time::timeout(LONG, wait_until_given_up(&stopping, &sent, PATIENCE)).await;
        assert!(late.is_err(), "a call that has left is waited for");
    }
}
