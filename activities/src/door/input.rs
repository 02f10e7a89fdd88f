//! An input that may have `{"uri": "…"}` in place of parts that are too large for Temporal's
//! payloads.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tidegate_providers::Fields;
use tidegate_workflows::input::call::{BODY, BY_URI};

use crate::{
    failure::{Failure, field_fault},
    services::{Calls, Services},
};

/// Maximum size of a part, in bytes: no vendor takes a larger request.
const MAX_BYTES: u64 = 64 << 20;

/// An input with all of its parts fetched.
#[derive(Debug)]
pub(super) struct ResolvedInput {
    pub(super) value: Value,
    /// The body in the vendor's own form, with its original text.
    pub(super) body: Option<Fields>,
}

#[derive(Deserialize)]
struct Body {
    body: Fields,
}

/// Fetches the parts of an input that are in a store. `text` is the original text of the input.
///
/// # Errors
/// `InvalidInput` where a part may not be read or has the wrong form; `Transient` while the store
/// fails.
pub(super) async fn fetch(
    services: &Services,
    calls: &Calls,
    text: &str,
    mut input: Value,
) -> Result<ResolvedInput, Failure> {
    for (field, is_json) in BY_URI {
        let Some(value) = input.get_mut(field) else { continue };
        if let Some(uri) = uri(value) {
            let place = InputPart { services, calls, field, uri };
            *value = if is_json { place.json().await? } else { place.text().await? };
        }
    }
    let body = match input.get(BODY).filter(|body| body.is_object()) {
        None => None,
        Some(body) => Some(match uri(body) {
            Some(uri) => InputPart { services, calls, field: BODY, uri }.fields().await?,
            None => serde_json::from_str::<Body>(text).map(|it| it.body).map_err(|error| {
                Failure::invalid_input(format!("{BODY} cannot be read: {error}"))
            })?,
        }),
    };
    Ok(ResolvedInput { value: input, body })
}

/// Returns the URI of a part if `uri` is the value's only field.
fn uri(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get("uri")?.as_str()
}

/// The location of a part of the input.
struct InputPart<'a> {
    services: &'a Services,
    calls: &'a Calls,
    field: &'a str,
    uri: &'a str,
}

impl InputPart<'_> {
    async fn text(&self) -> Result<Value, Failure> {
        let text = String::from_utf8(self.bytes().await?.into());
        text.map(Value::String).map_err(|_| self.wrong("it is no text in UTF-8"))
    }

    async fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.bytes().await?)
            .map_err(|error| self.wrong(&format!("it is no JSON: {error}")))
    }

    async fn fields(&self) -> Result<Fields, Failure> {
        Fields::read(&self.bytes().await?).map_err(|error| self.wrong(&error.to_string()))
    }

    async fn bytes(&self) -> Result<Bytes, Failure> {
        let place = self.calls.inputs.resolve(self.uri);
        let place = place.map_err(|error| {
            // The error quotes the URI.
            Failure::invalid_input(format!("{}: {error}", self.field))
        })?;
        let of_store = |error| field_fault(self.field, error);
        let size = place.size().await.map_err(of_store)?;
        let size = size.ok_or_else(|| self.wrong("there is nothing"))?;
        if size > MAX_BYTES {
            return Err(self.wrong(&format!(
                "{size} bytes, and at most {MAX_BYTES} are read; no vendor takes so much in one request"
            )));
        }
        let _held = self.services.memory.hold(size).await;
        Ok(place.read_at_most(MAX_BYTES).await.map_err(of_store)?.0)
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::invalid_input(format!("{}: {}: {why}", self.field, self.uri.escape_debug()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_is_elsewhere_where_it_says_that_alone() {
        assert_eq!(uri(&json!({"uri": "file:///a"})), Some("file:///a"));
        for value in [json!("file:///a"), json!({"uri": 7}), json!({"uri": "a", "model": "b"})] {
            assert_eq!(uri(&value), None, "{value}");
        }
    }
}
