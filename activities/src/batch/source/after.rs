//! Places in a source, between its files.

use serde::{Deserialize, Serialize};

use super::{archived::Archived, manifest};

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
    /// This place of a manifest.
    Line(manifest::Place),
    /// Some of what is in an archive that has files of records. A worker that knows of no such
    /// place must not go on behind it, and cannot.
    Within(Archived),
    /// All.
    Everything,
}
