//! The one call that finds out, while all others wait for what it is told.

use std::fmt;

/// Leave to be the call that finds out. Dropped before it leaves, another one may.
#[derive(Default)]
#[must_use = "a probe that is dropped lets the next one in"]
pub struct Probe(Option<Box<dyn FnOnce() + Send + Sync>>);

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.0.is_some()).finish()
    }
}

impl Probe {
    /// One that is given back so.
    pub fn new(give_back: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }

    /// The call leaves: the others wait for its end.
    pub fn leaves(mut self) {
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
