//! Documents that were given up, by type: how many, in whose words, and the first of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::AskedAnswer;

use super::said::Said;

/// So many documents of a type are named.
const SAMPLES: usize = 5;

/// All types. One of many documents is as small as one of few.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GivenUp(pub BTreeMap<String, Kind>);

/// One type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// How many.
    pub documents: u64,
    /// What was said of them.
    #[serde(default)]
    pub messages: Said,
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

/// What became of the checks of a document that was given up.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Checked {
    /// Those that its last answer does not pass.
    #[serde(rename = "failed_checks")]
    pub failed: Vec<String>,
    /// The answers that it was asked for.
    pub asked: Vec<AskedAnswer>,
}

impl GivenUp {
    /// Adds a line of `failures.jsonl`, and says what became of its checks. What cannot be read is
    /// counted elsewhere.
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

    /// As the report has it: of each type the few sentences that were said most often.
    pub fn told(mut self) -> Self {
        for kind in self.0.values_mut() {
            kind.messages = std::mem::take(&mut kind.messages).told();
        }
        self
    }
}
