//! The message to a webhook at a batch's end.

use serde::{Deserialize, Serialize};

use super::Progress;

/// Tells one webhook that a batch has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notify {
    /// The webhook's name in the workers' configuration.
    pub webhook: String,
    /// The batch's workflow id.
    pub batch: String,
    /// Its last run. It identifies the message, so that a receiver can recognise a duplicate.
    pub run: String,
    /// The batch's outcome.
    pub status: Ended,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it ended, in RFC 3339.
    pub finished_at: String,
    /// The report's counts.
    pub progress: Progress,
}

impl Notify {
    /// The id of the workflow that sends the message of this run.
    pub fn workflow_id(batch: &str, run: &str) -> String {
        format!("{batch}/webhook-{run}")
    }
}

/// A batch's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All documents have a result or a failure.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It could not continue, or has lost documents.
    Failed,
}
