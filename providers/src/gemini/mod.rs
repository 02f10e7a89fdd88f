//! Google Gemini, generateContent: `POST {base-url}/v1beta/models/{model}:generateContent`.

mod batches;
mod embeddings;
mod errors;
pub(crate) mod parameters;
mod request;
pub(crate) mod response;

use http::HeaderMap;

use crate::{
    client::Client,
    reply_reader::{Protocol, ReplyReader},
    settings::{Setup, SetupError},
};

pub(crate) use embeddings::EMBEDS;
pub(crate) use errors::{NAMES, observed, with_reset};
pub(crate) use response::usage;

static GENERATE_CONTENT: Protocol = generate_content();

/// The protocol of the vendor's own host.
pub(crate) const fn generate_content() -> Protocol {
    Protocol {
        path: &["v1beta", "models"],
        body: request::body,
        segments: Some(|request| vec![format!("{}:generateContent", request.model)]),
        read: response::read,
    }
}

pub(crate) fn client(setup: &Setup<'_>) -> Result<Client, SetupError> {
    let replies = ReplyReader::new(setup, &GENERATE_CONTENT);
    let batches = batches::FileBatches::new(setup, &replies)?;
    Ok(Client::new(setup, replies, HeaderMap::new())?.with_batches(batches))
}

#[cfg(test)]
mod tests;
