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
//! Run [`Quota::keep_alive`] in each process, under a name of its own. It counts the processes that
//! share the limits: while Redis is away each takes only its part of them, and a process that
//! counts no others takes the whole limit.
//!
//! A reservation is the expected use of the call; the settlement states its real use. A refused
//! caller gets a [`Ticket`] that keeps its turn, also if another process asks next. A worker that
//! dies needs no cleaning up: its reservation leaves the window by itself. A permit dropped before
//! [`Permit::sent`] is released.
//!
//! # Layout
//!
//! * [`configured_limits`]: limits in the form of a configuration
//! * [`dimension`]: the quantities that limits count, and types with one value for each
//! * [`limits`], [`lanes`], [`model`]: limits of a provider, and their shares for classes of
//!   traffic
//! * `lane_numbers`: the number of each lane in Redis
//! * [`request`], [`permit`], [`refused`]: a caller's request and the two answers
//! * [`quota`]: the handle: limits, pause, resume, inspect; further parts of it: `admit`
//!   ([`Quota::admit`]), `beat` ([`Quota::keep_alive`]), `mark`, `take`, `read_history`,
//!   `operator_actions`
//! * [`run`]: [`Quota::run`]: admission, call and settlement in one
//! * [`store`]: the operations of a store; [`memory`] and [`redis_store`] are the two stores
//! * [`intake`]: the number of documents that a worker takes
//! * `decide`: which store decides about a call; `reserve_batcher`: calls of this process share
//!   script calls; `caller`: one waiting call; `batches`: the next batch of each group; `waiters`:
//!   calls that wait in place
//! * [`come_back`]: the time at which a waiting caller asks again
//! * [`snapshot`]: a model's quota at one moment, for people and metrics
//! * [`budget`]: budgets in US dollars, for a tenant's day or for a batch
//! * [`turns`]: turns of callers without a ticket, kept under a name
//! * [`bucket`]: a plain token bucket, for APIs that are not language models
//! * `shared`, `breaker`, `unheard`, `fleet`: the state of a limiter, and its behaviour while Redis
//!   is away
//! * `connection`, `connecting`, `key`, `script`, `wire`: the protocol with Redis; `conversions`:
//!   between integers, durations and floats
//! * [`layout`]: the versions of the data in Redis
//! * [`call_stats`]: the number of calls in flight that a limit can use
//! * [`output_cap_cost`]: the cost of `max_output_tokens` where the provider counts it
//! * [`operator_holds`]: batches and models that operators hold
//! * `state_changes`: log lines for a gate that closes or opens; [`usage_history`]: the last hour,
//!   for people
//! * [`metrics`]: every metric of this crate, by name

#![deny(missing_docs)]

mod address;
mod admit;
mod beat;
mod breaker;
pub mod bucket;
pub mod budget;
pub mod call_stats;
pub mod come_back;
pub mod configured_limits;
mod connecting;
mod connection;
mod conversions;
mod decide;
pub mod dimension;
pub mod enqueued;
pub mod error;
mod fleet;
mod fleet_texts;
mod in_flight;
pub mod intake;
mod kept_tasks;
pub mod key;
mod lane_numbers;
pub mod lanes;
pub mod layout;
pub mod limits;
mod mark;
mod mechanism;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod numbers;
mod operator_actions;
pub mod operator_holds;
pub mod output_cap_cost;
pub mod permit;
pub mod plan;
mod policy;
mod poll_schedule;
pub mod quota;
mod read_history;
pub mod redis_store;
pub mod refused;
mod remembered;
pub mod request;
mod reserve_batcher;
pub mod retries;
pub mod run;
mod script;
mod shared;
pub mod snapshot;
mod state_changes;
pub mod store;
mod take;
pub mod turns;
mod unheard;
pub mod usage_history;
mod wire;
mod wire_read;
pub mod wrong_keys;

pub use bucket::{Bucket, BucketLimit};
pub use budget::{Budget, Budgets, Usd};
pub use configured_limits::ConfiguredLimits;
pub use conversions::EXACT;
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
pub use store::{Decision, Hold, Store};
pub use tidegate_types::{Charge, OutputHold};
