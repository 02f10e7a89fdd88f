//! Times of a batch's answers, in a bounded number of intervals.

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

/// Maximum number of intervals, for any length of a batch.
const STEPS: usize = 120;

/// Answers by time since the batch began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Timeline {
    /// Seconds of an interval; doubled when the batch outgrows them.
    pub(super) step: u64,
    pub(super) answers: Vec<u64>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { step: 1, answers: Vec::new() }
    }
}

impl Timeline {
    pub(super) fn add(&mut self, began: DateTime<FixedOffset>, at: DateTime<FixedOffset>) {
        let Ok(seconds) = u64::try_from((at - began).num_seconds()) else { return };
        let place = |step| usize::try_from(seconds / step).unwrap_or(usize::MAX);
        while place(self.step) >= STEPS {
            self.step = self.step.saturating_mul(2);
            self.answers = self.answers.chunks(2).map(|two| two.iter().sum()).collect();
        }
        let place = place(self.step);
        if self.answers.len() <= place {
            self.answers.resize(place + 1, 0);
        }
        if let Some(answers) = self.answers.get_mut(place) {
            *answers += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_batch_has_wider_steps_and_loses_no_answer() {
        let at =
            |seconds: i64| DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap().into();
        let mut course = Timeline::default();
        for seconds in (0..100_000).step_by(10) {
            course.add(at(0), at(seconds));
        }
        course.add(at(0), at(-5));
        assert_eq!((course.step, course.answers.len()), (1_024, 98));
        assert_eq!(course.answers.iter().sum::<u64>(), 10_000);
        assert_eq!(course.answers[0], 103, "0, 10, … 1,020 seconds");
    }
}
