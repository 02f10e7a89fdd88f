//! Positions in a source, between its files.

use serde::{Deserialize, Serialize};

use super::archived::Archived;

/// A position between two lines of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Bytes before it.
    pub(super) byte: u64,
    /// Lines before it.
    pub(super) line: u64,
}

/// A position after some files of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum After {
    /// The beginning.
    #[default]
    Nothing,
    /// After the file with this key, in the order of a listing.
    Key(String),
    /// After this many entries of a list.
    Listed(usize),
    /// After the lines of a manifest, or of a file of requests, before this position.
    Line(Place),
    /// Within an archive that has files of records. A worker that does not know this variant must not
    /// continue after it, and cannot.
    Within(Archived),
    /// The end.
    Everything,
}

impl After {
    /// The position in a source that is read line by line.
    pub(super) fn line(&self) -> Place {
        match self {
            Self::Line(place) => place.clone(),
            _ => Place::default(),
        }
    }
}
