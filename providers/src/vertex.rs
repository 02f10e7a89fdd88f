//! Vendors' APIs at Google's Vertex AI, with the model in the path.

use serde_json::Value;

use crate::{
    anthropic,
    call::Request,
    client::Client,
    dialect::Dialect,
    error::{Error, Kind},
    gemini,
    reply_reader::{Protocol, ReplyReader},
    settings::{Setup, SetupError},
};

static GENERATE_CONTENT: Protocol =
    Protocol { path: &["publishers", "google", "models"], ..gemini::generate_content() };

static RAW_PREDICT: Protocol = Protocol {
    path: &["publishers", "anthropic", "models"],
    body: body_of_claude,
    segments: Some(|request| vec![format!("{}:rawPredict", request.model)]),
    ..anthropic::messages()
};

/// Gemini at Vertex AI.
pub(crate) fn gemini(setup: &Setup<'_>) -> Result<Client, SetupError> {
    client(setup, &GENERATE_CONTENT)
}

/// Claude at Vertex AI.
pub(crate) fn claude(setup: &Setup<'_>) -> Result<Client, SetupError> {
    client(setup, &RAW_PREDICT)
}

fn client(setup: &Setup<'_>, protocol: &'static Protocol) -> Result<Client, SetupError> {
    Client::new(setup, ReplyReader::new(setup, protocol), http::HeaderMap::new())
}

fn body_of_claude(request: &Request<'_>, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let unwritable =
        |_| Error::unsent(Kind::InvalidRequest, "the request cannot be written as JSON");
    let body = (anthropic::messages().body)(request, dialect)?;
    let mut body: Value = serde_json::from_slice(&body).map_err(unwritable)?;
    if let Some(fields) = body.as_object_mut() {
        fields.remove("model");
        fields.insert("anthropic_version".to_owned(), "vertex-2023-10-16".into());
    }
    serde_json::to_vec(&body).map_err(unwritable)
}
