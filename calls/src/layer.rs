//! A layer for any HTTP client: each call of a model waits for its turn, and is settled by the
//! provider's answer.
//!
//! Requests that ask no model (lists, files, batches) pass. The answer reaches the caller as it
//! arrives, whole or as events. A call ends with its body; if the body is not read to its end, the
//! call stays charged with what was reserved. Errors are classified as in tidegate's own clients: a
//! 429 closes the gate for the whole fleet, for as long as its headers or its text ask for. The
//! layer never retries; a retry above it waits for a turn again. Switch such retries off if another
//! component, such as Temporal, retries.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;
use tidegate_providers::{Error, RequestFacts, Vendor};
use tidegate_quota::{Quota, Refused};
use tidegate_types::{InvalidName, Lane, ModelId, Tenant};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    admission::Sent,
    attempt::{Attempt, Patience},
    body::{Listener, MeteredBody},
    budget::Budgets,
    caller::Ask,
    failure::{Backoff, Failure},
    gates::Held,
    guard::Guard,
};

/// Errors of a service with this layer: the inner service's own error, or a [`Stopped`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A call that was not made.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The limiter's refusal: waiting does not help, or the model has no limits and must not be
    /// asked.
    #[error(transparent)]
    Refused(Refused),
    /// The provider has failed or refused lately and one call tests it, or a budget is spent. The
    /// failure has the time to come back.
    #[error(transparent)]
    Held(#[from] Failure),
    /// The request's model name is invalid.
    #[error(transparent)]
    Model(#[from] InvalidName),
}

impl From<Held> for Stopped {
    fn from(held: Held) -> Self {
        match held.refused {
            Some(refused) => Self::Refused(*refused),
            None => Self::Held(held.failure),
        }
    }
}

/// Puts the calls of one provider behind a quota.
#[derive(Debug, Clone)]
pub struct Limit {
    guard: Guard,
    budgets: Arc<Budgets>,
    provider: String,
    vendor: Vendor,
    lane: Lane,
    tenant: Tenant,
}

impl Limit {
    /// Limits the models of this provider: a request for `gpt-4.1-mini` of `openai` counts towards
    /// `openai:gpt-4.1-mini`. An unknown name is taken for a provider compatible with OpenAI.
    pub fn new(quota: Quota, provider: &str) -> Self {
        Self::with_guard(Guard::new(quota, Backoff::default()), Arc::default(), provider)
    }

    /// Shares a guard, such as that of a worker in this process, with other callers. The same gates
    /// hold all their calls, and the budgets of tenants pay for them.
    pub fn with_guard(guard: Guard, budgets: Arc<Budgets>, provider: &str) -> Self {
        let vendor = provider.parse().unwrap_or(Vendor::OPENAI);
        let (lane, tenant) = (Lane::default(), Tenant::default());
        Self { guard, budgets, provider: provider.to_owned(), vendor, lane, tenant }
    }

    /// Sets the vendor whose API the provider speaks, if the name is not the vendor's.
    pub fn vendor(self, vendor: Vendor) -> Self {
        Self { vendor, ..self }
    }

    /// Sets the lane.
    pub fn lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// Sets the tenant.
    pub fn tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    /// Admits a request when its turn comes; `None` if it asks no model.
    async fn admit(&self, path: &str, body: &[u8]) -> Result<Option<Sent>, Stopped> {
        let Some(asked) = RequestFacts::read(path, body) else { return Ok(None) };
        let model: ModelId = format!("{}:{}", self.provider, asked.model).parse()?;
        let ask = Ask::from_facts(&asked, None).lane(self.lane.clone()).tenant(self.tenant.clone());
        let attempt = Attempt::once().patience(Patience::Whole);
        let request = ask.request(model, attempt.reservation.clone());
        let budget = self.budgets.call_budget(&attempt, &request, None)?;
        Ok(Some(self.guard.admit(&attempt, &request, &budget).await?.sent()))
    }

    fn meter_body<B>(
        &self,
        sent: Option<Sent>,
        status: u16,
        headers: &HeaderMap,
        body: B,
    ) -> MeteredBody<B> {
        match sent {
            None => MeteredBody::unlimited(body),
            Some(sent) => {
                MeteredBody::new(body, sent, Listener::new(self.vendor, status, headers.clone()))
            }
        }
    }
}

impl<S> Layer<S> for Limit {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited { inner, limit: self.clone() }
    }
}

/// A service behind a [`Limit`]. It takes requests of `reqwest`, or of the `http` crate with any
/// body that can be made from bytes.
#[derive(Debug, Clone)]
pub struct Limited<S> {
    inner: S,
    limit: Limit,
}

/// An answer as it passes through the layer.
pub type Answer<B> = http_body_util::combinators::BoxBody<Bytes, <B as Body>::Error>;

impl<S, B, R> Service<Request<B>> for Limited<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body + From<Bytes> + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + Sync + 'static,
{
    type Response = Response<Answer<R>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (limit, mut inner) = (self.limit.clone(), self.ready_one());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            let sent = limit.admit(parts.uri.path(), &body).await?;
            let answer = inner.call(Request::from_parts(parts, body.into())).await;
            // A call whose connection broke stays charged: it is dropped.
            let (parts, body) = answer.map_err(Into::into)?.into_parts();
            let body = limit.meter_body(sent, parts.status.as_u16(), &parts.headers, body);
            Ok(Response::from_parts(parts, body.boxed()))
        })
    }
}

impl<S> Service<reqwest::Request> for Limited<S>
where
    S: Service<reqwest::Request, Response = reqwest::Response, Error = reqwest::Error>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = reqwest::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<reqwest::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: reqwest::Request) -> Self::Future {
        let (limit, mut inner) = (self.limit.clone(), self.ready_one());
        Box::pin(async move {
            // A body that streams is an upload, and asks no model.
            let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
            let sent = limit.admit(request.url().path(), body).await?;
            let answer = match inner.call(request).await {
                Ok(answer) => answer,
                Err(error) => {
                    if let Some(sent) = sent {
                        let _ = sent.failed(&Error::from(&error)).await;
                    }
                    return Err(error.into());
                }
            };
            let (parts, body) = Response::<reqwest::Body>::from(answer).into_parts();
            let body = limit.meter_body(sent, parts.status.as_u16(), &parts.headers, body);
            Ok(Response::from_parts(parts, reqwest::Body::wrap(body)).into())
        })
    }
}

impl<S: Clone> Limited<S> {
    /// Takes the service that was polled until ready; its clone may not be ready.
    fn ready_one(&mut self) -> S {
        let clone = self.inner.clone();
        std::mem::replace(&mut self.inner, clone)
    }
}
