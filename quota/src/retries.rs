//! Provider calls beyond the first of each document of one run of a batch.

/// What is counted of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The calls so far.
    pub spent: u64,
    /// What documents have added to the run's budget.
    pub added: u64,
}
