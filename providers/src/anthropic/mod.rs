//! Anthropic Messages: `POST {base-url}/v1/messages`.
//!
//! Sources: the vendor's SDK `anthropic` 2.11.0 and platform.claude.com/docs/en/api (errors, rate-limits, versioning),
//! read between August and October 2026.

mod errors;
mod limits;
mod request;
mod response;
mod usage;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    burndown::{self, Burndown},
    error::Error,
    exchange::{Reply, Wire},
    message::Veil,
    provider::{BoxFuture, Completion, Provider, Request},
    refusal::Context,
    secret::Secret,
    settings::{Settings, SetupError, Vendor},
};

pub(crate) use errors::NAMES;

/// The oldest version that is served; the newer one only removes what is never sent here, and compatible servers may not know it.
const VERSION: &str = "2023-06-01";

/// A client for one endpoint.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    key: Option<Secret>,
    retry_codes: Vec<String>,
}

impl Client {
    pub(crate) fn new(name: &str, settings: &Settings) -> Result<Self, SetupError> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        if let Some(key) = &settings.api_key {
            // A key is ASCII (see `Secret`), so that this cannot fail.
            if let Ok(mut value) = HeaderValue::from_str(key.expose()) {
                value.set_sensitive(true);
                headers.insert(HeaderName::from_static("x-api-key"), value);
            }
        }
        Ok(Self {
            wire: Wire::new(name, settings, &["v1", "messages"], headers)?,
            key: settings.api_key.clone(),
            retry_codes: settings.retry_codes.clone(),
        })
    }

    fn context<'a>(&'a self, request: &Request<'a>, headers: &HeaderMap) -> Context<'a> {
        Context::new(Vendor::Anthropic, Veil::new(self.key.as_ref(), request), limits::observed(headers))
            .retrying(&self.retry_codes)
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let body = request::body(request)?;
        let reply = self.wire.post(body, &Veil::new(self.key.as_ref(), request)).await?;
        self.read(request, &reply)
    }

    /// What a reply means; apart from the call, so that it can be tested on any bytes.
    fn read(&self, request: &Request<'_>, reply: &Reply) -> Result<Completion, Error> {
        let context = self.context(request, &reply.headers);
        if reply.is_success() { response::read(request, reply, context) } else { Err(context.refused(reply)) }
    }
}

impl Provider for Client {
    fn complete<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.call(request))
    }

    fn burndown(&self) -> &'static Burndown {
        &burndown::ANTHROPIC
    }
}

#[cfg(test)]
mod tests;
