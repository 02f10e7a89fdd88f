//! OpenAI Chat Completions, and whatever is compatible: `POST {base-url}/chat/completions`.
//!
//! Sources: the vendor's OpenAPI document 2.3.0, its SDK `openai` 3.52.0 and developers.openai.com/api/docs (rate limits,
//! error codes), read between August and October 2026.

mod errors;
pub(crate) mod limits;
mod request;
mod response;
pub(crate) mod usage;

use http::{HeaderMap, HeaderValue, header};

use crate::{
    burndown::{self, Burndown},
    endpoint,
    error::Error,
    exchange::{Reply, Wire},
    message::Veil,
    provider::{BoxFuture, Completion, Provider, Request},
    refusal::Context,
    secret::Secret,
    settings::{OutputCap, Settings, SetupError, Vendor},
};

pub(crate) use errors::NAMES;

/// A client for one endpoint.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    key: Option<Secret>,
    retry_codes: Vec<String>,
    output_cap: OutputCap,
}

impl Client {
    pub(crate) fn new(name: &str, settings: &Settings) -> Result<Self, SetupError> {
        let wire = Wire::new(name, settings, &["chat", "completions"], authorization(settings))?;
        Ok(Self {
            wire,
            key: settings.api_key.clone(),
            retry_codes: settings.retry_codes.clone(),
            output_cap: output_cap(settings),
        })
    }

    fn context<'a>(&'a self, request: &Request<'a>, headers: &HeaderMap) -> Context<'a> {
        Context::new(Vendor::OpenAi, Veil::new(self.key.as_ref(), request), limits::observed(headers)).retrying(&self.retry_codes)
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let body = request::body(request, self.output_cap)?;
        let reply = self.wire.post(body, &Veil::new(self.key.as_ref(), request)).await?;
        self.read(request, &reply)
    }

    /// What a reply means; apart from the call, so that it can be tested on any bytes.
    fn read(&self, request: &Request<'_>, reply: &Reply) -> Result<Completion, Error> {
        let context = self.context(request, &reply.headers);
        if reply.is_success() { response::read(request, reply, context) } else { Err(context.refused(reply)) }
    }
}

/// The key as a header.
pub(crate) fn authorization(settings: &Settings) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // A key is ASCII (see `Secret`), so that this cannot fail.
    if let Some(Ok(mut value)) = settings.api_key.as_ref().map(|key| HeaderValue::from_str(&format!("Bearer {}", key.expose()))) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

/// See [`Settings::output_cap`] for the reason.
fn output_cap(settings: &Settings) -> OutputCap {
    let url = &settings.base_url;
    let vendors_own = endpoint::is_official(Vendor::OpenAi, url) || endpoint::is_azure(url);
    settings.output_cap.unwrap_or(if vendors_own { OutputCap::MaxCompletionTokens } else { OutputCap::MaxTokens })
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
