//! Anthropic Messages: `POST {base-url}/v1/messages`.

mod batches;
mod errors;
mod model;
pub(crate) mod parameters;
mod request;
pub(crate) mod response;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    client::Client,
    reply_reader::{Protocol, ReplyReader},
    schema::{self, Keeps},
    settings::{Setup, SetupError},
};

pub(crate) use errors::{NAMES, observed};
pub(crate) use response::usage;

/// The oldest supported version. The newer one only removes features that are not used here, and
/// compatible servers may not know it.
pub(crate) const VERSION: &str = "2023-06-01";

static MESSAGES: Protocol = messages();

/// The protocol of the vendor's own host.
pub(crate) const fn messages() -> Protocol {
    Protocol {
        path: &["v1", "messages"],
        body: request::body,
        segments: None,
        read: response::read,
    }
}

/// Schemas from Claude 4.5 on; tools from 3 on.
pub(crate) fn schemas(model: &str) -> Keeps {
    if model::keeps_schemas(model) {
        Keeps::Schema(&schema::ANTHROPIC)
    } else if model::takes_tools(model) {
        Keeps::Tool(&schema::TOOL)
    } else {
        Keeps::Nothing
    }
}

pub(crate) fn client(setup: &Setup<'_>) -> Result<Client, SetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
    let replies = ReplyReader::new(setup, &MESSAGES);
    let batches = batches::MessageBatches::new(setup, headers.clone(), &replies)?;
    Ok(Client::new(setup, replies, headers)?.with_batches(batches))
}

#[cfg(test)]
mod tests;
