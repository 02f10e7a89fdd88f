//! Results in columns. A value without a column, or one that does not fit its column, is kept in
//! the last column as JSON, so that a result is read unchanged.

use std::{io::Write, sync::Arc};

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat};
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type},
    errors::ParquetError,
    file::{
        properties::{EnabledStatistics, WriterProperties},
        reader::FileReader,
        serialized_reader::SerializedFileReader,
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    record::{Field, Row, reader::RowIter},
    schema::parser::parse_message_type,
};
use serde_json::{Map, Value};

use crate::{failure::Failure, output::result::ResultLine, storage::Location};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Text,
    /// A list of texts.
    Texts,
    /// A list of single-precision numbers.
    Vector,
    Count,
    Real,
    /// Milliseconds since 1970; RFC 3339 in JSON.
    Time,
}

const COLUMNS: [(&str, ColumnType); 17] = [
    ("id", ColumnType::Text),
    ("uri", ColumnType::Text),
    ("model", ColumnType::Text),
    ("answer", ColumnType::Text),
    ("embedding", ColumnType::Vector),
    ("parts", ColumnType::Texts),
    ("stop_reason", ColumnType::Text),
    ("finish", ColumnType::Text),
    ("input_tokens", ColumnType::Count),
    ("cached_input_tokens", ColumnType::Count),
    ("output_tokens", ColumnType::Count),
    ("cost_usd", ColumnType::Real),
    ("provider_calls", ColumnType::Count),
    ("completed_at", ColumnType::Time),
    ("question", ColumnType::Text),
    ("content", ColumnType::Text),
    ("saved_usd", ColumnType::Real),
];

/// The column for everything else.
const OTHER: &str = "other";

type Object = Map<String, Value>;

/// A whole table of these lines.
pub(in crate::output) async fn write_table(
    of: &Location,
    lines: Vec<Bytes>,
) -> Result<Vec<u8>, Failure> {
    let table = tokio::task::spawn_blocking(move || {
        let mut writer = writer()?;
        row_group(&mut writer, &lines)?;
        writer.into_inner()
    });
    ended(of, table.await)
}

/// Reads the lines of a table.
pub(in crate::output) async fn read(
    of: &Location,
    whole: Bytes,
) -> Result<Vec<ResultLine>, Failure> {
    let read = tokio::task::spawn_blocking(move || {
        let file = SerializedFileReader::new(whole)?;
        let rows = RowIter::from_file(None, &file as &dyn FileReader)?;
        rows.map(|row| Ok(line(&row?))).collect::<Result<Vec<_>, ParquetError>>()
    });
    Ok(ended(of, read.await)?.into_iter().flatten().collect())
}

/// The outcome of work on a thread of its own.
pub(super) fn ended<T>(
    of: &Location,
    done: Result<Result<T, ParquetError>, tokio::task::JoinError>,
) -> Result<T, Failure> {
    match done {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(Failure::invalid_input(format!("{of} is damaged: {error}"))),
        Err(error) => Err(Failure::transient(format!("{of}: {error}"))),
    }
}

/// The writer of an empty table, in memory.
pub(super) fn writer() -> Result<SerializedFileWriter<Vec<u8>>, ParquetError> {
    let column = |(name, kind): &(&str, ColumnType)| match kind {
        ColumnType::Text => format!("OPTIONAL BYTE_ARRAY {name} (STRING);"),
        ColumnType::Texts => format!(
            "OPTIONAL GROUP {name} (LIST) {{ REPEATED GROUP list {{ REQUIRED BYTE_ARRAY element (STRING); }} }}"
        ),
        ColumnType::Vector => format!(
            "OPTIONAL GROUP {name} (LIST) {{ REPEATED GROUP list {{ REQUIRED FLOAT element; }} }}"
        ),
        ColumnType::Count => format!("OPTIONAL INT64 {name};"),
        ColumnType::Real => format!("OPTIONAL DOUBLE {name};"),
        ColumnType::Time => format!("OPTIONAL INT64 {name} (TIMESTAMP(MILLIS,true));"),
    };
    let columns: String = COLUMNS.iter().map(column).collect();
    let schema = format!("message result {{ {columns} OPTIONAL BYTE_ARRAY {OTHER} (JSON); }}");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by("tidegate".to_owned())
        .build();
    SerializedFileWriter::new(Vec::new(), Arc::new(parse_message_type(&schema)?), properties.into())
}

