//! The version of a document that was read, and the content of it that was not sent.

use serde::{Deserialize, Serialize};
use tidegate_documents::{LeftOut, READER_VERSION};

use crate::{fingerprint::Fingerprint, storage::Stamp};

/// The fingerprint of a document's content, and a stamp that shows without reading whether it is
/// unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Fingerprint of the bytes of its source, before text is extracted; of a record, of its JSON.
    /// Unknown for a file that was only listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Fingerprint>,
    /// The stamp of these bytes' object; records have none.
    #[serde(rename = "source", default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
    /// The version of the reader that extracted its text; records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<u32>,
    /// Fingerprint of the extracted content that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted: Option<Fingerprint>,
    /// Content of the document that is not in the text that was sent.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

impl Version {
    /// The version of an object that was listed, and not read.
    pub fn listed(stamp: Stamp) -> Self {
        Self { stamp: Some(stamp), ..Self::default() }
    }

    /// The version of an object that was read.
    pub fn read(bytes: &[u8], stamp: Stamp) -> Self {
        Self { content: Some(Fingerprint::of_bytes(bytes)), stamp: Some(stamp), ..Self::default() }
    }

    /// The version of a record.
    pub fn of_record(json: &serde_json::Value) -> Self {
        Self { content: Some(Fingerprint::of_json(json)), ..Self::default() }
    }

    /// Adds the content that the current reader extracted, and its omissions.
    pub fn extracted(self, extracted: Fingerprint, left_out: LeftOut) -> Self {
        let (reader, extracted) = (Some(READER_VERSION), Some(extracted));
        Self { reader, extracted, left_out, ..self }
    }

    /// Whether an older reader extracted its text, which may differ from today's.
    pub fn is_of_older_reader(&self) -> bool {
        let is_file = self.stamp.is_some();
        is_file && self.reader.is_none_or(|reader| reader < READER_VERSION)
    }

    /// Whether another version has equal content; `None` if only reading can tell.
    pub fn is_same(&self, other: &Self) -> Option<bool> {
        if let (Some(one), Some(other)) = (&self.content, &other.content) {
            return Some(one == other);
        }
        match (&self.stamp, &other.stamp) {
            (Some(one), Some(other)) if one.is_same(other) => Some(true),
            _ => None,
        }
    }
}
