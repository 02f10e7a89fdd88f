//! The totals of a batch's documents and results, and the times of its answers.

use std::collections::BTreeMap;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};
use tidegate_documents::left_out::Kind as LeftOut;
use tidegate_providers::Finish as Ending;
use tidegate_types::{ModelId, Spend};
use tidegate_workflows::contract::{Finished, Progress};

use crate::output::{
    agreement::{Compared, Unmatched},
    finish::{checks::Checks, given_up::GivenUp},
    result::DocumentResult,
};

/// The outcomes of the planned documents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct DocumentCounts {
    /// Results that were written since the batch began.
    pub(super) new: u64,
    /// Older results.
    pub(super) old: u64,
    pub(super) failed: u64,
    /// Documents with neither.
    pub(super) neither: Unmatched,
}

impl DocumentCounts {
    /// Combines the counts with the workflow's. The workflow knows best which results are its own;
    /// results unknown to it are assigned by their time.
    pub(super) fn finished(self, progress: &Progress) -> Finished {
        let results = self.new + self.old;
        let skipped = progress.totals.skipped.min(results);
        let succeeded = self.new.max(progress.totals.succeeded).min(results - skipped);
        let Unmatched { count, first } = self.neither;
        let (cancelled, missing) = if progress.done { (0, count) } else { (count, 0) };
        Finished {
            succeeded,
            failed: self.failed,
            skipped: results - succeeded,
            cancelled,
            missing,
            first_missing: if missing > 0 { first } else { Vec::new() },
        }
    }
}

/// Number of documents with omissions of one kind, and the sum of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutTotal {
    /// Documents.
    pub documents: u64,
    /// The sum of their counts.
    pub count: u64,
}

/// Totals of the results.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ResultTotals {
    /// Documents that each model has answered, and their cost.
    pub(super) models: BTreeMap<ModelId, (u64, Spend)>,
    /// Results with an unknown stop reason, by the provider's word.
    pub(super) unknown_stop_reasons: BTreeMap<String, u64>,
    /// Content of their documents that was not sent, by kind.
    #[serde(default)]
    pub(super) left_out: BTreeMap<LeftOut, LeftOutTotal>,
    /// Results of files that an older reader has read.
    #[serde(default)]
    pub(super) older_reader: u64,
    /// Times of this batch's answers.
    #[serde(default)]
    pub(super) course: Timeline,
    /// The documents that were given up.
    #[serde(default)]
    pub(super) given_up: GivenUp,
    /// The results of the checks.
    #[serde(default)]
    pub(super) checks: Checks,
    /// How many answers agree with the expected ones.
    #[serde(default)]
    pub(super) compared: Compared,
}

impl ResultTotals {
    pub(super) fn add(&mut self, result: &DocumentResult) {
        if result.finish == Ending::Unknown {
            *self.unknown_stop_reasons.entry(result.stop_reason.clone()).or_default() += 1;
        }
        self.older_reader += u64::from(result.version.is_of_older_reader());
        for (kind, left_out) in result.version.left_out.iter() {
            let total = self.left_out.entry(kind).or_default();
            total.documents += 1;
            total.count = total.count.saturating_add(left_out.count);
        }
        self.checks.add(result);
        let (documents, sum) = self.models.entry(result.model.clone()).or_default();
        *documents += 1;
        *sum += result.spend();
    }
}

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