/// Adds rows.
pub(super) fn row_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    lines: &[Bytes],
) -> Result<(), ParquetError> {
    let objects = lines.iter().map(|line| serde_json::from_slice(line));
    let mut objects: Vec<Object> =
        objects.collect::<Result<_, _>>().map_err(|error| ParquetError::External(error.into()))?;
    let mut group = writer.next_row_group()?;
    for (name, kind) in &COLUMNS {
        let Some(mut column) = group.next_column()? else { break };
        kind.write(&mut column, name, &mut objects)?;
        column.close()?;
    }
    if let Some(mut column) = group.next_column()? {
        let others = objects.into_iter().map(|object| {
            let other = (!object.is_empty()).then(|| Value::Object(object).to_string());
            Ok(other.map(|json| ByteArray::from(json.into_bytes())))
        });
        let (values, levels) = flat(others.collect::<Result<Vec<_>, ParquetError>>()?);
        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}

impl ColumnType {
    /// Moves a column's values out of the objects; a value that does not fit stays in its object.
    fn write(
        self,
        column: &mut SerializedColumnWriter<'_>,
        name: &str,
        objects: &mut [Object],
    ) -> Result<(), ParquetError> {
        match self {
            Self::Text => {
                let (values, levels) = flat(take_column(name, objects, |value| match value {
                    Value::String(text) => Ok(ByteArray::from(text.into_bytes())),
                    other => Err(other),
                }));
                column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
            Self::Count => {
                let (values, levels) =
                    flat(take_column(name, objects, |value| value.as_i64().ok_or(value)));
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            Self::Real => {
                let real = |value: Value| match &value {
                    Value::Number(number) => number.as_f64().ok_or(value),
                    _ => Err(value),
                };
                let (values, levels) = flat(take_column(name, objects, real));
                column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
            Self::Time => {
                let (values, levels) = flat(take_column(name, objects, millis));
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            Self::Texts => {
                let bytes = |text: String| ByteArray::from(text.into_bytes());
                let lists = take_column(name, objects, texts).into_iter();
                let lists =
                    lists.map(|list| Some(list?.into_iter().map(bytes).collect::<Vec<_>>()));
                write_lists::<ByteArrayType>(column, lists)?;
            }
            Self::Vector => {
                write_lists::<FloatType>(column, take_column(name, objects, vector).into_iter())?;
            }
        }
        Ok(())
    }
}

/// Writes lists, none of them empty, and nulls.
fn write_lists<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    lists: impl Iterator<Item = Option<Vec<T::T>>>,
) -> Result<(), ParquetError> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for list in lists {
        let Some(list) = list.filter(|list| !list.is_empty()) else {
            defined.push(0);
            repeated.push(0);
            continue;
        };
        for (place, value) in list.into_iter().enumerate() {
            values.push(value);
            defined.push(2);
            repeated.push(i16::from(place > 0));
        }
    }
    column.typed::<T>().write_batch(&values, Some(&defined), Some(&repeated))?;
    Ok(())
}

/// Takes a field out of each object, where it can be converted.
fn take_column<T>(
    name: &str,
    objects: &mut [Object],
    make: impl Fn(Value) -> Result<T, Value>,
) -> Vec<Option<T>> {
    let take = |object: &mut Object| {
        // Null reads as absent.
        let made = make(object.remove(name).filter(|value| !value.is_null())?);
        made.map_err(|value| object.insert(name.to_owned(), value)).ok()
    };
    objects.iter_mut().map(take).collect()
}

/// Returns the values that exist, and a flag for each row.
fn flat<T>(values: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (values.into_iter().flatten().collect(), levels)
}

/// Converts a time only if it is written back unchanged.
fn millis(value: Value) -> Result<i64, Value> {
    let time = value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let millis = time.map(|time| time.timestamp_millis());
    millis.filter(|millis| rfc3339(*millis).as_ref() == Some(&value)).ok_or(value)
}

fn rfc3339(millis: i64) -> Option<Value> {
    let time = DateTime::from_timestamp_millis(millis)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Millis, true).into())
}

/// Converts a list of texts. An empty list stays in the object: in a column it equals an absent
/// one.
fn texts(value: Value) -> Result<Vec<String>, Value> {
    let list = value.as_array().filter(|list| !list.is_empty()).and_then(|list| {
        list.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    list.ok_or(value)
}

/// Converts numbers only if they are written back unchanged; others stay in the object.
fn vector(value: Value) -> Result<Vec<f32>, Value> {
    let list = value.as_array().filter(|list| !list.is_empty()).and_then(|list| {
        let exact = |it: &Value| {
            let single = it.as_f64()? as f32;
            (single_precision(single).as_f64() == it.as_f64()).then_some(single)
        };
        list.iter().map(exact).collect::<Option<_>>()
    });
    list.ok_or(value)
}

/// Writes the digits of single precision, without those that a conversion to double precision would
/// add.
fn single_precision(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// `None` for a row that is not a result.
fn line(row: &Row) -> Option<ResultLine> {
    let mut object = Object::new();
    for (name, field) in row.get_column_iter() {
        let value = match field {
            Field::Null => continue,
            Field::Str(json) if name == OTHER => {
                let Ok(Value::Object(other)) = serde_json::from_str(json) else { continue };
                object.extend(other);
                continue;
            }
            Field::Str(text) => Value::from(text.as_str()),
            Field::Long(count) => Value::from(*count),
            Field::Double(real) => Value::from(*real),
            Field::TimestampMillis(millis) => rfc3339(*millis)?,
            Field::ListInternal(texts) => texts
                .elements()
                .iter()
                .filter_map(|text| match text {
                    Field::Str(text) => Some(Value::from(text.as_str())),
                    Field::Float(number) => Some(single_precision(*number)),
                    _ => None,
                })
                .collect(),
            _ => continue,
        };
        object.insert(name.clone(), value);
    }
    let mut json = Value::Object(object).to_string().into_bytes();
    json.push(b'\n');
    ResultLine::parse(json.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        let plain = json!({"id": "a.md", "uri": "file:///a.md", "model": "anthropic:claude-sonnet-5", "answer": "Tides.",
            "stop_reason": "end_turn", "finish": "complete", "input_tokens": 10, "cached_input_tokens": 0,
            "output_tokens": 5, "cost_usd": 0.25, "provider_calls": 1, "completed_at": "2026-11-22T10:00:00.500Z",
            "source": {"size": 3, "modified": "2026-11-22T09:00:00Z"}, "left_out": {"unread_pages": {"count": 1, "places": [{"page": 2}]}}});
        let with = |more: Value| {
            let mut object = plain.clone();
            object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            object
        };
        let objects = [
            plain.clone(),
            with(json!({"id": "v", "answer": "", "embedding": [0.1, -0.25, 3e-7]})),
            with(json!({"id": "w", "answer": "", "embedding": [0.123456789012]})),
            with(json!({"id": "b", "answer": "ä\n\"", "parts": ["one", "", "three"]})),
            with(
                json!({"id": "c", "parts": [], "saved_usd": 1.5, "a_later_field": {"x": [1, null]}}),
            ),
            with(
                json!({"id": "d", "completed_at": "2026-11-22T11:00:00+01:00", "input_tokens": u64::MAX}),
            ),
        ];
        let lines: Vec<Bytes> = objects.iter().map(|it| it.to_string().into()).collect();
        let mut writer = writer().unwrap();
        row_group(&mut writer, &lines[..3]).unwrap();
        row_group(&mut writer, &lines[3..]).unwrap();
        let whole = Bytes::from(writer.into_inner().unwrap());
        let file = SerializedFileReader::new(whole).unwrap();
        let rows = RowIter::from_file(None, &file as &dyn FileReader).unwrap();
        let read: Vec<Value> = rows
            .map(|row| serde_json::from_slice(&line(&row.unwrap()).unwrap().json).unwrap())
            .collect();
        assert_eq!(read, objects);
    }
}
