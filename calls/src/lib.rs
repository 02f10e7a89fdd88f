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
//! Around each call stands the [`guard`]: admit, one call, settle. Whoever asks hands in an
//! [`Attempt`] and gets an answer or a [`Failure`]: an activity, a request at a door, a program.
//!
//! # Layout
//!
//! * [`caller`]: a question's way to its answer, over whichever models a route has
//! * [`guard`]: admit → one call → settle; [`gates`]: what can hold a call, in one list;
//!   [`admission`]: a call from its leave to its settlement
//! * [`attempt`]: who asks, and what it tells the next attempt; [`stage`]: where it stands
//! * [`failure`]: what a failure means, and when to come back; [`backoff`]: how delays grow
//! * [`route`]: which model is asked; [`warm_cache`]: which call of a batch goes first, so that the
//!   others find the prompt cached
//! * [`budget`]: what pays for a call; [`retries`]: for calls beyond the first
//! * [`health`]: models that should not be asked for a while; [`recent`]: what calls came to lately;
//!   [`doubts`]: models whose account is said to be spent, or which are said not to be there;
//!   [`unknown_models`]: models that their provider does not know; [`learned_caps`]: bounds that
//!   models refuse; [`keys`]: keys that are refused, here and in the fleet; [`card`]: what a worker
//!   says of itself; [`differences`]: in what workers are configured differently; [`probe`]: the one
//!   call that finds out
//! * [`waiting`]: how many slots may hold attempts that only wait
//! * [`ask`]: what a call is admitted with; [`settle`]: how it ends, by what the provider answered
//! * [`verbatim`]: a call in a vendor's own form; [`dialect`]: what is asked so of a model that speaks another
//! * [`layer`]: a [`tower_layer::Layer`] for any HTTP client; [`body`]: an answer on its way through it
//! * [`metrics`]: every metric of this crate, by name; [`spans`]: what a trace tells of a call

#![deny(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test stops at the first fault"))]

pub mod admission;
pub mod ask;
pub mod attempt;
pub mod backoff;
pub mod body;
pub mod budget;
pub mod caller;
pub mod card;
mod counted;
pub mod dialect;
pub mod differences;
pub mod doubts;
mod evidence;
pub mod failure;
pub mod gates;
pub mod guard;
pub mod health;
pub mod keys;
pub mod layer;
pub mod learned_caps;
pub mod metrics;
pub mod probe;
pub mod recent;
pub mod retries;
pub mod route;
pub mod settle;
pub mod spans;
pub mod stage;
pub mod unknown_models;
pub mod verbatim;
pub mod waiting;
pub mod warm_cache;

pub use ask::Ask;
pub use attempt::Attempt;
pub use backoff::Backoff;
pub use body::Listener;
pub use failure::Failure;
pub use guard::Guard;
pub use layer::{Limit, Limited};
