//! Places in a source, between its files.

use serde::{Deserialize, Serialize};

use super::archived::Archived;

/// Between two lines of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Bytes before it.
    pub(super) byte: u64,
    /// Lines before it.
    pub(super) line: u64,
}

/// Behind which file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum After {
    /// None.
    #[default]
    Nothing,
    /// The one with this key, in the order of a listing.
    Key(String),
    /// So many of a list.
    Listed(usize),
    /// The lines of a manifest, or of a file of requests, that stand before this place.
    Line(Place),
    /// Some of what is in an archive that has files of records. A worker that knows of no such
    /// place must not go on behind it, and cannot.
    Within(Archived),
    /// All.
    Everything,
}

impl After {
    /// The place in a source that is read line by line.
    pub(super) fn line(&self) -> Place {
        match self {
            Self::Line(place) => place.clone(),
            _ => Place::default(),
        }
    }
}
