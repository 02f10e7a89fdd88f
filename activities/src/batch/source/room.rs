//! How much of a source is at hand at once.

use std::time::Duration;

use tidegate_documents::Limits;

use crate::batch::job::Document;

/// How much of a source is at hand at once.
#[derive(Debug, Clone)]
pub struct Room {
    pub(super) documents: usize,
    /// Of records' texts and fields.
    bytes: usize,
    /// For so long, pages follow each other before the shards in them may start.
    pub(in crate::batch) time: Duration,
    /// How much of an archive is read.
    pub(super) limits: Limits,
}

impl Room {
    /// A page: some 50 MB. A batch of one page is ordered by id as a whole.
    #[must_use]
    pub fn page() -> Self {
        Self {
            documents: 100_000,
            bytes: 6 << 20,
            time: Duration::from_secs(10),
            limits: Limits::default(),
        }
    }

    /// The same, with the bounds of whoever reads the documents later.
    #[must_use]
    pub fn within(self, limits: &Limits) -> Self {
        Self { limits: *limits, ..self }
    }

    /// A page of so many documents, and one at a time, for tests.
    #[must_use]
    pub fn of(documents: usize) -> Self {
        Self { documents, time: Duration::ZERO, ..Self::page() }
    }

    /// A file at once, if its rows take no more bytes than this.
    pub(super) fn whole(bytes: usize) -> Self {
        Self { documents: usize::MAX, bytes, time: Duration::ZERO, ..Self::page() }
    }

    pub(super) fn take(&mut self, document: &Document) {
        let fields = document.fields.values().map(|value| value.as_str().map_or(8, str::len));
        let bytes = document.text.as_ref().map_or(0, String::len) + fields.sum::<usize>();
        self.documents = self.documents.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(super) fn is_full(&self) -> bool {
        self.documents == 0 || self.bytes == 0
    }
}
