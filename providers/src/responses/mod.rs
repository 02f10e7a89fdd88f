mod request;
mod response;
mod usage;

use http::{HeaderMap, header};
use serde_json::Value;
use tidegate_types::Charge;

use crate::{
    burndown,
    client::{Api, Client, key_header},
    error::Error,
    exchange::Reply,
    observed::Observed,
    openai::{batches::Batches, limits},
    provider::{Completion, Request},
    refusal::Context,
    settings::{Settings, SetupError, Vendor},
};

/// The API.
#[derive(Debug)]
pub(crate) struct Responses;

pub(crate) fn client(name: &str, settings: &Settings) -> Result<Client<Responses>, SetupError> {
    let headers = key_header(settings, header::AUTHORIZATION, "Bearer ");
    let batches = Batches::new(name, settings, "/v1/responses")?;
    Ok(Client::new(name, settings, Responses, &["responses"], headers)?.with_batches(batches))
}

impl Api for Responses {
    const VENDOR: Vendor = Vendor::OpenAi;

    fn charge(&self) -> Charge {
        burndown::OPENAI
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
