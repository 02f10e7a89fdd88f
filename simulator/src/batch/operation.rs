//! A batch as Gemini has it: a long-running operation, whose metadata is the batch.

use std::time::Duration;

use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::{
    item::{Item, Outcome},
    progress::{Disposition, Progress, Stage},
};

pub(super) const BATCH: &str = "b";

/// A batch's output file, by its number.
pub(super) const OUTPUT: &str = "batch-";

#[derive(Debug)]
pub(crate) struct Batch {
    pub(super) progress: Progress,
    pub(super) display_name: String,
    pub(super) model: String,
    pub(super) file: String,
    pub(super) tokens: u64,
    /// The file's fault: a code of an RPC, and words.
    pub(super) error: Option<(u64, String)>,
}

impl Batch {
    /// The input tokens that it takes in the queue now.
    pub(super) fn queued(&self, now: Duration) -> u64 {
        if self.error.is_none() && self.progress.stage(now) != Stage::Ended {
            self.tokens
        } else {
            0
        }
    }

    /// A cancelled batch has an error in the place of its output (`batches.cancel`).
    pub(super) fn has_output(&self, now: Duration) -> bool {
        let whole = self.error.is_none() && self.progress.cancelled().is_none();
        whole && self.progress.stage(now) == Stage::Ended
    }

    fn state(&self, now: Duration) -> &'static str {
        match self.progress.stage(now) {
            Stage::Validating => "BATCH_STATE_PENDING",
            _ if self.error.is_some() => "BATCH_STATE_FAILED",
            Stage::Ended if self.progress.cancelled().is_some() => "BATCH_STATE_CANCELLED",
            Stage::Ended => "BATCH_STATE_SUCCEEDED",
            Stage::Running | Stage::Finalizing | Stage::Cancelling => "BATCH_STATE_RUNNING",
        }
    }

    /// A long-running operation, whose metadata is the batch.
    pub(super) fn operation(&self, now: Duration, id: &str) -> Value {
        let state = self.state(now);
        let rfc3339 =
            |tenths| self.progress.tenths(tenths).to_rfc3339_opts(SecondsFormat::Micros, true);
        let mut metadata = json!({
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": format!("models/{}", self.model),
            "displayName": self.display_name,
            "inputConfig": {"fileName": self.file},
            "createTime": rfc3339(0),
            "updateTime": rfc3339(0),
            "batchStats": {"requestCount": self.progress.len().to_string()},
            "state": state,
            "name": format!("batches/{id}"),
        });
        let done = !matches!(state, "BATCH_STATE_PENDING" | "BATCH_STATE_RUNNING");
        let mut operation = json!({"name": format!("batches/{id}")});
        if done {
            operation["done"] = true.into();
            metadata["endTime"] = rfc3339(10).into();
        }
        if self.has_output(now) {
            let number = id.strip_prefix(BATCH).unwrap_or(id);
            let file = json!({"responsesFile": format!("files/{OUTPUT}{number}")});
            metadata["output"] = file.clone();
            operation["response"] = file;
        }
        if let Some((code, message)) = self.error.as_ref().filter(|_| done) {
            operation["error"] = json!({"code": code, "message": message});
        } else if state == "BATCH_STATE_CANCELLED" {
            operation["error"] = json!({"code": 1, "message": "The operation was cancelled."});
        }
        operation["metadata"] = metadata;
        operation
    }
}

/// A line of the output; what was not worked on has none.
pub(super) fn line(item: &Item, disposition: Disposition<'_>) -> Option<Value> {
    match disposition {
        Disposition::Done(Outcome::Answered { body, .. }) => {
            Some(json!({"key": item.custom_id, "response": body}))
        }
        Disposition::Done(Outcome::Failed { status, body }) => {
            // The code of the RPC, not of HTTP.
            let code = match status {
                400 => 3,
                403 => 7,
                404 => 5,
                429 => 8,
                503 => 14,
                _ => 13,
            };
            let error = json!({"code": code, "message": body["error"]["message"]});
            Some(json!({"key": item.custom_id, "error": error}))
        }
        Disposition::Cancelled | Disposition::Expired | Disposition::Waiting => None,
    }
}
