//! How much of a source is at hand at once.

use std::time::Duration;

use serde_json::Value;
use tidegate_documents::{Limits, Reader};

use crate::output::job::Document;

/// How much of a source is at hand at once.
#[derive(Debug, Clone)]
pub struct Room {
    pub(super) documents: usize,
    /// Of records' texts and fields.
    pub(super) bytes: usize,
    /// For so long, pages follow each other before the shards in them may start.
    pub(in crate::batch) time: Duration,
    /// How much of an archive is read.
    pub(in crate::batch) limits: Limits,
    /// What is read in a process of its own.
    pub(in crate::batch) reader: Reader,
}

impl Room {
    /// A page: some 50 MB. A batch of one page is ordered by id as a whole.
    pub fn page() -> Self {
        Self {
            documents: 100_000,
            bytes: 6 << 20,
            time: Duration::from_secs(10),
            limits: Limits::default(),
            reader: Reader::in_this_process(Limits::default()),
        }
    }

    /// The same, with the processes and the bounds of the reader that reads the documents later.
    pub fn read_by(self, reader: &Reader) -> Self {
        Self { limits: *reader.limits(), reader: reader.clone(), ..self }
    }

    /// The same, within other bounds.
    pub fn within(self, limits: &Limits) -> Self {
        Self { limits: *limits, ..self }
    }

    /// A page of so many documents, and one at a time, for tests.
    pub fn of(documents: usize) -> Self {
        Self { documents, time: Duration::ZERO, ..Self::page() }
    }

    /// A file at once, if its rows take no more bytes than this; read as the others are.
    pub(super) fn of_a_whole_file(&self, bytes: usize) -> Self {
        Self { documents: usize::MAX, bytes, time: Duration::ZERO, ..self.clone() }
    }

    pub(super) fn take(&mut self, document: &Document) {
        let fields = document.fields.iter().map(|(name, value)| name.len() + weight(value));
        let bytes = document.text.as_ref().map_or(0, String::len) + fields.sum::<usize>();
        self.documents = self.documents.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(super) fn is_full(&self) -> bool {
        self.documents == 0 || self.bytes == 0
    }
}

/// What a value takes in memory, about. Values lie no deeper in each other than their reader allows.
fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(weight).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| name.len() + weight(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
