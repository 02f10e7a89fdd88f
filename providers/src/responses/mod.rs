//! OpenAI Responses: `POST {base-url}/responses`. Errors, limits and the charge are those of [`openai`](crate::openai).
//!
//! Sources: as there.

mod request;
mod response;
mod usage;

use http::HeaderMap;

use crate::{
    burndown::{self, Burndown},
    error::Error,
    exchange::{Reply, Wire},
    message::Veil,
    openai::{self, limits},
    provider::{BoxFuture, Completion, Provider, Request},
    refusal::Context,
    secret::Secret,
    settings::{Settings, SetupError, Vendor},
};

/// A client for one endpoint.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    key: Option<Secret>,
    retry_codes: Vec<String>,
}

impl Client {
    pub(crate) fn new(name: &str, settings: &Settings) -> Result<Self, SetupError> {
        let wire = Wire::new(name, settings, &["responses"], openai::authorization(settings))?;
        Ok(Self { wire, key: settings.api_key.clone(), retry_codes: settings.retry_codes.clone() })
    }

    fn context<'a>(&'a self, request: &Request<'a>, headers: &HeaderMap) -> Context<'a> {
        Context::new(Vendor::OpenAi, Veil::new(self.key.as_ref(), request), limits::observed(headers)).retrying(&self.retry_codes)
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
        &burndown::OPENAI
    }
}

#[cfg(test)]
mod tests;
