//! A batch as it is planned, its shards, and how it ends.

use serde::{Deserialize, Serialize};
use temporalio_common::{SignalDefinition, UntypedWorkflow, data_converters::RawValue};
use tidegate_types::{Lane, Tenant};

use super::{
    document::FailedDocument,
    progress::{Progress, Totals},
    provider_batch::{ProviderBatching, SubmittedBatches},
};

/// What `tidegate.plan` and `tidegate.plan_more` wrote: the job object, and one manifest object per
/// shard beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// URI of the folder that holds `job.json` and the shards' manifests. Every later activity
    /// finds its work by it.
    pub job: String,
    /// Documents in all.
    pub documents: u64,
    /// Documents in each full shard; the last may hold fewer.
    pub shard_size: u32,
    /// They go through their provider's batch API first.
    #[serde(rename = "economy", default, skip_serializing_if = "Option::is_none")]
    pub provider_batching: Option<ProviderBatching>,
    /// Documents in one call at most; 0 and 1 are the same.
    #[serde(default)]
    pub pack: u32,
    /// [`Progress::renamed`].
    #[serde(default)]
    pub renamed: u64,
    /// Documents in no shard, because their answers were sealed before.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub settled: u64,
    /// In how many pages it was written; 0 is one, by a version that knew of no more.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub pages: u32,
    /// More documents follow: `tidegate.plan_more` writes the next page, and all shards until then
    /// are full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Documents in flight that the limits can use, by Little's law.
    #[serde(default)]
    pub in_flight: u32,
    /// So many of them at first, where nobody has seen yet how long calls take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// How long a call is then thought to take, in seconds; 0 where that is known.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub call_seconds: u32,
    /// After so many seconds without a beat a worker is given up that holds documents; 0 where the
    /// lane says nothing.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub heartbeat_seconds: u32,
    /// How the batch says what it is in Temporal's lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

/// Where a batch's tenant, model and lane stand for those who look for it in Temporal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// The server knows all of [`NAMES`](crate::labels::NAMES).
    SearchAttributes,
    /// It does not, or does not say.
    Memo,
}

impl Plan {
    /// How many shards there are.
    pub fn shards(&self) -> u32 {
        u32::try_from(self.asked().div_ceil(u64::from(self.shard_size.max(1)))).unwrap_or(u32::MAX)
    }

    /// Documents that lie in shards.
    pub fn asked(&self) -> u64 {
        self.documents.saturating_sub(self.settled)
    }

    /// How many documents shard `shard` holds, counted from 0.
    pub fn shard_documents(&self, shard: u32) -> u32 {
        let size = u64::from(self.shard_size.max(1));
        let before = u64::from(shard) * size;
        u32::try_from(self.asked().saturating_sub(before).min(size)).unwrap_or(u32::MAX)
    }
}

/// What a shard works on, and what it has come to before it continued as new.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShardInput {
    /// [`Plan::job`].
    pub job: String,
    /// The batch's workflow id. Budgets and retries are counted by it.
    pub workflow: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// How many documents it holds.
    pub documents: u32,
    /// Documents in flight at once.
    pub window: u32,
    /// So many of them, while the task queue was long; `None` where all may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// [`Plan::call_seconds`], until a call has told of the queue behind it.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub call_seconds: u32,
    /// The class of traffic.
    pub lane: Lane,
    /// Whose budget pays.
    pub tenant: Tenant,
    /// The workflow id of the batch or its group: the shard's reports go there.
    pub parent: String,
    /// The next document, counted from 0.
    pub next: u32,
    /// What the documents before it came to.
    pub totals: Totals,
    /// Those that were given up.
    pub failures: Vec<FailedDocument>,
    /// Hand out no documents until `resume`.
    pub paused: bool,
    /// They go through their provider's batch API first; `None` when they have.
    #[serde(rename = "economy", skip_serializing_if = "Option::is_none")]
    pub provider_batching: Option<ProviderBatching>,
    /// What an earlier run has submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<SubmittedBatches>,
    /// Those that need nothing more after it, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<u32>,
    /// Those whose answer out of a provider's batch was cut, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raise: Vec<u32>,
    /// Those that were asked there or in a pack and come back, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<u32>,
    /// Documents in one call at most; 0 and 1 are the same.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub pack: u32,
    /// The least seconds between two reports of how far it is.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub report_seconds: u32,
    /// [`Plan::heartbeat_seconds`].
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub heartbeat_seconds: u32,
    /// Others wait for its places: it says when they are free.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub returns_places: bool,
}

