//! OpenAI Responses: `POST {base-url}/responses`. Errors, limits and batches are those of Chat
//! Completions.

mod request;
mod response;

pub(crate) use response::usage;

use super::errors;
use crate::reply_reader::Protocol;

pub(super) static RESPONSES: Protocol = Protocol {
    path: &["responses"],
    body: request::body,
    segments: None,
    observed: errors::observed,
    read: response::read,
    refused: |error, _| error,
};

#[cfg(test)]
mod tests;
