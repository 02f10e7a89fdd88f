//! What a provider counts of calls whose bound it holds: `lua/include/counted.lua`.

use super::{Entry, State};
use crate::{
    counted::Counted,
    dimension::PerDimension,
    model::ModelQuota,
    number::{float, micros},
    store::{Settlement, UsageSample},
};

const NEARLY_FULL: f64 = 0.02;
const APART: f64 = 2.0;
const CLEAR: f64 = 0.2;

/// A span of time in which the provider's level and our calls are compared.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: f64,
    level: f64,
    /// What its calls are, in the order of [`Counted`].
    guesses: [f64; 3],
}

/// What was found so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counting {
    span: Option<Span>,
    found: Option<Counted>,
}

impl Counting {
    pub(super) const fn known(&self) -> Option<Counted> {
        self.found
    }

    fn add(&mut self, [used, larger, both]: [f64; 3]) {
        if let Some(span) = &mut self.span {
            let [by_use, by_larger, by_both] = span.guesses;
            span.guesses = [by_use + used, by_larger + larger, by_both + both];
        }
    }

    /// A call was admitted.
    pub(super) fn admitted(&mut self, amounts: &PerDimension<f64>) {
        let (input, bound) = (amounts.input, amounts.output);
        self.add([input + bound, input.max(bound), input + bound]);
    }

    /// A call has ended.
    fn used(&mut self, reserved: &PerDimension<f64>, input: f64, output: f64) {
        let (more, bound) = (input - reserved.input, reserved.output);
        let larger = input.max(bound) - reserved.input.max(bound);
        self.add([more + output - bound, larger, more]);
    }

    /// What a call counts as that is settled as `settled`.
    fn settled(&self, settled: f64, reserved: &PerDimension<f64>, input: f64, output: f64) -> f64 {
        match self.known() {
            Some(Counted::Used) => settled.min(input + output),
            Some(Counted::Both) => settled.max(input + reserved.output),
            Some(Counted::Larger) | None => settled,
        }
    }

    /// The provider's level was told.
    fn told(&mut self, level: f64, (limit, window): (f64, f64), admitted: f64, now: f64) {
        if level < NEARLY_FULL * limit {
            self.span = None;
            return;
        }
        if let Some(span) = self.span {
            let [by_use, _, both] = span.guesses;
            if admitted < span.from || both - by_use < APART * limit {
                return;
            }
            let fell = level - span.level + (now - span.from) * limit / window;
            let mut least = CLEAR * both;
            let all = [Counted::Used, Counted::Larger, Counted::Both];
            for (counted, guess) in all.into_iter().zip(span.guesses) {
                let off = (fell - guess).abs();
                if off <= least {
                    (self.found, least) = (Some(counted), off);
                }
            }
        }
        self.span = Some(Span { from: now, level, guesses: [0.0; 3] });
    }
}

impl State {
    /// A call has ended: what it counts as.
    pub(super) fn count(
        &mut self,
        model: &ModelQuota,
        entry: &Entry,
        sample: UsageSample,
        settled: f64,
    ) -> f64 {
        if !model.learns_counting() {
            return settled;
        }
        let (input, output) = (float(sample.input), float(sample.output));
        let counts = self.counting.settled(settled, &entry.amounts, input, output);
        self.counting.used(&entry.amounts, input, output);
        counts
    }

    /// The headers of a call that has been settled.
    pub(super) fn learn_counted(
        &mut self,
        model: &ModelQuota,
        settlement: &Settlement,
        admitted: f64,
        now: f64,
    ) {
        let Some(level) = settlement.meter.used.combined.map(float) else { return };
        if !model.learns_counting() || !self.is_bucket(model) {
            return;
        }
        let stated = settlement.meter.limits.combined.map(|it| float(model.limits.with_margin(it)));
        let in_force = self.in_force(model).limits.window.combined;
        let limit = stated.filter(|it| *it > 0.0).unwrap_or(in_force);
        let window = micros(model.limits.window);
        self.counting.told(level, (limit, window), admitted, now);
    }
}
