//! A program's own activities behind the quota: [`Quota::run`] surrounds a call.
//!
//! ```no_run
//! # struct Questions { quota: tidegate_activities::own::Quota, http: reqwest::Client }
//! # use temporalio_sdk::activities::{ActivityContext, ActivityError};
//! use tidegate_activities::own::Ask;
//!
//! # impl Questions {
//! async fn ask(&self, ctx: ActivityContext, question: String) -> Result<String, ActivityError> {
//!     self.quota
//!         .run(&ctx, Ask::tokens(question.len() as u64 / 4, 256), async |call| {
//!             let reply = self.http.post("https://…").body(question.clone()).send().await?;
//!             let answer = call.read(reply).await?;
//!             Ok(answer["content"][0]["text"].to_string())
//!         })
//!         .await
//! }
//! # }
//! ```

use std::{error::Error as StdError, fmt, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use temporalio_common::error::ApplicationFailure;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
pub use tidegate_calls::Ask;
use tidegate_calls::spans;
use tidegate_calls::{budget::Budgets, guard::Guard};
use tidegate_providers::{Error, Prices, ReplyFacts, Vendor};
use tidegate_types::{ModelId, Usage};
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::{
    Services,
    attempt::Attempt,
    failure::{Backoff, Failure},
    heartbeat::{self, WorkEnd},
};

/// One model's quota, for activities. Clones share it.
#[derive(Debug, Clone)]
pub struct Quota {
    guard: Guard,
    budgets: Arc<Budgets>,
    model: ModelId,
    vendor: Vendor,
}

impl Quota {
    /// The quota of one model of a limiter.
    pub fn new(limiter: tidegate_quota::Quota, model: ModelId) -> Self {
        let budgets = Budgets::new(limiter.budgets(), Default::default(), Prices::default());
        Self::with(Guard::new(limiter, Backoff::default()), Arc::new(budgets), model)
    }

    /// Shares the services of this process's workers: the state of the model's keys and health, and
    /// the daily budgets of tenants.
    pub fn from_services(services: &Services, model: ModelId) -> Self {
        Self::with(services.guard.clone(), Arc::clone(&services.budgets), model)
    }

    fn with(guard: Guard, budgets: Arc<Budgets>, model: ModelId) -> Self {
        let vendor = model.provider().parse().unwrap_or(Vendor::OPENAI);
        Self { guard, budgets, model, vendor }
    }

    /// Sets the vendor whose API the calls use, if the provider's name is not a vendor's. Default:
    /// an API compatible with OpenAI's.
    pub fn vendor(self, vendor: Vendor) -> Self {
        Self { vendor, ..self }
    }

    /// Sets the growth and the maximum of the delays of retries.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { guard: Guard { backoff, ..self.guard }, ..self }
    }

    /// Makes one call when its turn comes. A near turn is waited for here, under heartbeats; a far
    /// one goes back to Temporal as `QuotaWait` with the delay of the next attempt, which keeps the
    /// turn. The use that the work reports on its [`Call`] is settled in the same step. An error of
    /// the provider becomes a failure that states whether and when the next attempt is made. If the
    /// activity is cancelled before the call, everything is given back; if it is cancelled during
    /// the call, the reservation stays charged.
    ///
    /// Let the work make one call, and turn off retries in its client. Give the activity a heartbeat
    /// time-out, and a retry policy with enough attempts for its waits.
    ///
    /// # Errors
    /// The failure types of [`crate::failure`]; errors of the work itself unchanged; or the
    /// cancellation.
    pub async fn run<T>(
        &self,
        ctx: &ActivityContext,
        ask: Ask,
        work: impl AsyncFnOnce(Call) -> Result<T, Fault>,
    ) -> Result<T, ActivityError> {
        let attempt = Attempt::from_context(ctx, &ctx.info().activity_id);
        let made = self.make(&attempt, ask, work);
        match heartbeat::run_with_errors(ctx, &attempt, &self.guard, heartbeat::UNSENT, made).await
        {
            Ok(value) => Ok(value),
            Err(WorkEnd::Cancelled) => Err(ActivityError::cancelled()),
            Err(WorkEnd::Stopped) => {
                Err(heartbeat::failed(ctx, &attempt, &self.guard, Failure::worker_stops()))
            }
            Err(WorkEnd::Failed(Ended::Call(failure))) => {
                Err(heartbeat::failed(ctx, &attempt, &self.guard, failure))
            }
            Err(WorkEnd::Failed(Ended::Work(error))) => Err(own_failure(error)),
        }
    }

    async fn make<T>(
        &self,
        attempt: &Attempt,
        ask: Ask,
        work: impl AsyncFnOnce(Call) -> Result<T, Fault>,
    ) -> Result<T, Ended> {
        let ticket = attempt.call.state().ticket;
        let request =
            ask.request(self.model.clone(), attempt.call.reservation.clone()).ticket(ticket);
        let budget = self.budgets.call_budget(&attempt.call, &request, None)?;
        let admitted = self.guard.admit(&attempt.call, &request, &budget).await;
        let sent = admitted.map_err(Failure::from)?.sent();
        let call = Call { vendor: self.vendor, facts: Arc::default() };
        let span = spans::call("chat", &request);
        let result = work(call.clone()).instrument(span.clone()).await;
        let ReplyFacts { usage, observed } = std::mem::take(&mut *call.facts.lock());
        spans::record_usage(&span, usage.as_ref());
        if let Err(Fault::Provider(error)) = &result {
            spans::record_failure(&span, error);
        }
        drop(span);
        match result {
            Ok(value) => {
                wait_for_settlement(sent.settled(usage.as_ref(), &observed)).await;
                Ok(value)
            }
            Err(Fault::Provider(error)) => Err(Ended::Call(sent.failed(&error).await)),
            Err(Fault::Own(error)) => {
                // Without a report, the reservation stays charged.
                if usage.is_some() {
                    wait_for_settlement(sent.settled(usage.as_ref(), &observed)).await;
                }
                Err(Ended::Work(error))
            }
        }
    }
}

