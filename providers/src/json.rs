//! Single values out of JSON.

use serde_json::Value;

/// A text; `None` where there is no such field, or something else in it.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// A count; absent, negative or broken is `None`.
pub(crate) fn count(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value, |value, name| value.get(name))?.as_u64()
}
