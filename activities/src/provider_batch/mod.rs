//! Documents that go through their provider's batch API: whether a batch does, and the four steps
//! of one that does.
//!
//! A shard's documents are submitted as one batch of the provider's, or several where they are
//! large. What was submitted stands in the job's folder, so that a crash on the way does not pay
//! for it twice: `batch-<shard>-<first document>-<round>.json` is written before, and again with
//! the provider's id after. The requests' names are numbers: the provider does not see ids of
//! documents.
//!
//! * `choose`: whether a batch's documents go through it; `submit`, `check`, `collect`: the steps
//! * `requests`: what of a shard's documents is submitted
//! * `submission`: what is known of a batch that was submitted; `queue`: what the fleet has waiting

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
