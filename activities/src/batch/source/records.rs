//! Files of records: each row of a CSV or Parquet file and each line of a JSONL file is a document.
//! A file is split while it is read, so that memory does not grow with its size.

use std::io;

use bytes::Bytes;
use serde_json::{Map, Value};
use tidegate_documents::{
    Format, Position, Record, RecordFields, Records as RecordFile, Unreadable, blocks::Blocks,
    records::Broken,
};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::Records;
use tokio::{runtime::Handle, task::JoinError};

use crate::{
    batch::{
        archives,
        source::page::{PageBudget, Within},
    },
    failure::{Failure, field_fault},
    output::{
        job::{Document, resolve},
        row_ids::{IsNumbered, RowIds},
        version::Version,
    },
    storage::{Error, Location, Storage},
};

/// A file of fewer bytes is read whole, in any encoding.
const WHOLE: u64 = 16 << 20;

/// Size limit in bytes for binding rows without names to their results, which needs all rows at
/// once.
const MAX_BOUND: u64 = 64 << 20;

/// Limit on the bytes of such a file's rows in memory; a table's rows are compressed in the file.
const MOST_AT_ONCE: usize = 256 << 20;

/// The form of a file's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordsIn {
    /// As rows or lines of a text.
    Text(Format),
    /// As rows of a Parquet file.
    Table,
}

/// Whether it is a file of records.
pub(super) fn has_records(file: &Document) -> bool {
    file.unreadable.is_none() && records_in(&file.uri).is_some()
}

fn records_in(uri: &str) -> Option<RecordsIn> {
    let name = uri.rsplit('/').next().unwrap_or_default();
    if name.to_ascii_lowercase().ends_with(".parquet") {
        return Some(RecordsIn::Table);
    }
    match Format::detect(b"", name) {
        Ok(format @ (Format::Csv | Format::Jsonl)) => Some(RecordsIn::Text(format)),
        _ => None,
    }
}

/// The next rows of a file, until the page is full, and where the file continues.
pub(super) async fn rows(
    storage: &Storage,
    fields: &Records,
    known: &RowIds,
    within: Within,
    room: &mut PageBudget,
) -> Result<(Vec<Document>, Option<Within>), Failure> {
    // In an archive, the file's name follows the archive's URI.
    let (uri, member) = match within.uri.split_once('#') {
        Some((archive, member)) => (archive, Some(member.to_owned())),
        None => (within.uri.as_str(), None),
    };
    let location = resolve(storage, "source", uri)?;
    let faulty = |within: Within, unreadable: String| {
        let file = Document::file(within.id, within.uri);
        (vec![Document { unreadable: Some(unreadable), ..file }], None)
    };
    if let Some(what) = location.special() {
        return Ok(faulty(within, format!("{location} is {what}, and no file")));
    }
    let of_source = |error| field_fault("source", error);
    let stamp = location.stamp().await.map_err(of_source)?;
    let Some(stamp) = stamp else { return Err(of_source(Error::Missing(location.uri()))) };
    if within.stamp.as_ref().is_some_and(|before| !before.is_same(&stamp)) {
        return Err(changed(&location));
    }
    let (whole, size) = match &member {
        Some(member) => {
            match archives::unpack(&location, member, room).await? {
                Ok((_, now)) if !now.is_same(&stamp) => return Err(changed(&location)),
                Ok((bytes, _)) => {
                    let size = bytes.len() as u64;
                    (Some(bytes), size)
                }
                // Only this file fails.
                Err(fault) => return Ok(faulty(within, fault.to_string())),
            }
        }
        None if stamp.size <= WHOLE || location.is_read_only() && stamp.size <= MAX_BOUND => {
            (Some(location.read_at_most(MAX_BOUND).await.map_err(of_source)?.0), stamp.size)
        }
        None => (None, stamp.size),
    };
    let (id, uri) = (within.id.clone(), within.uri.clone());
    let is_beginning = within.at == Position::default();
    // A file that goes on in a second page does not fit into memory at once.
    let mut binds =
        is_beginning && (size <= WHOLE || size <= MAX_BOUND && known.has_file(&within.id));
    let reading = Reading {
        location: location.clone(),
        runtime: Handle::current(),
        fields: fields.clone(),
        within: Within { stamp: Some(stamp), ..within },
        whole,
        size,
        room: room.clone(),
    };
    let begun = |room| Reading { room, ..reading.clone() }.run();
    let whole = room.for_whole_file(MOST_AT_ONCE);
    let mut read = begun(if binds { whole } else { room.clone() }).await;
    if binds && matches!(&read, Ok(Ok((_, Some(_))))) {
        binds = false;
        read = begun(room.clone()).await;
    }
    let name = member.map_or_else(|| location.to_string(), |member| format!("{location}#{member}"));
    let read = read.map_err(|error| match error.is_panic() {
        // The table is damaged in a way that its reader does not expect.
        true => Failure::invalid_input(format!("{name} cannot be read: it is damaged")),
        false => Failure::transient(error.to_string()),
    })?;
    // A file that is not text is not a file of records, in spite of its name: only this file fails.
    if let Err(Broken::Unreadable(
        fault @ (Unreadable::Binary
        | Unreadable::Unsupported { .. }
        | Unreadable::OtherFormat { .. }),
    )) = &read
    {
        let file = Document { unreadable: Some(fault.to_string()), ..Document::file(id, uri) };
        return Ok((vec![file], None));
    }
    let (mut rows, next) = read.map_err(|broken| refusal(&name, broken))?;
    // An empty export is reported, like an empty document.
    if rows.is_empty() && next.is_none() && is_beginning {
        let unreadable = Some(Unreadable::NoRecords.to_string());
        return Ok((vec![Document { unreadable, ..Document::file(id, uri) }], None));
    }
    if binds {
        known.bind(&mut rows);
    }
    let rows: Vec<Document> = rows.into_iter().map(|(row, _)| row).collect();
    rows.iter().for_each(|row| room.take(row));
    Ok((rows, next))
}

