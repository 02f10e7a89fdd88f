//! Tasks of the policy that tests keep, to do them late or never: as a process does that is frozen or
//! killed.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::wire_read::Read;

/// Whether they are kept, and those that are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<(bool, Vec<Read>)>>);

impl Tasks {
    pub(crate) fn keep(&self, keep: bool) {
        self.0.lock().0 = keep;
    }

    /// The task, if it is to be done now.
    pub(crate) fn now(&self, task: Read) -> Option<Read> {
        let mut kept = self.0.lock();
        if !kept.0 {
            return Some(task);
        }
        kept.1.push(task);
        None
    }

    pub(crate) fn take(&self) -> Vec<Read> {
        std::mem::take(&mut self.0.lock().1)
    }
}
