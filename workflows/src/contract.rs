//! The contract between workflows and activities: payloads, and the activities' persisted names.
//!
//! Every name here is written into Temporal histories. Renaming one breaks running batches, so the
//! names are spelled out and never derived from Rust identifiers. Payloads are small (ids, indices,
//! numbers). Documents, prompts and answers stay in the object store; data that many documents
//! share is written there once, as the [`Job`].

mod batch;
mod call;
mod document;
mod fallback;
mod job;
mod progress;
mod provider_batch;

pub(crate) use batch::GroupWorkflow;
pub use batch::{
    Ended, Finish, Finished, GroupInput, Labels, Live, LiveChild, MarkPaused, Notify, Plan,
    SealShard, ShardInput, ShardProgress, ShardReport,
};
pub use call::{CallOutcome, EmbedOutcome, SubmittedCall};
pub use document::{
    AskedAnswer, CutAnswers, DocumentOutcome, DocumentTask, FAN_IN, FailedDocument, FailureDetails,
    FailureFacts, LongDocument, LongOutcome, PARTS_AT_ONCE, PackOutcome, PackTask, PartTask, Parts,
    Reused, Step, Taken,
};
pub use fallback::{Because, Fallback};
pub use job::{
    AskedWith, Attach, Check, Deadline, Example, Job, Judge, LIKELY_OUTPUT_TOKENS, Lines, Long,
    LongHow, Message, Mode, OnCut, Pack, Records, ResultsAs, Role, Source, Target, Task,
};
pub use progress::{FailureCounts, Progress, Totals};
pub(crate) use progress::{eta, rfc3339};
pub use provider_batch::{
    BatchState, CollectedBatch, OpenBatches, ProviderBatch, ProviderBatching, STOPPING,
    SubmitBatch, SubmittedBatch, SubmittedBatches,
};

pub use tidegate_types::{CallCounts, FailureType, WaitsFor};

/// The workflow type that users start.
pub const PROCESS_DOCUMENTS: &str = "ProcessDocuments";

/// Most documents of one shard in flight: Temporal advises at most 500 pending activities per
/// workflow. A batch runs as many shards at once as its window needs.
pub const SHARD_WINDOW: u32 = 500;

/// Longest id of a batch, in bytes: Temporal takes ids of 1,000, and those of its shards, parts and
/// webhook are longer.
pub const LONGEST_BATCH_ID: usize = 900;

/// Most shards of a batch that run at once while their documents wait in provider batches: such
/// shards sleep.
pub const SLEEPING_SHARDS_AT_ONCE: u32 = 100;

#[allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macro drops doc comments on the items that it generates; the payloads carry them"
)]
#[expect(
    clippy::unimplemented,
    clippy::boxed_local,
    reason = "the macro requires bodies that it never emits, and sized payloads"
)]
mod definitions {
    use temporalio_macros::activity_definitions;

    use serde_json::value::RawValue;

    use super::{
        BatchState, CallOutcome, CollectedBatch, DocumentOutcome, DocumentTask, EmbedOutcome,
        Finish, Finished, Job, MarkPaused, Notify, OpenBatches, PackOutcome, PackTask, PartTask,
        Plan, ProviderBatch, SealShard, SubmitBatch, SubmittedBatch,
    };

    /// The activities of the workflows, and the two that any workflow may call.
    /// `tidegate-activities` implements them.
    #[derive(Debug)]
    pub struct Activities;

    #[activity_definitions]
    impl Activities {
        #[activity(name = "tidegate.plan")]
        pub fn plan(job: Job) -> Plan {
            unimplemented!()
        }

        #[activity(name = "tidegate.plan_more")]
        pub fn plan_more(plan: Plan) -> Plan {
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

        #[activity(name = "tidegate.mark_paused")]
        pub fn mark_paused(mark: MarkPaused) -> () {
            unimplemented!()
        }

        #[activity(name = "tidegate.seal_shard")]
        pub fn seal_shard(shard: SealShard) -> () {
            unimplemented!()
        }

        #[activity(name = "tidegate.finish")]
        pub fn finish(finish: Finish) -> Finished {
            unimplemented!()
        }

        #[activity(name = "tidegate.notify")]
        pub fn notify(notify: Notify) -> () {
            unimplemented!()
        }

        // The input is read by hand, so that errors are sentences and a body stays as it was
        // written.
        #[activity(name = "tidegate.call")]
        pub fn call(input: Box<RawValue>) -> CallOutcome {
            unimplemented!()
        }

        #[activity(name = "tidegate.embed")]
        pub fn embed(input: Box<RawValue>) -> EmbedOutcome {
            unimplemented!()
        }
    }

    pub mod markers {
        pub use super::activities::*;
    }
}

pub use definitions::{Activities, markers};
