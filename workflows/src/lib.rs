//! Deterministic workflows, their payloads, and the activity contract.
//!
//! Nothing here reads a clock, draws a random number, does input or output, or depends on the order
//! of a hash map: every decision is replayed from Temporal's history.
//!
//! # Layout
//!
//! * [`contract`]: what workflows and activities say to each other, and every persisted name
//! * [`input`]: from the batch's raw input to a checked [`contract::Job`]; `payload`: raw payloads
//! * [`process_documents`]: a batch: plan, shards, finish
//! * `children`: its shards, and the window that they share
//! * [`process_group`]: some shards of a large batch
//! * [`process_shard`]: one shard; `shard`: a sliding window over its documents, in that workflow or
//!   in the batch's own, and those that wait in their provider's batches; `report`: what it tells the batch
//! * `pace`: how many of that window it uses, by how long its documents lie in their task queue
//! * [`process_parts`]: a document that is read in parts
//! * [`process_call`]: one call, where the server knows no activities without a workflow
//! * [`process_webhook`]: a webhook that is told of a batch's end
//! * `holds`: parts of a workflow's state that several workflows have
//! * `pause_flag`: a pause that reaches documents which are handed out
//! * [`policy`]: time-outs, retries and priorities of every activity
//! * `failure`: what failures say, and how they become the workflow's own

mod children;
pub mod contract;
mod failure;
mod holds;
pub mod input;
pub mod labels;
mod opening;
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

/// Which commands the workflows give, and in which order: the folder of recorded histories that they
/// are held to. What changes them goes behind a patch: `CONTRIBUTING.md`.
pub const COMMANDS: &str = "0.1.0";

pub use process_call::ProcessCall;
pub use process_documents::ProcessDocuments;
pub use process_group::ProcessGroup;
pub use process_parts::ProcessParts;
pub use process_shard::ProcessShard;
pub use process_webhook::ProcessWebhook;
