//! OpenAI Responses: `POST {base-url}/responses`. Errors, limits and batches are those of Chat
//! Completions.

mod request;
mod response;

pub(crate) use response::usage;

use crate::reply_reader::Protocol;

pub(super) static RESPONSES: Protocol =
    Protocol { path: &["responses"], body: request::body, segments: None, read: response::read };

#[cfg(test)]
mod tests;