/// The failure for a file that has changed during the listing.
pub(super) fn changed(location: &Location) -> Failure {
    Failure::invalid_input(format!(
        "{location} has changed while the batch was planned; start the batch again"
    ))
}

fn refusal(name: &str, broken: Broken) -> Failure {
    let invalid = |why: String| Failure::invalid_input(format!("{name}: {why}"));
    match broken {
        Broken::Unreadable(unreadable) => invalid(unreadable.to_string()),
        Broken::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            invalid(error.to_string())
        }
        Broken::Io(error) => match error.into_inner().map(|inner| inner.downcast::<Error>()) {
            Some(Ok(error)) => field_fault("source", *error),
            Some(Err(error)) => Failure::transient(format!("{name}: {error}")),
            None => Failure::transient(format!("{name} cannot be read")),
        },
    }
}

type Rows = (Vec<(Document, IsNumbered)>, Option<Within>);

/// A read that runs on a thread of its own.
#[derive(Clone)]
struct Reading {
    location: Location,
    runtime: Handle,
    fields: Records,
    within: Within,
    whole: Option<Bytes>,
    size: u64,
    room: PageBudget,
}

impl Reading {
    async fn run(self) -> Result<Result<Rows, Broken>, JoinError> {
        if records_in(&self.within.uri) == Some(RecordsIn::Table) {
            return Ok(table(self).await);
        }
        tokio::task::spawn_blocking(move || self.read()).await
    }

    fn read(self) -> Result<Rows, Broken> {
        let Self { location, runtime, fields, within, whole, size, room } = self;
        let wanted = RecordFields { id: fields.id.as_deref(), text: fields.text.as_deref() };
        let format = match records_in(&within.uri) {
            Some(RecordsIn::Text(format)) => format,
            _ => Format::Jsonl,
        };
        let at = within.at.clone();
        match whole {
            // The text of a file unpacked from an archive is not copied.
            Some(whole) if size > MAX_BOUND => {
                let open = |from: u64| {
                    let from = usize::try_from(from).unwrap_or(usize::MAX).min(whole.len());
                    Ok(io::Cursor::new(whole.slice(from..)))
                };
                let file = RecordFile::open(open, format, wanted, at)?;
                return Ok(cut(file, within, wanted.text, room)?);
            }
            Some(whole) => {
                let file = RecordFile::of_bytes(&whole, format, wanted, at)?;
                return Ok(cut(file, within, wanted.text, room)?);
            }
            None => {}
        }
        let blocks = Blocks::new(size, 1, move |range| {
            runtime.block_on(location.read_range(range)).map_err(io::Error::other)
        });
        let open = |from| Ok(blocks.from(from));
        let file = RecordFile::open(open, format, wanted, at)?;
        Ok(cut(file, within, wanted.text, room)?)
    }
}

