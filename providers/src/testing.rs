//! What unit tests of several modules share.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    exchange::Reply,
    provider::{Document, Request},
    secret::Secret,
    settings::{Settings, Vendor},
};

pub(crate) const REQUEST: Request<'static> = Request {
    model: "asked",
    instructions: "Sum up.",
    document: Document::Text("Text"),
    max_output_tokens: 100,
    schema: None,
    cache_instructions: false,
};

pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
        .collect()
}

pub(crate) fn reply(
    status: u16,
    pairs: &[(&'static str, &str)],
    body: impl Into<Vec<u8>>,
) -> Reply {
    Reply { status, headers: headers(pairs), body: body.into(), cut: None }
}

pub(crate) fn json(status: u16, body: &Value) -> Reply {
    reply(status, &[], body.to_string())
}

pub(crate) fn settings(vendor: Vendor) -> Settings {
    let url = if vendor == Vendor::OpenAi { "http://localhost:1/v1" } else { "http://localhost:1" };
    Settings::new(vendor, url.parse().unwrap()).api_key(Secret::new("K3Y-K3Y-K3Y").unwrap())
}
