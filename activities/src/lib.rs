//! The activities: plan a batch, process one document or a part of it behind the quota, seal a
//! shard, finish.
//!
//! Where documents lie is nobody's business but [`storage`]'s; what a failure means to Temporal is
//! decided in one table, [`failure`]; the heart is [`guard`]: admit, one call, settle.
//!
//! # Layout
//!
//! * [`activities`]: the activities as Temporal sees them, each one line
//! * [`guard`]: admit → one call → settle; [`breaker`]: providers that are down
//! * [`document`]: one document's way, from its URI to its result
//! * [`parts`]: long documents, part by part; [`pack`]: small ones, several in a call; `question`:
//!   what a call asks
//! * [`economy`]: documents that go through their provider's batch API
//! * [`attempt`]: what one attempt tells the next: its turn, and how often it asked
//! * [`route`]: which model answers; [`schema`]: whether its answer is what was asked for
//! * [`budgets`]: who pays for a call, and whether they can
//! * [`failure`]: error kind → Temporal failure
//! * [`plan`], [`source`], [`records`], [`job`]: from a batch's input to shards of document ids
//! * [`forecast`]: what a batch will take
//! * [`seal`], [`finish`]: from results to `results.jsonl`, `failures.jsonl` and `report.json`
//! * [`storage`], [`estimate`], [`outcome`]: roots and objects, tokens, the result object
//! * [`services`]: what all of them work with
//! * [`warm`]: the first document of a batch warms the prompt cache
//! * [`stopped`]: models that nobody should ask for a while
//! * [`waiting`]: how many slots may hold attempts that only wait
//! * [`metrics`]: every metric of this crate, by name

pub mod activities;
pub mod attempt;
pub mod breaker;
pub mod budgets;
pub mod document;
pub mod economy;
pub mod estimate;
pub mod failure;
pub mod finish;
pub mod forecast;
pub mod guard;
pub mod job;
pub mod metrics;
pub mod outcome;
pub mod pack;
pub mod parts;
pub mod plan;
mod question;
pub mod records;
pub mod route;
pub mod schema;
pub mod seal;
pub mod services;
pub mod source;
pub mod stopped;
pub mod storage;
pub mod waiting;
pub mod warm;

pub use activities::DocumentActivities;
pub use services::Services;
pub use storage::Storage;
