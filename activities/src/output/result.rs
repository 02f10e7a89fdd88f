//! A document's result, as it lies under `results/`.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_providers::{Finish, StopReason};
use tidegate_types::{DocumentId, ModelId, Spend, Usage};
use tidegate_workflows::contract::{CutAnswers, DocumentOutcome, Fallback, Job, Reused};

use crate::{
    attempt::Attempt,
    failure::{Failure, Shortfall},
    fingerprint::Fingerprint,
    output::{
        evidence::Evidence, job::Document, jsonl::json, layout, pending_writes::Bought,
        version::Version,
    },
    storage::{Error, Location},
};

/// What a check has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The check.
    pub name: String,
    /// The answer passes it.
    pub passed: bool,
    /// Why it does not; it may quote the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A model is asked, and once more with what was wrong.
pub const MAX_ASKS: u32 = 2;

/// A model that was asked for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedModel {
    /// The model.
    pub model: ModelId,
    /// Which model of the route it is, counted from 0: what fails its checks goes to the next.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub level: u32,
    /// Why it was asked.
    pub why: String,
    /// The checks that the answer before did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// One answered document. Written whole or not at all, and replaced by an answer to something else
/// alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentResult {
    /// The document.
    pub id: DocumentId,
    /// Where it lay.
    pub uri: String,
    /// A record's own fields, but for its text.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// The model that was asked.
    pub model: ModelId,
    /// Why it was asked, where it is not the first of its route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// The model's answer; empty where there is a vector.
    pub answer: String,
    /// The words of the document that it rests on, of a batch that asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<Evidence>>,
    /// The vector, of a batch that embeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Vec<f32>>,
    /// The answers to each part, for a long document whose parts stand side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<String>>,
    /// What the batch's checks have come to.
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
    /// Whether the answer is all of it: one that is empty is not.
    pub finish: Finish,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Tokens and price are estimated: the provider did not say what it used, or said what cannot be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_unknown: bool,
    /// US dollars; absent where no price is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Calls that it took, the last one included; of documents that shared a call, the first has it
    /// and the others none.
    pub provider_calls: u64,
    /// RFC 3339.
    pub completed_at: String,
    /// What was asked; not said of a step on the way to the result of a long document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Fingerprint>,
    /// Of which version of the document.
    #[serde(flatten)]
    pub version: Version,
    /// It came out of the store of answers, and had cost so many US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_usd: Option<f64>,
}

impl DocumentResult {
    /// An answer as a document's result, completed now. What it took is added by [`Self::taking`].
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
            completed_at: now(),
            question: None,
            version: Version::default(),
            saved_usd: None,
        }
    }

    /// A vector as a document's result, completed now.
    pub(crate) fn embedded(document: Document, model: &ModelId, vector: Vec<f32>) -> Self {
        let result = Self::new(document, model, String::new(), &StopReason::EndTurn);
        Self { embedding: Some(vector), finish: Finish::Complete, ..result }
    }

    /// The same, as the answer to this question about this version of the document.
    pub fn answering(self, question: Fingerprint, version: Version) -> Self {
        Self { question: Some(question), version, ..self }
    }

    /// The same, of a batch that says so why its models may answer.
    pub fn allowed_by(self, job: &Job) -> Self {
        Self { fallback: job.fallbacks.get(&self.model).cloned(), ..self }
    }

    /// The same, with the words that it rests on.
    pub fn resting_on(self, evidence: Option<Vec<Evidence>>) -> Self {
        Self { evidence, ..self }
    }

    /// The same, whose tokens are an estimate, or not.
    pub fn with_usage_unknown(self, usage_unknown: bool) -> Self {
        Self { usage_unknown, ..self }
    }

    /// The same, which took so many calls, and these tokens at this price.
    pub fn taking(self, provider_calls: u64, usage: Option<Usage>, cost_usd: Option<f64>) -> Self {
        let tokens = Spend::of_tokens(&usage.unwrap_or_default(), cost_usd);
        self.with_spend(Spend { provider_calls, ..tokens }, cost_usd.is_some())
    }

    /// The same, which took this; its price counts only where it is known.
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

    /// What it took.
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

    /// Where the result of `id` lies.
    pub fn location(output: &Location, id: &DocumentId) -> Location {
        output.child("results").child(&format!("{id}.json"))
    }

    /// Where an answer of `id` lies that is no result: cut, or not what the schema says.
    pub fn kept(output: &Location, id: &DocumentId) -> Location {
        output.child(layout::FOLDER).child("kept").child(&format!("{id}.json"))
    }

    /// How it is less than was asked for, if it [is](Self::is_cut); it had room for so many tokens.
    pub fn shortfall(&self, room: u32) -> Shortfall {
        Shortfall { is_empty: self.answer.trim().is_empty(), room }
    }

    /// Whether the answer is less than was asked for.
    pub fn is_cut(&self) -> bool {
        self.finish == Finish::Cut
    }

    /// Whether the answer is known to be all of it.
    pub fn is_whole(&self) -> bool {
        self.finish == Finish::Complete
    }

    /// Whether it came out of the store of answers.
    pub fn is_reused(&self) -> bool {
        self.saved_usd.is_some()
    }

    /// What came out of the store of answers with it.
    pub fn reused(&self) -> Reused {
        let saved_usd = self.saved_usd.unwrap_or_default();
        Reused { reused: self.is_reused().into(), saved_usd }
    }

    /// Writes an answer that is no result. Whether it could be kept.
    pub(crate) async fn keep(&self, location: &Location) -> bool {
        let written = match serde_json::to_vec(self) {
            Ok(json) => location.write(json).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        written
            .inspect_err(|error| tracing::warn!(%location, error, "an answer cannot be kept"))
            .is_ok()
    }

    /// The result that is there already.
    ///
    /// # Errors
    /// `Transient` when the store fails.
    pub async fn read(location: &Location) -> Result<Option<Self>, Failure> {
        Ok(Self::read_named(location).await?.map(|(result, _)| result))
    }

    /// The same, with the fingerprint of the object: what replaces it replaces no other.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_named(location: &Location) -> Result<Option<(Self, Fingerprint)>, Failure> {
        match location.read().await {
            // A file that is no result of ours came from another program; it is kept and the
            // document is done anew elsewhere.
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(result) => Ok(Some((result, Fingerprint::of_bytes(&bytes)))),
                Err(error) => Err(Failure::invalid_input(format!(
                    "{location} is there, but is no result of tidegate ({error}); move it away or choose another output"
                ))),
            },
            Err(Error::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// As it is written: where there is no result, or the one that it replaces, by its name.
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

    /// Whether the activity of this attempt wrote it: an attempt before this one may have, and died
    /// before it could say so. Any other result was there already, and is not counted.
    pub fn is_of(&self, attempt: &Attempt) -> bool {
        let completed = DateTime::parse_from_rfc3339(&self.completed_at);
        completed.map_or(0, |time| time.timestamp_millis()) >= attempt.scheduled_millis
    }

    /// What an attempt that ends with it returns to the workflow: the calls are the activity's own. Where
    /// a server that was killed has not heard of the attempt that made them, the result tells.
    pub fn outcome(&self, attempt: &Attempt) -> DocumentOutcome {
        self.outcome_beyond(attempt, Spend::default())
    }

    /// The same, without what other activities have taken for it.
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

/// Now, as RFC 3339 with milliseconds.
pub fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}
