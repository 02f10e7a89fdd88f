//! A program's own activities behind the quota: [`Quota::run`] is all that stands around a call.
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
use tidegate_providers::{Error, Heard, Prices, Vendor};
use tidegate_types::{ModelId, Usage};
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::{
    Services,
    attempt::Attempt,
    failure::{Backoff, Failure},
    heartbeat::{self, Over},
};

/// One model's quota, for activities. Clones are the same.
#[derive(Debug, Clone)]
pub struct Quota {
    guard: Guard,
    budgets: Arc<Budgets>,
    model: ModelId,
    vendor: Vendor,
}

impl Quota {
    /// Of one model of a limiter.
    pub fn new(limiter: tidegate_quota::Quota, model: ModelId) -> Self {
        let budgets = Budgets::new(limiter.budgets(), Default::default(), Prices::default());
        Self::with(Guard::new(limiter, Backoff::default()), Arc::new(budgets), model)
    }

    /// Beside the workers of this process: what they know of its keys and its health is known here,
    /// too, and the daily budgets of tenants hold.
    pub fn of(services: &Services, model: ModelId) -> Self {
        Self::with(services.guard.clone(), Arc::clone(&services.budgets), model)
    }

    fn with(guard: Guard, budgets: Arc<Budgets>, model: ModelId) -> Self {
        let vendor = model.provider().parse().unwrap_or(Vendor::OPENAI);
        Self { guard, budgets, model, vendor }
    }

    /// Whose API the calls speak, where the provider's name is none of a vendor's. Default: one that
    /// is compatible with OpenAI.
    pub fn vendor(self, vendor: Vendor) -> Self {
        Self { vendor, ..self }
    }

    /// How the delays of the next attempts grow, and how long they may be.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { guard: Guard { backoff, ..self.guard }, ..self }
    }

    /// Makes one call when its turn comes. A near turn is waited for here, under heartbeats; a far
    /// one goes back to Temporal as `QuotaWait` with the delay of the next attempt, which keeps the
    /// turn. What the work tells of its [`Call`] is settled in the same step; an error of the
    /// provider becomes the failure that says when, and whether, the next attempt comes. Cancelled
    /// before the call, everything is given back; cancelled during it, what was reserved stays
    /// charged.
    ///
    /// Let the work make one call, and no client below it ask again. Give the activity a heartbeat
    /// time-out, and a retry policy with as many attempts as waits may take.
    ///
    /// # Errors
    /// The failure types of [`crate::failure`]; the work's own errors as they are; or the
    /// cancellation.
    pub async fn run<T>(
        &self,
        ctx: &ActivityContext,
        ask: Ask,
        work: impl AsyncFnOnce(Call) -> Result<T, Fault>,
    ) -> Result<T, ActivityError> {
        let attempt = Attempt::of(ctx, &ctx.info().activity_id);
        let made = self.make(&attempt, ask, work);
        match heartbeat::under(ctx, &attempt, &self.guard, heartbeat::UNSENT, made).await {
            Ok(value) => Ok(value),
            Err(Over::Cancelled) => Err(ActivityError::cancelled()),
            Err(Over::Stopped) => {
                Err(heartbeat::failed(ctx, &attempt, &self.guard, Failure::worker_stops()))
            }
            Err(Over::Failed(Ended::Call(failure))) => {
                Err(heartbeat::failed(ctx, &attempt, &self.guard, failure))
            }
            Err(Over::Failed(Ended::Work(error))) => Err(own_failure(error)),
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
        let call = Call { vendor: self.vendor, heard: Arc::default() };
        let span = spans::call("chat", &request);
        let result = work(call.clone()).instrument(span.clone()).await;
        let Heard { usage, observed } = std::mem::take(&mut *call.heard.lock());
        spans::record_usage(&span, usage.as_ref());
        if let Err(Fault::Provider(error)) = &result {
            spans::record_failure(&span, error);
        }
        drop(span);
        match result {
            Ok(value) => {
                settled(sent.settled(usage.as_ref(), &observed)).await;
                Ok(value)
            }
            Err(Fault::Provider(error)) => Err(Ended::Call(sent.refused(&error).await)),
            Err(Fault::Own(error)) => {
                // Without a word on it, what was reserved stays charged.
                if usage.is_some() {
                    settled(sent.settled(usage.as_ref(), &observed)).await;
                }
                Err(Ended::Work(error))
            }
        }
    }
}

/// The limiter knows what the call has used.
async fn settled(settlement: JoinHandle<()>) {
    // It is never cancelled.
    let _ = settlement.await;
}

/// Tells what a call came to. Clones tell of the same one.
#[derive(Debug, Clone)]
pub struct Call {
    vendor: Vendor,
    heard: Arc<Mutex<Heard>>,
}

impl Call {
    /// It used this much. Unless this or [`Self::read`] is called, what was reserved stays charged.
    pub fn usage(&self, usage: &Usage) {
        self.heard.lock().usage = Some(*usage);
    }

    /// Reads a reply to its end: what the call used and what the headers tell of the limits is
    /// settled, and an error is what the vendor means by it, with its Retry-After.
    ///
    /// # Errors
    /// [`Fault::Provider`], to be returned by the work.
    pub async fn read(&self, reply: reqwest::Response) -> Result<Value, Fault> {
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        let body = reply.bytes().await.map_err(|error| Error::from(&error))?;
        self.heard(status, &headers, &body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// The same of a reply that was read elsewhere.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn heard(
        &self,
        status: u16,
        headers: &reqwest::header::HeaderMap,
        body: &[u8],
    ) -> Result<(), Fault> {
        *self.heard.lock() = self.vendor.read_reply(status, headers, body)?;
        Ok(())
    }
}

/// Why the work has no result. Any error becomes one with `?`: those of `tidegate_providers` and of
/// `reqwest` are the provider's, all others the work's own.
#[derive(Debug)]
pub enum Fault {
    /// The provider refused or failed: what it has cost, and when the next attempt comes, is decided
    /// by its kind.
    Provider(Error),
    /// Something else: Temporal's retry policy decides, or the `ApplicationFailure` that it is.
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

/// An error in a box is none by itself.
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
