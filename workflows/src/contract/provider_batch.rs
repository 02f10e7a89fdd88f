//! Documents that go through their provider's batch API: later, at a lower price.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_types::Spend;

use super::document::{CutAnswers, FailedDocument};

/// Maximum time that a cancelled provider batch continues: OpenAI takes up to ten minutes, and
/// Anthropic waits for requests under way.
pub const STOPPING: Duration = Duration::from_secs(15 * 60);

/// A batch whose documents go through their provider's batch API first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderBatching {
    /// Seconds since 1970: from then on, documents without an answer take the direct path. Without
    /// it they wait until the provider gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// Submits documents of a shard: as many as fit into one provider batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitBatch {
    /// [`Plan::job`](super::Plan::job).
    pub job: String,
    /// The batch's workflow id.
    pub workflow: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// The first document, counted from 0.
    pub from: u32,
    /// The document after the last.
    pub to: u32,
    /// How often the provider had no room for them.
    pub round: u32,
    /// Whether to submit nothing, and only find a batch that an earlier attempt may have submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_find: bool,
    /// Seconds since 1970: from then on nothing is submitted. The activity may have waited for a
    /// worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// The outcome of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedBatch {
    /// The provider's name for the batch; `None` if no document needs an answer, or if none can be
    /// answered by the batch API.
    pub batch: Option<String>,
    /// Documents in it.
    pub requests: u32,
    /// The first document after it.
    pub next: u32,
    /// Whether the provider cannot take it now, so that the documents are submitted later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
    /// Whether the provider may have taken it although no name was returned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// A batch at the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderBatch {
    /// Its submission.
    #[serde(flatten)]
    pub submitted: SubmitBatch,
    /// The provider's name for it.
    pub batch: String,
    /// Documents in it.
    pub requests: u32,
}

/// All provider batches that a shard waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenBatches {
    /// The batches; their states come back in the same order.
    pub batches: Vec<ProviderBatch>,
}

/// State of a shard that continues as new while its documents wait in provider batches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedBatches {
    /// Batches at the provider.
    pub open: Vec<ProviderBatch>,
    /// Documents that are still to be submitted.
    pub waiting: Vec<SubmitBatch>,
    /// Documents whose submission may have reached the provider: no reply came.
    pub unsure: Vec<SubmitBatch>,
}

/// The state of a provider batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// The provider works on it.
    Running,
    /// All requests have ended.
    Ended,
    /// The provider had no room for it.
    Full,
    /// The provider refused it.
    Failed,
}

/// The results of a provider batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectedBatch {
    /// Documents with a result, in order.
    pub done: Vec<u32>,
    /// Documents that failed for good: another request would be refused too, at a cost.
    pub failed: Vec<FailedDocument>,
    /// Documents whose answer was cut, to be asked again with more room, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raise: Vec<u32>,
    /// Documents that were asked and have neither result nor failure, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<u32>,
    /// Use of the batch, including useless answers.
    pub spent: Spend,
    /// Incomplete answers.
    #[serde(flatten)]
    pub cuts: CutAnswers,
    /// Documents with a result that were asked again because their content has changed.
    pub updated: u64,
}
