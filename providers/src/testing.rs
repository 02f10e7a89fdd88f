//! Helpers that unit tests of several modules share.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    call::{Document, Request},
    dialect::Dialect,
    exchange::Reply,
    parameters::Parameters,
    secret::Secret,
    settings::{Settings, Setup, SetupError},
    turn::Said,
    vendor::{Api, Vendor},
};

pub(crate) const REQUEST: Request<'static> = Request {
    model: "asked",
    instructions: "Sum up.",
    turns: &[],
    said: Said::Nothing,
    document: Document::Text("Text"),
    max_output_tokens: 100,
    schema: None,
    cache_instructions: false,
    parameters: Parameters { effort: None, fields: None },
};

pub(crate) fn dialect(vendor: Vendor) -> Dialect {
    Dialect::new(vendor, Api::ChatCompletions)
}

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
    let url = format!("http://localhost:1{}", vendor.base_path());
    Settings::new(vendor, url.parse().unwrap()).api_key(Secret::new("K3Y-K3Y-K3Y").unwrap())
}

/// A vendor's client, created like the registry does.
pub(crate) fn client<T>(settings: &Settings, client: fn(&Setup<'_>) -> Result<T, SetupError>) -> T {
    let name = settings.vendor.as_str();
    client(&Setup::new(name, settings)).unwrap()
}

/// A picture without pixels.
pub(crate) fn picture() -> crate::picture::Picture {
    let (width, height, bytes) = (2, 1, vec![1, 2]);
    crate::picture::Picture { media_type: "image/png".to_owned(), width, height, bytes }
}
