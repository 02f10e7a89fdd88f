//! Calls of this process that are admitted and not over, by quota and by the store that admitted
//! them.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::model::ModelQuota;

/// Which store granted a permit, and so must settle it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Backend {
    Redis,
    Local,
}

type Key = (String, Backend);

#[derive(Debug, Default)]
pub(crate) struct Running {
    calls: Mutex<HashMap<Key, u64>>,
}

impl Running {
    /// One more, until the mark is dropped.
    pub(crate) fn begin(self: &Arc<Self>, model: &ModelQuota, backend: Backend) -> Mark {
        let key = key(model, backend);
        *self.calls.lock().entry(key.clone()).or_default() += 1;
        Mark { running: Arc::clone(self), key }
    }

    /// Of one quota and one store.
    pub(crate) fn of(&self, model: &ModelQuota, backend: Backend) -> u64 {
        self.calls.lock().get(&key(model, backend)).copied().unwrap_or_default()
    }
}

fn key(model: &ModelQuota, backend: Backend) -> Key {
    (model.quota_name().into_owned(), backend)
}

/// A call that runs.
#[derive(Debug)]
pub(crate) struct Mark {
    running: Arc<Running>,
    key: Key,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut calls = self.running.calls.lock();
        if let Some(count) = calls.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                calls.remove(&self.key);
            }
        }
    }
}
