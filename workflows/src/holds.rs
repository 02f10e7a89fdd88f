//! Parts of a workflow's state that more than one workflow has: code is written for the part, and
//! runs in each workflow that holds it.

use temporalio_workflow::WorkflowContext;

/// A workflow whose state holds a `T`.
pub(crate) trait Holds<T> {
    /// The part.
    fn part(&self) -> &T;

    /// The part, to be changed.
    fn part_mut(&mut self) -> &mut T;
}

/// A workflow's context, seen from the part.
pub(crate) trait Inside<T> {
    /// Reads the part.
    fn look<R>(&self, f: impl FnOnce(&T) -> R) -> R;

    /// Changes the part. Whoever waits for a condition looks again.
    fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

impl<T, W: Holds<T>> Inside<T> for WorkflowContext<W> {
    fn look<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        self.state(|workflow| f(workflow.part()))
    }

    fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.state_mut(|workflow| f(workflow.part_mut()))
    }
}
