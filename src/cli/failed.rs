//! Failed documents by type: their number, messages, and the remedy.

use serde_json::{Value, json};
use tidegate_activities::output::finish::{GivenUp, Sentence};
use tidegate_types::ModelId;
use tidegate_workflows::contract::Progress;

use crate::config::Config;

use super::{advice, batch_report::BatchReport, format::count};

/// The failures of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) kind: String,
    pub(super) documents: u64,
    /// The messages, most frequent first.
    pub(super) said: Vec<Sentence>,
    /// The ids of the first documents.
    pub(super) samples: Vec<String>,
}

/// The number of documents of each type that are named.
const SAMPLES: usize = 3;

/// A batch's failures by type, most frequent first. The messages of an ended batch are in its
/// output, if this machine can read it.
pub(super) async fn by_type(config: &Config, progress: &Progress) -> Vec<Failed> {
    if progress.totals.failed == 0 {
        return Vec::new();
    }
    let given_up = BatchReport::read(config, progress).await.given_up;
    gather(progress, given_up.unwrap_or_default())
}

/// Like [`by_type`], with what the report in the output says of them.
pub(super) fn gather(progress: &Progress, mut given_up: GivenUp) -> Vec<Failed> {
    let failed = progress.totals.failures.by_count().into_iter().map(|(kind, documents)| {
        let told = given_up.0.remove(kind).unwrap_or_default();
        let (said, mut samples) = (told.messages.0, told.samples);
        samples.truncate(SAMPLES);
        Failed { kind: kind.to_owned(), documents, said, samples }
    });
    failed.collect()
}

impl Failed {
    /// The message; with the number of documents for each message if there are several.
    pub(super) fn words(&self) -> Option<String> {
        let [first, others @ ..] = self.said.as_slice() else { return None };
        if others.is_empty() {
            return Some(self.with_others(first));
        }
        let mut words: Vec<String> = self
            .said
            .iter()
            .map(|said| format!("{} × {}", count(said.documents), self.with_others(said)))
            .collect();
        let told: u64 = self.said.iter().map(|said| said.documents).sum();
        let rest = self.documents.saturating_sub(told);
        if rest > 0 {
            words.push(format!("{} × something else", count(rest)));
        }
        Some(words.join("; "))
    }

    /// A message; where it names a document, it says that others failed alike.
    fn with_others(&self, said: &Sentence) -> String {
        let names = |name: &str| said.message.contains(name);
        match said.documents.saturating_sub(1) {
            0 => said.message.clone(),
            others if names("://") || self.samples.iter().any(|id| names(id)) => {
                let noun = if others == 1 { "other" } else { "others" };
                format!("{} (and {} {noun})", said.message, count(others))
            }
            _ => said.message.clone(),
        }
    }

    /// The remedy, by the most frequent message.
    pub(super) fn next(&self, model: Option<&ModelId>) -> String {
        let message = self.said.first().map_or("", |said| &said.message);
        advice::after_message(&self.kind, message, model)
    }

    pub(super) fn sentence(&self) -> String {
        let words = self.words().map_or_else(String::new, |words| format!(": {words}"));
        format!("{} × {}{words}", count(self.documents), self.kind)
    }
}

/// Rows for [`super::output::pairs`]: each type and its remedy.
pub(super) fn rows(failed: &[Failed], model: Option<&ModelId>) -> Vec<(&'static str, String)> {
    let rows = failed
        .iter()
        .flat_map(|failed| [("failed", failed.sentence()), ("  to do", failed.next(model))]);
    rows.collect()
}

/// All failures in one sentence; `None` without any.
pub(super) fn sentence(failed: &[Failed]) -> Option<String> {
    let first = failed.first()?;
    let all: Vec<String> = failed.iter().map(Failed::sentence).collect();
    Some(format!("{}; next: {}", all.join("; "), first.next(None)))
}

