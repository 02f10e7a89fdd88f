//! Listing of an object store that has keys which cannot be paths.
//!
//! `object_store` refuses a whole page for one key such as `a//b` or `a/./b`, and names the key.
//! The page is then requested in smaller and smaller pieces up to that key, and the key is skipped
//! by its name. This takes about ten requests for each such key.

use std::{fs::Metadata, ops::ControlFlow, time::SystemTime};

use chrono::{DateTime, SubsecRound, Utc};
use object_store::{
    ObjectMeta,
    list::{PaginatedListOptions, PaginatedListStore},
    path,
};
use serde::{Deserialize, Serialize};

/// Stores send this many keys in a page.
const PAGE: usize = 1_000;

/// An entry of the listing.
pub(super) enum Listed {
    /// An object.
    Object(ObjectMeta),
    /// A key that cannot be a path, and why.
    Odd(String, String),
}

/// Visits the entries below `prefix` after this key, in the store's order, until `each` has enough.
pub(super) async fn list(
    lister: &dyn PaginatedListStore,
    prefix: &path::Path,
    mut after: Option<String>,
    mut each: impl FnMut(Listed) -> ControlFlow<()>,
) -> object_store::Result<()> {
    let prefix = Some(format!("{prefix}/")).filter(|prefix| prefix != "/");
    let mut page_token = None::<String>;
    // Known upper bound on the number of keys up to the next one that cannot be a path.
    let mut within: Option<usize> = None;
    loop {
        let asked = within.map(|within| (within / 2).max(1));
        let options = PaginatedListOptions {
            offset: after.clone().filter(|_| page_token.is_none()),
            max_keys: asked,
            page_token: page_token.take(),
            ..PaginatedListOptions::default()
        };
        match lister.list_paginated(prefix.as_deref(), options).await {
            Ok(page) => {
                let objects = page.result.objects;
                let last = objects.last().map(|object| object.location.to_string());
                within = within.zip(asked).map(|(within, asked)| (within - asked).max(1));
                let (at_end, found) = (page.page_token.is_none(), !objects.is_empty());
                let mut objects = objects.into_iter();
                let enough = objects.try_for_each(|object| {
                    // The name of a key that ends in a slash omits it, so the key is listed again.
                    let again = after.as_deref() == Some(object.location.as_ref());
                    if again { ControlFlow::Continue(()) } else { each(Listed::Object(object)) }
                });
                if enough.is_break() {
                    return Ok(());
                }
                if at_end || !found {
                    return Ok(());
                }
                after = if last == after { last.map(|last| last + "/") } else { last };
                page_token = page.page_token.filter(|_| within.is_none());
            }
            Err(object_store::Error::InvalidPath { source }) => {
                let why = source.to_string();
                match (key(&source), asked) {
                    (Some(key), Some(1)) if after.as_ref().is_none_or(|after| *after < key) => {
                        after = Some(key.clone());
                        within = None;
                        if each(Listed::Odd(key, why)).is_break() {
                            return Ok(());
                        }
                    }
                    (Some(_), asked) if asked != Some(1) => within = Some(asked.unwrap_or(PAGE)),
                    _ => return Err(object_store::Error::InvalidPath { source }),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn key(error: &path::Error) -> Option<String> {
    match error {
        path::Error::EmptySegment { path } | path::Error::BadSegment { path, .. } => {
            Some(path.clone())
        }
        _ => None,
    }
}

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
