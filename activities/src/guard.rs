//! Admit → one call → settle. Every provider call goes through this function.

use std::{sync::Arc, time::Duration};

use tidegate_providers::{Charged, Completion, Error, Kind, Provider, Request as Call};
use tidegate_quota::{Permit, Quota, Refused, Request};
use tidegate_workflows::contract::failure_type;

use crate::{
    attempt::Attempt,
    failure::{Backoff, Failure},
    metrics,
    stopped::Stopped,
};

/// Stands between the documents and the providers.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Decides who may call.
    pub quota: Quota,
    /// How delays grow.
    pub backoff: Backoff,
    /// Models that nobody should ask for a while.
    pub stopped: Arc<Stopped>,
}

impl Guard {
    /// Makes one call if the quota allows it now or soon.
    ///
    /// # Errors
    /// A [`Failure`] that says when to come back, if ever. [`Attempt`] then knows the document's turn.
    pub async fn call(
        &self,
        attempt: &Attempt,
        provider: &dyn Provider,
        request: &Request,
        call: &Call<'_>,
    ) -> Result<Completion, Failure> {
        self.stopped.check(&request.model)?;
        let mut permit = self.quota.admit(request).await.map_err(|refused| self.defer(attempt, &refused))?;
        let started = metrics::Call::start(&request.model);
        attempt.calling();
        permit.sent();
        match provider.complete(call).await {
            Ok(completion) => {
                started.succeeded(completion.usage.as_ref());
                match &completion.usage {
                    Some(usage) => permit.settle(usage).await,
                    None => permit.keep_charged(),
                }
                Ok(completion)
            }
            Err(error) => {
                started.failed(error.kind);
                self.settle_failure(permit, attempt, request, &error).await;
                Err(Failure::from_provider(&error, &attempt.effort(), self.backoff))
            }
        }
    }

    fn defer(&self, attempt: &Attempt, refused: &Refused) -> Failure {
        match refused {
            Refused::Wait { ticket, .. } => attempt.deferred(Some(*ticket)),
            Refused::Paused { ticket, .. } => attempt.deferred(*ticket),
            Refused::NeverFits { .. } | Refused::UnknownModel(_) | Refused::UnknownLane(_) => {}
        }
        Failure::refused(refused, self.backoff)
    }

    /// What a failed call has cost; and a 429 closes the gate for the whole fleet in the same step.
    async fn settle_failure(&self, permit: Permit, attempt: &Attempt, request: &Request, error: &Error) {
        match error.kind {
            Kind::RateLimited => {
                attempt.rate_limited();
                return permit.refused(error.retry_after.unwrap_or(self.backoff.base), "rate_limited").await;
            }
            Kind::QuotaExhausted => {
                self.stopped.stop(&request.model, failure_type::QUOTA_EXHAUSTED, &error.message, Duration::from_secs(300))
            }
            Kind::Unauthorized => {
                self.stopped.stop(&request.model, failure_type::UNAUTHORIZED, &error.message, Duration::from_secs(30))
            }
            _ => {}
        }
        match &error.charged {
            Charged::No => permit.settle_unused().await,
            Charged::Usage(usage) => permit.settle(usage).await,
            Charged::Unknown => permit.keep_charged(),
        }
    }
}
