//! The activities: plan a batch, process one document or a part of it behind the quota, seal a
//! shard, finish.
//!
//! Only [`storage`] knows where documents lie; how Temporal is told of a failure is decided in
//! [`failure`]; around each call stands the guard of [`tidegate_calls`]: admit, one call, settle.
//!
//! # Layout
//!
//! From the top down; a module imports those below it alone.
//!
//! * [`activities`]: the activities as Temporal sees them; [`own`]: a program's own behind the same quota
//! * [`batch`]: the plan; [`provider_batch`]: documents that go through their provider's batch API
//! * [`door`]: calls of workflows that are none of ours
//! * [`document`]: one document: read → ask → keep
//! * [`services`]: what all of them work with
//! * [`output`]: what a batch writes, and reads again: layout, lease, results, parts, reports
//! * [`attempt`]: what one attempt tells the next; [`heartbeat`]: the frame around an activity's work; `spans`: what a
//!   trace tells of a document; [`failure`]: a failure → Temporal; stores, readers and steps of a batch that fail
//! * [`schema`]: whether an answer is what was asked for; [`checkpoints`]: what was spent of budgets, beside Redis
//! * [`storage`]: roots and objects; [`host_rates`]: how often a host is read from; [`archives`]: documents in one object;
//!   [`calls`]: where the answers of calls are kept
//! * [`webhooks`]: programs of the user's that are told of a batch's end
//! * [`fingerprint`]: names of what was asked, and of what it was asked about
//! * [`truncation_stats`]: how often answers are cut; [`memory`]: documents that are in it; [`metrics`]: every metric, by name

pub mod activities;
pub mod archives;
pub mod attempt;
pub mod batch;
pub mod calls;
pub mod checkpoints;
pub mod document;
pub mod door;
pub mod failure;
pub mod fingerprint;
mod hash;
pub mod heartbeat;
pub mod host_rates;
pub mod memory;
pub mod metrics;
mod number;
pub mod output;
pub mod own;
pub mod provider_batch;
pub mod schema;
pub mod services;
mod spans;
pub mod storage;
pub mod truncation_stats;
pub mod webhooks;

pub use activities::DocumentActivities;
pub use services::Services;
pub use storage::Storage;
