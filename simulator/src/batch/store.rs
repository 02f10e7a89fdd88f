//! All that was taken in.

use std::time::Duration;

use super::{file::File, job::Job, progress::Progress, shelf::Shelf};

#[derive(Debug, Default)]
pub(crate) struct Store {
    made: u64,
    pub(super) anthropic: Shelf<Progress>,
    pub(super) openai: Shelf<Job>,
    pub(super) files: Shelf<File>,
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
