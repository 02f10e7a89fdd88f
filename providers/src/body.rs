//! The body of a request: its messages, and the author's parameters.

use serde_json::{Map, Value, json};

use crate::{
    call::Request,
    dialect::Dialect,
    error::{Error, Kind},
    parameters::{Parameters, merge},
    turn::Turn,
};

/// The earlier turns, and the user's message with this content.
pub(crate) fn messages(request: &Request<'_>, content: Value) -> Vec<Value> {
    let message = |turn: &Turn| json!({"role": turn.role.as_str(), "content": turn.text});
    let mut own = json!({"role": "user"});
    own["content"] = content;
    request.turns.iter().map(message).chain([own]).collect()
}

/// The body with the request's parameters inserted.
pub(crate) fn written(
    dialect: Dialect,
    mut body: Value,
    request: &Request<'_>,
) -> Result<Vec<u8>, Error> {
    merge(&mut body, placed(dialect, request)?);
    serde_json::to_vec(&body)
        .map_err(|_| Error::unsent(Kind::InvalidRequest, "the request cannot be written as JSON"))
}

/// The parameters alone, in the form of the vendor's body.
pub(crate) fn placed(dialect: Dialect, request: &Request<'_>) -> Result<Value, Error> {
    let Parameters { effort, fields } = request.parameters;
    let table = dialect.table();
    let mut body = Value::Object(Map::new());
    for (name, value) in fields.into_iter().flatten() {
        table.place(&mut body, name, value);
    }
    if let Some(effort) = effort {
        let said = (table.effort)(request.model, effort, request.max_output_tokens);
        let said = said.map_err(|why| {
            Error::unsent(Kind::InvalidRequest, &format!("effort \"{effort}\": {why}"))
        })?;
        merge(&mut body, said);
    }
    Ok(body)
}
