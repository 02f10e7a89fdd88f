//! A document that is read in parts: its steps, and what its workflow begins and ends with.

use serde::{Deserialize, Serialize};
use tidegate_types::{Lane, Spend, Tenant};

use super::{
    document::{DocumentTask, FailedDocument, Taken},
    job::LongHow,
};

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

impl Parts {
    /// How many steps a level has: level 0 answers the parts, each after it makes what the level
    /// before has answered into fewer. `None` after the level of one step, which is the result's.
    pub fn steps(&self, level: u32) -> Option<u32> {
        let mut steps = self.count;
        for level in 1..=level {
            if level > 1 && steps <= 1 {
                return None;
            }
            steps = match self.how {
                LongHow::MapReduce => steps.div_ceil(FAN_IN),
                LongHow::PerChunk => 1,
            };
        }
        Some(steps)
    }

    /// A step of a level, counted from 0.
    pub fn step(&self, level: u32, number: u32) -> Step {
        match (level, self.how) {
            (0, _) => Step::Part(number),
            (_, LongHow::PerChunk) => Step::Join,
            (_, LongHow::MapReduce) => {
                let of = self.steps(level - 1).unwrap_or_default();
                Step::Reduce { level, group: number, of }
            }
        }
    }

    /// How many calls the document takes, if each succeeds at once.
    pub fn calls(&self) -> u64 {
        match self.how {
            LongHow::PerChunk => self.count.into(),
            LongHow::MapReduce => (0..).map_while(|level| self.steps(level)).map(u64::from).sum(),
        }
    }
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
    /// What the steps before took.
    pub spent: Spend,
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

/// What a document's workflow works on, and what it has come to before it continued as new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LongDocument {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentTask,
    /// Its parts.
    pub parts: Parts,
    /// The class of traffic.
    pub lane: Lane,
    /// Whose budget pays.
    pub tenant: Tenant,
    /// [`super::Plan::heartbeat_seconds`].
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub heartbeat_seconds: u32,
    /// The level that it is on.
    #[serde(default)]
    pub level: u32,
    /// The next step of that level, counted from 0.
    #[serde(default)]
    pub next: u32,
    /// What all steps have taken.
    #[serde(default)]
    pub taken: Taken,
}

/// How a document's workflow ends; it has no other way to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LongOutcome {
    /// What its steps have taken, in whichever way they ended.
    #[serde(flatten)]
    pub taken: Taken,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedDocument>,
    /// There is none because the batch was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

impl LongOutcome {
    /// The same once all steps under way have ended, those beside the one that failed among them.
    pub(crate) fn taking(self, taken: Taken) -> Self {
        let provider_calls = taken.spend.provider_calls;
        let failed = self.failed.map(|failed| FailedDocument { provider_calls, ..failed });
        Self { taken, failed, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_with_one_step() {
        let parts = |count, how| Parts { count, text: 1, how };
        let levels =
            |parts: Parts| -> Vec<u32> { (0..).map_while(|level| parts.steps(level)).collect() };
        assert_eq!(levels(parts(300, LongHow::MapReduce)), [300, 30, 3, 1]);
        assert_eq!(levels(parts(12, LongHow::MapReduce)), [12, 2, 1]);
        assert_eq!(levels(parts(10, LongHow::MapReduce)), [10, 1]);
        assert_eq!(levels(parts(1, LongHow::MapReduce)), [1, 1]);
        assert_eq!(levels(parts(12, LongHow::PerChunk)), [12, 1]);
        assert_eq!(parts(300, LongHow::MapReduce).calls(), 334);
        assert_eq!(parts(300, LongHow::PerChunk).calls(), 300);
        let step = parts(12, LongHow::MapReduce).step(2, 0);
        assert_eq!(step, Step::Reduce { level: 2, group: 0, of: 2 });
        assert_eq!(parts(12, LongHow::PerChunk).step(1, 0), Step::Join);
    }
}
