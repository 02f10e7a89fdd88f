//! Tasks of the policy that tests keep, to run them late or never, as a frozen or killed process
//! does.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::wire_read::PolicyTask;

/// Whether tasks are kept, and the kept ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptTasks(Arc<Mutex<(bool, Vec<PolicyTask>)>>);

impl KeptTasks {
    pub(crate) fn set_keep(&self, keep: bool) {
        self.0.lock().0 = keep;
    }

    /// Returns the task if tasks are not kept; else keeps it.
    pub(crate) fn take_unless_kept(&self, task: PolicyTask) -> Option<PolicyTask> {
        let mut kept = self.0.lock();
        if !kept.0 {
            return Some(task);
        }
        kept.1.push(task);
        None
    }

    pub(crate) fn take_kept(&self) -> Vec<PolicyTask> {
        std::mem::take(&mut self.0.lock().1)
    }
}
