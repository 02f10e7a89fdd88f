//! One record: its id and its text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::weight;
use crate::unreadable::Unreadable;

/// Most columns of a CSV file. A spreadsheet has at most 16,384.
pub(super) const MAX_COLUMNS: usize = 20_000;

/// Most bytes of the names of a CSV file's columns: each row repeats them.
pub(super) const MAX_NAMES: usize = 1 << 20;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The value of the id field; else the number of the record, from 1, padded with zeros.
    pub id: String,
    /// Whether the id is the record's number.
    pub is_numbered: bool,
    /// The value of the text field; else all fields, one a line: `name: value`.
    pub text: String,
    /// The whole record: a CSV row is an object of texts by column names.
    pub json: Value,
}

/// Names of the fields with a meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordFields<'a> {
    /// The field with a record's id.
    pub id: Option<&'a str>,
    /// The field with its text.
    pub text: Option<&'a str>,
}

/// Makes a record of a CSV row. `names` are the column names; `id` and `text` are the indices of
/// the columns with these meanings.
pub(super) fn record_of_row(
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
    let (is_numbered, id) = (named.is_none(), named.unwrap_or_else(|| padded_number(number)));
    let text = text.map_or_else(all, field);
    let mut json = Map::new();
    for (place, (name, value)) in names.iter().zip(values).enumerate() {
        // A repeated column name gets its index appended.
        let name = match json.contains_key(name) {
            true => format!("{name}#{place}"),
            false => name.clone(),
        };
        json.insert(name, Value::from(value));
    }
    Record { id, is_numbered, text, json: Value::Object(json) }
}

/// Parses a line of a JSONL file. `at` is the number of the line.
pub(super) fn parse_line(
    line: &str,
    at: u64,
    number: u64,
    id: Option<&str>,
    text: Option<&str>,
) -> Result<Record, Unreadable> {
    let bad = |reason: String| Unreadable::BadRecord { line: at, reason };
    weight::check_values(line.as_bytes()).map_err(bad)?;
    // The parser sees a single line, so its "line 1" is not the line in the file.
    let no_json = |error: serde_json::Error| {
        let why = error.to_string().replace(" at line 1 column ", " at column ");
        bad(format!("no JSON: {why}"))
    };
    let value = serde_json::from_str(line).map_err(no_json)?;
    record_of_value(value, at, number, RecordFields { id, text })
}

/// Makes a record of a value. `at` is the number of its line or row.
pub(crate) fn record_of_value(
    value: Value,
    at: u64,
    number: u64,
    fields: RecordFields<'_>,
) -> Result<Record, Unreadable> {
    let RecordFields { id, text } = fields;
    let bad = |reason: String| Unreadable::BadRecord { line: at, reason };
    let field = |name: &str| value.get(name).filter(|value| !value.is_null()).map(display_value);
    let named = id.and_then(field).filter(|id| !id.trim().is_empty());
    let is_numbered = named.is_none();
    let id = named.map_or_else(|| padded_number(number), Cow::into_owned);
    let text = match text {
        Some(name) => {
            field(name).ok_or_else(|| bad(format!("it has no field \"{name}\"")))?.into_owned()
        }
        None => match &value {
            Value::Object(all) => all
                .iter()
                .map(|(name, value)| format!("{name}: {}", display_value(value)))
                .collect::<Vec<_>>()
                .join("\n"),
            other => display_value(other).into_owned(),
        },
    };
    Ok(Record { id, is_numbered, text, json: value })
}

fn display_value(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Pads a record's number, so that ids sort in the order of the records.
fn padded_number(number: u64) -> String {
    format!("{number:07}")
}
