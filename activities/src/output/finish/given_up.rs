//! Documents that were given up, by type of failure: how many, their messages, and the first of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::AskedAnswer;

use super::failure_messages::FailureMessages;

/// Documents that are named for each type.
const SAMPLES: usize = 5;

/// All types. The size does not grow with the number of documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GivenUp(pub BTreeMap<String, FailureGroup>);

/// One type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    /// Documents of this type.
    pub documents: u64,
    /// Their messages.
    #[serde(default)]
    pub messages: FailureMessages,
    /// The ids of the first of them.
    #[serde(default)]
    pub samples: Vec<String>,
}

/// A line of `failures.jsonl`.
#[derive(Deserialize)]
struct Failed {
    id: String,
    error_type: String,
    #[serde(default)]
    uri: String,
    #[serde(default)]
    message: String,
    #[serde(flatten)]
    checked: Checked,
}

/// The checks of a document that was given up.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Checked {
    /// The checks that its last answer fails.
    #[serde(rename = "failed_checks")]
    pub failed: Vec<String>,
    /// The answers that it was asked for.
    pub asked: Vec<AskedAnswer>,
}

impl GivenUp {
    /// Adds a line of `failures.jsonl`, and returns its checks. A line that cannot be parsed is counted
    /// elsewhere.
    pub fn add(&mut self, line: &[u8]) -> Checked {
        let Ok(failed) = serde_json::from_slice::<Failed>(line) else { return Checked::default() };
        let kind = self.0.entry(failed.error_type).or_default();
        kind.documents += 1;
        kind.messages.add(&failed.message, &[&failed.uri, &failed.id]);
        if kind.samples.len() < SAMPLES {
            kind.samples.push(failed.id);
        }
        failed.checked
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prepares the report: keeps the most frequent messages of each type.
    pub fn into_report(mut self) -> Self {
        for kind in self.0.values_mut() {
            kind.messages = std::mem::take(&mut kind.messages).into_report();
        }
        self
    }
}
