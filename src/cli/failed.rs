//! Documents that were given up, by type: how many, in whose words, and what to do.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_activities::Storage;
use tidegate_types::ModelId;
use tidegate_workflows::contract::Progress;

use crate::config::Config;

use super::{advice, figures::count};

/// So much of `failures.jsonl` is read for the words: the first failure of each type is among the
/// first of them.
const READ: u64 = 256 << 10;

/// The failures of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) kind: String,
    pub(super) documents: u64,
    /// What was said of one of them.
    pub(super) words: Option<String>,
    /// The first of them, by their ids.
    pub(super) samples: Vec<String>,
}

/// So many documents of a type are named.
const SAMPLES: usize = 3;

/// Of a batch, the most frequent first. The words are in the output of one that has ended, where
/// this machine can read it.
pub(super) async fn of(config: &Config, progress: &Progress) -> Vec<Failed> {
    if progress.totals.failed == 0 {
        return Vec::new();
    }
    let lines = if progress.done { read(config, &progress.output).await } else { String::new() };
    gathered(progress, &lines)
}

async fn read(config: &Config, output: &str) -> String {
    let part = async {
        let storage = Storage::new(config.storage.roots.iter().map(String::as_str)).ok()?;
        let file = storage.resolve(output).ok()?.child("failures.jsonl");
        let size = file.size().await.ok()??;
        file.read_range(0..size.min(READ)).await.ok()
    };
    part.await.map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn gathered(progress: &Progress, lines: &str) -> Vec<Failed> {
    let (mut words, mut seen) = (BTreeMap::<String, String>::new(), BTreeMap::<String, u64>::new());
    let mut samples = BTreeMap::<String, Vec<String>>::new();
    // The last line may be cut.
    for line in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        *seen.entry(text("error_type")).or_default() += 1;
        words.entry(text("error_type")).or_insert_with(|| text("message"));
        let samples = samples.entry(text("error_type")).or_default();
        if samples.len() < SAMPLES {
            samples.push(text("id"));
        }
    }
    let counted = progress.totals.failures.by_count();
    // A batch of an earlier version counts none by type.
    let counts: Vec<(String, u64)> = if counted.is_empty() {
        seen.into_iter().collect()
    } else {
        counted.into_iter().map(|(kind, documents)| (kind.to_owned(), documents)).collect()
    };
    let failed = counts.into_iter().map(|(kind, documents)| {
        let words = words.remove(&kind);
        let samples = samples.remove(&kind).unwrap_or_default();
        Failed { kind, documents, words, samples }
    });
    failed.collect()
}

impl Failed {
    fn sentence(&self) -> String {
        let words = self.words.as_ref().map_or_else(String::new, |words| format!(": {words}"));
        format!("{} × {}{words}", count(self.documents), self.kind)
    }
}

/// Rows for [`super::output::pairs`]: each type, and what to do about it.
pub(super) fn rows(failed: &[Failed], model: Option<&ModelId>) -> Vec<(&'static str, String)> {
    let rows = failed.iter().flat_map(|failed| {
        [("failed", failed.sentence()), ("  to do", advice::next(&failed.kind, model))]
    });
    rows.collect()
}

/// All in one sentence; nothing without a failure.
pub(super) fn sentence(failed: &[Failed]) -> Option<String> {
    let first = failed.first()?;
    let all: Vec<String> = failed.iter().map(Failed::sentence).collect();
    Some(format!("{}; next: {}", all.join("; "), advice::next(&first.kind, None)))
}

/// The same as JSON.
pub(super) fn value(failed: &[Failed], model: Option<&ModelId>) -> Value {
    let values = failed.iter().map(|failed| {
        json!({
            "error_type": failed.kind,
            "documents": failed.documents,
            "message": failed.words,
            "samples": failed.samples,
            "next": advice::next(&failed.kind, model),
        })
    });
    Value::Array(values.collect())
}

#[cfg(test)]
mod tests {
    use tidegate_workflows::contract::{FailureCounts, Totals};

    use super::*;

    #[test]
    fn each_type_is_told_with_its_words_and_what_to_do() {
        let mut failures = FailureCounts::default();
        for kind in ["TooLarge", "Unauthorized", "Unauthorized"] {
            failures.add(kind);
        }
        let totals = Totals { failed: 3, failures, ..Totals::default() };
        let progress = Progress { totals, done: true, ..Progress::default() };
        let lines = "{\"id\":\"a\",\"error_type\":\"Unauthorized\",\"message\":\"invalid x-api-key\"}\n{\"id\":\"b\",\"err";
        let failed = gathered(&progress, lines);
        assert_eq!(failed[0].sentence(), "2 × Unauthorized: invalid x-api-key");
        assert_eq!((failed[0].samples.join(" "), failed[1].samples.len()), ("a".to_owned(), 0));
        assert_eq!(failed[1].sentence(), "1 × TooLarge");
        let rows = rows(&failed, None);
        assert!(rows[1].1.contains("api-key-file") && rows[3].1.contains("--long"), "{rows:?}");
        assert_eq!(value(&failed, None)[0]["documents"], 2);
        let older = Totals { failed: 3, ..Totals::default() };
        let of_earlier = Progress { totals: older, ..progress };
        assert_eq!(
            gathered(&of_earlier, lines)[0].sentence(),
            "1 × Unauthorized: invalid x-api-key"
        );
        assert_eq!(sentence(&[]), None);
    }
}
