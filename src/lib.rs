//! Tidegate runs documents through rate-limited LLM APIs, on Temporal, at the full speed that the quota
//! allows.
//!
//! # Layout
//!
//! * [`cli`]: the commands, one file each
//! * [`config`]: `tidegate.toml`, the environment, and defaults
//! * [`worker`]: one worker process; [`attach()`]: its workers in another program's process; [`plugin`]: beside
//!   another program's worker
//! * [`serve`]: the HTTP door
//! * [`devstack`]: a private Temporal, Redis and simulated provider, for `dev` and `demo`
//! * [`temporal`]: the connection to the Temporal server, and the requests of commands
//! * [`telemetry`]: logs and the metrics page; `listener`: a bounded HTTP server; `traces`: OpenTelemetry
//! * [`metrics`]: a worker's metrics of itself and of batches
//! * [`version`]: the build, and the layouts that it knows
//! * [`signal`]: the signals that ask this process to stop; [`runtime`]: its threads

#![deny(missing_docs)]

pub mod attach;
pub mod cli;
pub mod config;
pub mod devstack;
mod listener;
pub mod metrics;
pub mod plugin;
pub mod runtime;
pub mod serve;
pub mod signal;
pub mod telemetry;
pub mod temporal;
#[cfg(feature = "traces")]
mod traces;
pub mod version;
pub mod worker;

pub use attach::attach;
pub use plugin::Plugin;
