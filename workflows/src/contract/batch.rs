//! A batch's plan, its shards, and its end.

use serde::{Deserialize, Serialize};
use temporalio_common::{
    SignalDefinition, UntypedWorkflow, WorkflowDefinition, data_converters::RawValue,
};
use tidegate_types::{Lane, Tenant};

use crate::contract::{
    document::FailedDocument,
    progress::{Progress, Totals},
    provider_batch::{ProviderBatching, SubmittedBatches},
};

/// The result of `tidegate.plan` and `tidegate.plan_more`, which write the job object and one
/// manifest object for each shard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// URI of the folder with `job.json` and the shards' manifests. Every later activity finds its
    /// work by it.
    pub job: String,
    /// All documents of the batch.
    pub documents: u64,
    /// Documents in each full shard; the last may hold fewer.
    pub shard_size: u32,
    /// Set if the documents go through their provider's batch API first.
    #[serde(rename = "economy", default, skip_serializing_if = "Option::is_none")]
    pub provider_batching: Option<ProviderBatching>,
    /// Maximum number of documents in one call; 0 and 1 mean the same.
    pub pack: u32,
    /// [`Progress::renamed`].
    pub renamed: u64,
    /// Documents in no shard, because their results were sealed before.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub settled: u64,
    /// Pages of the plan.
    pub pages: u32,
    /// Whether more documents follow: `tidegate.plan_more` plans the next page. Until then all
    /// shards are full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Documents in flight that the limits can use, by Little's law.
    pub in_flight: u32,
    /// Documents that the fleet has slots for, and as many behind them; 0 if that limits nothing.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub ready: u32,
    /// Documents in flight at first, while it is unknown how long calls take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// The expected duration of a call in seconds while it is unknown; 0 if it is known.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub call_seconds: u32,
    /// Heartbeat time-out of activities that hold documents, in seconds; 0 is the lane's default.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub heartbeat_seconds: u32,
    /// How the batch is labelled in Temporal's lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

/// Where a batch's tenant, model and lane are stored for Temporal's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// In search attributes: the server knows all of [`NAMES`](crate::labels::NAMES).
    SearchAttributes,
    /// In a memo: the server does not know the attributes, or did not answer.
    Memo,
}

impl Plan {
    /// The number of shards.
    pub fn shards(&self) -> u32 {
        u32::try_from(self.asked().div_ceil(u64::from(self.shard_size.max(1)))).unwrap_or(u32::MAX)
    }

    /// Documents that lie in shards.
    pub fn asked(&self) -> u64 {
        self.documents.saturating_sub(self.settled)
    }
}

/// A shard's input; in a continued run, with its state so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShardInput {
    /// [`Plan::job`].
    pub job: String,
    /// The batch's workflow id. Budgets and retries are counted under it.
    pub workflow: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// Documents of the shard.
    pub documents: u32,
    /// Documents in flight at once.
    pub window: u32,
    /// Places of the window in use while the task queue is long; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// [`Plan::call_seconds`], until a call has shown the task queue's delay.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub call_seconds: u32,
    /// The class of traffic.
    pub lane: Lane,
    /// The tenant whose budget pays.
    pub tenant: Tenant,
    /// The workflow id of the batch or group that gets the shard's reports.
    pub parent: String,
    /// The next document, counted from 0.
    pub next: u32,
    /// Totals of the documents before `next`.
    pub totals: Totals,
    /// Documents that failed.
    pub failures: Vec<FailedDocument>,
    /// Whether no documents are handed out until `resume`.
    pub paused: bool,
    /// Set until the documents have gone through their provider's batch API.
    #[serde(rename = "economy", skip_serializing_if = "Option::is_none")]
    pub provider_batching: Option<ProviderBatching>,
    /// Batches that an earlier run submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<SubmittedBatches>,
    /// Documents that a provider's batch has finished, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<u32>,
    /// Documents whose answer from a provider's batch was cut, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raise: Vec<u32>,
    /// Documents that were asked in a provider's batch or a pack and are asked again, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<u32>,
    /// Maximum number of documents in one call; 0 and 1 mean the same.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub pack: u32,
    /// Shortest time between two progress reports, in seconds.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub report_seconds: u32,
    /// [`Plan::heartbeat_seconds`].
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub heartbeat_seconds: u32,
    /// Whether other shards wait for its places: then it reports free ones.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub returns_places: bool,
}