fn cut<R: io::Read>(
    mut file: RecordFile<R>,
    within: Within,
    text: Option<&str>,
    mut room: PageBudget,
) -> io::Result<Rows> {
    let (mut rows, mut at) = (Vec::new(), within.at.clone());
    while let Some(record) = file.read_next()? {
        let (row, is_numbered) = document(&within, text, at.number + 1, record);
        at = file.position();
        room.take(&row);
        rows.push((row, is_numbered));
        if room.is_full() {
            return Ok((rows, Some(Within { at, ..within })));
        }
    }
    Ok((rows, None))
}

/// Reads a table. Rows are numbered by their count.
#[cfg(feature = "parquet")]
async fn table(reading: Reading) -> Result<Rows, Broken> {
    use std::ops::Range;

    use tidegate_documents::{confined::Part, tables::RowRequest};

    let Reading { location, fields, within, whole, size, mut room, .. } = reading;
    let mut number = within.at.number;
    let (max_rows, max_bytes) = (room.documents, room.bytes);
    let (id, text) = (fields.id.clone(), fields.text.clone());
    let request = RowRequest { size, id, text, skip: number, max_rows, max_bytes };
    let parts = |range: Range<u64>| -> Part {
        let (whole, location) = (whole.clone(), location.clone());
        Box::pin(async move {
            match whole {
                Some(whole) => Ok(part(&whole, range)),
                None => location.read_range(range).await.map_err(io::Error::other),
            }
        })
    };
    let reader = room.reader.clone();
    let decoded = reader.read_rows(&request, &parts).await?;
    let mut rows = Vec::new();
    for record in decoded.rows {
        number += 1;
        let (row, is_numbered) = document(&within, fields.text.as_deref(), number, record);
        room.take(&row);
        rows.push((row, is_numbered));
        if room.is_full() {
            break;
        }
    }
    let at = Position { number, ..within.at.clone() };
    Ok((rows, (decoded.more || room.is_full()).then_some(Within { at, ..within })))
}

#[cfg(feature = "parquet")]
fn part(whole: &Bytes, range: std::ops::Range<u64>) -> Bytes {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
    whole.slice(place(range.start)..place(range.end).max(place(range.start)))
}

#[cfg(not(feature = "parquet"))]
async fn table(_: Reading) -> Result<Rows, Broken> {
    use crate::output::tables;

    let why = format!("Parquet {}, or write the records as CSV or JSONL", tables::ABSENT);
    Err(io::Error::new(io::ErrorKind::InvalidData, why).into())
}

fn document(
    file: &Within,
    text_field: Option<&str>,
    number: u64,
    record: Result<Record, Unreadable>,
) -> (Document, IsNumbered) {
    let (mut is_numbered, mut fields) = (true, Map::new());
    let (name, text, unreadable, version) = match record {
        Ok(record) => {
            is_numbered = record.is_numbered;
            let text = Some(record.text).filter(|text| !text.trim().is_empty());
            let unreadable = text.is_none().then(|| Unreadable::Empty.to_string());
            let version = Version::of_record(&record.json);
            if let Value::Object(all) = record.json {
                fields = all;
                // A header may have spaces around its names.
                fields.retain(|name, _| Some(name.trim()) != text_field);
            }
            (record.id, text, unreadable, version)
        }
        Err(error) => (format!("{number:07}"), None, Some(error.to_string()), Version::default()),
    };
    let id = DocumentId::from_relative_path(&format!("{}/{name}", file.id));
    let uri = format!("{}#{name}", file.uri);
    let row = Document { text, unreadable, version, fields, ..Document::file(id, uri) };
    (row, IsNumbered(is_numbered))
}
