//! `[redis]`: where the fleet shares its quota.

use serde::{Deserialize, Serialize};

/// The Redis that holds the quota of the whole fleet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Redis {
    /// `redis://`, `rediss://`, `unix://`, `redis+cluster://host:port,…` or
    /// `redis+sentinel://host:port,…/master-name`.
    pub url: String,
    /// First part of every key.
    pub key_prefix: String,
}

impl Default for Redis {
    fn default() -> Self {
        Self { url: "redis://127.0.0.1:6379".to_owned(), key_prefix: "tidegate".to_owned() }
    }
}

/// The URL is shown without its password.
impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis")
            .field("url", &super::mask::url(&self.url))
            .field("key_prefix", &self.key_prefix)
            .finish()
    }
}
