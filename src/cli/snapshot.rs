//! The state of the fleet at one moment: printed by `--json`, shown by the page and by the terminal,
//! under the same names.
//!
//! # Layout
//!
//! * `fleet`: the whole snapshot, and its cache
//! * `model`: a model's quota, its limits and the binding one; `batch`: a batch; `worker`: a
//!   worker; `budget`: a tenant's day
//! * `verdict`: one sentence about the fleet

mod batch;
mod budget;
mod fleet;
mod model;
mod verdict;
mod worker;

pub(super) use batch::{
    BatchView, Known, forecast, inspect as inspect_batch, inspect_alone as inspect_batch_alone,
    known,
};
pub(super) use budget::BudgetView;
pub(super) use fleet::{Snapshot, SnapshotCache};
pub(super) use model::{LimitView, ModelView, Sources, binds, limit_in_force, unused};
pub(super) use worker::WorkerView;

#[cfg(test)]
pub(super) use fleet::tests::busy;
