//! A document's result, as it is stored under `results/`.

use std::time::Duration;

use bytes::Bytes;
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_providers::{Finish, StopReason};
use tidegate_types::{DocumentId, ModelId, Spend, Usage};
use tidegate_workflows::contract::{
    AskedAnswer, CutAnswers, DocumentOutcome, Fallback, Job, Reused,
};

use crate::{
    attempt::Attempt,
    failure::{Failure, Shortfall},
    fingerprint::Fingerprint,
    output::{job::Document, jsonl::json, layout, pending_writes::Bought, version::Version},
    storage::{Location, Stamp},
};

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The name of the check.
    pub name: String,
    /// Whether the answer passes it.
    pub passed: bool,
    /// The reason for a failed check; it may quote the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Maximum number of times that a model is asked: once, and once more with the fault.
pub const MAX_ASKS: u32 = 2;

/// A model that was asked for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedModel {
    /// The model, and the checks that the answer before failed.
    #[serde(flatten)]
    pub answer: AskedAnswer,
    /// The reason why it was asked; it may quote that answer.
    pub why: String,
}

/// The answer to one document. It is written whole or not at all, and replaced only by an answer to
/// another question or content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentResult {
    /// The document.
    pub id: DocumentId,
    /// The URI of the document.
    pub uri: String,
    /// A record's fields without its text.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// The model that was asked.
    pub model: ModelId,
    /// The reason why it was asked, if it is not the first of its route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// The model's answer; empty where there is a vector.
    pub answer: String,
    /// Quotes of the document that the answer rests on, for a batch that asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<Evidence>>,
    /// The vector, for a batch that embeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Vec<f32>>,
    /// The answers to each part, for a long document whose parts stand side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<String>>,
    /// The results of the batch's checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Checked>,
    /// Checks whose judge could not be asked: it had no budget or quota, or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<String>,
    /// The models that were asked, in order, where the batch escalates or one was asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedModel>,
    /// `end_turn`, `max_tokens` when the answer was cut, or the provider's own word.
    pub stop_reason: String,
    /// Whether the answer is complete; an empty one is not.
    pub finish: Finish,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Whether tokens and price are estimated: the provider reported no use, or an impossible one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_unknown: bool,
    /// US dollars; absent where no price is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Calls for it, the last one included. Of documents that shared a call, the first has it and the
    /// others none.
    pub provider_calls: u64,
    /// Seconds of the provider's call that gave the answer; absent where several documents shared it, or
    /// several parts stand side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// RFC 3339.
    pub completed_at: String,
    /// The activity that wrote it, by [`Attempt::activity`]; absent where a provider's batch was
    /// collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Fingerprint of the question; absent for a step of a long document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Fingerprint>,
    /// The version of the document.
    #[serde(flatten)]
    pub version: Version,
    /// US dollars that the answer had cost, if it came from the store of answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_usd: Option<f64>,
}

/// A model's output for a document.
#[derive(Debug)]
pub(crate) enum Given {
    /// An answer, and why the model stopped.
    Answer(String, StopReason),
    /// A vector.
    Vector(Vec<f32>),
}

impl DocumentResult {
    /// Creates the result of a document with this answer, completed now. Its cost is added by
    /// [`Self::with_cost`].
    pub fn new(
        document: Document,
        model: &ModelId,
        answer: String,
        stop_reason: &StopReason,
    ) -> Self {
        let finish = if answer.trim().is_empty() { Finish::Cut } else { stop_reason.finish() };
        Self {
            id: document.id,
            uri: document.uri,
            fields: document.fields,
            model: model.clone(),
            fallback: None,
            answer,
            evidence: None,
            embedding: None,
            parts: None,
            checks: Vec::new(),
            unchecked: Vec::new(),
            asked: Vec::new(),
            stop_reason: stop_reason.as_str().to_owned(),
            finish,
            input_tokens: 0,
            cached_input_tokens: 0,
            output_tokens: 0,
            usage_unknown: false,
            cost_usd: None,
            provider_calls: 0,
            seconds: None,
            completed_at: now(),
            activity: None,
            question: None,
            version: Version::default(),
            saved_usd: None,
        }
    }

    /// Creates the result of a document from a model's output for a job's question, completed now.
    /// Its cost is added by [`Self::with_cost`].
    pub(crate) fn answered(
        (job, question): (&Job, Fingerprint),
        (document, version): (Document, Version),
        model: &ModelId,
        given: Given,
    ) -> Self {
        let result = match given {
            Given::Answer(answer, stop_reason) => Self::new(document, model, answer, &stop_reason),
            Given::Vector(vector) => Self {
                embedding: Some(vector),
                finish: Finish::Complete,
                ..Self::new(document, model, String::new(), &StopReason::EndTurn)
            },
        };
        result.with_question(question, version).with_fallback_of(job)
    }

