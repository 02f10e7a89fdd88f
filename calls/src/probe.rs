//! A probe: the one call that tests a held model or key while all others wait for its outcome.

use std::fmt;

/// The right to be the probe. If it is dropped before the call leaves, another call may probe.
#[derive(Default)]
#[must_use = "a probe that is dropped lets the next one in"]
pub struct Probe(Option<Box<dyn FnOnce() + Send + Sync>>);

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.0.is_some()).finish()
    }
}

impl Probe {
    /// Creates a probe with the function that returns the right.
    pub fn new(give_back: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }

    /// Uses the right up, because the call leaves: the others wait for its outcome.
    pub fn use_up(mut self) {
        self.0 = None;
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}