/// The failures as JSON.
pub(super) fn value(failed: &[Failed], model: Option<&ModelId>) -> Value {
    let values = failed.iter().map(|failed| {
        json!({
            "error_type": failed.kind,
            "documents": failed.documents,
            "message": failed.said.first().map(|said| &said.message),
            "messages": failed.said,
            "samples": failed.samples,
            "next": failed.next(model),
        })
    });
    Value::Array(values.collect())
}

#[cfg(test)]
mod tests {
    use tidegate_workflows::contract::{FailureCounts, Totals};

    use super::*;

    fn given_up(failures: &[(&str, &str, &str)]) -> GivenUp {
        let mut given_up = GivenUp::default();
        for (id, error_type, message) in failures {
            let line = json!({ "id": id, "error_type": error_type, "message": message });
            given_up.add(line.to_string().as_bytes());
        }
        given_up.into_report()
    }

    #[test]
    fn different_causes_of_one_type_are_told_apart() {
        let kind = "UnreadableDocument";
        let failures = [
            ("a.pdf", kind, "the PDF is damaged: it has no pages"),
            ("b.txt", kind, "the document is empty"),
            ("c.txt", kind, "the document is empty"),
            ("d.bin", kind, "this is binary data"),
            ("e.odt", kind, "the archive is a bomb"),
        ];
        let mut counts = FailureCounts::default();
        failures.iter().for_each(|(_, kind, _)| counts.add(kind));
        let totals = Totals { failed: 5, failures: counts, ..Totals::default() };
        let progress = Progress { totals, ..Progress::default() };
        let failed = gather(&progress, given_up(&failures));
        assert_eq!(
            failed[0].sentence(),
            "5 × UnreadableDocument: 2 × the document is empty; 1 × the PDF is damaged: it has no pages; 1 × this is binary data; 1 × something else"
        );
        let value = value(&failed, None);
        assert_eq!(value[0]["message"], "the document is empty");
        let second = json!({ "message": "the PDF is damaged: it has no pages", "documents": 1 });
        assert_eq!(value[0]["messages"][1], second);
    }

    #[test]
    fn a_name_in_a_message_is_one_of_several() {
        let kind = "UnreadableDocument";
        let failures: Vec<[String; 2]> = (1..=7)
            .map(|it| [format!("d{it}.txt"), format!("file:///in/d{it}.txt does not exist")])
            .collect();
        let failures: Vec<(&str, &str, &str)> =
            failures.iter().map(|[id, message]| (id.as_str(), kind, message.as_str())).collect();
        let mut counts = FailureCounts::default();
        failures.iter().for_each(|(_, kind, _)| counts.add(kind));
        let totals = Totals { failed: 7, failures: counts, ..Totals::default() };
        let progress = Progress { totals, ..Progress::default() };
        assert_eq!(
            gather(&progress, given_up(&failures))[0].sentence(),
            "7 × UnreadableDocument: file:///in/d1.txt does not exist (and 6 others)"
        );
    }

    #[test]
    fn each_type_is_told_with_its_words_and_what_to_do() {
        let mut failures = FailureCounts::default();
        for kind in ["TooLarge", "Unauthorized", "Unauthorized"] {
            failures.add(kind);
        }
        let totals = Totals { failed: 3, failures, ..Totals::default() };
        let progress = Progress { totals, done: true, ..Progress::default() };
        let given_up = given_up(&[("a", "Unauthorized", "invalid x-api-key")]);
        let failed = gather(&progress, given_up);
        assert_eq!(failed[0].sentence(), "2 × Unauthorized: invalid x-api-key");
        assert_eq!((failed[0].samples.join(" "), failed[1].samples.len()), ("a".to_owned(), 0));
        assert_eq!(failed[1].sentence(), "1 × TooLarge");
        let rows = rows(&failed, None);
        assert!(rows[1].1.contains("api-key-file") && rows[3].1.contains("--long"), "{rows:?}");
        assert_eq!(value(&failed, None)[0]["documents"], 2);
        assert_eq!(sentence(&[]), None);
    }
}
