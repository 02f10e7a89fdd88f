//! `[gate]`: how long callers stand back.

use serde::{Deserialize, Serialize};
use tidegate_activities::failure::Backoff;

use super::span::Span;

/// Pauses and retry delays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gate {
    /// Each wake-up after a pause is spread over 0 to this.
    pub jitter: Span,
    /// Bound of the first retry delay.
    pub base_backoff: Span,
    /// No retry delay is longer.
    pub max_backoff: Span,
    /// A pause outlives nobody longer than this.
    pub pause_ttl: Span,
}

impl Default for Gate {
    fn default() -> Self {
        let (backoff, options) = (Backoff::default(), tidegate_quota::Options::default());
        Self {
            jitter: Span(options.jitter),
            base_backoff: Span(backoff.base),
            max_backoff: Span(backoff.max),
            pause_ttl: Span(options.pause_ttl),
        }
    }
}
