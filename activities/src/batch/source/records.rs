//! Files of records: each row of a CSV file, each line of a JSONL file is a document. They are cut
//! while they are read, so that memory does not grow with the file.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_documents::{
    Format, Position, Record, RecordFields, Records as RecordFile, Unreadable, records::Broken,
};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::Records;
use tokio::runtime::Handle;

use crate::{
    batch::{
        job::{Document, resolve},
        rows::{IsNumbered, Known},
    },
    document::version::Version,
    failure::Failure,
    storage::{Error, Location, Stamp, Storage},
};

use super::Room;

/// A smaller file is read whole, whatever its encoding.
const WHOLE: u64 = 16 << 20;

/// Rows without names are bound to their results in a file that is no larger: it takes all of them
/// at once.
const MAX_BOUND: u64 = 64 << 20;

/// So much is asked for at once of a file that is not read whole.
const BLOCK: u64 = 4 << 20;

/// A file of records, and where to go on in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Within {
    id: DocumentId,
    uri: String,
    at: Position,
    /// It may not change on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Stamp>,
}

impl Within {
    pub(super) fn beginning(file: &Document) -> Self {
        let (id, uri) = (file.id.clone(), file.uri.clone());
        Self { id, uri, at: Position::default(), stamp: None }
    }
}

/// The format of a file of records; `None` for other files.
pub(super) fn format_of_records(file: &Document) -> Option<Format> {
    if file.unreadable.is_some() { None } else { format_of(&file.uri) }
}

fn format_of(uri: &str) -> Option<Format> {
    let format = Format::of(b"", uri.rsplit('/').next().unwrap_or_default());
    format.ok().filter(|format| matches!(format, Format::Csv | Format::Jsonl))
}

/// The next rows of a file, as far as there is room, and where to go on in it.
pub(super) async fn rows(
    storage: &Storage,
    fields: &Records,
    known: &Known,
    within: Within,
    room: &mut Room,
) -> Result<(Vec<Document>, Option<Within>), Failure> {
    let location = resolve(storage, "source", &within.uri)?;
    if let Some(what) = location.special() {
        let unreadable = Some(format!("{location} is {what}, and no file"));
        let file = Document::file(within.id, within.uri);
        return Ok((vec![Document { unreadable, ..file }], None));
    }
    let of_source = |error| Failure::of_field("source", error);
    let stamp = location.stamp().await.map_err(of_source)?;
    let Some(stamp) = stamp else { return Err(of_source(Error::Missing(location.uri()))) };
    if within.stamp.as_ref().is_some_and(|before| !before.is_same(&stamp)) {
        return Err(Failure::invalid_input(format!(
            "{location} has changed while the batch was planned; start the batch again"
        )));
    }
    let is_small = stamp.size <= WHOLE;
    let whole = if is_small || location.is_read_only() && stamp.size <= MAX_BOUND {
        Some(location.read().await.map_err(of_source)?)
    } else {
        None
    };
    let binds = is_small || stamp.size <= MAX_BOUND && known.knows(&within.id);
    let job = Reading {
        location: location.clone(),
        runtime: Handle::current(),
        fields: fields.clone(),
        within: Within { stamp: Some(stamp.clone()), ..within },
        whole,
        size: stamp.size,
        room: if binds { Room::endless() } else { room.clone() },
    };
    let read = tokio::task::spawn_blocking(move || job.read()).await;
    let (mut rows, next) = read
        .map_err(|error| Failure::transient(error.to_string()))?
        .map_err(|broken| refused(&location, broken))?;
    if binds {
        known.bind(&mut rows);
    }
    let rows: Vec<Document> = rows.into_iter().map(|(row, _)| row).collect();
    rows.iter().for_each(|row| room.take(row));
    Ok((rows, next))
}

fn refused(location: &Location, broken: Broken) -> Failure {
    let invalid = |why: String| Failure::invalid_input(format!("{location}: {why}"));
    match broken {
        Broken::Unreadable(unreadable) => invalid(unreadable.to_string()),
        Broken::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            invalid(error.to_string())
        }
        Broken::Io(error) => match error.into_inner().map(|inner| inner.downcast::<Error>()) {
            Some(Ok(error)) => Failure::of_field("source", *error),
            Some(Err(error)) => Failure::transient(format!("{location}: {error}")),
            None => Failure::transient(format!("{location} cannot be read")),
        },
    }
}

type Rows = (Vec<(Document, IsNumbered)>, Option<Within>);

/// What happens on a thread of its own.
struct Reading {
    location: Location,
    runtime: Handle,
    fields: Records,
    within: Within,
    whole: Option<Bytes>,
    size: u64,
    room: Room,
}

impl Reading {
    fn read(self) -> Result<Rows, Broken> {
        let Self { location, runtime, fields, within, whole, size, room } = self;
        let wanted = RecordFields { id: fields.id.as_deref(), text: fields.text.as_deref() };
        let format = format_of(&within.uri).unwrap_or(Format::Jsonl);
        let at = within.at.clone();
        if let Some(whole) = whole {
            let file = RecordFile::of_bytes(&whole, format, wanted, at)?;
            return Ok(cut(file, within, room)?);
        }
        let blocks = Blocks { location, runtime, size, block: Arc::default(), at: 0 };
        let open = |from| Ok(Blocks { at: from, ..blocks.clone() });
        let file = RecordFile::open(open, format, wanted, at)?;
        Ok(cut(file, within, room)?)
    }
}

fn cut<R: io::Read>(mut file: RecordFile<R>, within: Within, mut room: Room) -> io::Result<Rows> {
    let (mut rows, mut at) = (Vec::new(), within.at.clone());
    while let Some(record) = file.read_next()? {
        let (row, is_numbered) = document(&within, at.number + 1, record);
        at = file.position();
        room.take(&row);
        rows.push((row, is_numbered));
        if room.is_full() {
            return Ok((rows, Some(Within { at, ..within })));
        }
    }
    Ok((rows, None))
}

fn document(
    file: &Within,
    number: u64,
    record: Result<Record, Unreadable>,
) -> (Document, IsNumbered) {
    let mut is_numbered = true;
    let (name, text, unreadable, version) = match record {
        Ok(record) => {
            is_numbered = record.is_numbered;
            let text = Some(record.text).filter(|text| !text.trim().is_empty());
            let unreadable = text.is_none().then(|| Unreadable::Empty.to_string());
            (record.id, text, unreadable, Version::of_record(&record.json))
        }
        Err(error) => (format!("{number:07}"), None, Some(error.to_string()), Version::default()),
    };
    let id = DocumentId::from_relative_path(&format!("{}/{name}", file.id));
    let uri = format!("{}#{name}", file.uri);
    (Document { id, uri, text, unreadable, version }, IsNumbered(is_numbered))
}

/// An object's bytes from one on, asked for block by block by a thread that may wait.
#[derive(Clone)]
struct Blocks {
    location: Location,
    runtime: Handle,
    size: u64,
    /// Where the block begins that was asked for last, and what it holds.
    block: Arc<Mutex<(u64, Bytes)>>,
    at: u64,
}

impl io::Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.size {
            return Ok(0);
        }
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = self.at - self.at % BLOCK;
        if block.0 != begin || block.1.is_empty() {
            let end = (begin + BLOCK).min(self.size);
            let read = self.runtime.block_on(self.location.read_range(begin..end));
            *block = (begin, read.map_err(io::Error::other)?);
        }
        let inside = usize::try_from(self.at - begin).unwrap_or(usize::MAX);
        let rest = block.1.get(inside..).unwrap_or_default();
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length as u64;
        Ok(length)
    }
}
