//! The Temporal server: how it is reached, and what commands ask of it.
//!
//! Every call is boxed here, so that no other file instantiates the SDK's large futures.
//!
//! # Layout
//!
//! * `connection`: how the server is reached
//! * `codec`: payloads through a codec server
//! * `undecodable`: activities whose input cannot be decoded
//! * `batch`: batches, started, asked, signalled, and how they end
//! * `submit`: one call as a durable unit, by an id
//! * `live`: how far a batch is at this moment
//! * `pending`: what a batch's documents wait for
//! * `webhook`: whether the receiver of a batch's webhook knows of its end
//! * `versions`: which versions of the workers poll, and which is current

mod batch;
mod codec;
mod connection;
mod live;
mod pending;
mod submit;
mod undecodable;
mod versions;
mod webhook;

pub(crate) use batch::json;
pub use batch::{ANSWER_WITHIN, Batch, Ending, NoProgress, Status};
pub use connection::{Away, Temporal, connect};
pub use pending::{HeldBy, LastFailure, Pending};
pub use submit::Submitted;
pub use versions::Versions;
pub use webhook::WebhookState;
