//! Deterministic workflows, their payloads, and the activity contract.
//!
//! Nothing here reads a clock, draws a random number, does input or output, or depends on the order
//! of a hash map, because every decision is replayed from Temporal's history.
//!
//! # Layout
//!
//! * [`contract`]: payloads of workflows and activities, and every persisted name
//! * [`input`]: reads the batch's raw input into a checked [`contract::Job`]; `payload`: raw
//!   payloads
//! * [`process_documents`]: a batch: plan, shards, finish
//! * `shard_scheduler`: starts a batch's shards and divides the window among them
//! * [`process_group`]: some shards of a large batch
//! * [`process_shard`]: one shard; `shard`: a sliding window over its documents, in that workflow
//!   or in the batch's own, and documents that wait in provider batches; `report`: reports to the
//!   batch
//! * `pace`: the part of the window that a shard uses, by the time of its documents in the task
//!   queue; `shard::slow_start`: the start before that time is known
//! * [`process_parts`]: a document that is read in parts
//! * [`process_call`]: one call, for servers without standalone activities
//! * [`process_webhook`]: a webhook that is called at a batch's end
//! * `state_access`: access to parts of a workflow's state
//! * `pause_flag`: extends a pause to documents that are already handed out
//! * [`policy`]: time-outs, retries and priorities of every activity
//! * `failure`: converts failures to the workflow's own

pub mod contract;
mod failure;
pub mod input;
pub mod labels;
mod pace;
mod pause_flag;
mod payload;
pub mod policy;
pub mod process_call;
pub mod process_documents;
pub mod process_group;
pub mod process_parts;
pub mod process_shard;
pub mod process_webhook;
mod report;
mod shard;
mod shard_scheduler;
mod state_access;

/// The version of the workflows' commands and their order: the folder of recorded histories that
/// they must replay. A change of commands goes behind a patch: see `CONTRIBUTING.md`.
pub const COMMANDS: &str = "0.1.0";

pub use process_call::ProcessCall;
pub use process_documents::ProcessDocuments;
pub use process_group::ProcessGroup;
pub use process_parts::ProcessParts;
pub use process_shard::ProcessShard;
pub use process_webhook::ProcessWebhook;
