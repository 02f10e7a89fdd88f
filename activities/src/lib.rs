//! The activities: plan a batch, process one document or a part of it behind the quota, seal a
//! shard, finish.
//!
//! Where documents lie is nobody's business but [`storage`]'s; what a failure means to Temporal is
//! decided in one table, [`failure`]; the heart is [`guard`]: admit, one call, settle.
//!
//! # Layout
//!
//! * [`activities`]: the activities as Temporal sees them, each one line
//! * [`batch`]: plan, forecast, source, job, seal, finish
//! * [`document`]: a document in one call, part by part, or several in a call; its result
//! * [`call`]: guard, prompt, route, attempt, budget, health, waiting
//! * [`provider_batch`]: documents that go through their provider's batch API
//! * [`failure`]: error kind → Temporal failure
//! * [`storage`]: roots and objects; [`metrics`]: every metric of this crate, by name
//! * [`services`]: what all of them work with

pub mod activities;
pub mod batch;
pub mod call;
pub mod document;
pub mod failure;
pub mod metrics;
pub mod provider_batch;
pub mod services;
pub mod storage;

pub use activities::DocumentActivities;
pub use services::Services;
pub use storage::Storage;
