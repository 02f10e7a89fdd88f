//! Azure OpenAI's deployments: `POST /openai/deployments/{deployment}/chat/completions?api-version=…`,
//! as learn.microsoft.com/azure/ai-foundry/openai/reference describes it. Bodies are OpenAI's; key,
//! version and errors are not.

use std::time::Duration;

use axum::{
    Json,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    call::Call,
    embeddings,
    limiter::LimitStatus,
    openai::OpenAi,
    problem::Problem,
    vendor::{self, Style, Vendor, set},
};

#[derive(Debug)]
pub(crate) struct Azure;

/// Without a version nothing is found.
pub(crate) async fn versioned(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let versions = query.split('&').filter_map(|pair| pair.strip_prefix("api-version="));
    let versions: Vec<&str> = versions.collect();
    if matches!(versions.as_slice(), [version] if version.len() >= 10) {
        return next.run(request).await;
    }
    let body = json!({"error": {"code": "404", "message": "Resource not found"}});
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let key = headers.get("api-key").filter(|key| !key.is_empty());
    if key.is_none() && !vendor::has_bearer(headers) {
        return Err(Problem::NoKey);
    }
    Ok(())
}

/// The v1 API, `POST /openai/v1/chat/completions`
/// (learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle): without a version, the
/// deployment's name as the model, and a key in either place.
#[derive(Debug)]
pub(crate) struct AzureV1;

impl Vendor for AzureV1 {
    type Style = Azure;

    fn read(_: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        check(headers)?;
        OpenAi::read(None, &taken(), body)
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        OpenAi::answer(call, answer, id)
    }
}

/// A key that was looked at.
fn taken() -> HeaderMap {
    let mut bearer = HeaderMap::new();
    bearer.insert("authorization", HeaderValue::from_static("Bearer taken"));
    bearer
}

/// Azure OpenAI's embeddings.
#[derive(Debug)]
pub(crate) struct AzureEmbeddings;

impl Vendor for AzureEmbeddings {
    type Style = Azure;

    fn read(named: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        check(headers)?;
        embeddings::read_openai(named, body)
    }

    fn answer(call: &Call, _: &Answer, _: u64) -> Value {
        call.texts.as_ref().map_or(Value::Null, |texts| embeddings::openai(call, texts))
    }
}

impl Vendor for Azure {
    type Style = Self;

    fn read(named: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Call, Problem> {
        check(headers)?;
        let mut body = vendor::json(body)?;
        // The deployment answers, whatever the body says.
        body["model"] = named.unwrap_or_default().into();
        OpenAi::read(None, &taken(), body.to_string().as_bytes())
    }

    fn answer(call: &Call, answer: &Answer, id: u64) -> Value {
        OpenAi::answer(call, answer, id)
    }
}

impl Style for Azure {
    fn problem(problem: &Problem, model: &str, id: u64) -> (StatusCode, Value) {
        let (status, body) = OpenAi::problem(problem, model, id);
        let (code, message) = match problem {
            Problem::NoKey | Problem::WrongKey => (
                "401",
                "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.".to_owned(),
            ),
            Problem::NoAccess => {
                ("PermissionDenied", "The principal lacks the required data action.".to_owned())
            }
            Problem::NotFound { .. } => (
                "DeploymentNotFound",
                "The API deployment for this resource does not exist.".to_owned(),
            ),
            Problem::Refused(refusal) => (
                "429",
                format!(
                    "Requests to the ChatCompletions_Create Operation under Azure OpenAI API have exceeded the rate limit of your current pricing tier. Please retry after {} seconds.",
                    refusal.wait.as_secs() + 1
                ),
            ),
            _ => return (status, body),
        };
        (status, json!({"error": {"code": code, "message": message}}))
    }

    fn headers(headers: &mut HeaderMap, _model: &str, id: u64, _took: Duration) {
        set(headers, "apim-request-id", format!("{id:016x}"));
        set(headers, "x-ms-region", "Sweden Central");
    }

    /// Azure states the rest of a limit, and not the limit.
    fn limits(headers: &mut HeaderMap, statuses: &[LimitStatus]) {
        let mut all = HeaderMap::new();
        OpenAi::limits(&mut all, statuses);
        for (name, value) in &all {
            if name.as_str().contains("remaining") {
                headers.insert(name, value.clone());
            }
        }
    }
}
