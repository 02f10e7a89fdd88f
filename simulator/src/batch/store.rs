//! All that was taken in: batches, and the files that were uploaded for them.

use std::time::Duration;

use axum::body::Bytes;
use chrono::Utc;
use serde_json::{Value, json};

use super::{bounded_store::BoundedStore, job::Job, operation::Batch, progress::Progress};

#[derive(Debug, Default)]
pub(crate) struct Store {
    made: u64,
    pub(super) anthropic: BoundedStore<Progress>,
    pub(super) openai: BoundedStore<Job>,
    pub(super) gemini: BoundedStore<Batch>,
    /// Uploads to Gemini, by number; none until it is whole.
    pub(super) uploads: BoundedStore<Option<Bytes>>,
    pub(super) files: BoundedStore<File>,
}

impl Store {
    /// A new number.
    pub(crate) const fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// The prompts of batches that have ended since this was asked last.
    pub(crate) fn answered(&mut self, now: Duration) -> Vec<u64> {
        let batches = self.anthropic.all().chain(self.openai.all().map(|job| &mut job.progress));
        // The answers of cancelled batches are not given out.
        let gemini = self.gemini.all().map(|batch| &mut batch.progress);
        let batches = batches.chain(gemini.filter(|progress| progress.cancelled().is_none()));
        batches.flat_map(|batch| batch.answered(now)).collect()
    }
}

/// A file that was uploaded.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) content: Bytes,
    name: String,
    created: i64,
}

impl File {
    pub(crate) fn new(name: String, content: Bytes) -> Self {
        Self { content, name, created: Utc::now().timestamp() }
    }

    /// The vendor's file object.
    pub(crate) fn object(&self, id: &str) -> Value {
        json!({
            "id": id,
            "object": "file",
            "bytes": self.content.len(),
            "created_at": self.created,
            "expires_at": null,
            "filename": self.name,
            "purpose": "batch",
            "status": "processed",
            "status_details": null,
        })
    }
}
