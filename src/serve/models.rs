//! `GET /v1/models`: the models that a key may ask.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{
    door::Door,
    keys::Holder,
    problem::{Form, Problem},
};

/// Lists all models, or answers with the one of this name.
pub(super) fn answer(
    door: &Door,
    holder: &Holder,
    form: Form,
    name: Option<&str>,
) -> Result<Response, Problem> {
    // A route whose models are not equivalent takes no calls.
    let takes_calls =
        |name: &str| door.route(name).is_some_and(|it| it.require_equivalents().is_ok());
    let mut known = door.names.iter().filter(|name| holder.may_ask(name) && takes_calls(name));
    if let Some(name) = name {
        let known = known.find(|known| *known == name).ok_or_else(|| Problem::no_model(name))?;
        return Ok(Json(model(known, form)).into_response());
    }
    let data: Vec<Value> = known.map(|name| model(name, form)).collect();
    let body = match form {
        Form::OpenAi => json!({"object": "list", "data": data}),
        Form::Anthropic => {
            let id = |model: Option<&Value>| model.and_then(|model| model.get("id")).cloned();
            let (first, last) = (id(data.first()), id(data.last()));
            json!({"data": data, "has_more": false, "first_id": first, "last_id": last})
        }
    };
    Ok((StatusCode::OK, Json(body)).into_response())
}

fn model(name: &str, form: Form) -> Value {
    match form {
        Form::OpenAi => {
            let owner = name.split_once(':').map_or("tidegate", |(provider, _)| provider);
            json!({"id": name, "object": "model", "created": 0, "owned_by": owner})
        }
        Form::Anthropic => {
            json!({"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"})
        }
    }
}
