//! The lists of models: the question that costs nothing, by which a client finds out whether it
//! reaches the provider and whether its key is accepted.
//!
//! * `GET /v1/models` is anthropic's (platform.claude.com/docs/en/api/models-list) and openai's
//!   (developers.openai.com/api/reference, models), told apart by their headers
//! * `GET /v1beta/models` is gemini's (ai.google.dev/api/models)
//! * `GET /foundation-models` is bedrock's (docs.aws.amazon.com, `ListFoundationModels`), at a host
//!   of its own there
//!
//! The models with a section in the configuration are listed, on one page.

use std::sync::Arc;

use axum::{
    Json,
    extract::State as Shared,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    anthropic::{self, Anthropic},
    bedrock::{self, Bedrock},
    gemini::{self, Gemini},
    openai::OpenAi,
    problem::Problem,
    provider::Exchange,
    state::State,
    vendor::{self, Style},
};

/// Anthropic's and openai's path is the same; anthropic wants its version.
pub(crate) async fn of_v1(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response {
    if headers.contains_key("anthropic-version") || headers.contains_key("x-api-key") {
        return listed::<Anthropic>(&state, &headers, anthropic::check(&headers), anthropics);
    }
    if headers.contains_key("x-goog-api-key") {
        return listed::<Gemini>(&state, &headers, gemini::check(&headers), geminis);
    }
    let key = if vendor::has_bearer(&headers) { Ok(()) } else { Err(Problem::NoKey) };
    listed::<OpenAi>(&state, &headers, key, openais)
}

pub(crate) async fn of_gemini(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response {
    listed::<Gemini>(&state, &headers, gemini::check(&headers), geminis)
}

pub(crate) async fn of_bedrock(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response {
    listed::<Bedrock>(&state, &headers, bedrock::check(&headers), bedrocks)
}

fn listed<S: Style>(
    state: &State,
    headers: &HeaderMap,
    key: Result<(), Problem>,
    list: fn(&[&str]) -> Value,
) -> Response {
    let exchange = Exchange::begin(state, 0x11);
    // A key that is refused for some models alone may see the list.
    if let Err(problem) = key.and_then(|()| state.refused(headers, "").map_or(Ok(()), Err)) {
        return exchange.problem::<S>(&problem, None, None);
    }
    let models: Vec<&str> = state.config.models.keys().map(String::as_str).collect();
    (exchange.headers::<S>(None), Json(list(&models))).into_response()
}

fn anthropics(models: &[&str]) -> Value {
    let model = |id: &&str| json!({"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"});
    json!({
        "data": models.iter().map(model).collect::<Vec<_>>(),
        "first_id": models.first(),
        "has_more": false,
        "last_id": models.last(),
    })
}

fn openais(models: &[&str]) -> Value {
    let model = |id: &&str| json!({"id": id, "object": "model", "created": 1_767_225_600, "owned_by": "simulator"});
    json!({"object": "list", "data": models.iter().map(model).collect::<Vec<_>>()})
}

fn geminis(models: &[&str]) -> Value {
    let model = |id: &&str| {
        json!({
            "name": format!("models/{id}"),
            "version": "001",
            "displayName": id,
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent"],
        })
    };
    json!({"models": models.iter().map(model).collect::<Vec<_>>()})
}

fn bedrocks(models: &[&str]) -> Value {
    let model = |id: &&str| {
        json!({
            "modelArn": format!("arn:aws:bedrock:us-east-1::foundation-model/{id}"),
            "modelId": id,
            "modelName": id,
            "providerName": id.split('.').next(),
            "inputModalities": ["TEXT"],
            "outputModalities": ["TEXT"],
            "inferenceTypesSupported": ["ON_DEMAND"],
            "modelLifecycle": {"status": "ACTIVE"},
        })
    };
    json!({"modelSummaries": models.iter().map(model).collect::<Vec<_>>()})
}
