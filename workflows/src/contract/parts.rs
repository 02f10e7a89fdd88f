//! The parts of a long document, and the steps from them to a result.

use serde::{Deserialize, Serialize};

use super::job::LongHow;

/// Number of answers that are combined into one.
pub const FAN_IN: u32 = 10;

/// Parts of one document that are asked at once.
pub const PARTS_AT_ONCE: u32 = 4;

/// A document that is read in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// The number of parts.
    pub count: u32,
    /// A hash of the text and of the way in which it was divided.
    pub text: u64,
    /// Handling of their answers.
    pub how: LongHow,
}

impl Parts {
    /// The number of steps of a level. Level 0 answers the parts; each further level combines the
    /// answers of the level before. `None` after the level with one step, whose answer is the
    /// result.
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

    /// Calls that the document takes without failures.
    pub fn calls(&self) -> u64 {
        match self.how {
            LongHow::PerChunk => self.count.into(),
            LongHow::MapReduce => (0..).map_while(|level| self.steps(level)).map(u64::from).sum(),
        }
    }
}

/// A step on the way from parts to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers one part, counted from 0.
    Part(u32),
    /// Combines up to [`FAN_IN`] answers of the level below; the answer of a level's only step is
    /// the result.
    Reduce {
        /// The level, counted from 1; level 0 holds the parts' own answers.
        level: u32,
        /// The step's number, counted from 0.
        group: u32,
        /// Answers of the level below.
        of: u32,
    },
    /// Lists the parts' answers. No call is made.
    Join,
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
