//! The configuration: `tidegate.toml`, the environment, and defaults.
//!
//! # Layout
//!
//! * [`sections`]: [`Config`] and its sections; those of [`provider`], [`model`], [`group`],
//!   [`pool`], [`host`], [`serve`], [`webhook`] and [`documents`] beside it
//! * [`layers`]: defaults, then the file, then the environment; [`sources`]: which layer set each key
//! * [`fault`]: faults, with their place and remedy; `check` finds faults that the types allow
//! * `build`: converts to the other crates' types; `fingerprint`: the settings that a fleet shares
//! * [`show`]: the configuration in force with the source of each key; [`mask`] masks secrets
//! * `secret`: reads a secret from a variable or a file; `pool_expansion`: turns pools into members
//! * [`duration`]: durations; [`size`]: numbers of bytes; `listen`: addresses to listen at
//! * [`temporal`]: Temporal's own variables and file

mod as_text;
mod build;
mod check;
pub mod documents;
pub mod duration;
pub mod error_row;
pub mod fault;
mod fingerprint;
pub mod group;
pub mod host;
pub mod layers;
mod listen;
pub mod mask;
pub mod model;
pub mod pool;
mod pool_expansion;
pub mod provider;
mod secret;
pub mod sections;
pub mod serve;
pub mod show;
pub mod size;
pub mod sources;
pub mod temporal;
#[cfg(test)]
mod tests;
pub mod version;
pub mod webhook;

pub(crate) use build::NO_MODEL;
pub use fault::{ConfigError, Fault};
pub use sections::Config;
pub use version::{Version, Versioning};
