//! A store's description of an object, without its content.

use std::{fs::Metadata, time::SystemTime};

use chrono::{DateTime, SubsecRound, Utc};
use object_store::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A description that differs whenever the object differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The store's ETag of the content; a file system has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// In bytes.
    pub size: u64,
    /// When it was last modified, by the store's clock.
    pub modified: DateTime<Utc>,
}

impl Stamp {
    /// Whether another stamp shows equal content.
    pub fn is_same(&self, other: &Self) -> bool {
        // Some stores list objects without an ETag.
        let etags = self.etag.as_ref().zip(other.etag.as_ref());
        self.size == other.size
            && self.modified == other.modified
            && etags.is_none_or(|(one, other)| one == other)
    }

    pub(super) fn of_object(meta: ObjectMeta) -> Self {
        // S3's lists have milliseconds, and the headers of an object whole seconds.
        let modified = meta.last_modified.trunc_subsecs(0);
        // Azure's lists omit the quotation marks of its headers.
        let etag = meta.e_tag.map(|etag| etag.trim_matches('"').to_owned());
        Self { etag, size: meta.size, modified }
    }

    /// The stamp of a file, equal whether it was listed or read.
    pub(super) fn of_file(size: u64, modified: DateTime<Utc>) -> Self {
        Self { etag: None, size, modified }
    }

    pub(super) fn of_metadata(meta: &Metadata) -> Self {
        Self::of_file(meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH).into())
    }
}
