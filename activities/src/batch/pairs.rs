//! Pairs of texts of which a judge says whether both say the same. An ordinary batch asks it about
//! each, so that it has a batch's bounds, prices and retries, and no verdict is bought twice.

use std::collections::BTreeMap;

use serde_json::json;
use tidegate_workflows::{
    contract::{Judge, Records},
    input::BatchInput,
};

use crate::{document::check::judge, failure::Failure, fingerprint::Fingerprint, output::jsonl};

/// What a judge is asked unless its author says it.
pub const INSTRUCTIONS: &str = "Does the answer say what the expected answer says? Other words, another order of \
    them, and other forms of a number or a date make no difference.";

/// Pairs of texts that differ, by the fingerprints of both.
#[derive(Debug, Default)]
pub struct Pairs {
    texts: BTreeMap<String, String>,
    verdicts: BTreeMap<String, bool>,
}

impl Pairs {
    /// Returns what the judge has said of a pair. A pair that it has said nothing of is noted.
    pub fn verdict(&mut self, expected: &str, answered: &str) -> Option<bool> {
        let texts = [expected, answered];
        let id = Fingerprint::of_parts(texts.map(str::as_bytes)).to_string();
        let verdict = self.verdicts.get(&id).copied();
        if verdict.is_none() {
            let [expected, answer] = [("expected", expected), ("answer", answered)]
                .map(|(tag, it)| judge::tagged(tag, it));
            self.texts.insert(id, format!("{expected}\n{answer}"));
        }
        verdict
    }

    /// The number of pairs that were noted.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether no pair was noted.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The noted pairs as JSONL, the source of [`batch`].
    ///
    /// # Errors
    /// Does not occur in practice.
    pub fn lines(&self) -> Result<Vec<u8>, Failure> {
        jsonl::written(self.texts.iter().map(|(id, text)| json!({"id": id, "text": text})))
    }

    /// Takes a judge's answer about a noted pair, by its id as a record of the source. Returns whether
    /// it is a verdict on one.
    pub fn take(&mut self, record: &str, answer: &str) -> bool {
        // The name of the source's file stands before it.
        let id = record.rsplit('_').next().unwrap_or(record);
        let Some(verdict) = judge::verdict(answer).filter(|_| self.texts.contains_key(id)) else {
            return false;
        };
        self.verdicts.insert(id.to_owned(), verdict == judge::Verdict::Passed);
        true
    }
}

/// The batch that asks a judge about the pairs in `source`, paid as `of` is.
pub fn batch(judge: &Judge, of: &BatchInput, source: String, output: String) -> BatchInput {
    let schema = judge::schema();
    BatchInput {
        source: Some(source),
        output,
        instructions: judge::instructions(&judge.instructions, "an expected answer and an answer"),
        model: Some(judge.model.clone()),
        schema: schema.as_object().cloned(),
        records: Some(Records { id: Some("id".to_owned()), text: Some("text".to_owned()) }),
        lane: of.lane.clone(),
        tenant: of.tenant.clone(),
        budget_usd: of.budget_usd,
        max_in_flight: of.max_in_flight,
        // Other instructions, or another judge.
        replace: Some(true),
        results_jsonl: Some(true),
        ..BatchInput::default()
    }
}
