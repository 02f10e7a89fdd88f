//! An input, parts of which may be `{"uri": "…"}`: what Temporal's payloads do not hold.

use serde_json::Value;
use tidegate_workflows::input::call::BY_URI;

use super::calls::Calls;
use crate::{
    failure::{Failure, OfStore as _},
    services::Services,
};

/// Bytes of one part at most: no vendor takes a larger request.
const MAX_BYTES: u64 = 64 << 20;

/// The input, with what lies in a store in its place.
///
/// # Errors
/// `InvalidInput` where it may not be read or is not what it should be; `Transient` while the store
/// fails.
pub(super) async fn fetched(
    services: &Services,
    calls: &Calls,
    mut input: Value,
) -> Result<Value, Failure> {
    for (field, is_json) in BY_URI {
        let Some(value) = input.get_mut(field) else { continue };
        if let Some(uri) = uri(value) {
            *value = fetch(services, calls, field, uri, is_json).await?;
        }
    }
    Ok(input)
}

/// Where a part lies, if it says nothing else.
fn uri(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get("uri")?.as_str()
}

async fn fetch(
    services: &Services,
    calls: &Calls,
    field: &str,
    uri: &str,
    is_json: bool,
) -> Result<Value, Failure> {
    let wrong = |why: String| Failure::invalid_input(format!("{field}: {why}"));
    let place = calls.inputs.resolve(uri).map_err(|error| {
        wrong(format!("{error}; inputs are read under inputs of the [calls] section alone"))
    })?;
    let of_store = |error| Failure::of_field(field, error);
    let size = place.size().await.map_err(of_store)?;
    let size = size.ok_or_else(|| wrong(format!("there is nothing at {place}")))?;
    if size > MAX_BYTES {
        return Err(wrong(format!(
            "{place} has {size} bytes, and at most {MAX_BYTES} are read; no vendor takes so much in one request"
        )));
    }
    let held = services.memory.hold(size).await;
    let bytes = place.read().await.map_err(of_store)?;
    let value = match is_json {
        true => serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("{place} is no JSON: {error}")))?,
        false => String::from_utf8(bytes.into())
            .map(Value::String)
            .map_err(|_| wrong(format!("{place} is no text in UTF-8")))?,
    };
    drop(held);
    Ok(value)
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
