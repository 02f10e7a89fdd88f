//! Provider calls beyond the first of each document, in one run of a batch.

/// The counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The calls so far.
    pub spent: u64,
    /// Calls that documents have added to the run's budget.
    pub added: u64,
}
