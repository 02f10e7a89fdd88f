//! Documents that go through their provider's batch API: later, at a lower price.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_types::Spend;

use super::document::{CutAnswers, FailedDocument};

/// A provider that cancels a batch may finish what is at hand: OpenAI takes up to ten minutes, and
/// Anthropic waits for requests that are under way.
pub const STOPPING: Duration = Duration::from_secs(15 * 60);

/// A batch whose documents go through their provider's batch API first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderBatching {
    /// From then on, in seconds since 1970, what has no answer takes the direct path; without it,
    /// when the provider gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// Submits some documents of a shard: as many as fit into one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitBatch {
    /// [`Plan::job`](super::Plan::job).
    pub job: String,
    /// The batch's workflow id.
    #[serde(default)]
    pub workflow: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// The first document, counted from 0.
    pub from: u32,
    /// The document after the last.
    pub to: u32,
    /// How often the provider had no room for them.
    pub round: u32,
    /// Nothing is submitted any more; but what an earlier attempt may have submitted is looked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_find: bool,
    /// Nothing is submitted from then on, in seconds since 1970: this activity may have waited for
    /// a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// What was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedBatch {
    /// The provider's name for it; `None` where no document needs an answer, or can have one in
    /// this way.
    pub batch: Option<String>,
    /// Documents in it.
    pub requests: u32,
    /// The first document after it.
    pub next: u32,
    /// The provider cannot take it now: submit the same documents later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
    /// It may have taken it all the same, under a name that is not known here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// A batch that the provider works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderBatch {
    /// As it was submitted.
    #[serde(flatten)]
    pub submitted: SubmitBatch,
    /// The provider's name for it.
    pub batch: String,
    /// Documents in it.
    pub requests: u32,
}

/// All batches of a shard that are waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenBatches {
    /// In any order; what is said of them comes in the same.
    pub batches: Vec<ProviderBatch>,
}

/// What a shard passes on that continues as new while its documents wait in their provider's
/// batches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedBatches {
    /// Batches that the provider works on.
    pub open: Vec<ProviderBatch>,
    /// Documents that must yet be submitted.
    pub waiting: Vec<SubmitBatch>,
    /// Documents whose submission may have reached the provider: no answer came.
    pub unsure: Vec<SubmitBatch>,
}

/// How far the provider is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// Not done.
    Running,
    /// There is an answer to all that will have one.
    Ended,
    /// The provider had no room for it now.
    Full,
    /// The provider will not do it.
    Failed,
}

/// What a batch brought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectedBatch {
    /// Documents that have their result, in order.
    pub done: Vec<u32>,
    /// Documents that will never have one: asked again, they would be refused again, and paid for.
    pub failed: Vec<FailedDocument>,
    /// Documents whose answer was cut, to be asked again with more room, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raise: Vec<u32>,
    /// Documents that were asked and have neither result nor failure, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<u32>,
    /// What all of it took, answers that were of no use included.
    pub spent: Spend,
    /// Answers that are not whole.
    #[serde(flatten)]
    pub cuts: CutAnswers,
    /// Of those that have their result, the ones that were asked again because their content has
    /// changed.
    #[serde(default)]
    pub updated: u64,
}
