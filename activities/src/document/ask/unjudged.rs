//! Answers that are stored before they are judged, where judging needs a process: the process may
//! not start, or the worker may die meanwhile. The next attempt judges the stored answer and asks no
//! model.
//!
//! An unjudged answer is stored where an answer that is refused is stored, and is overwritten by it.

use serde::{Deserialize, Serialize};
use tidegate_types::Spend;

use crate::{
    attempt::{Attempt, RecordedUse},
    failure::Failure,
    output::{jsonl::json, pending_writes::Bought, result::DocumentResult},
    services::Services,
    storage::Location,
};

/// An answer that is not judged yet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Unjudged {
    #[serde(flatten)]
    pub(crate) result: DocumentResult,
    /// The use of its activity before it.
    used: RecordedUse,
    /// Questions about the document that were answered before this one.
    questions: u32,
    /// Its tokens and their price.
    pub(crate) own: Spend,
}

impl Unjudged {
    pub(crate) fn new(attempt: &Attempt, result: DocumentResult, own: Spend) -> Self {
        let questions = attempt.state().document.checked;
        Self { result, used: attempt.recorded_use(), questions, own }
    }

    /// Stores it. Waits as long as the store fails.
    ///
    /// # Errors
    /// Failures other than a store's.
    pub(crate) async fn store(
        &self,
        services: &Services,
        attempt: &Attempt,
        place: &Location,
    ) -> Result<(), Failure> {
        let bought = Bought::new(place, json(self)?).replacing();
        services.pending_writes.write(attempt, &bought).await?;
        attempt.set_kept_answer(place.to_string());
        Ok(())
    }

    /// The answer to the present question that an earlier attempt of this activity has stored and
    /// not judged.
    ///
    /// # Errors
    /// `Transient` when the store fails.
    pub(crate) async fn find(
        services: &Services,
        attempt: &Attempt,
        place: &Location,
    ) -> Result<Option<Self>, Failure> {
        if !attempt.call.has_called() {
            return Ok(None);
        }
        services.pending_writes.recover(attempt, place).await?;
        let bytes = place.read_if_there().await?;
        let found = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let questions = attempt.state().document.checked;
        let found = found.filter(|it| it.used.is_of(attempt) && it.questions == questions);
        if let Some(found) = &found {
            attempt.recall(&found.used);
            attempt.set_kept_answer(place.to_string());
        }
        Ok(found)
    }
}
