//! Any program's calls of LLM providers behind a quota that a fleet shares: what joins the limiter
//! (`tidegate-quota`, which knows no vendor) and what is known of the vendors
//! (`tidegate-providers`, which knows no quota).
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
//! # Layout
//!
//! * [`settle`]: how a call ends, by what the provider answered
//! * [`layer`]: a [`tower_layer::Layer`] for any HTTP client; [`body`]: an answer on its way through it
//! * [`failure`]: what a failure means, and when to come back
//! * [`ask`]: what a call is admitted with; [`backoff`]: when to come back with it

#![deny(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test stops at the first fault"))]

pub mod ask;
pub mod backoff;
pub mod body;
pub mod failure;
pub mod layer;
pub mod settle;

pub use ask::Ask;
pub use backoff::Backoff;
pub use body::Listener;
pub use failure::Failure;
pub use layer::{Limit, Limited};
