//! The Temporal server: how it is reached, and what commands ask of it.
//!
//! Every call is boxed here, so that no other file instantiates the SDK's large futures.
//!
//! # Layout
//!
//! * `connection`: how the server is reached
//! * `batch`: batches, started, asked, signalled, and how they end
//! * `pending`: what a batch's documents wait for

mod batch;
mod connection;
mod pending;

pub(crate) use batch::json;
pub use batch::{Batch, Ending, NoProgress, Status};
pub use connection::{Temporal, connect};
pub use pending::{LastFailure, Pending};
