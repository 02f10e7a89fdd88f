//! A batch's progress: the answer of its query, and in the end its result.

use std::{
    ops::AddAssign,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use tidegate_types::{Spend, spend::rounded_usd};

use super::{
    FailureCounts,
    document::{CutAnswers, DocumentOutcome, Reused},
};

/// Counts over documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Documents with a result of this run.
    pub succeeded: u64,
    /// Failed documents.
    pub failed: u64,
    /// Documents that had a result before this run.
    pub skipped: u64,
    /// Documents whose activity is open: waiting or working.
    pub in_flight: u64,
    /// Documents that were not asked because the batch was cancelled or failed.
    pub cancelled: u64,
    /// Use of the ended documents.
    #[serde(flatten)]
    pub spend: Spend,
    /// Their incomplete answers.
    #[serde(flatten)]
    pub cuts: CutAnswers,
    /// Their answers from the store of answers.
    #[serde(flatten)]
    pub reused: Reused,
    /// Documents of `succeeded` that were asked again because their content has changed.
    pub updated: u64,
    /// Failed documents, by type.
    #[serde(skip_serializing_if = "FailureCounts::is_empty")]
    pub failures: FailureCounts,
}

impl Totals {
    /// Documents that this run has finished, with or without a result.
    pub fn worked(&self) -> u64 {
        self.succeeded + self.failed
    }

    /// Documents that have ended, with any outcome.
    pub fn ended(&self) -> u64 {
        self.worked() + self.skipped
    }

    /// The totals with rounded prices, for other programs.
    pub fn rounded(mut self) -> Self {
        let usd =
            [&mut self.spend.cost_usd, &mut self.cuts.raised_cost_usd, &mut self.reused.saved_usd];
        for usd in usd {
            *usd = rounded_usd(*usd);
        }
        self
    }

    /// Counts a failed document by its failure type.
    pub fn fail(&mut self, error_type: &str) {
        self.failed += 1;
        self.failures.add(error_type);
    }

    /// Counts a document's outcome.
    pub fn add(&mut self, outcome: &DocumentOutcome) {
        if outcome.skipped {
            self.skipped += 1;
        } else {
            self.succeeded += 1;
            self.updated += u64::from(outcome.updated);
        }
        self.spend += outcome.spend;
        self.cuts += outcome.cuts;
        self.reused += outcome.reused;
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        // Destructured, so that a new field cannot be forgotten here.
        let Self {
            succeeded,
            failed,
            skipped,
            in_flight,
            cancelled,
            spend,
            cuts,
            reused,
            updated,
            failures,
        } = other;
        self.succeeded += succeeded;
        self.failed += failed;
        self.skipped += skipped;
        self.in_flight += in_flight;
        self.cancelled += cancelled;
        self.spend += spend;
        self.cuts += cuts;
        self.reused += reused;
        self.updated += updated;
        self.failures += failures;
    }
}

/// The answer of the `progress` query, and with `done` the workflow's result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// All documents; 0 while the source is being listed.
    pub documents: u64,
    /// The totals of its documents.
    #[serde(flatten)]
    pub totals: Totals,
    /// RFC 3339, from the workflow's own clock.
    pub started_at: Option<String>,
    /// RFC 3339: when the batch will be done at the present pace; absent before the first document
    /// and after the last.
    pub eta: Option<String>,
    /// The prefix for the results.
    pub output: String,
    /// Whether no document is open and the report is written.
    pub done: bool,
    /// Whether the `pause` signal holds back new documents.
    pub paused: bool,
    /// Documents whose id got a number (`~2`), because an earlier document of the source has the
    /// same id.
    pub renamed: u64,
}

/// RFC 3339, in whole seconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Estimates when the remaining documents will be done at the present pace.
pub(crate) fn eta(
    started: SystemTime,
    now: SystemTime,
    worked: u64,
    left: u64,
) -> Option<SystemTime> {
    let elapsed = now.duration_since(started).ok()?;
    if worked == 0 || left == 0 {
        return None;
    }
    let rest = elapsed.as_secs_f64() * left as f64 / worked as f64;
    now.checked_add(Duration::try_from_secs_f64(rest).ok()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn the_eta_follows_from_the_pace() {
        let start = SystemTime::UNIX_EPOCH;
        let now = start + Duration::from_secs(100);
        assert_eq!(eta(start, now, 50, 25), Some(now + Duration::from_secs(50)));
        assert_eq!(eta(start, now, 0, 25), None);
        assert_eq!(eta(start, now, 50, 0), None);
        assert_eq!(eta(now, start, 1, 1), None);
        assert_eq!(rfc3339(now), "1970-01-01T00:01:40Z");
    }

    #[test]
    fn spend_is_flattened_into_every_payload() {
        let spend = Spend { provider_calls: 2, input_tokens: 7, cost_usd: 0.5, ..Spend::default() };
        let flat = r#""provider_calls":2,"rate_limited":0,"deferrals":0,"input_tokens":7,"cached_input_tokens":0,"output_tokens":0,"cost_usd":0.5,"cut":0,"raised":0,"raised_cost_usd":0.0,"began_raised":0,"reused":0,"saved_usd":0.0"#;
        let outcome = DocumentOutcome { spend, ..DocumentOutcome::default() };
        assert_eq!(
            serde_json::from_str::<DocumentOutcome>(&format!("{{{flat}}}")).unwrap(),
            outcome
        );
        let written = serde_json::to_string(&outcome).unwrap();
        assert_eq!(written, r#"{"cost_usd":0.5,"input_tokens":7,"provider_calls":2}"#);
        let totals = Totals { succeeded: 1, spend, ..Totals::default() };
        let json = format!(
            r#"{{"succeeded":1,"failed":0,"skipped":0,"in_flight":0,"cancelled":0,{flat},"updated":0}}"#
        );
        assert_eq!(serde_json::to_string(&totals).unwrap(), json);
        assert_eq!(serde_json::from_str::<Totals>(&json).unwrap(), totals);
        assert_eq!(serde_json::from_str::<Totals>("{}").unwrap(), Totals::default());
        let progress = Progress { totals, ..Progress::default() };
        let value = serde_json::to_value(&progress).unwrap();
        assert_eq!((&value["succeeded"], &value["provider_calls"]), (&1.into(), &2.into()));
    }
}
