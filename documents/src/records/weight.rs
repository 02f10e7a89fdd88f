//! What JSON values take in memory, and how many are read at once.

use serde_json::Value;

/// Most values of one line of JSON, or of one row; each takes 32 to 64 bytes of memory.
const MAX_VALUES: usize = 1_000_000;

/// Values that an object or a list counts as: an object takes 640 bytes, however small it is.
const VALUES_OF_GROUP: usize = 10;

/// Bytes of a node of a map, with room for eleven fields: an object has at least one, filled by half
/// or more.
const NODE_BYTES: usize = 640;

/// Checks that a line of JSON has not too many values to be parsed: in memory a value may take ninety
/// times its bytes.
///
/// # Errors
/// A sentence with the largest number.
pub fn check_values(json: &[u8]) -> Result<(), String> {
    check_count(count_values(json))
}

/// Checks a number of values, each object or list counted as [`VALUES_OF_GROUP`].
pub(crate) fn check_count(values: usize) -> Result<(), String> {
    if values <= MAX_VALUES {
        return Ok(());
    }
    Err(format!(
        "it has more than {MAX_VALUES} values, each object or list counted as {VALUES_OF_GROUP}"
    ))
}

/// Counts the values of JSON before it is parsed. Signs within its texts are no values.
fn count_values(json: &[u8]) -> usize {
    let (mut values, mut is_text, mut is_escaped) = (0, false, false);
    for &byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b',' => values += 1,
            b'{' | b'[' => values += VALUES_OF_GROUP,
            _ => {}
        }
    }
    values
}

/// Adds up the values of an object or a list.
#[cfg(feature = "parquet")]
pub(crate) fn count_group(values: impl Iterator<Item = usize>) -> usize {
    values.fold(VALUES_OF_GROUP, usize::saturating_add)
}

/// Returns the approximate bytes that a value takes in memory. The parser bounds the nesting of
/// values.
pub fn memory_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(memory_of).sum(),
            Value::Object(fields) => {
                let values = fields.iter().map(|(name, value)| name.len() + memory_of(value));
                values.sum::<usize>() + fields.len().div_ceil(6) * NODE_BYTES
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_objects_count_as_what_they_take() {
        let objects = json!(vec![json!({"": 0}); 1_000]);
        let numbers = json!(vec![0; 1_000]);
        assert!(memory_of(&objects) > 1_000 * NODE_BYTES);
        assert!(memory_of(&numbers) < 1_000 * 2 * size_of::<Value>());
    }
}
