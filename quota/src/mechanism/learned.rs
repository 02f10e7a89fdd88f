//! What past calls of a template teach about the next: real over estimated input, and the mean
//! output weighted by the call's latency. A plain mean under-reserves 1.7 times, because what is in
//! flight is longer than what has completed.

use super::{Mechanism, kept::Learned};
use crate::{
    number::{float, whole},
    numbers::Numbers,
    store::{Expectation, Settlement},
};

impl Mechanism {
    pub(crate) fn expectation(&self, template: u64) -> Option<Expectation> {
        let learned = self.learned.get(&template)?;
        Some(Expectation {
            input_ratio: (learned.input / learned.estimated * 1e6).ceil() / 1e6,
            output: whole((learned.output / learned.weight).ceil()),
            cached: whole(learned.cached),
        })
    }

    /// What was expected of the first call counts as one call more, where it used less, for the
    /// shortest answers come first. What a cache gives is taken back at once when a call gets less, and comes back by halves.
    pub(super) fn learn(
        &mut self,
        template: u64,
        settlement: &Settlement,
        expected: f64,
        latency: f64,
        numbers: &Numbers,
    ) {
        let Some(sample) = settlement.sample.filter(|sample| sample.estimated_input > 0) else {
            return;
        };
        let weight = latency.max(1.0);
        let output = float(sample.output).max(expected) * weight;
        let first = Learned { output, weight, ..Learned::default() };
        let learned = self.learned.entry(template).or_insert(first);
        let fade = |sum: &mut f64, seen: f64| *sum = *sum * numbers.fade + seen;
        fade(&mut learned.input, float(sample.input));
        fade(&mut learned.estimated, float(sample.estimated_input));
        fade(&mut learned.output, float(sample.output) * weight);
        fade(&mut learned.weight, weight);
        if let Some(cached) = settlement.cached.map(float) {
            let gained = numbers.half * (cached - learned.cached).max(0.0);
            learned.cached = cached.min(learned.cached + gained);
        }
    }
}
