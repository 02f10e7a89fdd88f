//! Documents' ids in eight bytes each, for lists of a whole batch.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// Hash that stands for a text. Among a million texts, two share a key with a probability of less
/// than one in ten million.
pub type Key = u64;

/// The key of a text, equal on every worker.
pub(crate) fn key(text: &str) -> Key {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    digest[..8].iter().fold(0, |key, byte| key << 8 | Key::from(*byte))
}

/// A set of documents.
#[derive(Debug, Default)]
pub(crate) struct Ids(HashSet<Key>);

impl Ids {
    pub(crate) fn insert(&mut self, id: &str) {
        self.0.insert(key(id));
    }

    /// Removes an id. Returns whether it was there.
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
