//! Documents that are read in parts.

use serde::{Deserialize, Serialize};

use super::{DocumentOutcome, DocumentTask};

/// How long documents are read in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Long {
    /// What becomes of the parts' answers.
    pub how: LongHow,
    /// Estimated tokens of a part at most. A document of no more than that is not long.
    pub chunk_tokens: u32,
}

/// What becomes of the answers to a document's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LongHow {
    /// The model makes one answer of them.
    MapReduce,
    /// They stand side by side in the result.
    PerChunk,
}

/// So many answers are made into one at a time.
pub const FAN_IN: u32 = 10;

/// Parts of one document that are called at once.
pub const PARTS_AT_ONCE: u32 = 4;

/// A document that is read in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// How many.
    pub count: u32,
    /// Names the text and the way in which it was divided.
    pub text: u64,
    /// What becomes of their answers.
    pub how: LongHow,
}

/// One step of a document that is read in parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartTask {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentTask,
    /// Its parts.
    pub parts: Parts,
    /// Which step.
    pub step: Step,
    /// What the steps before came to.
    pub spent: DocumentOutcome,
}

/// A step on the way from parts to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers one part, counted from 0.
    Part(u32),
    /// Makes up to [`FAN_IN`] answers of the level below into one; the only one of its level is the
    /// result.
    Reduce {
        /// Counted from 1; level 0 are the parts' own answers.
        level: u32,
        /// Counted from 0.
        group: u32,
        /// How many answers the level below has.
        of: u32,
    },
    /// Puts the parts' answers side by side. No call is made.
    Join,
}
