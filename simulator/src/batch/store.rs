//! All that was taken in.

use std::time::Duration;

use super::{bounded_store::BoundedStore, file::File, job::Job, progress::Progress};

#[derive(Debug, Default)]
pub(crate) struct Store {
    made: u64,
    pub(super) anthropic: BoundedStore<Progress>,
    pub(super) openai: BoundedStore<Job>,
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
        batches.flat_map(|batch| batch.answered(now)).collect()
    }
}
