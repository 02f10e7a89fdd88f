//! Admission. Every call to a provider is admitted here; `tests/fences/admits.rs` enforces it.

use std::time::Instant;

use tidegate_quota::{Permit, Refused, Request};
use tracing::Instrument;

use crate::{
    admission::{Admitted, HeldCall},
    attempt::{Attempt, Patience},
    budget::CallBudget,
    gates::{About, Held},
    guard::{Guard, checked_call},
    spans,
    waiting::{WATCH, WaitSlot},
};

impl Guard {
    /// Admits one call: every gate lets it through, the quota has room for it, and the budgets can
    /// pay. Every call to a provider is admitted here.
    ///
    /// The attempt's [`Patience`] decides whether it waits in place for a near turn, or for any
    /// turn.
    ///
    /// # Errors
    /// The reason; no call is made or counted. The [`Attempt`] then keeps its ticket.
    pub async fn admit(
        &self,
        attempt: &Attempt,
        request: &Request,
        budget: &CallBudget,
    ) -> Result<Admitted, Held> {
        let span = spans::admission(request);
        let admitted = self.admit_call(attempt, request, budget).instrument(span.clone()).await;
        spans::record_admission(&span, admitted.as_ref().map_err(|held| held.failure.kind));
        admitted
    }

    async fn admit_call(
        &self,
        attempt: &Attempt,
        request: &Request,
        budget: &CallBudget,
    ) -> Result<Admitted, Held> {
        let call = || checked_call(attempt, &request.model, Instant::now());
        let mark = |held| self.mark_elsewhere(request, held);
        self.gates.check(call(), budget).map_err(mark)?;
        let mut place = self.quota.join_queue(&request.lane, &request.model);
        let permit = self.permit(attempt, request).await;
        let permit = permit.map_err(|refused| Held::by_quota(refused, attempt))?;
        place.start_call();
        let holds = budget.hold(attempt, &request.reservation).await.map_err(Held::by_budget)?;
        let passed = self.gates.enter(call(), budget).map_err(mark)?;
        let (attempt, request, guard) = (attempt.clone(), request.clone(), self.clone());
        let call = Box::new(HeldCall { attempt, request, permit, holds, guard, _place: place });
        Ok(Admitted { call, passed })
    }

    /// Tells the quota not to take documents for the model for now, if the gates hold the model
    /// only in this worker.
    fn mark_elsewhere(&self, request: &Request, held: Held) -> Held {
        if held.about == Some(About::Model)
            && let Some(wait) = held.failure.retry.delay(self.backoff, 1)
        {
            self.quota.set_elsewhere(&request.lane, &request.model, wait);
        }
        held
    }

    /// Gets a permit, now or after a wait in place. A longer wait is refused, except for the one
    /// attempt that keeps watch.
    async fn permit(&self, attempt: &Attempt, request: &Request) -> Result<Permit, Refused> {
        let (mut patient, slot) = self.waiting.enter(request);
        if attempt.patience == Patience::Whole && slot.is_some() {
            return self.permit_patiently(attempt, request).await;
        }
        let left = attempt.deadline.map(|it| it.saturating_duration_since(Instant::now()));
        let stated = [patient.max_wait, request.max_wait, left].into_iter().flatten();
        patient.max_wait = stated.min();
        let mut watch = None;
        loop {
            let refused = match self.quota.admit_until(&patient, self.stopping.cancelled()).await {
                Ok(permit) => return Ok(permit),
                Err(refused) => refused,
            };
            let Some((wait, ticket)) = refused.comes_back() else { return Err(refused) };
            patient.ticket = ticket;
            if watch.is_none() {
                // An attempt with its own bound on waiting, or with too little time left, keeps no
                // watch.
                let may_wait = !self.quota.longest_wait_in_place().is_zero()
                    && left.is_none_or(|left| left > WATCH)
                    && request.max_wait.is_none();
                watch = slot.as_ref().filter(|_| may_wait).and_then(WaitSlot::watch);
            }
            let Some(watch) = &watch else { return Err(refused) };
            let goes_on = tokio::select! {
                () = self.stopping.cancelled() => false,
                goes_on = watch.rest(wait, self.quota.wait_for_operator_change()) => goes_on && self.quota.batch_held_for(&attempt.run).is_none(),
            };
            if !goes_on {
                return Err(refused);
            }
        }
    }

    /// Gets a permit after a wait of any length, up to the attempt's deadline.
    async fn permit_patiently(
        &self,
        attempt: &Attempt,
        request: &Request,
    ) -> Result<Permit, Refused> {
        let no_more_time = async {
            match attempt.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let stop = async {
            tokio::select! {
                () = self.stopping.cancelled() => {}
                () = no_more_time => {}
            }
        };
        self.quota.admit_patiently_until(request, stop).await
    }
}
