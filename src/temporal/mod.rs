//! The Temporal server: the connection, and the requests of commands.
//!
//! Every call of the SDK is boxed here, so that no other file has its large futures.
//!
//! # Layout
//!
//! * `connection`: connects to the server
//! * `codec`: passes payloads through a codec server
//! * `undecodable`: activities whose input cannot be decoded
//! * `batch`: start, query and signal batches, and their end
//! * `run_end`: the end of a workflow's run
//! * `submit`: makes one call durable, by an id
//! * `live`: a batch's progress at this moment
//! * `pending`: the activities that a batch waits for
//! * `webhook`: whether a batch's webhook was delivered
//! * `versions`: the versions of polling workers, and the current one

mod batch;
mod codec;
mod connection;
mod live;
mod pending;
mod run_end;
mod submit;
mod undecodable;
mod versions;
mod webhook;

pub(crate) use batch::json;
pub use batch::{ANSWER_WITHIN, Batch, Ending, NoProgress, status_name};
pub use connection::{Away, Temporal, connect, namespace_remedy};
pub use pending::{HeldBy, LastFailure, Pending};
pub use submit::Submitted;
pub use temporalio_client::WorkflowExecutionStatus as Status;
pub use versions::Versions;
pub use webhook::WebhookState;
