//! A page of a source, and the start of the next one.

use serde::{Deserialize, Serialize};

use super::{cursor::FilePosition, records::Within};
use crate::{batch::document_ids::File, output::job::Document};

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
