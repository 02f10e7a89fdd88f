//! OpenAI Chat Completions, `POST {base-url}/chat/completions`, and the many compatible servers;
//! the vendor's other API is in `responses`.

mod batches;
pub(crate) mod embeddings;
mod errors;
mod model;
pub(crate) mod parameters;
mod request;
pub(crate) mod response;
mod responses;

use http::HeaderMap;
use serde_json::{Value, json};
use url::Url;

use crate::{
    call::Request,
    client::Client,
    dialect::Dialect,
    error::Error,
    reply_reader::{Protocol, ReplyReader},
    schema::{self, Keeps},
    settings::{Settings, Setup, SetupError},
    vendor::{Api, OutputCap},
};

pub(crate) use embeddings::no_effort;
pub(crate) use errors::{NAMES, not_in_plan, observed};
pub(crate) use response::usage;
pub(crate) use responses::usage as usage_of_responses;

static WITH_MAX_COMPLETION_TOKENS: Protocol = chat_completions(|request, dialect| {
    request::body(request, dialect, OutputCap::MaxCompletionTokens)
});
static WITH_MAX_TOKENS: Protocol =
    chat_completions(|request, dialect| request::body(request, dialect, OutputCap::MaxTokens));

const fn chat_completions(body: fn(&Request<'_>, Dialect) -> Result<Vec<u8>, Error>) -> Protocol {
    Protocol { path: &["chat", "completions"], body, segments: None, read: response::read }
}

/// Azure's deployments: the path holds the deployment's name.
static AZURE: Protocol = Protocol {
    path: &["openai", "deployments"],
    segments: Some(|request| {
        vec![request.model.to_owned(), "chat".to_owned(), "completions".to_owned()]
    }),
    ..chat_completions(|request, dialect| {
        request::body(request, dialect, OutputCap::MaxCompletionTokens)
    })
};

/// The newest version of that API that is not a preview, and its last.
const AZURE_VERSION: &str = "2024-10-21";

/// Azure OpenAI: `POST {base-url}/openai/deployments/{model}/chat/completions?api-version=…`.
pub(crate) fn azure(setup: &Setup<'_>) -> Result<Client, SetupError> {
    let mut settings = setup.settings.clone();
    let is_stated = settings.base_url.query_pairs().any(|(name, _)| name == "api-version");
    if !is_stated {
        settings.base_url.query_pairs_mut().append_pair("api-version", AZURE_VERSION);
    }
    let (classifier, key) = (setup.classifier.clone(), setup.key.clone());
    let setup = Setup { name: setup.name, settings: &settings, classifier, key };
    Client::new(&setup, ReplyReader::new(&setup, &AZURE), HeaderMap::new())
}

pub(crate) fn client(setup: &Setup<'_>) -> Result<Client, SetupError> {
    let protocol = match (setup.settings.api, output_cap(setup.settings)) {
        (Api::Responses, _) => &responses::RESPONSES,
        (Api::ChatCompletions, OutputCap::MaxCompletionTokens) => &WITH_MAX_COMPLETION_TOKENS,
        (Api::ChatCompletions, OutputCap::MaxTokens) => &WITH_MAX_TOKENS,
    };
    let replies = ReplyReader::new(setup, protocol);
    if !setup.settings.vendor.has_batches() {
        return Client::new(setup, replies, HeaderMap::new());
    }
    let batches = batches::FileBatches::new(setup, &replies)?;
    Ok(Client::new(setup, replies, HeaderMap::new())?.with_batches(batches))
}

/// Models before gpt-4o only have JSON output without a schema.
pub(crate) fn schemas(model: &str) -> Keeps {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_old = name.starts_with("gpt-3.5") || name == "gpt-4" || name.starts_with("gpt-4-");
    if is_old { Keeps::Json } else { Keeps::Schema(&schema::OPENAI) }
}

pub(crate) fn json_mode(api: Api) -> Value {
    let format = json!({"type": "json_object"});
    match api {
        Api::ChatCompletions => json!({"response_format": format}),
        Api::Responses => json!({"text": {"format": format}}),
    }
}

/// See [`Settings::output_cap`] for the reason.
fn output_cap(settings: &Settings) -> OutputCap {
    let url = &settings.base_url;
    settings.output_cap.or(settings.vendor.0.output_cap).unwrap_or_else(|| {
        if settings.vendor.is_official(url) || is_azure(url) {
            OutputCap::MaxCompletionTokens
        } else {
            OutputCap::MaxTokens
        }
    })
}

/// Whether this is one of Azure's hosts of OpenAI models, which behave like OpenAI.
fn is_azure(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        host.ends_with(".openai.azure.com") || host.ends_with(".services.ai.azure.com")
    })
}

#[cfg(test)]
mod tests;
