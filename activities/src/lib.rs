//! The activities: plan a batch, process one document or a part of it behind the quota, seal a
//! shard, finish.
//!
//! Only [`storage`] knows where documents lie; how Temporal is told of a failure is decided in
//! [`failure`]; around each call stands the guard of [`tidegate_calls`]: admit, one call, settle.
//!
//! # Layout
//!
//! * [`activities`]: the activities as Temporal sees them; [`heartbeat`]: the frame around their work
//! * [`batch`]: plan, forecast, source, job, seal, finish
//! * [`document`]: a document in one call, part by part, or several in a call; its result
//! * [`call`]: what a document's call asks, its attempts, and answers that cannot be written
//! * [`door`]: calls of workflows that are none of ours
//! * [`provider_batch`]: documents that go through their provider's batch API
//! * [`failure`]: a failure → Temporal; stores, readers and steps of a batch that fail
//! * [`own`]: a program's own activities behind the same quota
//! * [`fingerprint`]: names of what was asked, and of what it was asked about
//! * [`storage`]: roots and objects; [`host_rates`]: how often a host is read from
//! * [`sandbox`]: what may take all memory or never end, in a process of its own
//! * [`metrics`]: every metric of this crate, by name; `spans`: what a trace tells of a document
//! * [`services`]: what all of them work with

pub mod activities;
pub mod batch;
pub mod call;
pub mod document;
pub mod door;
pub mod failure;
pub mod fingerprint;
mod hash;
pub mod heartbeat;
pub mod host_rates;
pub mod memory;
pub mod metrics;
pub mod own;
pub mod provider_batch;
pub mod sandbox;
pub mod services;
mod spans;
pub mod storage;

pub use activities::DocumentActivities;
pub use services::Services;
pub use storage::Storage;