/// Several shards of a large batch, in a workflow of their own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInput {
    /// The group, counted from 0.
    pub group: u32,
    /// The batch's workflow id; the ids of its shards begin with it.
    pub batch: String,
    /// Its first shard.
    pub from: u32,
    /// The shard after its last.
    pub to: u32,
    /// [`Plan::shard_size`].
    pub shard_size: u32,
    /// Documents of all shards up to its last.
    pub documents: u64,
    /// Documents in flight at once, to begin with.
    pub window: u32,
    /// Whether no documents are handed out until `resume`.
    pub paused: bool,
    /// The input that all its shards share.
    pub shard: ShardInput,
}

/// A shard's progress. It is cumulative, so that a repeated or late report does no harm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardReport {
    /// The shard, counted from 0.
    pub shard: u32,
    /// Totals of its documents so far.
    pub totals: Totals,
    /// The places of its window that it still needs, once it has handed out its last document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
    /// The last [`ShardInput::open`]; the next shard begins with it. The two shards together have
    /// more documents in flight than that until the earlier shard's calls have ended. If the next
    /// shard began with fewer, part of the quota would be idle until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// Whether it is a group; `shard` is then the group's number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_group: bool,
}

/// The answer of the `live` query: the batch's progress, and the children that have newer numbers.
/// Workflows cannot query each other; a program that shows a batch can query the children.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Live {
    /// The answer of the query `progress`.
    pub progress: Progress,
    /// The totals without those that running children have reported.
    pub ended: Totals,
    /// Its shards and groups that have not ended.
    pub running: Vec<LiveChild>,
}

/// A shard or a group that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveChild {
    /// The workflow id of the child.
    pub id: String,
    /// Whether it is a group, which answers `live` too.
    pub is_group: bool,
    /// Totals that it has reported; they are part of the progress.
    pub totals: Totals,
}

/// The workflow of a group. It is defined apart from its implementation, because the implementation
/// and the batch start children by the same code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupWorkflow;

impl WorkflowDefinition for GroupWorkflow {
    type Input = GroupInput;
    type Output = Totals;

    fn name(&self) -> &str {
        "ProcessGroup"
    }
}

/// The signal that carries a [`ShardReport`] to the batch. It is defined apart from the batch's
/// workflow, so that a shard can send it without depending on that workflow.
#[derive(Debug, Clone, Copy)]
pub struct ShardProgress;

impl SignalDefinition for ShardProgress {
    type Workflow = UntypedWorkflow;
    type Input = RawValue;

    fn name(&self) -> &str {
        "shard_progress"
    }
}

/// Seals a shard, or a part of one: writes its results and failures into one object each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealShard {
    /// [`Plan::job`].
    pub job: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// Failed documents of this shard, in the order of their indices.
    pub failures: Vec<FailedDocument>,
}

/// Ends a batch: combines the shards' parts and writes the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// The plan that was carried out.
    pub plan: Plan,
    /// The prefix for the results, as in the input.
    pub output: String,
    /// The workflow's result so far.
    pub progress: Progress,
}

/// Counts of the planned documents by their objects in the output: a result, a failure, or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finished {
    /// Results of this run.
    pub succeeded: u64,
    /// Failures of documents without a result.
    pub failed: u64,
    /// Results of earlier runs.
    pub skipped: u64,
    /// Documents with neither, in a batch that was cancelled or has failed.
    pub cancelled: u64,
    /// Documents with neither, in a batch that has processed all of them: a fault.
    pub missing: u64,
    /// The ids of the first missing documents.
    pub first_missing: Vec<String>,
}

impl Finished {
    /// Corrects the totals by these counts.
    pub fn correct(&self, totals: Totals) -> Totals {
        let Self { succeeded, failed, skipped, cancelled, .. } = *self;
        Totals { succeeded, failed, skipped, cancelled, in_flight: 0, ..totals }
    }
}

/// Pauses or resumes documents of a run that are already handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkPaused {
    /// [`Plan::job`]: unique to this run of the workflow id.
    pub job: String,
    /// Whether they wait.
    pub paused: bool,
}

/// Tells one webhook that a batch has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notify {
    /// The webhook's name in the workers' configuration.
    pub webhook: String,
    /// The batch's workflow id.
    pub batch: String,
    /// Its last run. It identifies the message, so that a receiver can recognise a duplicate.
    pub run: String,
    /// The batch's outcome.
    pub status: Ended,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it ended, in RFC 3339.
    pub finished_at: String,
    /// The report's counts.
    pub progress: Progress,
}

impl Notify {
    /// The id of the workflow that sends the message of this run.
    pub fn workflow_id(batch: &str, run: &str) -> String {
        format!("{batch}/webhook-{run}")
    }
}

/// A batch's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All documents have a result or a failure.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It could not continue, or has lost documents.
    Failed,
}
