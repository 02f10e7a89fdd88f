//! The vocabulary that tidegate's crates share: names that cannot be malformed, and what a provider
//! call used.
//!
//! # Layout
//!
//! * [`model_id`]: `provider:model`, the unit that every quota belongs to
//! * [`name`]: lanes and tenants
//! * [`effort`]: how much a reasoning model thinks
//! * [`document_id`]: a stable name for a document, safe as an object name
//! * [`charge`]: what a provider counts towards its limits, and when
//! * [`failure`]: why there is no result, and what is waited for
//! * [`usage`]: tokens that one provider call used, in one meaning for all providers
//! * [`fnv`] and [`time`]: hashes and times as they are written down
//! * [`spend`]: what calls took, counted and added up
//! * [`is_default`]: whether a field is left out where it is written

#![deny(missing_docs)]

pub mod charge;
mod default;
pub mod document_id;
pub mod effort;
pub mod failure;
pub mod fnv;
pub mod model_id;
pub mod name;
pub mod spend;
pub mod time;
pub mod usage;

pub use charge::{Charge, OutputHold};
pub use default::is_default;
pub use document_id::DocumentId;
pub use effort::Effort;
pub use failure::{FailureType, WaitsFor};
pub use fnv::fnv1a;
pub use model_id::ModelId;
pub use name::{InvalidName, Lane, Tenant};
pub use spend::{CallCounts, Spend};
pub use time::seconds_since_1970;
pub use usage::Usage;
