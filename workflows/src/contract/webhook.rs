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
    /// Its last run. It identifies the message, so that a receiver can tell a duplicate.
    pub run: String,
    /// How it ended.
    pub status: Ended,
    /// Why it failed.
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

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All documents have a result or a failure.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It could not go on, or has lost documents.
    Failed,
}
