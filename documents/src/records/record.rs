//! One record: what names it, and what its text is.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::unreadable::Unreadable;

/// A record with more of them is none. Commas of texts count, too.
const MAX_VALUES: usize = 1_000_000;

/// A CSV file has no more columns: a sheet has 16,384.
pub(super) const MAX_COLUMNS: usize = 20_000;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// From the id's field, else the number of the record, counted from 1 and padded with zeros.
    pub id: String,
    /// It has no id of its own, but the number of its row.
    pub is_numbered: bool,
    /// The text's field alone, else all fields, one a line: `name: value`.
    pub text: String,
    /// All of it: a CSV file's row as an object of texts by the names of its columns.
    pub json: Value,
}

/// Which fields say what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordFields<'a> {
    /// The field that names a record.
    pub id: Option<&'a str>,
    /// The field that is its text.
    pub text: Option<&'a str>,
}

/// A row of a CSV file whose columns are called `names`; `id` and `text` are the places of those
/// that say these.
pub(super) fn of_row(
    names: &[String],
    values: Vec<String>,
    (id, text): (Option<usize>, Option<usize>),
    number: u64,
) -> Record {
    let field = |place: usize| values.get(place).cloned().unwrap_or_default();
    let all = || {
        let fields = names.iter().zip(&values);
        fields.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
    };
    let named = id.map(field).filter(|id| !id.trim().is_empty());
    let (is_numbered, id) = (named.is_none(), named.unwrap_or_else(|| numbered(number)));
    let text = text.map_or_else(all, field);
    let mut json = Map::new();
    for (place, (name, value)) in names.iter().zip(values).enumerate() {
        // Of columns with one name, none is left out.
        let name = match json.contains_key(name) {
            true => format!("{name}#{place}"),
            false => name.clone(),
        };
        json.insert(name, Value::from(value));
    }
    Record { id, is_numbered, text, json: Value::Object(json) }
}

/// A line of a JSONL file.
pub(super) fn of_line(
    line: &str,
    at: u64,
    number: u64,
    id: Option<&str>,
    text: Option<&str>,
) -> Result<Record, Unreadable> {
    let bad = |reason: String| Unreadable::BadRecord { line: at, reason };
    // Each takes thirty times its bytes in memory, and more.
    if memchr::memchr3_iter(b',', b'[', b'{', line.as_bytes()).nth(MAX_VALUES).is_some() {
        return Err(bad(format!("it has more than {MAX_VALUES} values")));
    }
    // The parser saw one line alone: its "line 1" is none of the file's.
    let no_json = |error: serde_json::Error| {
        let why = error.to_string().replace(" at line 1 column ", " at column ");
        bad(format!("no JSON: {why}"))
    };
    let value = serde_json::from_str(line).map_err(no_json)?;
    of_value(value, at, number, RecordFields { id, text })
}

/// A value as a record. `at` is its line, or its row.
pub(crate) fn of_value(
    value: Value,
    at: u64,
    number: u64,
    fields: RecordFields<'_>,
) -> Result<Record, Unreadable> {
    let RecordFields { id, text } = fields;
    let bad = |reason: String| Unreadable::BadRecord { line: at, reason };
    let field = |name: &str| value.get(name).filter(|value| !value.is_null()).map(shown);
    let named = id.and_then(field).filter(|id| !id.trim().is_empty());
    let is_numbered = named.is_none();
    let id = named.map_or_else(|| numbered(number), Cow::into_owned);
    let text = match text {
        Some(name) => {
            field(name).ok_or_else(|| bad(format!("it has no field \"{name}\"")))?.into_owned()
        }
        None => match &value {
            Value::Object(all) => all
                .iter()
                .map(|(name, value)| format!("{name}: {}", shown(value)))
                .collect::<Vec<_>>()
                .join("\n"),
            other => shown(other).into_owned(),
        },
    };
    Ok(Record { id, is_numbered, text, json: value })
}

fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Padded, so that records are ordered as they stand.
fn numbered(number: u64) -> String {
    format!("{number:07}")
}
