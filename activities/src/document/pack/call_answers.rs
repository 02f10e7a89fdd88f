//! The answers of a call by document. They are stored before they are judged where judging needs a
//! process: the process may not start, or the worker may die meanwhile.

use serde::{Deserialize, Serialize};
use tidegate_providers::StopReason;
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::PackTask;

use crate::{
    attempt::{Attempt, RecordedUse},
    failure::Failure,
    output::{job::Shard, jsonl::json, pending_writes::Bought, version::Version},
    services::Services,
    storage::Location,
};

/// The answers of one call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallAnswers {
    pub(super) model: ModelId,
    pub(super) usage: Usage,
    pub(super) usage_unknown: bool,
    /// The provider's word for why the model stopped, if it is not known to be complete or cut.
    pub(super) stopped: Option<String>,
    /// By the document's index in its shard; the version is of the content that was sent.
    pub(super) answers: Vec<(u32, Version, String)>,
    /// The use of the activity before the answers.
    pub(super) used: RecordedUse,
}

impl CallAnswers {
    /// The answer to the document with this index in its shard, if its content has not changed since.
    pub(super) fn of(&self, document: u32, content: &Version) -> Option<&str> {
        let (_, version, answer) = self.answers.iter().find(|(index, ..)| *index == document)?;
        (content.is_same(version) != Some(false)).then_some(answer.as_str())
    }

    pub(super) fn stop_reason(&self) -> StopReason {
        self.stopped.clone().map_or(StopReason::EndTurn, StopReason::Other)
    }

    /// Stores them if judging needs a process. Waits as long as the store fails.
    pub(super) async fn store(
        &self,
        services: &Services,
        attempt: &Attempt,
        shard: &Shard,
        place: &Location,
    ) -> Result<(), Failure> {
        if !need_process(shard) {
            return Ok(());
        }
        let bought = Bought::new(place, json(self)?).replacing();
        services.pending_writes.write(attempt, &bought).await.map(drop)
    }

    /// The answers that an earlier attempt of this activity has stored and not judged.
    pub(super) async fn find(
        services: &Services,
        attempt: &Attempt,
        shard: &Shard,
        place: &Location,
    ) -> Result<Option<Self>, Failure> {
        if !need_process(shard) || !attempt.call.has_called() {
            return Ok(None);
        }
        services.pending_writes.recover(attempt, place).await?;
        let bytes = place.read_if_there().await?;
        let found = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let found = found.filter(|it| it.used.is_of(attempt));
        if let Some(found) = &found {
            attempt.recall(&found.used);
        }
        Ok(found)
    }
}

/// Whether the answers of a shard are judged in a process of its own.
fn need_process(shard: &Shard) -> bool {
    shard.validator.as_ref().is_some_and(|validator| !validator.is_harmless)
}

/// Location of a call's answers until they are judged.
pub(super) fn location(shard: &Shard, task: &PackTask) -> Location {
    shard.folder.child(&format!("pack-{:05}-{:05}-unjudged.json", task.shard, task.from))
}

/// Removes them once they are judged. Failing to remove them does no harm.
pub(super) async fn forget(shard: &Shard, place: &Location) {
    if need_process(shard) {
        place.remove_or_log("a pack's answers stay behind").await;
    }
}
