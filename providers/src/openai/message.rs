//! A message of a request, for both of the vendor's APIs.

use std::borrow::Cow;

use serde::Serialize;

use crate::call::Request;

#[derive(Serialize)]
pub(super) struct Message<'a, Part> {
    pub(super) role: &'static str,
    pub(super) content: Content<'a, Part>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a, Part> {
    Text(Cow<'a, str>),
    Attached(Vec<Part>),
}

/// The turns before the document's own message.
pub(super) fn turns<'a, Part>(request: &Request<'a>) -> impl Iterator<Item = Message<'a, Part>> {
    request.turns.iter().map(|turn| Message {
        role: turn.role.as_str(),
        content: Content::Text(turn.text.as_str().into()),
    })
}
