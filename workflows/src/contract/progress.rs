//! A batch's progress: the answer of its query, and in the end its result.

use std::{
    collections::BTreeMap,
    fmt,
    ops::AddAssign,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tidegate_types::{Spend, spend::rounded_usd};

use crate::contract::{
    FailureType,
    document::{CutAnswers, DocumentOutcome, Reused, Taken},
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
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
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

    /// Adds what calls without a result took.
    pub(crate) fn take(&mut self, taken: Taken) {
        self.spend += taken.spend;
        self.cuts += taken.cuts;
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

/// Name for types that this version does not know: Temporal's own, or a later version's.
const OTHER: &str = "Other";

const KINDS: usize = FailureType::ALL.len();

/// Failed documents by type: `{"Unauthorized": 7}` in every payload. It is as small as the other
/// totals, and `Copy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureCounts {
    /// In the order of [`FailureType::ALL`].
    known: [u64; KINDS],
    /// Failures of all other types.
    other: u64,
}

/// Writes `Unauthorized: 7, TooLarge: 1`, the most frequent first, or `none`.
impl fmt::Display for FailureCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.by_count();
        let counts: Vec<_> = counts.iter().map(|(kind, n)| format!("{kind}: {n}")).collect();
        f.write_str(if counts.is_empty() { "none" } else { "" })?;
        f.write_str(&counts.join(", "))
    }
}

impl FailureCounts {
    /// Counts a failure of the type with this name.
    pub fn add(&mut self, name: &str) {
        *self.count_mut(name) += 1;
    }

    /// Types with their counts, the most frequent first; types without failures are left out.
    pub fn by_count(&self) -> Vec<(&'static str, u64)> {
        let mut counts: Vec<_> = self.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = FailureType::ALL.into_iter().map(FailureType::as_str).chain([OTHER]);
        let counts = self.known.into_iter().chain([self.other]);
        names.zip(counts).filter(|(_, count)| *count > 0)
    }

    fn count_mut(&mut self, name: &str) -> &mut u64 {
        let place = FailureType::ALL.into_iter().position(|kind| kind.as_str() == name);
        place.and_then(|place| self.known.get_mut(place)).unwrap_or(&mut self.other)
    }
}

impl AddAssign for FailureCounts {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.known.iter_mut().zip(other.known) {
            *count += more;
        }
        self.other += other.other;
    }
}

impl Serialize for FailureCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for FailureCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            *counts.count_mut(&name) += count;
        }
        Ok(counts)
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod failure_counts_tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_their_names() {
        let mut counts = FailureCounts::default();
        assert!(counts.by_count().is_empty());
        for name in ["Unauthorized", "TooLarge", "Unauthorized", "Timeout", "high tide"] {
            counts.add(name);
        }
        counts += counts;
        assert_eq!(counts.by_count(), [("Unauthorized", 4), ("Other", 4), ("TooLarge", 2)]);
        assert_eq!(counts.to_string(), "Unauthorized: 4, Other: 4, TooLarge: 2");
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(json, r#"{"TooLarge":2,"Unauthorized":4,"Other":4}"#);
        assert_eq!(serde_json::from_str::<FailureCounts>(&json).unwrap(), counts);
        let of_later = serde_json::from_str::<FailureCounts>(r#"{"HighTide":3}"#).unwrap();
        assert_eq!(of_later.by_count(), [("Other", 3)]);
    }
}
