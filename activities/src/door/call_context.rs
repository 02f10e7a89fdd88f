//! The inputs of a call of the Temporal door.

use std::time::Instant;

use tidegate_calls::{attempt, route::Route};
use tidegate_types::{FailureType, Lane};

use super::{stored_answer::StoredAnswer, wait_policy::WaitPolicy};
use crate::{attempt::Attempt, failure::Failure, services::Services};

/// The inputs of a call of the Temporal door.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    pub(super) services: &'a Services,
    pub(super) attempt: &'a Attempt,
    /// The lane of the activity's task queue.
    pub(super) lane: &'a Lane,
    pub(super) patience: &'a WaitPolicy<'a>,
    /// Where the answer is stored.
    pub(super) stored: &'a StoredAnswer,
}

impl CallContext<'_> {
    /// Asks, and asks again after a wait that must be held in this slot.
    ///
    /// # Errors
    /// The failure with which the attempt ends.
    pub(super) async fn ask<T, F: Future<Output = Result<T, Failure>>>(
        self,
        route: &Route,
        mut ask: impl FnMut(Attempt) -> F,
    ) -> Result<T, Failure> {
        let Self { services, attempt, lane, patience, .. } = self;
        let guard = &services.guard;
        let until = patience.until(services, route);
        let mut stays = patience.stays;
        loop {
            let call = attempt.call.clone().deadline(until);
            let call = if stays { call.patience(attempt::Patience::Whole) } else { call };
            let failure = match ask(attempt.clone().with_call(call)).await {
                Err(failure) if failure.kind == FailureType::QuotaWait => failure,
                ended => return ended,
            };
            let Some(delay) = failure.retry.delay(guard.backoff, patience.ctx.info().attempt)
            else {
                return Err(failure);
            };
            if !stays {
                if !patience.closes_within(delay).await {
                    return Err(failure);
                }
                stays = true;
                continue;
            }
            // The wait is not for quota, or there is no time or slot for it.
            let is_late = until.is_some_and(|until| Instant::now() + delay > until);
            let slot = route.models.first().and_then(|model| {
                let request = attempt.call.request(model.clone()).lane(lane.clone());
                guard.waiting.enter(&request).1
            });
            if is_late || slot.is_none() {
                return Err(failure);
            }
            tokio::select! {
                () = guard.stopping.cancelled() => return Err(failure),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}
