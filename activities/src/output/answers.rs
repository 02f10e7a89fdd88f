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
use serde_json::Map;
use tidegate_types::DocumentId;
use tracing::warn;

use crate::{
    fingerprint::Fingerprint,
    output::{
        job::Document,
        result::{self, DocumentResult},
        version::Version,
    },
    storage::{Error, Location, Storage},
};

/// Version of the frame around a document in a prompt, including notes on parts and packs, and of
/// what is stored. Raise it with each change: stored answers of the older version are then not used.
pub const LAYOUT: u32 = 2;

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
        let stored: DocumentResult = match serde_json::from_slice(&bytes) {
            Ok(stored) => stored,
            Err(error) => {
                warn!(%place, %error, "this is no answer; it is bought, and replaced");
                return None;
            }
        };
        let Version { content, stamp, .. } = version.clone();
        let version = Version { content, stamp, ..stored.version.clone() };
        Some(of_document(stored, document.clone()).with_question(question, version))
    }

    /// Stores the answer of a result, if it is whole and states its question.
    pub(crate) async fn save(&self, result: &DocumentResult) {
        let of = result.question.zip(result.version.content);
        let is_good = result.is_whole() && !result.is_reused() && result.unchecked.is_empty();
        let Some((question, content)) = of.filter(|_| is_good) else {
            return;
        };
        let place = self.place(question, content);
        let Ok(json) = serde_json::to_vec(&of_no_document(result)) else { return };
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

/// What is stored of a result: nothing of its document and its batch. Of the document's version only
/// content and stamp are left out; the rest cannot be derived without reading the document again.
fn of_no_document(result: &DocumentResult) -> DocumentResult {
    DocumentResult {
        id: DocumentId::from_relative_path(""),
        uri: String::new(),
        fields: Map::new(),
        fallback: None,
        seconds: None,
        activity: None,
        question: None,
        version: Version { content: None, stamp: None, ..result.version.clone() },
        ..result.clone()
    }
}

/// Turns a stored result into the result of a document, with no cost.
fn of_document(
    stored: DocumentResult,
    Document { id, uri, fields, .. }: Document,
) -> DocumentResult {
    let saved_usd = Some(stored.cost_usd.unwrap_or_default());
    let completed_at = result::now();
    let stored = DocumentResult { usage_unknown: false, ..stored };
    let free = stored.with_cost(0, None, Some(0.0));
    DocumentResult { id, uri, fields, completed_at, saved_usd, ..free }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use tidegate_providers::StopReason;

    use super::*;
    use crate::attempt::{Attempt, AttemptState};

    #[tokio::test]
    async fn what_is_stored_says_nothing_of_its_document_or_its_batch() {
        let folder = tempfile::tempdir().unwrap();
        let answers = Answers::open(&format!("file://{}/", folder.path().display())).unwrap();
        let document = |name: &str| {
            let id = DocumentId::from_relative_path(&format!("private-{name}.md"));
            let fields = Map::from_iter([("ship".to_owned(), name.into())]);
            Document { fields, ..Document::file(id, format!("file:///private/{name}.md")) }
        };
        let [question, content] = [&b"question"[..], b"content"].map(Fingerprint::of_bytes);
        let version = Version { content: Some(content), ..Version::default() };
        let attempt =
            Attempt::new("r".to_owned(), "private".to_owned(), 0, AttemptState::default());
        let model = "a:b".parse().unwrap();
        let bought =
            DocumentResult::new(document("one"), &model, "High.".to_owned(), &StopReason::EndTurn)
                .with_question(question, version.clone())
                .of_activity(&attempt)
                .with_cost(3, None, Some(0.25));
        answers.save(&bought).await;
        let stored = answers.place(question, content).read().await.unwrap();
        let stored = String::from_utf8(stored.to_vec()).unwrap();
        for private in ["private", "ship", &attempt.activity(), &question.to_string()] {
            assert!(!stored.contains(private), "{private}: {stored}");
        }
        let found = answers.find(&document("two"), question, &version).await.unwrap();
        assert_eq!(
            (found.id.as_str(), found.fields["ship"].as_str()),
            ("private-two.md", Some("two"))
        );
        assert_eq!((found.answer.as_str(), found.provider_calls), ("High.", 0));
        assert_eq!(
            (found.cost_usd, found.saved_usd, found.activity),
            (Some(0.0), Some(0.25), None)
        );
    }
}
