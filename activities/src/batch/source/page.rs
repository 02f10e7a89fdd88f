//! A page of a source, the start of the next one, and bounds on how much of it is held in memory at once.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tidegate_documents::{Limits, Position, Reader};
use tidegate_types::{DocumentId, Lane};

use crate::{
    archives::Archives, batch::document_ids::File, output::job::Document, services::Services,
    storage::Stamp,
};

/// The position at which a source continues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub(super) files: FilePosition,
    /// The file of records that is being read; it is not among the files that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) within: Option<Within>,
}

/// Some documents of a source, in its order; their ids may be equal.
#[derive(Debug)]
pub struct Page {
    /// The documents.
    pub documents: Vec<Document>,
    /// Their files, where the source can name one twice.
    pub files: Vec<File>,
    /// Where the next page begins, if there is one.
    pub next: Option<Cursor>,
}

/// A position between two lines of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LinePosition {
    /// Bytes before it.
    pub(super) byte: u64,
    /// Lines before it.
    pub(super) line: u64,
}

/// An archive, and the position in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Archived {
    pub(super) id: DocumentId,
    pub(super) uri: String,
    /// Number of the archive's files that were read.
    pub(super) before: usize,
    /// The archive's stamp; it must not change during the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stamp: Option<Stamp>,
    /// The position after the archive.
    pub(super) behind: Box<FilePosition>,
}

impl Archived {
    pub(super) fn beginning(file: &Document, behind: FilePosition) -> Self {
        let (id, uri) = (file.id.clone(), file.uri.clone());
        Self { id, uri, before: 0, stamp: None, behind: Box::new(behind) }
    }
}

/// A file of records, and the position in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Within {
    pub(super) id: DocumentId,
    pub(super) uri: String,
    pub(super) at: Position,
    /// The file's stamp; it must not change during the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stamp: Option<Stamp>,
}

impl Within {
    pub(super) fn beginning(file: &Document) -> Self {
        let (id, uri) = (file.id.clone(), file.uri.clone());
        Self { id, uri, at: Position::default(), stamp: None }
    }
}

/// A position after some files of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FilePosition {
    /// The beginning.
    #[default]
    Nothing,
    /// After the file with this key, in the order of a listing.
    Key(String),
    /// After this many entries of a list.
    Listed(usize),
    /// After the lines of a manifest, or of a file of requests, before this position.
    Line(LinePosition),
    /// Within an archive that has files of records. A worker that does not know this variant fails
    /// to parse it, and so does not continue after it.
    Within(Archived),
    /// The end.
    Everything,
}

impl FilePosition {
    /// The position in a source that is read line by line.
    pub(super) fn line(&self) -> LinePosition {
        match self {
            Self::Line(place) => place.clone(),
            _ => LinePosition::default(),
        }
    }
}

/// Bytes that a row takes beside its text and fields: its ids, and the map of its fields.
const ROW_BYTES: usize = 1 << 10;

/// Bounds on how much of a source is held in memory at once.
#[derive(Debug, Clone)]
pub struct PageBudget {
    pub(super) documents: usize,
    /// Bytes of records' texts and fields.
    pub(super) bytes: usize,
    /// How long pages are planned before their shards may start.
    pub(in crate::batch) time: Duration,
    /// Bounds of an archive that is read.
    pub(in crate::batch) limits: Limits,
    /// Reads files in a process of its own.
    pub(in crate::batch) reader: Reader,
    /// The archives that are read, each of them once for all pages.
    pub(in crate::batch) archives: Arc<Archives>,
}

impl PageBudget {
    /// The bounds of a page: some 50 MB. A batch of one page is ordered by id as a whole.
    pub fn page() -> Self {
        Self {
            documents: 100_000,
            bytes: 6 << 20,
            time: Duration::from_secs(10),
            limits: Limits::default(),
            reader: Reader::in_this_process(Limits::default()),
            archives: Arc::default(),
        }
    }

    /// Sets the reader, which also gives the bounds of archives.
    pub fn with_reader(self, reader: &Reader) -> Self {
        Self { limits: *reader.limits(), reader: reader.clone(), ..self }
    }

    /// Sets the reader for a lane, and the cache of archives.
    pub(in crate::batch) fn of_worker(self, services: &Services, lane: &Lane) -> Self {
        let room = self.with_reader(&services.reader_for(lane));
        Self { archives: Arc::clone(&services.archives), ..room }
    }

    /// The bounds of a page of this many documents, with one page at a time, for tests.
    pub fn of_documents(documents: usize) -> Self {
        Self { documents, time: Duration::ZERO, ..Self::page() }
    }

    /// Returns the bounds for reading a whole file, with this many bytes at most for its rows' texts and
    /// fields, and as many for what its rows take beside them.
    pub(super) fn for_whole_file(&self, bytes: usize) -> Self {
        Self { documents: bytes / ROW_BYTES, bytes, time: Duration::ZERO, ..self.clone() }
    }

    pub(super) fn take(&mut self, document: &Document) {
        self.documents = self.documents.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(document.bytes());
    }

    pub(super) fn is_full(&self) -> bool {
        self.documents == 0 || self.bytes == 0
    }
}
