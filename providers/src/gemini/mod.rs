//! Google Gemini: `POST {base-url}/v1beta/models/{model}:generateContent`.
//!
//! Sources: the vendor's SDK `google-genai` 3.4.0, the discovery document of Vertex (revision 20261106), and
//! ai.google.dev/gemini-api/docs (rate limits of 2026-08-18, API errors), read between August and November 2026.

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
        if let Some(key) = &settings.api_key {
            // A key is ASCII (see `Secret`), so that this cannot fail.
            if let Ok(mut value) = HeaderValue::from_str(key.expose()) {
                value.set_sensitive(true);
                headers.insert(HeaderName::from_static("x-goog-api-key"), value);
            }
        }
        let wire = Wire::new(name, settings, &["v1beta", "models"], headers)?;
        Ok(Self { wire, key: settings.api_key.clone(), retry_codes: settings.retry_codes.clone() })
    }

    fn context<'a>(&'a self, request: &Request<'a>, headers: &HeaderMap) -> Context<'a> {
        Context::new(Vendor::Gemini, Veil::new(self.key.as_ref(), request), limits::observed(headers)).retrying(&self.retry_codes)
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let body = request::body(request)?;
        let method = format!("{}:generateContent", request.model);
        let reply = self.wire.post_below(&method, body, &Veil::new(self.key.as_ref(), request)).await?;
        self.read(request, &reply)
    }

    /// What a reply means; apart from the call, so that it can be tested on any bytes.
    fn read(&self, request: &Request<'_>, reply: &Reply) -> Result<Completion, Error> {
        let context = self.context(request, &reply.headers);
        if reply.is_success() {
            response::read(request, reply, context)
        } else {
            Err(limits::with_reset(context.refused(reply), reply))
        }
    }
}

impl Provider for Client {
    fn complete<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.call(request))
    }

    fn burndown(&self) -> &'static Burndown {
        &burndown::GEMINI
    }
}

#[cfg(test)]
mod tests;
