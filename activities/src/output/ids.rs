//! Names of documents in eight bytes each, for lists that hold those of a whole batch.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// Stands for a text: of a million, two have one with a probability of less than one in ten million.
pub type Key = u64;

/// The key of a text, the same on every worker.
pub(crate) fn key(text: &str) -> Key {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    digest[..8].iter().fold(0, |key, byte| key << 8 | Key::from(*byte))
}

/// Documents that something is known of.
#[derive(Debug, Default)]
pub(crate) struct Ids(HashSet<Key>);

impl Ids {
    pub(crate) fn insert(&mut self, id: &str) {
        self.0.insert(key(id));
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.0.remove(&key(id))
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.contains(key(id))
    }

    pub(crate) fn contains(&self, key: Key) -> bool {
        self.0.contains(&key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
