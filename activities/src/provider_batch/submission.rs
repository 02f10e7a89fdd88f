//! The record of a batch that was submitted, or was about to be.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_workflows::contract::SubmitBatch;

use crate::{
    failure::Failure,
    fingerprint::{Fingerprint, hash},
    output::{jsonl::json, version::Version},
    storage::Location,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Submission {
    /// The time before it was submitted.
    pub(super) at: DateTime<Utc>,
    /// Documents in it.
    pub(super) requests: u32,
    /// The first document after it.
    pub(super) next: u32,
    /// Its maximum expected cost, in US dollars.
    pub(super) usd: f64,
    /// Whether the id was found by the batch's size and time, so that it may be another batch's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) guessed: bool,
    /// Its documents, by their indices.
    pub(super) sent: BTreeMap<u32, Sent>,
    /// The provider's id, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<String>,
}

/// A document as it was submitted; it may have changed by the time it is answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Sent {
    #[serde(flatten)]
    pub(super) version: Version,
    /// Whether an earlier content of it has an answer to this question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) updated: bool,
    /// Fingerprint of the document's earlier result, which answers another question or content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instead_of: Option<Fingerprint>,
}

impl Submission {
    pub(super) async fn read(
        folder: &Location,
        task: &SubmitBatch,
    ) -> Result<Option<Self>, Failure> {
        let bytes = location(folder, task).read_if_there().await?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Removes the record. A remaining record only costs a look-up at the provider that finds
    /// nothing.
    pub(super) async fn remove(folder: &Location, task: &SubmitBatch) {
        let stays = "the record of a batch's submission stays behind";
        location(folder, task).remove_or_log(stays).await;
    }

    pub(super) async fn write(&self, folder: &Location, task: &SubmitBatch) -> Result<(), Failure> {
        let json = json(self)?;
        Ok(location(folder, task).write(json).await?)
    }
}

/// The provider's ids of all known batches of a job.
pub(super) async fn known_batch_ids(folder: &Location) -> Result<BTreeSet<String>, Failure> {
    let (mut submissions, mut taken) = (Vec::new(), BTreeSet::new());
    folder
        .list(|location| {
            if location.name().starts_with(PREFIX) {
                submissions.push(location);
            }
        })
        .await?;
    for object in submissions {
        let bytes = object.read().await?;
        taken.extend(
            serde_json::from_slice::<Submission>(&bytes)
                .ok()
                .and_then(|submission| submission.batch),
        );
    }
    Ok(taken)
}

const PREFIX: &str = "batch-";

fn location(folder: &Location, task: &SubmitBatch) -> Location {
    folder.child(&format!("{PREFIX}{:05}-{:05}-{}.json", task.shard, task.from, task.round))
}

/// The name of a batch: in the provider's metadata, in the names of its requests, and in the
/// budgets that pay for it.
pub(super) fn key(task: &SubmitBatch) -> String {
    let place = [task.shard, task.from, task.round].map(u32::to_le_bytes);
    format!("{:016x}", hash([task.job.as_bytes(), &place[0], &place[1], &place[2]]))
}

/// The name of a batch's hold on a budget. It contains the number of requests, because a larger
/// hold of an earlier attempt is released on its own.
pub(super) fn hold(key: &str, requests: u32) -> String {
    format!("{key}.{requests}")
}

/// The name of a document's request. It contains the batch's name, so that an answer from another batch
/// is recognised.
pub(super) fn custom_id(key: &str, index: u32) -> String {
    format!("{key}-{index}")
}

/// The index of the document whose request has this name, if the request belongs to this batch.
pub(super) fn index(key: &str, custom_id: &str) -> Option<u32> {
    custom_id.strip_prefix(key)?.strip_prefix('-')?.parse().ok()
}
