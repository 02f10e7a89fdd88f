//! Puts any program's calls of LLM providers behind a quota that a fleet shares. This crate joins
//! the limiter (`tidegate-quota`, which knows no vendor) and the clients (`tidegate-providers`,
//! which know no quota).
//!
//! ```no_run
//! # fn example(quota: tidegate_quota::Quota) -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_calls::Limit;
//! use tower_layer::Layer as _;
//!
//! // Every call that goes through `http` waits for its turn, and is settled by its answer.
//! let http = Limit::new(quota, "openai").layer(reqwest::Client::new());
//! # Ok(())
//! # }
//! ```
//!
//! The [`guard`] controls each call: admit, one call, settle. The caller (an activity, a request at
//! a door, a program) passes an [`Attempt`] and gets an answer or a [`Failure`].
//!
//! # Layout
//!
//! * [`caller`]: asks a question of the models of a route; the properties of a call that the limiter
//!   needs
//! * [`guard`]: admit → one call → settle; `admit`: its admission; [`gates`]: the list of
//!   everything that can hold a call; [`admission`]: an admitted call until it is settled
//! * [`attempt`]: the state that one attempt passes to the next, and whether its call has left
//! * [`failure`]: whether and when each failure is retried, and the growth of delays
//! * [`route`]: chooses the model; [`warm_cache`]: sends the first call of a batch alone, so that
//!   the others find the prompt cached
//! * [`budget`]: money for calls, and a bound on calls beyond the first
//! * [`health`]: circuit breakers of models, and outcomes of recent calls; [`doubts`]: models whose
//!   account may be spent, or which may not exist, and the one call that tests them; [`unknown_models`]: models that
//!   their provider does not know; [`learned_caps`]: output bounds that models refuse; [`keys`]:
//!   refused keys, here and in the fleet; [`worker_status`]: a worker's status for the others, and
//!   differences between the configurations of workers; [`status_beat`]: publishes it
//! * [`waiting`]: bounds the slots of attempts that only wait
//! * [`settle`]: charges a call by the provider's answer
//! * [`verbatim`]: a call in a vendor's own form; [`dialect`]: translates a request for models of
//!   another vendor
//! * [`layer`]: a [`tower_layer::Layer`] for any HTTP client; [`body`]: reads an answer as it
//!   passes through the layer
//! * [`metrics`]: every metric of this crate, by name; [`spans`]: the trace of a call

#![deny(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test stops at the first fault"))]

pub mod admission;
mod admit;
pub mod attempt;
pub mod body;
pub mod budget;
pub mod caller;
pub mod dialect;
pub mod doubts;
pub mod failure;
pub mod gates;
pub mod guard;
pub mod health;
pub mod keys;
pub mod layer;
pub mod learned_caps;
pub mod metrics;
pub mod route;
pub mod settle;
pub mod spans;
pub mod status_beat;
pub mod unknown_models;
pub mod verbatim;
pub mod waiting;
pub mod warm_cache;
pub mod worker_status;

pub use attempt::Attempt;
pub use body::Listener;
pub use caller::Ask;
pub use failure::{Backoff, Failure};
pub use guard::Guard;
pub use layer::{Limit, Limited};
