//! What workflows and activities say to each other: payloads, and the activities by their persisted
//! names.
//!
//! Every name here is written into Temporal histories. Renaming one breaks running batches, so the
//! names are spelled out and never derived from Rust identifiers. Payloads are small (ids, indices,
//! numbers): documents, prompts and answers stay in the object store, and what many documents share
//! is written there once, as the [`Job`].

use serde::{Deserialize, Serialize};
use tidegate_types::{Lane, Tenant};

mod economy;
mod failure;
mod job;
mod long;
mod pack;

pub use economy::{
    BatchState, CollectedBatch, Deadline, Economy, OpenBatches, ProviderBatch, SubmitBatch,
    SubmittedBatch,
};
pub use failure::{FailureDetails, FailureType, WaitsFor};
pub use job::{Job, Records, Source, Target};
pub use long::{FAN_IN, Long, LongHow, PARTS_AT_ONCE, PartTask, Parts, Step};
pub use pack::{Pack, PackOutcome, PackTask};

/// Workflow type that users start.
pub const PROCESS_DOCUMENTS: &str = "ProcessDocuments";

/// Most shards of a batch that run at once, each with its part of the batch's window. Two keep a
/// server busy; more only multiply the workflow tasks in which documents are handed out.
pub const SHARDS_AT_ONCE: u32 = 2;

/// The same, of a batch whose documents wait in their provider's batches: those shards sleep.
pub const ECONOMY_SHARDS_AT_ONCE: u32 = 100;

/// What `tidegate.plan` wrote: the job object, and one manifest object per shard beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// URI of the folder that holds `job.json` and the shards' manifests. Every later activity
    /// finds its work by it.
    pub job: String,
    /// Documents in all.
    pub documents: u64,
    /// Documents in each full shard; the last may hold fewer.
    pub shard_size: u32,
    /// They go through their provider's batch API first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub economy: Option<Economy>,
    /// Documents in one call at most; 0 and 1 are the same.
    #[serde(default)]
    pub pack: u32,
}

impl Plan {
    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> u32 {
        u32::try_from(self.documents.div_ceil(u64::from(self.shard_size.max(1))))
            .unwrap_or(u32::MAX)
    }

    /// How many documents shard `shard` holds, counted from 0.
    #[must_use]
    pub fn shard_documents(&self, shard: u32) -> u32 {
        let size = u64::from(self.shard_size.max(1));
        let before = u64::from(shard) * size;
        u32::try_from(self.documents.saturating_sub(before).min(size)).unwrap_or(u32::MAX)
    }
}

/// One document of one shard; the manifest says which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentTask {
    /// [`Plan::job`].
    pub job: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// The document's line in the shard's manifest, counted from 0.
    pub index: u32,
}

/// What one document took, over all attempts of its activity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentOutcome {
    /// A result of an earlier run was there already, and nothing was called.
    #[serde(skip_serializing_if = "is_false")]
    pub skipped: bool,
    /// Nothing was called yet: the document is to be read in parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Attempts, retries and waits.
    #[serde(flatten)]
    pub effort: CallCounts,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Price of the calls, in US dollars; 0 where no price is known.
    pub cost_usd: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// How often a document's attempts asked: carried from attempt to attempt, and as the details of a
/// final failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallCounts {
    /// Provider calls made.
    pub provider_calls: u32,
    /// Of these, answered 429.
    pub rate_limited: u32,
    /// Attempts that went back to Temporal to wait for quota; no call was made.
    pub deferrals: u32,
}

/// A document that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedDocument {
    /// The document's line in the shard's manifest, counted from 0.
    pub index: u32,
    /// One of [`FailureType`], or Temporal's own: `Timeout`, `Panic`.
    pub error_type: String,
    /// What went wrong; at most 500 characters.
    pub message: String,
    /// Provider calls that were spent on it.
    pub provider_calls: u32,
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

/// What documents came to, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Documents with a result of this run.
    pub succeeded: u64,
    /// Documents given up.
    pub failed: u64,
    /// Documents that had a result before this run.
    pub skipped: u64,
    /// Documents whose activity is open now, waiting or working.
    pub in_flight: u64,
    /// Provider calls made for documents that have ended.
    pub provider_calls: u64,
    /// Of these, answered 429.
    pub rate_limited: u64,
    /// Attempts that went back to Temporal to wait for quota.
    pub deferrals: u64,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
}

