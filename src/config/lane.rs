//! `[lanes.<name>]`: a class of traffic and its part of every limit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_quota::{LimitError, Share};

/// One lane's part of each model's limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lane {
    /// Guaranteed, whatever the other lanes do.
    pub share: f64,
    /// The most it may borrow when the others are idle.
    pub burst: f64,
}

impl Default for Lane {
    fn default() -> Self {
        Self { share: 0.0, burst: 1.0 }
    }
}

/// `interactive`, `standard` and `batch`.
pub(super) fn defaults() -> BTreeMap<String, Lane> {
    [("interactive", 0.6), ("standard", 0.3), ("batch", 0.1)]
        .into_iter()
        .map(|(name, share)| (name.to_owned(), Lane { share, burst: 1.0 }))
        .collect()
}

/// All lanes as the limiter wants them; names that cannot be used are left out (validation has
/// named them).
pub(super) fn all(lanes: &BTreeMap<String, Lane>) -> Result<tidegate_quota::Lanes, LimitError> {
    let shares = lanes.iter().filter_map(|(name, lane)| {
        let name = tidegate_types::Lane::new(name.clone()).ok()?;
        Some((name, Share { guaranteed: lane.share, ceiling: lane.burst }))
    });
    tidegate_quota::Lanes::new(shares.collect())
}
