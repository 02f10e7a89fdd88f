//! The expected use of a template's next call, from past calls: real over estimated input, and the
//! mean output weighted by the call's latency. A plain mean under-reserves 1.7 times, because the
//! calls in flight are longer than those that have completed.

use super::{Mechanism, state::Learned};
use crate::{
    conversions::{float, whole},
    numbers::Numbers,
    store::{Expectation, Settlement},
};

/// Maximum number of templates that a process remembers; at the next one it begins again. Each costs
/// some 100 bytes.
pub(crate) const REMEMBERED_TEMPLATES: usize = 10_000;

impl Mechanism {
    /// `None` also while every call used no input: no estimate of nothing is made.
    pub(crate) fn expectation(&self, template: u64) -> Option<Expectation> {
        let learned = self.learned.get(&template).filter(|learned| learned.input > 0.0)?;
        Some(Expectation {
            input_ratio: (learned.input / learned.estimated * 1e6).ceil() / 1e6,
            output: whole((learned.output / learned.weight).ceil()),
            cached: whole(learned.cached),
        })
    }

    /// Learns from a settled call. The expectation of the first call counts as one more call if it
    /// was above the real output, because the shortest answers come first. The learned cached input
    /// falls at once when a call gets less, and grows by halves.
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
        if self.learned.len() >= REMEMBERED_TEMPLATES && !self.learned.contains_key(&template) {
            self.learned.clear();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dimension::Amounts, store::UsageSample};

    #[test]
    fn templates_without_end_take_no_memory_without_end() {
        let mut mechanism = Mechanism::new(0.0);
        let sample = UsageSample { estimated_input: 10, input: 9, output: 3 };
        let used = Settlement::used("call", Amounts::call(9, 3));
        let settlement = Settlement { sample: Some(sample), ..used };
        for template in 0..20_000 {
            mechanism.learn(template, &settlement, 0.0, 1.0, &Numbers::DEFAULT);
            assert!(mechanism.learned.len() <= REMEMBERED_TEMPLATES);
            assert!(mechanism.expectation(template).is_some());
        }
    }
}
