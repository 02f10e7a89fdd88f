//! Documents that were given up, by type: how many, in whose words, and the first of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// So many documents of a type are named.
const SAMPLES: usize = 5;

/// A provider's words are seldom longer.
const MAX_WORDS: usize = 300;

/// All types.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GivenUp(pub(super) BTreeMap<String, Kind>);

/// One type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kind {
    pub(super) documents: u64,
    /// What was said of the first.
    pub(super) words: String,
    pub(super) samples: Vec<String>,
}

/// A line of `failures.jsonl`.
#[derive(Deserialize)]
struct Failed {
    id: String,
    error_type: String,
    #[serde(default)]
    message: String,
}

impl GivenUp {
    /// What cannot be read is counted elsewhere.
    pub(super) fn add(&mut self, line: &[u8]) {
        let Ok(failed) = serde_json::from_slice::<Failed>(line) else { return };
        let kind = self.0.entry(failed.error_type).or_default();
        kind.documents += 1;
        if kind.words.is_empty() {
            kind.words = failed.message.chars().take(MAX_WORDS).collect();
        }
        if kind.samples.len() < SAMPLES {
            kind.samples.push(failed.id);
        }
    }
}
