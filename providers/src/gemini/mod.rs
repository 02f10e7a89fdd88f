mod errors;
mod limits;
mod request;
mod response;
mod usage;

use http::{HeaderMap, HeaderName};
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

/// The API.
#[derive(Debug)]
pub(crate) struct GenerateContent;

pub(crate) fn client(
    name: &str,
    settings: &Settings,
) -> Result<Client<GenerateContent>, SetupError> {
    let headers = key_header(settings, HeaderName::from_static("x-goog-api-key"), "");
    Client::new(name, settings, GenerateContent, &["v1beta", "models"], headers)
}

impl Api for GenerateContent {
    const VENDOR: Vendor = Vendor::Gemini;

    fn charge(&self) -> Charge {
        burndown::GEMINI
    }

    fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        request::body(request)
    }

    fn segment(&self, request: &Request<'_>) -> Option<String> {
        Some(format!("{}:generateContent", request.model))
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

    fn refused(&self, error: Error, reply: &Reply) -> Error {
        limits::with_reset(error, reply)
    }
}

#[cfg(test)]
mod tests;