/// Waits until the limiter has recorded the use of the call.
async fn wait_for_settlement(settlement: JoinHandle<()>) {
    // The task is never cancelled.
    let _ = settlement.await;
}

/// Reports the use of a call. Clones report on the same call.
#[derive(Debug, Clone)]
pub struct Call {
    vendor: Vendor,
    facts: Arc<Mutex<ReplyFacts>>,
}

impl Call {
    /// Reports the use. Without a call of this or [`Self::read`], the reservation stays charged.
    pub fn usage(&self, usage: &Usage) {
        self.facts.lock().usage = Some(*usage);
    }

    /// Reads a reply to its end. The call's use and the limits in its headers are settled; an error
    /// becomes the vendor's error, with its Retry-After.
    ///
    /// # Errors
    /// [`Fault::Provider`], to be returned by the work.
    pub async fn read(&self, reply: reqwest::Response) -> Result<Value, Fault> {
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        let body = reply.bytes().await.map_err(|error| Error::from(&error))?;
        self.read_parts(status, &headers, &body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Like [`Self::read`], for a reply that was read elsewhere.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn read_parts(
        &self,
        status: u16,
        headers: &reqwest::header::HeaderMap,
        body: &[u8],
    ) -> Result<(), Fault> {
        *self.facts.lock() = self.vendor.read_reply(status, headers, body)?;
        Ok(())
    }
}

/// Reason why the work has no result. Any error converts with `?`: errors of `tidegate_providers`
/// and of `reqwest` are the provider's, all others the work's own.
#[derive(Debug)]
pub enum Fault {
    /// The provider refused or failed. The error's kind decides the charge and the delay of the
    /// next attempt.
    Provider(Error),
    /// Another error. Temporal's retry policy decides, or the `ApplicationFailure` in it.
    Own(Box<dyn StdError + Send + Sync>),
}

impl<E: StdError + Send + Sync + 'static> From<E> for Fault {
    fn from(error: E) -> Self {
        let error: Box<dyn StdError + Send + Sync> = Box::new(error);
        match error.downcast::<Error>() {
            Ok(error) => Self::Provider(*error),
            Err(error) => match error.downcast::<reqwest::Error>() {
                Ok(error) => Self::Provider(Error::from(&*error)),
                Err(error) => Self::Own(error),
            },
        }
    }
}

enum Ended {
    Call(Failure),
    Work(Box<dyn StdError + Send + Sync>),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Call(failure)
    }
}

fn own_failure(error: Box<dyn StdError + Send + Sync>) -> ActivityError {
    match error.downcast::<ApplicationFailure>() {
        Ok(failure) => ActivityError::application(*failure),
        Err(error) => ActivityError::from(Own(error)),
    }
}

/// A boxed error does not implement `Error` itself.
#[derive(Debug)]
struct Own(Box<dyn StdError + Send + Sync>);

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Own {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests;
