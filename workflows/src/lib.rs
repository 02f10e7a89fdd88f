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
//! * [`process_shard`]: a sliding window over one shard's documents
//! * [`process_parts`]: a document that is read in parts; `parts`: the same in the shard itself, for
//!   runs that began so
//! * [`provider_batch`]: documents that wait in their provider's batches
//! * `layout`: which commands a run gives, so that it goes on as it began
//! * [`policy`]: time-outs, retries and priorities of every activity
//! * `failure`: what failures say, and how they become the workflow's own

pub mod contract;
mod failure;
pub mod input;
mod layout;
mod parts;
mod payload;
pub mod policy;
pub mod process_documents;
pub mod process_parts;
pub mod process_shard;
pub mod provider_batch;

pub use process_documents::ProcessDocuments;
pub use process_parts::ProcessParts;
pub use process_shard::ProcessShard;
