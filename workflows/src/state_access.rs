//! Access to parts of a workflow's state that several workflows share: code for the part runs in
//! each workflow that holds it.

use temporalio_workflow::WorkflowContext;

/// A workflow whose state holds a `T`.
pub(crate) trait HasPart<T> {
    /// Borrows the part.
    fn part(&self) -> &T;

    /// Borrows the part mutably.
    fn part_mut(&mut self) -> &mut T;
}

/// Access to the part `T` through a workflow's context.
pub(crate) trait StateAccess<T> {
    /// Reads the part.
    fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R;

    /// Changes the part. Waiting conditions are checked again.
    fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

impl<T, W: HasPart<T>> StateAccess<T> for WorkflowContext<W> {
    fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        self.state(|workflow| f(workflow.part()))
    }

    fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.state_mut(|workflow| f(workflow.part_mut()))
    }
}
