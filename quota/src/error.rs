//! Errors of a store.

use tidegate_types::ModelId;

/// An error of a store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The address cannot be used. Configuration error, fatal.
    #[error("the Redis URL cannot be used: {0}")]
    Address(String),
    /// Redis could not be reached or did not answer in time. Callers fall back to their local
    /// share.
    #[error("Redis is away: {0}")]
    Away(String),
    /// Redis answered with something other than the scripts' protocol: another program's keys, or a
    /// version that does not match.
    #[error(
        "Redis gave an answer that the limiter does not understand: {0}; check redis.key-prefix, and run `tidegate doctor`"
    )]
    Protocol(String),
    /// A newer program has stored this quota in a layout that this program does not know. Fatal:
    /// going on would lift the limit for all.
    #[error("a newer program keeps the quota in Redis: {0}; update this program")]
    Outdated(String),
    /// The model is not configured.
    #[error("no limits are configured for {0}")]
    UnknownModel(ModelId),
}
