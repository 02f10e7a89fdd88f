//! What the fleet is doing at one moment: what `--json` prints, what the page shows and what the
//! terminal shows, under the same names.
//!
//! # Layout
//!
//! * `fleet`: all of it, and how it is looked at
//! * `model`: a model's quota, its limits and what binds; `batch`: a batch; `worker`: a worker;
//!   `budget`: a tenant's day
//! * `verdict`: how it goes, in one sentence

mod batch;
mod budget;
mod fleet;
mod model;
mod verdict;
mod worker;

pub(super) use batch::{
    BatchSeen, Known, alone as batch_alone, forecast, known, seen as batch_seen,
};
pub(super) use budget::BudgetSeen;
pub(super) use fleet::{Eye, Snapshot};
pub(super) use model::{Beside, LimitSeen, ModelSeen, binds, unused};
pub(super) use worker::WorkerSeen;

#[cfg(test)]
pub(super) use fleet::tests::busy;
