//! The vocabulary that tidegate's crates share: valid names, and the use of a provider call.
//!
//! # Layout
//!
//! * [`model_id`]: `provider:model`, the unit of every quota
//! * [`name`]: lanes and tenants
//! * [`effort`]: the thinking effort of a reasoning model
//! * [`document_id`]: a stable name for a document, safe as an object name
//! * [`charge`]: the calls and tokens that a provider counts towards its limits, and when
//! * [`failure`]: failure types, and reasons to wait
//! * [`usage`]: tokens of one provider call, with one meaning for all providers
//! * [`fnv`] and [`time`]: hashes and times in stored data
//! * [`spend`]: calls, tokens and money, added up
//! * [`is_default`]: whether a field is omitted when it is serialised

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
