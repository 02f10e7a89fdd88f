//! Why a bucket gave nothing.

use std::time::Duration;

use crate::error::Error;

/// Why [`super::Bucket::consume`] or [`super::Bucket::take`] took nothing.
#[derive(Debug, thiserror::Error)]
pub enum BucketRefused {
    /// Not yet.
    #[error("the bucket has {level} and not {amount}; a caller who waits would go in {wait:?}")]
    Wait {
        /// What was asked for.
        amount: u32,
        /// Until the turn of a caller who asks now and waits.
        wait: Duration,
        /// What there is; below zero when more is promised.
        level: i64,
    },
    /// More than the bucket ever holds.
    #[error(
        "the bucket never holds {amount}, only {capacity}; take less at once or raise the capacity"
    )]
    Never {
        /// What was asked for.
        amount: u32,
        /// The most that it holds.
        capacity: f64,
    },
    /// Nobody knows: Redis does not answer. Whoever must go on takes from a
    /// [`super::Bucket::in_memory`] of its part.
    #[error("the bucket cannot be asked: {0}")]
    Unknown(#[from] Error),
}
