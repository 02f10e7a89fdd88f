//! What is learned of how far calls may run ahead of an even pace.

use crate::{dimension::PerDimension, model::ModelQuota, number::micros};

/// What was learned; see the slots of the script's key.
#[derive(Debug, Clone)]
pub(super) struct Burst {
    pub(super) allowance: f64,
    pub(super) grew_at: f64,
    pub(super) steady_until: f64,
    pub(super) ceiling: f64,
    pub(super) ceiling_at: f64,
    pub(super) born_at: f64,
    pub(super) told_at: f64,
    pub(super) looked_at: f64,
    pub(super) refused_at: f64,
    pub(super) lowest: f64,
    pub(super) refilling: bool,
    pub(super) likely: bool,
    /// A reset was exactly that of a token bucket.
    pub(super) told_exactly: bool,
    pub(super) credit: PerDimension<f64>,
    pub(super) told: PerDimension<f64>,
    /// By how much the allowance has grown in this step.
    pub(super) widened: f64,
}

impl Burst {
    pub(super) fn new(model: &ModelQuota, now: f64) -> Self {
        Self {
            allowance: micros(model.limits.burst),
            grew_at: now,
            steady_until: 0.0,
            ceiling: 0.0,
            ceiling_at: 0.0,
            born_at: now,
            told_at: 0.0,
            looked_at: 0.0,
            refused_at: 0.0,
            lowest: 0.0,
            refilling: false,
            likely: false,
            told_exactly: false,
            credit: PerDimension::default(),
            told: PerDimension::default(),
            widened: 0.0,
        }
    }

    /// A new step. The clock may have been set back.
    pub(super) fn clamp(&mut self, now: f64, window: f64) {
        self.widened = 0.0;
        self.steady_until = self.steady_until.min(now + window);
        for at in [
            &mut self.grew_at,
            &mut self.ceiling_at,
            &mut self.born_at,
            &mut self.told_at,
            &mut self.looked_at,
            &mut self.refused_at,
        ] {
            *at = at.min(now);
        }
    }
}
