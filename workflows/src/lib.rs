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
//! * `parts`: a document that is read in parts; [`provider_batch`]: documents that wait in their
//!   provider's batches
//! * [`policy`]: time-outs, retries and priorities of every activity
//! * `failure`: what failures say, and how they become the workflow's own

pub mod contract;
mod failure;
pub mod input;
mod parts;
mod payload;
pub mod policy;
pub mod process_documents;
pub mod process_shard;
pub mod provider_batch;

pub use process_documents::ProcessDocuments;
pub use process_shard::ProcessShard;
