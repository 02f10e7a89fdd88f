//! A quota's configuration as the policy uses it.

use tidegate_types::fnv1a;

use crate::{
    conversions::{float, micros},
    dimension::{Dimension, Limited, PerLimit},
    limits::Limits,
    model::ModelQuota,
    numbers::MINUTE,
};

/// The policy's version, part of the fingerprint: two versions do not take turns.
const VERSION: u64 = 2;

/// The settings of the policy, equal in every program that shares the quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Configured {
    /// Limits as stated; 0 for none.
    limits: PerLimit<u64>,
    margin: f64,
    /// In microseconds.
    pub(super) window: f64,
    /// The part of the provider's rate that is used: margin, and a window longer than a minute.
    pub(super) kept: f64,
    /// Whether the limits are known to be buckets as deep as the window.
    pub(super) bucket: bool,
    /// A fixed burst, as a time at the rate; `None` if it is learned.
    pub(super) burst: Option<f64>,
}

impl Configured {
    pub(crate) fn from_model(model: &ModelQuota) -> Self {
        let Limits { margin, window, token_bucket, burst, .. } = model.limits;
        let window = micros(window);
        Self {
            limits: PerLimit::from_fn(|limited| model.limits.get(limited).unwrap_or(0)),
            margin,
            window,
            kept: margin * MINUTE / window,
            bucket: token_bucket,
            burst: burst.map(micros),
        }
    }

    /// Identifies this configuration and the policy's version among programs that share a quota.
    /// Exact in a float.
    pub(crate) fn fingerprint(&self) -> u64 {
        const EXACT: u64 = (1 << 52) - 1;
        let text = format!("{} {self:?}", VERSION);
        (fnv1a(text.bytes()) & EXACT) + 1
    }

    pub(super) fn limit(&self, it: Dimension) -> f64 {
        float(self.limits.window[it])
    }

    pub(super) fn concurrent(&self) -> f64 {
        float(self.limits[Limited::InFlight])
    }

    /// A limit times the margin, at least 1.
    pub(super) fn with_margin(&self, limit: f64) -> f64 {
        (limit * self.margin).floor().max(1.0)
    }
}