/// Several shards of a large batch, which a workflow of their own starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInput {
    /// The group, counted from 0.
    pub group: u32,
    /// The batch's workflow id, by which its shards are called too.
    pub batch: String,
    /// Its first shard.
    pub from: u32,
    /// The shard after its last.
    pub to: u32,
    /// [`Plan::shard_size`].
    pub shard_size: u32,
    /// Documents in all shards up to its last.
    pub documents: u64,
    /// Documents in flight at once, to begin with.
    pub window: u32,
    /// Hand out no documents until `resume`.
    pub paused: bool,
    /// What all its shards begin with.
    pub shard: ShardInput,
}

/// How far a shard is: cumulative, so that a report that comes twice or late does no harm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardReport {
    /// The shard, counted from 0.
    pub shard: u32,
    /// What its documents came to so far.
    pub totals: Totals,
    /// The places of its window that it still needs, once it has handed out its last document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
    /// [`ShardInput::open`], as it was last: the next shard begins with it. What the one before has yet
    /// in flight goes beyond it for as long as a call takes; with less, a part of the quota would be
    /// idle for as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// It is a group of shards, and `shard` is its number among groups.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_group: bool,
}

/// What a batch knows, and whom to ask for what it has not heard of yet: the answer of the query
/// `live`. Workflows cannot ask each other; whoever shows a batch can.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Live {
    /// As the query `progress` answers.
    pub progress: Progress,
    /// Of its totals, what has ended: the rest is what those that run have reported.
    pub ended: Totals,
    /// Its shards and groups that have not ended.
    pub running: Vec<LiveChild>,
}

/// A shard or a group that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveChild {
    /// Its workflow id.
    pub id: String,
    /// It is a group, which answers `live` too.
    pub is_group: bool,
    /// What it has reported: part of the progress.
    pub totals: Totals,
}

/// The signal that carries a [`ShardReport`] to the batch. Not the definition that the batch's own
/// workflow has, so that a shard can send it without knowing that workflow.
#[derive(Debug, Clone, Copy)]
pub struct ShardProgress;

impl SignalDefinition for ShardProgress {
    type Workflow = UntypedWorkflow;
    type Input = RawValue;

    fn name(&self) -> &str {
        "shard_progress"
    }
}

/// Closes a shard, or a part of one: its results and failures are gathered into one object each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealShard {
    /// [`Plan::job`].
    pub job: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// The documents of this shard that were given up, in the order of their indices.
    pub failures: Vec<FailedDocument>,
}

/// Ends a batch: gathers the shards' parts and writes the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// The plan that was carried out.
    pub plan: Plan,
    /// The prefix for the results, as in the input.
    pub output: String,
    /// The workflow's result so far.
    pub progress: Progress,
}

/// What has become of the planned documents, by what lies in the output: each has a result, or a
/// failure, or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finished {
    /// Results of this run.
    pub succeeded: u64,
    /// Failures of documents without a result.
    pub failed: u64,
    /// Results of earlier runs.
    pub skipped: u64,
    /// Neither, in a batch that was cancelled or has failed.
    pub cancelled: u64,
    /// Neither, in a batch that has worked on all of them: that must not be.
    pub missing: u64,
    /// The ids of the first few that are missing.
    pub first_missing: Vec<String>,
}

impl Finished {
    /// The same totals, with what lies in the output.
    pub fn correct(&self, totals: Totals) -> Totals {
        let Self { succeeded, failed, skipped, cancelled, .. } = *self;
        Totals { succeeded, failed, skipped, cancelled, in_flight: 0, ..totals }
    }
}

/// Whether the documents of a run wait, those that are handed out too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkPaused {
    /// [`Plan::job`]: it names this run, and no other of the same workflow id.
    pub job: String,
    /// They wait, or go on.
    pub paused: bool,
}
