//! Tokens of one provider call, with one meaning for all providers.

use serde::{Deserialize, Serialize};

/// The reported usage of one call, normalised: the four counts never overlap.
///
/// Providers differ (for some, cached tokens are inside the input count, for others beside it);
/// each client of `tidegate-providers` converts to this meaning in its `response.rs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a prompt cache.
    pub uncached_input: u64,
    /// Input tokens read from a prompt cache.
    pub cache_read: u64,
    /// Input tokens written to a prompt cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
}

impl Usage {
    /// All input tokens, cached or not.
    pub fn input(&self) -> u64 {
        self.uncached_input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}
