//! Positions in a source, between its files.

use serde::{Deserialize, Serialize};
use tidegate_types::DocumentId;

use crate::{output::job::Document, storage::Stamp};

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
