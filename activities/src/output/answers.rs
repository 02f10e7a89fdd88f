//! Answers shared between batches: an answer to one question about one content is bought once.
//!
//! An answer is stored at `<prefix>/<question>/<content>-<layout>.json`: the fingerprints of the
//! question and of the document's bytes, and the version of our prompts' frame. Only whole answers are
//! stored. They are never removed: the bucket's own rules decide how long they are kept.
//!
//! The store is optional: after a failure or a time-out it is not used for a while, and answers are
//! bought.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_providers::{Finish, StopReason};
use tidegate_types::ModelId;
use tracing::warn;

use crate::{
    fingerprint::Fingerprint,
    output::{
        job::Document,
        result::{AskedModel, Checked, DocumentResult, Evidence},
        version::Version,
    },
    storage::{Error, Location, Storage},
};

/// Version of the frame around a document in a prompt, including notes on parts and packs. Raise it
/// with each change of the frame: stored answers of the older version are then not used.
pub const LAYOUT: u32 = 1;

/// Time-out of the store. An answer costs seconds, so a slower store saves nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time for which a store is not used after a failure.
const REST: Duration = Duration::from_secs(60);

/// The store of answers.
#[derive(Debug)]
pub struct Answers {
    prefix: Location,
    /// After a failure, the store is not used until then.
    rests_until: Mutex<Option<Instant>>,
}

/// One answer: the fields of a result that belong to no document and no batch.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    model: ModelId,
    answer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evidence: Option<Vec<Evidence>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding: Option<Vec<f32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Checked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<AskedModel>,
    stop_reason: String,
    /// The tokens that it used when it was bought.
    input_tokens: u64,
    output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    completed_at: String,
    /// The version of the document without content and stamp, which differ between documents that
    /// share the answer. The other fields cannot be derived without reading the document again.
    #[serde(flatten)]
    version: Version,
}

impl Answers {
    /// A store under this prefix, which need not lie under the roots for documents.
    ///
    /// # Errors
    /// [`Error::Invalid`] states the remedy.
    pub fn open(prefix: &str) -> Result<Self, Error> {
        let prefix = Storage::new([prefix])?.resolve(prefix)?;
        Ok(Self { prefix, rests_until: Mutex::default() })
    }

    /// The document's result, if its question about this content was answered before.
    pub(crate) async fn find(
        &self,
        document: &Document,
        question: Fingerprint,
        version: &Version,
    ) -> Option<DocumentResult> {
        let place = self.place(question, version.content?);
        let bytes = self.ask("read", place.read_if_there()).await??;
        let answer: Answer = match serde_json::from_slice(&bytes) {
            Ok(answer) => answer,
            Err(error) => {
                warn!(%place, %error, "this is no answer; it is bought, and replaced");
                return None;
            }
        };
        let Version { content, stamp, .. } = version.clone();
        let version = Version { content, stamp, ..answer.version.clone() };
        Some(answer.result(document.clone()).with_question(question, version))
    }

    /// Stores the answer of a result, if it is whole and states its question.
    pub(crate) async fn save(&self, result: &DocumentResult) {
        let of = result.question.zip(result.version.content);
        let is_good = result.is_whole() && !result.is_reused() && result.unchecked.is_empty();
        let Some((question, content)) = of.filter(|_| is_good) else {
            return;
        };
        let place = self.place(question, content);
        let Ok(json) = serde_json::to_vec(&Answer::from_result(result)) else { return };
        self.ask("write", place.write(json)).await;
    }

    fn place(&self, question: Fingerprint, content: Fingerprint) -> Location {
        self.prefix.child(&question.to_string()).child(&format!("{content}-{LAYOUT}.json"))
    }

    /// Asks the store, unless it is paused.
    async fn ask<T>(&self, what: &str, ask: impl Future<Output = Result<T, Error>>) -> Option<T> {
        if self.rests_until.lock().is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let failed = match tokio::time::timeout(PATIENCE, ask).await {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it takes longer than {PATIENCE:?} to {what} an answer"),
        };
        warn!(failed, "the store of answers is not used for {REST:?}; answers are bought");
        *self.rests_until.lock() = Some(Instant::now() + REST);
        None
    }
}

impl Answer {
    fn from_result(result: &DocumentResult) -> Self {
        Self {
            model: result.model.clone(),
            answer: result.answer.clone(),
            evidence: result.evidence.clone(),
            embedding: result.embedding.clone(),
            parts: result.parts.clone(),
            checks: result.checks.clone(),
            asked: result.asked.clone(),
            stop_reason: result.stop_reason.clone(),
            input_tokens: result.input_tokens,
            output_tokens: result.output_tokens,
            cost_usd: result.cost_usd,
            completed_at: result.completed_at.clone(),
            version: Version { content: None, stamp: None, ..result.version.clone() },
        }
    }

    /// Turns it into the result of a document, with no cost.
    fn result(self, document: Document) -> DocumentResult {
        DocumentResult {
            evidence: self.evidence,
            embedding: self.embedding,
            parts: self.parts,
            checks: self.checks,
            asked: self.asked,
            stop_reason: self.stop_reason,
            finish: Finish::Complete,
            cost_usd: Some(0.0),
            saved_usd: Some(self.cost_usd.unwrap_or_default()),
            ..DocumentResult::new(document, &self.model, self.answer, &StopReason::EndTurn)
        }
    }
}
