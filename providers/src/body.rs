//! Adds the author's parameters to a request's body.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    call::Request,
    dialect::Dialect,
    error::{Error, Kind},
    parameters::{Parameters, merge},
};

/// The body with the request's parameters inserted.
pub(crate) fn written(
    dialect: Dialect,
    body: &impl Serialize,
    request: &Request<'_>,
) -> Result<Vec<u8>, Error> {
    let unwritable =
        |_| Error::unsent(Kind::InvalidRequest, "the request cannot be written as JSON");
    if request.parameters.is_empty() {
        return serde_json::to_vec(body).map_err(unwritable);
    }
    let mut body = serde_json::to_value(body).map_err(unwritable)?;
    merge(&mut body, placed(dialect, request)?);
    serde_json::to_vec(&body).map_err(unwritable)
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
