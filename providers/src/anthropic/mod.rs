mod batches;
mod errors;
mod limits;
mod request;
mod response;
mod usage;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tidegate_types::Charge;

use crate::{
    burndown,
    client::{Api, Client, key_header},
    error::Error,
    exchange::Reply,
    observed::Observed,
    provider::{Completion, Request},
    refusal::Context,
    settings::{Settings, SetupError, Vendor},
};

pub(crate) use errors::NAMES;

/// The oldest version that is served; the newer one only removes what is never sent here, and
/// compatible servers may not know it.
const VERSION: &str = "2023-06-01";

/// The API.
#[derive(Debug)]
pub(crate) struct Messages;

pub(crate) fn client(name: &str, settings: &Settings) -> Result<Client<Messages>, SetupError> {
    let mut headers = key_header(settings, HeaderName::from_static("x-api-key"), "");
    headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
    let batches = batches::MessageBatches::new(name, settings, headers.clone())?;
    Ok(Client::new(name, settings, Messages, &["v1", "messages"], headers)?.with_batches(batches))
}

impl Api for Messages {
    const VENDOR: Vendor = Vendor::Anthropic;

    fn charge(&self) -> Charge {
        burndown::ANTHROPIC
    }

    fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        request::body(request)
    }

    fn observed(&self, headers: &HeaderMap) -> Observed {
        limits::observed(headers)
    }

    fn read(
        &self,
        request: &Request<'_>,
        body: &Value,
        reply: &Reply,
        context: Context<'_>,
    ) -> Result<Completion, Error> {
        response::read(request, body, reply, context)
    }
}

#[cfg(test)]
mod tests;
