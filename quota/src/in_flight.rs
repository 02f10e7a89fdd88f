//! Calls of this process that are admitted and not settled, by quota and by the store that admitted
//! them.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::model::ModelQuota;

/// The store that granted a permit, and so must settle it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Backend {
    Redis,
    Local,
}

type Key = (String, Backend);

#[derive(Debug, Default)]
pub(crate) struct InFlightCalls {
    calls: Mutex<HashMap<Key, u64>>,
}

impl InFlightCalls {
    /// Counts a call until the mark is dropped.
    pub(crate) fn begin(self: &Arc<Self>, model: &ModelQuota, backend: Backend) -> Mark {
        let key = key(model, backend);
        *self.calls.lock().entry(key.clone()).or_default() += 1;
        Mark { in_flight: Arc::clone(self), key }
    }

    /// Calls of one quota and one store.
    pub(crate) fn count(&self, model: &ModelQuota, backend: Backend) -> u64 {
        self.calls.lock().get(&key(model, backend)).copied().unwrap_or_default()
    }
}

fn key(model: &ModelQuota, backend: Backend) -> Key {
    (model.quota_name().into_owned(), backend)
}

/// Counts its call until it is dropped.
#[derive(Debug)]
pub(crate) struct Mark {
    in_flight: Arc<InFlightCalls>,
    key: Key,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut calls = self.in_flight.calls.lock();
        if let Some(count) = calls.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                calls.remove(&self.key);
            }
        }
    }
}
