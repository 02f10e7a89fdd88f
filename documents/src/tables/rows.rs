//! Rows of a table. Row groups are read one after the other and page by page, so memory does not
//! grow with the file.

use std::{
    fmt,
    io::{self, Read},
    ops::ControlFlow,
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use parquet::{
    errors::{ParquetError, Result as ParquetResult},
    file::{
        metadata::ParquetMetaDataReader,
        reader::{ChunkReader, Length},
    },
    record::{Field, Row, reader::RowIter},
};
use serde_json::{Map, Value};

use super::pages;
use crate::{
    records::{
        Broken, Record, RecordFields, record,
        weight::{check_count, count_group},
    },
    unreadable::Unreadable,
};

/// Largest ratio of the bytes of rows to those of their file. It is large because a dictionary
/// stores a value once.
const MAX_RATIO: u64 = 1_000;

/// Bytes that a row counts as beside its values: a row of no columns is a document too, and one of
/// nulls takes next to nothing in the file.
const ROW_BYTES: u64 = 100;

/// Bytes of rows that are allowed for any file.
const ALWAYS_ALLOWED_BYTES: u64 = 256 << 20;

/// Calls `each` with each row after the first `skip` ones and its approximate bytes, until `each`
/// returns `false`, and then returns [`ControlFlow::Break`]. `open` opens the file, of `size` bytes, at
/// a byte.
///
/// # Errors
/// [`Broken`] if it is no Parquet file, has no such column, or cannot be read.
pub(super) fn for_each_row<R: Read + 'static>(
    open: impl Fn(u64) -> io::Result<R> + Send + Sync + 'static,
    size: u64,
    fields: RecordFields<'_>,
    skip: u64,
    mut each: impl FnMut(Result<Record, Unreadable>, usize) -> bool,
) -> Result<ControlFlow<()>, Broken> {
    let file = Ranges { open, size };
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(broken)?;
    let file = Arc::new(file);
    let schema = metadata.file_metadata().schema();
    let names: Vec<&str> = schema.get_fields().iter().map(|column| column.name()).collect();
    for wanted in [fields.id, fields.text].into_iter().flatten() {
        if !names.contains(&wanted) {
            let names = names.join(", ");
            return Err(invalid(format!("it has no column \"{wanted}\"; its columns are {names}")));
        }
    }
    let (mut number, mut taken) = (0_u64, 0_u64);
    let most = size.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED_BYTES);
    let too_large = |rows: &str| {
        let mib = most >> 20;
        invalid(format!("{rows} take more than {mib} MiB, and the file has {size} bytes; split it"))
    };
    let stated = metadata.row_groups().iter().map(|group| group.num_rows()).map(u64::try_from);
    let stated = stated.fold(0_u64, |sum, rows| sum.saturating_add(rows.unwrap_or_default()));
    if stated.saturating_mul(ROW_BYTES) > most {
        return Err(too_large(&format!("its {stated} rows")));
    }
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows()).unwrap_or_default();
        let behind = number.saturating_add(rows);
        if behind <= skip {
            number = behind;
            continue;
        }
        if let Some(why) = pages::find_unsupported_codec(group) {
            return Err(invalid(why));
        }
        let group = pages::Group { file: Arc::clone(&file), metadata: group };
        for row in RowIter::from_row_group(None, &group).map_err(broken)? {
            let row = row.map_err(broken)?;
            number += 1;
            let weight = weight(&row);
            taken = taken.saturating_add(weight + ROW_BYTES);
            if taken > most {
                return Err(too_large(&format!("its first {number} rows")));
            }
            if number > skip {
                let weight = usize::try_from(weight).unwrap_or(usize::MAX);
                let record = match check_count(count_values(&row)) {
                    Ok(()) => record::record_of_value(object(&row), number, number, fields),
                    Err(reason) => Err(Unreadable::BadRecord { line: number, reason }),
                };
                if !each(record, weight) {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A file that is read in ranges.
struct Ranges<F> {
    open: F,
    size: u64,
}

impl<F> fmt::Debug for Ranges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<F> Length for Ranges<F> {
    fn len(&self) -> u64 {
        self.size
    }
}

impl<R: Read, F: Fn(u64) -> io::Result<R> + Send + Sync> ChunkReader for Ranges<F> {
    type T = R;

    fn get_read(&self, start: u64) -> ParquetResult<R> {
        Ok((self.open)(start)?)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let wanted = u64::try_from(length).unwrap_or(u64::MAX);
        // A damaged file may state ranges behind its end.
        if start.checked_add(wanted).is_none_or(|end| end > self.size) {
            return Err(ParquetError::EOF("it ends too early".to_owned()));
        }
        let mut bytes = Vec::with_capacity(length);
        (self.open)(start)?.take(wanted).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF("it ends too early".to_owned()));
        }
        Ok(bytes.into())
    }
}

/// Converts an error of the parser. Errors of reading are returned unchanged.
fn broken(error: ParquetError) -> Broken {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => Broken::Io(*error),
            Err(error) => invalid(format!("it cannot be read as Parquet: {error}")),
        },
        error => invalid(format!("it cannot be read as Parquet: {error}")),
    }
}

