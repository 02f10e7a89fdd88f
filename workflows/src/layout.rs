//! Which commands a run gives, and in which order: the layout that its history began with.
//!
//! Batches run for days and through upgrades, and each of their workflow tasks may replay the whole
//! history. So a run keeps to the layout that it began with, whichever version works on it, and one
//! patch at its top says which that is. How a layout is added, and how one goes: `CONTRIBUTING.md`.

use temporalio_workflow::WorkflowContext;

/// The layouts of commands, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    /// As 018ed06 has it: a shard schedules the parts of its long documents itself, and submits to
    /// its provider's batch API on its own task queue.
    #[default]
    First,
    /// Parts belong to a workflow of their own, waiting for a provider's batches continues as new,
    /// and documents are submitted on a task queue of their own.
    Bounded,
    /// A batch's window is handed to as many shards as it takes, and comes back as their documents
    /// end; a batch of one shard works on it itself.
    Places,
    /// Shards that started with few places are given more when no other is left to start, and those
    /// that began with a part of their window open it while no call has ended.
    MorePlaces,
}

/// The patches' names: they are written into histories.
const BOUNDED: &str = "bounded-histories";
const PLACES: &str = "places";
const MORE_PLACES: &str = "more-places";

/// The patch of the newest layout: what a run that begins now is of.
pub const NEWEST: &str = MORE_PLACES;

impl Layout {
    /// Of a shard. Asked first in a run, and once.
    pub(crate) fn of<W>(ctx: &WorkflowContext<W>) -> Self {
        match Self::of_batch(ctx) {
            Self::First if ctx.patched(BOUNDED) => Self::Bounded,
            layout => layout,
        }
    }

    /// Of a batch.
    pub(crate) fn of_batch<W>(ctx: &WorkflowContext<W>) -> Self {
        match Self::of_group(ctx) {
            Self::Places if !ctx.patched(PLACES) => Self::First,
            layout => layout,
        }
    }

    /// Of a group, which the first layouts do not have.
    pub(crate) fn of_group<W>(ctx: &WorkflowContext<W>) -> Self {
        if ctx.patched(MORE_PLACES) { Self::MorePlaces } else { Self::Places }
    }
}
