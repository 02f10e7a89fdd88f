//! Documents that go through their provider's batch API: the choice of that path, and its four steps.
//!
//! A shard's documents are submitted as one batch of the provider's, or as several if they are
//! large. The submission is recorded in the job's folder, so that a crash does not pay twice:
//! `batch-<shard>-<first document>-<round>.json` is written before the submission, and again with
//! the provider's id after it. Requests are named by numbers: the provider does not get the ids of
//! documents.
//!
//! * `choose`: whether a batch's documents take this path; `submit`, `check`, `collect`: the steps
//! * `requests`: which of a shard's documents are submitted
//! * `submission`: the record of a submitted batch; `queue`: input tokens of the fleet that wait at
//!   a provider

mod check;
mod choose;
mod collect;
mod queue;
mod requests;
mod submission;
mod submit;

pub use check::{cancel, check};
pub use choose::{choose, full_price};
pub use collect::collect;
pub use submit::submit;
