//! What the HTTP clients of all vendors have in common: write a body, send it once, say what came
//! back.

mod batches;

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tidegate_types::Charge;

use crate::{
    batch::Batches,
    desk::Desk,
    envelope::Envelope,
    error::Error,
    exchange::{Reply, Wire},
    message::Redactor,
    observed::Observed,
    provider::{BoxFuture, Completion, Provider, Request},
    refusal::Context,
    secret::Secret,
    settings::{Settings, SetupError, Vendor},
};

/// One vendor's API.
pub(crate) trait Api: Send + Sync + fmt::Debug + 'static {
    /// Whose names of errors come first.
    const VENDOR: Vendor;

    /// What it counts towards its limits.
    fn charge(&self) -> Charge;

    /// The body of a request.
    fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, Error>;

    /// The last segment of the path, where the model stands in it.
    fn segment(&self, _request: &Request<'_>) -> Option<String> {
        None
    }

    /// The limits that headers tell.
    fn observed(&self, headers: &HeaderMap) -> Observed;

    /// A success without an error inside, which is not always an answer.
    fn read(
        &self,
        request: &Request<'_>,
        body: &Value,
        reply: &Reply,
        context: Context<'_>,
    ) -> Result<Completion, Error>;

    /// What is known of an error beyond its words.
    fn refused(&self, error: Error, _reply: &Reply) -> Error {
        error
    }
}

/// A client for one endpoint.
#[derive(Debug)]
pub(crate) struct Client<A> {
    api: A,
    wire: Wire,
    key: Option<Secret>,
    retry_codes: Vec<String>,
    batches: Option<Box<dyn Desk>>,
}

impl<A: Api> Client<A> {
    /// `path` is appended to the base URL.
    pub(crate) fn new(
        name: &str,
        settings: &Settings,
        api: A,
        path: &[&str],
        headers: HeaderMap,
    ) -> Result<Self, SetupError> {
        let wire = Wire::new(name, settings, path, headers)?;
        Ok(Self {
            api,
            wire,
            key: settings.api_key.clone(),
            retry_codes: settings.retry_codes.clone(),
            batches: None,
        })
    }

    /// The same, with the vendor's batches.
    pub(crate) fn with_batches(self, batches: impl Desk + 'static) -> Self {
        Self { batches: Some(Box::new(batches)), ..self }
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let (body, redactor) = (self.api.body(request)?, Redactor::new(self.key.as_ref(), request));
        let reply = match self.api.segment(request) {
            Some(segment) => self.wire.post_below(&segment, body, &redactor).await?,
            None => self.wire.post(body, &redactor).await?,
        };
        self.read(request, &reply)
    }

    /// What a reply means; apart from the call, so that it can be tested on any bytes.
    pub(crate) fn read(&self, request: &Request<'_>, reply: &Reply) -> Result<Completion, Error> {
        let redactor = Redactor::new(self.key.as_ref(), request);
        let context = Context::new(A::VENDOR, redactor, self.api.observed(&reply.headers))
            .retrying(&self.retry_codes);
        if !reply.is_success() {
            return Err(self.api.refused(context.refused(reply), reply));
        }
        let body = match reply.json() {
            Ok(body) => body,
            Err(why) => return Err(context.unreadable(reply, why)),
        };
        match Envelope::in_success(&body) {
            Some(envelope) => Err(context.error_in_success(reply, &envelope)),
            None => self.api.read(request, &body, reply, context),
        }
    }
}

impl<A: Api> Provider for Client<A> {
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.call(request))
    }

    fn charge(&self) -> Charge {
        self.api.charge()
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.batches.is_some().then_some(self)
    }
}

/// A header with the key, if there is one.
pub(crate) fn key_header(settings: &Settings, name: HeaderName, prefix: &str) -> HeaderMap {
    let value = settings
        .api_key
        .as_ref()
        .map(|key| HeaderValue::from_str(&format!("{prefix}{}", key.expose())));
    let mut headers = HeaderMap::new();
    // A key is ASCII (see `Secret`), so that this cannot fail.
    if let Some(Ok(mut value)) = value {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers
}
