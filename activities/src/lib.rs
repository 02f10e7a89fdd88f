//! The activities: plan a batch, process one document or a part of it behind the quota, seal a
//! shard, finish.
//!
//! Only [`storage`] knows where documents are stored. [`failure`] decides how a failure is reported
//! to Temporal. The guard of [`tidegate_calls`] surrounds each call: admit, one call, settle.
//!
//! # Layout
//!
//! From the top down; a module imports only modules below it.
//!
//! * [`activities`]: the activities that Temporal calls; [`own`]: a program's own activities behind the same quota
//! * [`batch`]: the plan of a batch; [`provider_batch`]: documents that go through their provider's batch API
//! * [`door`]: `tidegate.call` and `tidegate.embed`, for workflows of other programs
//! * [`document`]: one document: read, ask, keep
//! * [`services`]: the shared services, and where answers of calls are stored
//! * [`output`]: a batch's output, written and read again: layout, lease, results, parts, reports
//! * [`attempt`]: the state that one attempt hands to the next; [`heartbeat`]: the frame around an activity's work;
//!   `spans`: traces of documents; [`failure`]: how failures are reported to Temporal; failures of stores, readers and steps
//! * [`schema`]: whether an answer satisfies its schema; [`checkpoints`]: spending of budgets,
//!   recorded outside Redis
//! * [`storage`]: roots and objects; [`host_rates`]: rates of reads from hosts; [`archives`]: documents in archives
//! * [`webhooks`]: notify programs of the user's of a batch's end
//! * [`fingerprint`]: fingerprints of questions and contents
//! * [`truncation_stats`]: how often answers are cut; [`memory`]: bounds the bytes of documents in
//!   memory; [`metrics`]: every metric; [`number`]: counts as floats, and for people

pub mod activities;
pub mod archives;
pub mod attempt;
pub mod batch;
pub mod checkpoints;
pub mod document;
pub mod door;
pub mod failure;
pub mod fingerprint;
pub mod heartbeat;
pub mod host_rates;
pub mod memory;
pub mod metrics;
pub mod number;
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
