//! Files of records: each row of a CSV file, each line of a JSONL file is a document.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{encoding, format::Format, unreadable::Unreadable};

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Reads the records of a CSV or JSONL file, in order. A bad one is an error of its own, and the
/// others go on.
///
/// CSV has a header; its delimiter is whichever of `,` `;` tab and `|` the header holds most of.
///
/// # Errors
/// [`Unreadable`] when the file is no text, or of another format.
pub fn records(
    bytes: &[u8],
    format: Format,
    fields: RecordFields<'_>,
) -> Result<Vec<Result<Record, Unreadable>>, Unreadable> {
    let text = encoding::decode(bytes)?;
    match format {
        Format::Csv => csv_rows(&text, fields),
        Format::Jsonl => Ok(json_lines(&text, fields)),
        _ => Err(Unreadable::Unsupported { what: "no file of records (CSV or JSONL)".into() }),
    }
}

fn csv_rows(
    text: &str,
    fields: RecordFields<'_>,
) -> Result<Vec<Result<Record, Unreadable>>, Unreadable> {
    let header = text.lines().next().unwrap_or_default();
    let count = |delimiter: &u8| header.bytes().filter(|byte| byte == delimiter).count();
    let delimiter = b",;\t|"
        .iter()
        .copied()
        .max_by_key(|delimiter| (count(delimiter), *delimiter == b','))
        .unwrap_or(b',');
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).flexible(false).from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| Unreadable::damaged(Format::Csv, error))?.clone();
    let place = |name: Option<&str>| match name {
        None => Ok(None),
        Some(name) => {
            names.iter().position(|known| known.trim() == name).map(Some).ok_or_else(|| {
                Unreadable::damaged(
                    Format::Csv,
                    format!(
                        "it has no column \"{name}\"; its columns are {}",
                        names.iter().collect::<Vec<_>>().join(", ")
                    ),
                )
            })
        }
    };
    let (id, body) = (place(fields.id)?, place(fields.text)?);
    let rows = reader.records().zip(1_u64..).map(|(row, number)| {
        let row = row.map_err(|error| {
            let line = error.position().map_or(number + 1, csv::Position::line);
            let reason = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("it has {len} fields, the header {expected_len}")
                }
                _ => "it cannot be read".to_owned(),
            };
            Unreadable::BadRecord { line, reason }
        })?;
        let field = |place: usize| row.get(place).unwrap_or_default();
        let all = || {
            names
                .iter()
                .zip(row.iter())
                .map(|(name, value)| format!("{name}: {value}"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let mut json = Map::new();
        for (place, (name, value)) in names.iter().zip(row.iter()).enumerate() {
            // Of columns with one name, none is left out.
            let name = match json.contains_key(name) {
                true => format!("{name}#{place}"),
                false => name.to_owned(),
            };
            json.insert(name, Value::from(value));
        }
        let named = id.map(field).filter(|id| !id.trim().is_empty());
        let (id, is_numbered) =
            (named.map_or_else(|| numbered(number), str::to_owned), named.is_none());
        let text = body.map_or_else(all, |place| field(place).to_owned());
        Ok(Record { id, is_numbered, text, json: Value::Object(json) })
    });
    Ok(rows.collect())
}

fn json_lines(text: &str, fields: RecordFields<'_>) -> Vec<Result<Record, Unreadable>> {
    let lines = text.lines().zip(1_u64..).filter(|(line, _)| !line.trim().is_empty());
    lines.zip(1_u64..).map(|((line, at), number)| json_line(line, at, number, fields)).collect()
}

fn json_line(
    line: &str,
    at: u64,
    number: u64,
    fields: RecordFields<'_>,
) -> Result<Record, Unreadable> {
    let bad = |reason: String| Unreadable::BadRecord { line: at, reason };
    let value: Value =
        serde_json::from_str(line).map_err(|error| bad(format!("no JSON: {error}")))?;
    let field = |name: &str| value.get(name).filter(|value| !value.is_null()).map(shown);
    let named = fields.id.and_then(field).filter(|id| !id.trim().is_empty());
    let is_numbered = named.is_none();
    let id = named.map_or_else(|| numbered(number), Cow::into_owned);
    let text = match fields.text {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        text: &str,
        format: Format,
        fields: RecordFields<'_>,
    ) -> Vec<Result<(String, String), String>> {
        let records = records(text.as_bytes(), format, fields).unwrap();
        records
            .into_iter()
            .map(|record| record.map(|r| (r.id, r.text)).map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn rows() {
        let text = "name;note\nAnna;\"two\nlines\"\nBert;x;y\nCara;last";
        let rows = read(text, Format::Csv, RecordFields::default());
        let record = |id: &str, text: &str| Ok((id.to_owned(), text.to_owned()));
        assert_eq!(rows[0], record("0000001", "name: Anna\nnote: two\nlines"));
        assert_eq!(rows[1], Err("line 4 is no record: it has 3 fields, the header 2".to_owned()));
        let fields = RecordFields { id: Some("name"), text: Some("note") };
        assert_eq!(read(text, Format::Csv, fields)[2], record("Cara", "last"));
        let error =
            records(text.as_bytes(), Format::Csv, RecordFields { id: Some("nom"), text: None })
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the CSV is damaged: it has no column \"nom\"; its columns are name, note"
        );
    }

    #[test]
    fn lines() {
        let text =
            "{\"id\":7,\"body\":\"Ebb\"}\n\nnonsense\n{\"body\":\"Flow\",\"n\":[1]}\n\"bare\"";
        let lines = read(text, Format::Jsonl, RecordFields { id: Some("id"), text: Some("body") });
        assert_eq!(lines[0], Ok(("7".to_owned(), "Ebb".to_owned())));
        assert!(lines[1].as_ref().unwrap_err().starts_with("line 3 is no record: no JSON"));
        assert_eq!(lines[2], Ok(("0000003".to_owned(), "Flow".to_owned())));
        assert!(lines[3].as_ref().unwrap_err().contains("no field \"body\""));
        let whole = read(text, Format::Jsonl, RecordFields::default());
        assert_eq!(
            (&whole[2].as_ref().unwrap().1, &whole[3].as_ref().unwrap().1),
            (&"body: Flow\nn: [1]".to_owned(), &"bare".to_owned())
        );
    }
}