    /// Sets the question and the version of the document that it answers.
    pub fn with_question(self, question: Fingerprint, version: Version) -> Self {
        Self { question: Some(question), version, ..self }
    }

    /// Sets the activity that writes it.
    pub fn of_activity(self, attempt: &Attempt) -> Self {
        Self { activity: Some(attempt.activity()), ..self }
    }

    /// Sets the reason why its model may answer, from the batch's fallbacks.
    pub fn with_fallback_of(self, job: &Job) -> Self {
        Self { fallback: job.fallbacks.get(&self.model).cloned(), ..self }
    }

    /// Sets the quotes that support it.
    pub fn with_evidence(self, evidence: Option<Vec<Evidence>>) -> Self {
        Self { evidence, ..self }
    }

    /// Sets the time of the call that gave the answer.
    pub fn with_time(self, took: Option<Duration>) -> Self {
        let rounded = |took: Duration| (took.as_secs_f64() * 1e3).round() / 1e3;
        Self { seconds: took.map(rounded), ..self }
    }

    /// Sets whether its tokens are estimated.
    pub fn with_usage_unknown(self, usage_unknown: bool) -> Self {
        Self { usage_unknown, ..self }
    }

    /// Sets its calls, tokens and price.
    pub fn with_cost(
        self,
        provider_calls: u64,
        usage: Option<Usage>,
        cost_usd: Option<f64>,
    ) -> Self {
        let tokens = Spend::of_tokens(&usage.unwrap_or_default(), cost_usd);
        self.with_spend(Spend { provider_calls, ..tokens }, cost_usd.is_some())
    }

    /// Sets its cost; the price counts only where it is known.
    pub fn with_spend(self, spend: Spend, has_price: bool) -> Self {
        Self {
            input_tokens: spend.input_tokens,
            cached_input_tokens: spend.cached_input_tokens,
            output_tokens: spend.output_tokens,
            cost_usd: has_price.then_some(spend.cost_usd),
            provider_calls: spend.provider_calls,
            ..self
        }
    }

    /// Its cost.
    pub fn spend(&self) -> Spend {
        Spend {
            provider_calls: self.provider_calls,
            input_tokens: self.input_tokens,
            cached_input_tokens: self.cached_input_tokens,
            output_tokens: self.output_tokens,
            cost_usd: self.cost_usd.unwrap_or(0.0),
            unpriced_calls: if self.cost_usd.is_none() { self.provider_calls } else { 0 },
            ..Spend::default()
        }
    }

    /// The location of the result of `id`.
    pub fn location(output: &Location, id: &DocumentId) -> Location {
        output.child("results").child(&format!("{id}.json"))
    }

    /// The location of an answer of `id` that is not accepted: cut, or not valid by the schema.
    pub fn refused_location(output: &Location, id: &DocumentId) -> Location {
        output.child(layout::FOLDER).child("kept").child(&format!("{id}.json"))
    }

    /// The kind of shortfall, if the answer [is cut](Self::is_cut); `room` is its cap in tokens.
    pub fn shortfall(&self, room: u32) -> Shortfall {
        Shortfall { is_empty: self.answer.trim().is_empty(), room }
    }

    /// Whether the answer is incomplete for its batch.
    pub fn is_cut(&self) -> bool {
        self.finish == Finish::Cut
    }

    /// Whether the answer is known to be complete.
    pub fn is_whole(&self) -> bool {
        self.finish == Finish::Complete
    }

    /// Whether it came from the store of answers.
    pub fn is_reused(&self) -> bool {
        self.saved_usd.is_some()
    }

    /// Its totals of the store of answers.
    pub fn reused(&self) -> Reused {
        let saved_usd = self.saved_usd.unwrap_or_default();
        Reused { reused: self.is_reused().into(), saved_usd }
    }

