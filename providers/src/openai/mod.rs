pub(crate) mod batches;
mod errors;
pub(crate) mod limits;
mod request;
mod response;
pub(crate) mod usage;

use http::{HeaderMap, header};
use serde_json::Value;
use tidegate_types::Charge;

use crate::{
    burndown,
    client::{Api, Client, key_header},
    endpoint,
    error::Error,
    exchange::Reply,
    observed::Observed,
    provider::{Completion, Request},
    refusal::Context,
    settings::{OutputCap, Settings, SetupError, Vendor},
};

pub(crate) use errors::NAMES;

/// The API, with the field that bounds the output.
#[derive(Debug)]
pub(crate) struct ChatCompletions(OutputCap);

pub(crate) fn client(
    name: &str,
    settings: &Settings,
) -> Result<Client<ChatCompletions>, SetupError> {
    let api = ChatCompletions(output_cap(settings));
    let headers = key_header(settings, header::AUTHORIZATION, "Bearer ");
    let batches = batches::Batches::new(name, settings, "/v1/chat/completions")?;
    Ok(Client::new(name, settings, api, &["chat", "completions"], headers)?.with_batches(batches))
}

/// See [`Settings::output_cap`] for the reason.
fn output_cap(settings: &Settings) -> OutputCap {
    let url = &settings.base_url;
    let vendors_own = endpoint::is_official(Vendor::OpenAi, url) || endpoint::is_azure(url);
    settings.output_cap.unwrap_or(if vendors_own {
        OutputCap::MaxCompletionTokens
    } else {
        OutputCap::MaxTokens
    })
}

impl Api for ChatCompletions {
    const VENDOR: Vendor = Vendor::OpenAi;

    fn charge(&self) -> Charge {
        burndown::OPENAI
    }

    fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        request::body(request, self.0)
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