pub(crate) fn invalid(why: String) -> Broken {
    Broken::Io(io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Returns the approximate bytes of a row.
fn weight(row: &Row) -> u64 {
    row.get_column_iter().map(|(name, field)| name.len() as u64 + weight_of(field)).sum()
}

fn weight_of(field: &Field) -> u64 {
    match field {
        Field::Str(text) => text.len() as u64,
        Field::Bytes(bytes) => bytes.len() as u64,
        Field::Group(row) => weight(row),
        Field::ListInternal(list) => list.elements().iter().map(weight_of).sum(),
        Field::MapInternal(map) => {
            map.entries().iter().map(|(name, field)| weight_of(name) + weight_of(field)).sum()
        }
        _ => 8,
    }
}

fn count_values(row: &Row) -> usize {
    count_group(row.get_column_iter().map(|(_, field)| count_values_of(field)))
}

fn count_values_of(field: &Field) -> usize {
    match field {
        Field::Group(row) => count_values(row),
        Field::ListInternal(list) => count_group(list.elements().iter().map(count_values_of)),
        Field::MapInternal(map) => {
            count_group(map.entries().iter().map(|(_, field)| count_values_of(field)))
        }
        _ => 1,
    }
}

fn object(row: &Row) -> Value {
    let fields = row.get_column_iter().map(|(name, field)| (name.clone(), value(field)));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(it) => Value::from(*it),
        Field::Byte(it) => Value::from(*it),
        Field::Short(it) => Value::from(*it),
        Field::Int(it) => Value::from(*it),
        Field::Long(it) => Value::from(*it),
        Field::UByte(it) => Value::from(*it),
        Field::UShort(it) => Value::from(*it),
        Field::UInt(it) => Value::from(*it),
        Field::ULong(it) => Value::from(*it),
        Field::Float16(it) => Value::from(it.to_f32()),
        Field::Float(it) => Value::from(*it),
        Field::Double(it) => Value::from(*it),
        Field::Str(it) => Value::from(it.as_str()),
        // Texts are often stored as bytes without the type of text.
        Field::Bytes(it) => match std::str::from_utf8(it.data()) {
            Ok(text) => Value::from(text),
            Err(_) => Value::from(BASE64_STANDARD.encode(it.data())),
        },
        Field::TimestampMillis(it) => time(DateTime::from_timestamp_millis(*it), *it),
        Field::TimestampMicros(it) => time(DateTime::from_timestamp_micros(*it), *it),
        Field::Group(row) => object(row),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => {
            let entries = map.entries().iter().map(|(name, field)| match name {
                Field::Str(name) => (name.clone(), value(field)),
                name => (name.to_string(), value(field)),
            });
            Value::Object(entries.collect())
        }
        Field::Decimal(_) | Field::Date(_) | Field::TimeMillis(_) | Field::TimeMicros(_) => {
            Value::from(field.to_string())
        }
    }
}

fn time(time: Option<DateTime<Utc>>, number: i64) -> Value {
    match time {
        Some(time) => Value::from(time.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        None => Value::from(number),
    }
}
