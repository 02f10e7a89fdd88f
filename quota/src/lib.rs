//! A limiter for LLM quotas that a whole fleet shares through Redis. It knows no vendor and no
//! Temporal.
//!
//! # The flow
//!
//! Admission is counted in tokens, and a refusal is a wait with a known end:
//!
//! ```no_run
//! # async fn call() -> tidegate_types::Usage { Default::default() }
//! # async fn example(quota: tidegate_quota::Quota, model: tidegate_types::ModelId) -> Result<(), tidegate_quota::Refused> {
//! use tidegate_quota::Request;
//!
//! let request = Request::new(model, "job-7/attempt-1").tokens(2_000, 1_024);
//! let mut permit = quota.admit(&request).await?; // one Redis round trip; waits for its turn when that is near
//! permit.sent(); //                                  from here on the provider may have done the work
//! let usage = call().await;
//! permit.settle(&usage).await; //                    one Redis round trip; the rest of the reservation is given back
//! # Ok(())
//! # }
//! ```
//!
//! What is reserved is what the call is expected to use; what it really used is settled afterwards.
//! A refused caller gets a [`Ticket`] that keeps its turn, from whichever process it asks next. A worker that
//! dies needs no cleaning up: its reservation leaves the window by itself. A permit dropped before
//! [`Permit::sent`] is given back.
//!
//! # Layout
//!
//! * [`stated`]: limits as a configuration states them
//! * [`dimension`]: what limits count, and a value for each of it
//! * [`limits`], [`lanes`], [`model`]: what a provider allows, and to which class of traffic
//! * `lane_numbers`: which number a lane has in Redis
//! * [`request`], [`permit`], [`refused`]: what callers ask and get
//! * [`quota`]: the handle: [`Quota::admit`], pause, resume, inspect
//! * [`run`]: [`Quota::run`], one call with all that belongs to it
//! * [`store`]: what a store of quota can do; [`memory`] and [`redis_store`] are the two
//! * [`intake`]: how many documents a worker takes
//! * `asking`: how callers of this process are asked about together; `asker`, `questions`, `waiters`:
//!   one of them, who comes next, who waits in place
//! * [`snapshot`]: what a model's quota looks like
//! * [`budget`]: budgets in US dollars, of a tenant's day or of a batch; [`retries`]: calls beyond the
//!   first of each document
//! * [`turns`]: turns of callers that know no ticket, under names that they come back with
//! * [`bucket`]: a plain token bucket, for APIs that are not language models
//! * `shared`, `breaker`, `fleet`: what happens while Redis is away
//! * `connection`, `key`, `script`, `wire`: how Redis is spoken to; `number`: what both reckon with
//! * [`layout`]: the versions of what lies there
//! * [`call_stats`]: how many calls in flight a limit can use
//! * [`unused`]: what a bound on output costs where the provider counts it
//! * [`holds`]: what operators hold until they say otherwise; `hold`: how they do
//! * `changes`: changes of state, each a line of the log; [`history`]: the last hour, for people;
//!   `hour`: how it is read
//! * [`metrics`]: every metric of this crate, by name

#![deny(missing_docs)]

mod alike;
mod asker;
mod asking;
mod breaker;
pub mod bucket;
pub mod budget;
pub mod call_stats;
mod changes;
mod connection;
pub mod dimension;
pub mod enqueued;
pub mod error;
mod fleet;
pub mod history;
mod hold;
pub mod holds;
mod hour;
pub mod intake;
pub mod key;
mod lane_numbers;
pub mod lanes;
pub mod layout;
pub mod limits;
mod mechanism;
pub mod memory;
pub mod metrics;
pub mod model;
mod number;
pub mod numbers;
pub mod permit;
pub mod plan;
mod policy;
mod questions;
pub mod quota;
pub mod redis_store;
pub mod refused;
mod remembered;
pub mod request;
pub mod retries;
pub mod run;
mod running;
mod script;
mod shared;
pub mod snapshot;
pub mod stated;
pub mod store;
mod tasks;
pub mod turns;
pub mod unused;
mod waiters;
mod watch;
mod wire;
mod wire_read;
pub mod wrong_keys;

pub use bucket::{Bucket, BucketLimit};
pub use budget::{Budget, Budgets, Usd};
pub use dimension::{Amounts, Change, DayLimit, Dimension, Limited, PerDimension, PerLimit};
pub use error::Error;
pub use lanes::{Lanes, Share};
pub use limits::{LimitError, Limits};
pub use model::ModelQuota;
pub use permit::Permit;
pub use quota::Quota;
pub use refused::Refused;
pub use request::{Request, Ticket};
pub use retries::Retries;
pub use shared::Options;
pub use snapshot::Snapshot;
pub use stated::Stated;
pub use store::{Decision, Hold, Store};
pub use tidegate_types::{Charge, OutputHold};