/// The answer of the `progress` query, and with `done` the workflow's result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Documents in all; 0 while the source is still being listed.
    pub documents: u64,
    /// What has come of them.
    #[serde(flatten)]
    pub totals: Totals,
    /// RFC 3339, from the workflow's own clock.
    pub started_at: Option<String>,
    /// RFC 3339: when the batch will be done at the pace so far; absent before the first document
    /// and after the last.
    pub eta: Option<String>,
    /// The prefix for the results.
    pub output: String,
    /// No more documents are open, and the report is written.
    pub done: bool,
    /// New documents are held back by the `pause` signal.
    pub paused: bool,
}

/// What a shard works on, and what it has come to before it continued as new.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShardInput {
    /// [`Plan::job`].
    pub job: String,
    /// The shard, counted from 0.
    pub shard: u32,
    /// How many documents it holds.
    pub documents: u32,
    /// Documents in flight at once.
    pub window: u32,
    /// The class of traffic.
    pub lane: Lane,
    /// Whose budget pays.
    pub tenant: Tenant,
    /// The batch's workflow id, which is told how far the shard is.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub economy: Option<Economy>,
    /// Those that need nothing more after it, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<u32>,
    /// Documents in one call at most; 0 and 1 are the same.
    #[serde(skip_serializing_if = "is_zero")]
    pub pack: u32,
}

/// How far a shard is: cumulative, so that a report that comes twice or late does no harm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardReport {
    /// The shard, counted from 0.
    pub shard: u32,
    /// What its documents came to so far.
    pub totals: Totals,
}

#[allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macro drops doc comments on the items that it generates; the payloads carry them"
)]
#[expect(clippy::unimplemented, reason = "the macro requires bodies that it never emits")]
mod definitions {
    use temporalio_macros::activity_definitions;

    use super::{
        BatchState, CollectedBatch, DocumentOutcome, DocumentTask, Finish, Job, OpenBatches,
        PackOutcome, PackTask, PartTask, Plan, ProviderBatch, SealShard, SubmitBatch,
        SubmittedBatch,
    };

    /// The activities that the workflows call. `tidegate-activities` implements them.
    #[derive(Debug)]
    pub struct Activities;

    #[activity_definitions]
    impl Activities {
        #[activity(name = "tidegate.plan")]
        pub fn plan(job: Job) -> Plan {
            unimplemented!()
        }

        #[activity(name = "tidegate.process_document")]
        pub fn process_document(task: DocumentTask) -> DocumentOutcome {
            unimplemented!()
        }

        #[activity(name = "tidegate.process_part")]
        pub fn process_part(task: PartTask) -> DocumentOutcome {
            unimplemented!()
        }

        #[activity(name = "tidegate.process_pack")]
        pub fn process_pack(task: PackTask) -> PackOutcome {
            unimplemented!()
        }

        #[activity(name = "tidegate.submit_batch")]
        pub fn submit_batch(task: SubmitBatch) -> SubmittedBatch {
            unimplemented!()
        }

        #[activity(name = "tidegate.check_batches")]
        pub fn check_batches(batches: OpenBatches) -> Vec<BatchState> {
            unimplemented!()
        }

        #[activity(name = "tidegate.cancel_batch")]
        pub fn cancel_batch(batch: ProviderBatch) -> () {
            unimplemented!()
        }

        #[activity(name = "tidegate.collect_batch")]
        pub fn collect_batch(batch: ProviderBatch) -> CollectedBatch {
            unimplemented!()
        }

        #[activity(name = "tidegate.seal_shard")]
        pub fn seal_shard(shard: SealShard) -> () {
            unimplemented!()
        }

        #[activity(name = "tidegate.finish")]
        pub fn finish(finish: Finish) -> () {
            unimplemented!()
        }
    }

    pub mod markers {
        pub use super::activities::*;
    }
}

pub use definitions::{Activities, markers};
