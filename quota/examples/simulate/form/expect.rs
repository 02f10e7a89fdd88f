//! What calls of a template really use.

use super::numbers::Numbers;

/// Sums over calls, of which older ones count less.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Learned {
    input: f64,
    estimated: f64,
    /// Weighted by latency: what is under way is longer than what has ended.
    output: f64,
    weight: f64,
    calls: f64,
    cached: f64,
}

/// What a call should use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Expected {
    /// Real over estimated input.
    pub(crate) ratio: f64,
    pub(crate) output: f64,
    /// Input that a cache gives and the provider does not count.
    pub(crate) cached: f64,
}

/// What a call used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) estimated: f64,
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cached: f64,
    pub(crate) seconds: f64,
}

impl Learned {
    pub(crate) fn learn(&mut self, used: &Used, numbers: &Numbers) {
        let fade = |sum: &mut f64, seen: f64| *sum = *sum * numbers.fade + seen;
        let weight = used.seconds.max(f64::MIN_POSITIVE);
        fade(&mut self.input, used.input);
        fade(&mut self.estimated, used.estimated);
        fade(&mut self.output, used.output * weight);
        fade(&mut self.weight, weight);
        self.calls += 1.0;
        // Taken back at once, and believed when two in a row had it.
        self.cached =
            used.cached.min(self.cached + numbers.half * (used.cached - self.cached).max(0.0));
    }

    pub(crate) fn expected(&self, numbers: &Numbers) -> Option<Expected> {
        (self.calls >= numbers.enough && self.estimated > 0.0).then(|| Expected {
            ratio: self.input / self.estimated,
            output: self.output / self.weight,
            cached: self.cached,
        })
    }
}
