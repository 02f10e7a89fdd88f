//! The configuration: `tidegate.toml`, the environment, and defaults.
//!
//! # Layout
//!
//! * [`sections`]: [`Config`] and its sections; those of [`provider`], [`model`], [`group`],
//!   [`pool`], [`host`], [`serve`], [`webhook`] and [`documents`] beside it
//! * [`layers`]: defaults, then the file, then the environment; [`sources`]: where each key comes
//!   from
//! * [`fault`]: what is wrong, where, and what to do; `check` finds what types cannot
//! * `build`: the configuration as the other crates want it; `fingerprint`: what a fleet has in common
//! * [`show`]: the configuration in force with the source of each key; [`mask`] takes the secrets
//!   out
//! * `secret`: what a variable or a file holds; `spread`: the members of pools among providers and models
//! * [`span`]: lengths of time; [`size`]: numbers of bytes
//! * [`temporal`]: what Temporal's own variables and file say

mod as_text;
mod build;
mod check;
pub mod documents;
pub mod error_row;
pub mod fault;
mod fingerprint;
pub mod group;
pub mod host;
pub mod layers;
pub mod mask;
pub mod model;
pub mod pool;
pub mod provider;
mod secret;
pub mod sections;
pub mod serve;
pub mod show;
pub mod size;
pub mod sources;
pub mod span;
mod spread;
pub mod temporal;
#[cfg(test)]
mod tests;
pub mod version;
pub mod webhook;

pub use fault::{ConfigError, Fault};
pub use sections::Config;
pub use version::{Version, Versioning};
