//! The state of the fleet at one moment: printed by `--json`, shown by the page and by the terminal,
//! under the same names.
//!
//! # Layout
//!
//! * `fleet`: the whole snapshot, and its cache
//! * `model`: a model's quota, its limits and what binds; `batch`: a batch; `worker`: a worker;
//!   `budget`: a tenant's day
//! * `verdict`: one sentence about the fleet

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