    /// Stores an answer that is not accepted. Returns whether that worked.
    pub(crate) async fn write_refused(&self, location: &Location) -> bool {
        let written = match serde_json::to_vec(self) {
            Ok(json) => location.write(json).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        written
            .inspect_err(|error| tracing::warn!(%location, error, "an answer that was refused cannot be stored"))
            .is_ok()
    }

    /// Reads the result at a location.
    ///
    /// # Errors
    /// `Transient` when the store fails.
    pub async fn read(location: &Location) -> Result<Option<Self>, Failure> {
        Ok(Self::read_named(location).await?.map(|(result, _)| result))
    }

    /// Reads the result and its object's fingerprint, with which only that object can be replaced.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub async fn read_named(location: &Location) -> Result<Option<(Self, Fingerprint)>, Failure> {
        let Some(bytes) = location.read_if_there().await? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            // Another program's file stays; the message tells the author to move it.
            Ok(result) => Ok(Some((result, Fingerprint::of_bytes(&bytes)))),
            Err(error) => Err(Failure::invalid_input(format!(
                "{location} is there, but is no result of tidegate ({error}); move it away or choose another output"
            ))),
        }
    }

    /// The object to write: only where no result exists, or over the one with the fingerprint
    /// `instead_of`.
    ///
    /// # Errors
    /// None in practice: a result can always be written as JSON.
    pub fn bought(
        &self,
        location: &Location,
        instead_of: Option<Fingerprint>,
    ) -> Result<Bought, Failure> {
        Ok(Bought::new(location, json(self)?).instead_of(instead_of))
    }

    /// Whether the activity of this attempt wrote the result: an earlier attempt may have died
    /// before it could report the result. Any other result is older, and is not counted.
    pub fn is_written_by(&self, attempt: &Attempt) -> bool {
        self.activity.as_deref() == Some(attempt.activity().as_str())
    }

    /// The outcome that the attempt returns to the workflow, with the calls of this activity. If a
    /// server that was killed has lost the attempt that made the calls, they are taken from the
    /// result.
    pub fn outcome(&self, attempt: &Attempt) -> DocumentOutcome {
        self.outcome_beyond(attempt, Spend::default())
    }

    /// The outcome without the cost of other activities.
    pub fn outcome_beyond(&self, attempt: &Attempt, before: Spend) -> DocumentOutcome {
        let (mut calls, own) = (Spend::from(attempt.counts()), self.spend().beyond(before));
        if !self.is_reused() {
            calls.provider_calls = calls.provider_calls.max(own.provider_calls);
        }
        let spend = calls + own.tokens();
        let cuts = CutAnswers { cut: self.is_cut().into(), ..attempt.state().document.cuts };
        let (reused, updated) = (self.reused(), attempt.state().document.updated);
        DocumentOutcome { spend, cuts, reused, updated, ..DocumentOutcome::default() }
    }
}

/// The present time, as RFC 3339 with milliseconds.
pub fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The field name of an answer that is not an object.
pub const WHOLE: &str = "answer";

/// A quote, as the model gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Path of the field of the answer; `answer` where there is no schema.
    pub field: String,
    /// Empty where the field has an answer and no quote was given.
    pub quote: String,
    /// The first page with the quote, from 1; `null` where there are no pages, or it was not found.
    pub page: Option<usize>,
    /// The part with the quote, from 1, of a document that was read in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// Whether the quote is in the text that was sent; `null` where that is unknown because pages were
    /// sent as pictures.
    pub found: Option<bool>,
}

/// A result as one line.
#[derive(Debug)]
pub(super) struct ResultLine {
    /// The line with its newline.
    pub json: Bytes,
    /// The parsed result.
    pub result: DocumentResult,
}

impl ResultLine {
    /// `None` for a line that is not a result.
    pub(super) fn parse(json: Bytes) -> Option<Self> {
        let result = serde_json::from_slice(&json).ok()?;
        Some(Self { json, result })
    }
}

/// Reads the result at a location and its object's stamp; `None` if there is no object, or another
/// program's.
pub(super) async fn read_line(location: Location) -> Result<Option<(ResultLine, Stamp)>, Failure> {
    let Some((bytes, stamp)) = location.read_stamped_if_there().await? else { return Ok(None) };
    let mut line: Vec<u8> =
        bytes.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    line.push(b'\n');
    Ok(ResultLine::parse(line.into()).map(|line| (line, stamp)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;
    use crate::attempt::AttemptState;

    /// The worker's clock says when it was completed, and the server's when it was scheduled.
    #[test]
    fn no_clock_decides_whose_a_result_is() {
        let attempt = |number: u32, scheduled| {
            let (name, run) = (format!("run#0.0.{number}"), "w".to_owned());
            Attempt::new(name, run, scheduled, AttemptState::default())
        };
        let document = Document::file(DocumentId::from_relative_path("a"), "file:///a".to_owned());
        let model = "a:b".parse().unwrap();
        let result = DocumentResult::new(document, &model, "x".to_owned(), &StopReason::EndTurn);
        let result = result.of_activity(&attempt(1, 60_000));
        for completed_at in ["1970-01-01T00:00:00.000Z", "2100-01-01T00:00:00.000Z"] {
            let result = DocumentResult { completed_at: completed_at.to_owned(), ..result.clone() };
            assert!(result.is_written_by(&attempt(2, 60_000)), "{completed_at}");
            assert!(!result.is_written_by(&attempt(1, 120_000)), "{completed_at}");
        }
        let of_other_run = attempt(1, 60_000).for_batch("w", "another run");
        assert!(!result.is_written_by(&of_other_run));
    }
}
