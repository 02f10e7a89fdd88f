//! Documents that were given up, by type of failure: how many, their messages, and the first of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::FailureFacts;

use crate::output::seal::FailureLine;

/// Documents that are named for each type.
const SAMPLES: usize = 5;

/// All types. The size does not grow with the number of documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GivenUp(pub BTreeMap<String, FailureGroup>);

/// One type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    /// Documents of this type.
    pub documents: u64,
    /// Their messages.
    #[serde(default)]
    pub messages: FailureMessages,
    /// The ids of the first of them.
    #[serde(default)]
    pub samples: Vec<String>,
}

impl GivenUp {
    /// Adds a line of `failures.jsonl`, and returns its failure; `None` for a line that cannot be
    /// parsed, which is counted elsewhere.
    pub fn add(&mut self, line: &[u8]) -> Option<FailureFacts> {
        let FailureLine { id, uri, facts } = serde_json::from_slice(line).ok()?;
        let kind = self.0.entry(facts.error_type.clone()).or_default();
        kind.documents += 1;
        kind.messages.add(&facts.message, &[&uri, id.as_str()]);
        if kind.samples.len() < SAMPLES {
            kind.samples.push(id.to_string());
        }
        Some(facts)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prepares the report: keeps the most frequent messages of each type.
    pub fn into_report(mut self) -> Self {
        for kind in self.0.values_mut() {
            kind.messages = std::mem::take(&mut kind.messages).into_report();
        }
        self
    }
}

/// Maximum number of different messages that are counted; further ones count only for their type.
const KEPT: usize = 30;

/// Maximum number of messages in a report.
const TOLD: usize = 3;

/// Longest message, in words: a provider's messages are seldom longer.
const MAX_WORDS: usize = 300;

/// Messages of one type of failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailureMessages(pub Vec<Sentence>);

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence {
    /// The message of the first document.
    pub message: String,
    /// Documents with this message.
    pub documents: u64,
    /// The message without names and numbers, by which equal messages are counted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    form: String,
}

impl FailureMessages {
    /// Adds a message. `names` are the document's names that it may contain, the longest first.
    pub(super) fn add(&mut self, message: &str, names: &[&str]) {
        if message.is_empty() {
            return;
        }
        let message: String = message.chars().take(MAX_WORDS).collect();
        let form = form(&message, names);
        if let Some(sentence) = self.0.iter_mut().find(|sentence| sentence.form == form) {
            sentence.documents += 1;
        } else if self.0.len() < KEPT {
            self.0.push(Sentence { message, documents: 1, form });
        }
    }

    /// The most frequent messages, in this order; of equally frequent ones the older goes first.
    pub(super) fn into_report(mut self) -> Self {
        self.0.sort_by_key(|sentence| std::cmp::Reverse(sentence.documents));
        self.0.truncate(TOLD);
        self.0.iter_mut().for_each(|sentence| sentence.form.clear());
        self
    }
}

/// The message without the document's own names, and with one digit for each word that contains any: a
/// number, or an id that a provider gives each call.
fn form(message: &str, names: &[&str]) -> String {
    let ends = names.iter().filter_map(|name| name.rsplit('/').next());
    let mut text = message.to_owned();
    for name in names.iter().copied().chain(ends).filter(|name| !name.is_empty()) {
        text = without(&text, name);
    }
    let in_word = |character: char| character.is_alphanumeric() || character == '_';
    let words = text.split_inclusive(|character| !in_word(character));
    let of_word = |word: &str| match word.trim_end_matches(|character| !in_word(character)) {
        name if name.contains(|character: char| character.is_ascii_digit()) => {
            format!("0{}", &word[name.len()..])
        }
        _ => word.to_owned(),
    };
    words.map(of_word).collect()
}

/// Removes `name` where it stands as a word: a document may be called `a`.
fn without(text: &str, name: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut from = 0;
    for (at, found) in text.match_indices(name) {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let is_word = ![before, after].into_iter().flatten().any(char::is_alphanumeric);
        if is_word {
            left.push_str(&text[from..at]);
            left.push('…');
            from = at + found.len();
        }
    }
    left.push_str(&text[from..]);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_differ_in_a_name_or_a_number_are_one() {
        let mut said = FailureMessages::default();
        for number in 0..10_000 {
            let (id, uri) = (format!("in/a{number}.pdf"), format!("file:///data/in/a{number}.pdf"));
            let message = match number % 4 {
                0 => "the document is empty".to_owned(),
                1 => format!("{uri} has {number} pages"),
                2 => format!("\"a{number}.pdf\" is locked (call req_{number:x}f{number})"),
                _ => format!("odd thing {}", "x".repeat(1 + number / 4)),
            };
            said.add(&message, &[&uri, &id]);
        }
        assert_eq!(said.0.len(), KEPT, "however many there are");
        let size = serde_json::to_string(&said).unwrap().len();
        assert!(size < KEPT * 2 * (MAX_WORDS + 50), "{size} bytes");
        let told = said.into_report().0;
        let told: Vec<_> = told.iter().map(|it| (it.message.as_str(), it.documents)).collect();
        let expected = [
            ("the document is empty", 2_500),
            ("file:///data/in/a1.pdf has 1 pages", 2_500),
            ("\"a2.pdf\" is locked (call req_2f2)", 2_500),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_short_name_takes_nothing_out_of_a_word() {
        let mut said = FailureMessages::default();
        for name in ["a", "b", "doc"] {
            said.add("the document is damaged", &[name]);
            said.add(&format!("{name}: damaged"), &[name]);
        }
        let told = said.into_report();
        assert_eq!(told.0.iter().map(|it| it.documents).collect::<Vec<_>>(), [3, 3], "{told:?}");
        let json = serde_json::to_string(&told).unwrap();
        assert!(!json.contains("form"), "{json}");
    }
}
