//! The state of the fleet at one moment: printed by `--json`, shown by the page and by the terminal,
//! under the same names.
//!
//! # Layout
//!
//! * `fleet`: the whole snapshot, and its cache; a tenant's day
//! * `model`: a model's quota, its limits and the binding one; `batch`: a batch; `worker`: a
//!   worker
//! * `verdict`: one sentence about the fleet

mod batch;
mod fleet;
mod model;
mod verdict;
mod worker;

pub(super) use batch::{
    BatchView, Known, forecast, inspect as inspect_batch, inspect_alone as inspect_batch_alone,
    known,
};
pub(super) use fleet::{BudgetView, Snapshot, SnapshotCache};
pub(super) use model::{LimitView, ModelView, Sources, binds, limit_in_force, unused};
pub(super) use worker::WorkerView;

#[cfg(test)]
pub(super) use fleet::tests::busy;
