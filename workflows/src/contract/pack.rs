//! Several small documents in one call.

use serde::{Deserialize, Serialize};

use super::DocumentOutcome;

/// How many documents go into one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pack {
    /// As many as it takes for the limit of requests to bind no longer; one, where it does not.
    Fitting,
    /// So many at most.
    Of(u32),
}

/// Some documents of one shard, to be answered together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackTask {
    /// [`Plan::job`](super::Plan::job).
    pub job: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// The first document, counted from 0.
    pub from: u32,
    /// The document after the last.
    pub to: u32,
}

/// What became of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PackOutcome {
    /// Documents with a result of this run.
    pub succeeded: u32,
    /// Documents that had a result before this run.
    pub skipped: u32,
    /// Documents without an answer, to be sent alone: too large for company, unreadable, or left
    /// out of the answer.
    pub left: Vec<u32>,
    /// What the call took.
    pub spent: DocumentOutcome,
}
