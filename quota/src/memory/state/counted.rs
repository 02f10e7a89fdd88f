//! What a provider counts of calls whose bound it holds: `lua/include/counted.lua`.

use super::{Entry, State, TOGETHER};
use crate::{
    counted::Counted,
    dimension::PerDimension,
    model::ModelQuota,
    number::{float, micros},
    store::{Ask, Settlement, UsageSample},
};

const NEARLY_FULL: f64 = 0.02;
const APART: f64 = 2.0;
const CLEAR: f64 = 0.2;
const CALLS: f64 = 1.5;
const CLEARLY_BELOW: f64 = 0.5;
const WORTH_JUDGING: f64 = 0.1;
const ARRIVED: f64 = 3e6;

/// A span of time in which the provider's level and our calls are compared.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: f64,
    /// When it began; 0 for a full bucket.
    level: f64,
    /// Whether its calls were summed up at `from`, for a level that is told later.
    kept: bool,
    /// What its calls are, in the order of [`Counted`].
    guesses: [f64; 3],
}

/// What was found so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counting {
    span: Option<Span>,
    found: Option<Counted>,
    /// Which calls were admitted together, and what was reserved for those that have ended.
    together: Option<(f64, f64)>,
    /// A refusal has shown that bounds are held after all; what is found since counts for more.
    refuted: bool,
}

impl Counting {
    pub(super) const fn known(&self) -> Option<Counted> {
        self.found
    }

    fn add(&mut self, [used, larger, both]: [f64; 3]) {
        if let Some(span) = self.span.as_mut().filter(|span| !span.kept) {
            let [by_use, by_larger, by_both] = span.guesses;
            span.guesses = [by_use + used, by_larger + larger, by_both + both];
        }
    }

    /// A call was admitted. The first begins a span: the provider's level is no lower than 0.
    pub(super) fn admitted(&mut self, amounts: &PerDimension<f64>, now: f64) {
        self.span.get_or_insert(Span { from: now, level: 0.0, kept: false, guesses: [0.0; 3] });
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
            Some(Counted::Used | Counted::Produced) => settled.min(input + output),
            Some(Counted::Both) => settled.max(input + reserved.output),
            Some(Counted::Larger) | None => settled,
        }
    }

    /// A call has ended and tells nothing.
    fn untold(&mut self, reserved: &PerDimension<f64>) {
        let (input, bound) = (reserved.input, reserved.output);
        self.add([-input - bound, -input.max(bound), -input - bound]);
    }

    /// A call for which so much was reserved has told, as one of those that were admitted together
    /// at `group`, of which the most told `level`: whether the provider holds bounds.
    fn unheld(&mut self, (group, level): (f64, f64), reserved: f64, (limit, window): (f64, f64)) {
        let refuted = self.refuted && self.found.is_none();
        if refuted || self.found == Some(Counted::Produced) || limit <= 0.0 {
            return;
        }
        let before = self.together.filter(|(of, _)| (of - group).abs() < f64::EPSILON);
        let bounds = before.map_or(0.0, |(_, bounds)| bounds) + reserved;
        self.together = Some((group, bounds));
        let held = bounds - ARRIVED * limit / window;
        if bounds > WORTH_JUDGING * limit && level < CLEARLY_BELOW * held {
            self.found = Some(Counted::Produced);
        }
    }

    /// A refusal while there was room: bounds may be held.
    pub(super) fn refused(&mut self, now: f64) {
        if self.found == Some(Counted::Produced) {
            let span = Span { from: now, level: 0.0, kept: false, guesses: [0.0; 3] };
            *self = Self { span: Some(span), refuted: true, ..Self::default() };
        }
    }

    /// The provider's level was told with a call that was admitted at `admitted`; calls take `latency`.
    fn told(
        &mut self,
        level: f64,
        (limit, window): (f64, f64),
        latency: f64,
        (admitted, now): (f64, f64),
    ) {
        if self.found == Some(Counted::Produced) {
            // Bounds are not reserved any more.
            return;
        }
        let is_full = level < NEARLY_FULL * limit;
        let began = if is_full { 0.0 } else { level };
        let about = if is_full { level } else { level + NEARLY_FULL * limit };
        let mut next = Span { from: now, level: began, kept: false, guesses: [0.0; 3] };
        if let Some(span) = self.span {
            let rate = limit / window;
            let refilled = (now - span.from) * rate;
            let [by_use, by_larger, both] = span.guesses;
            let least = by_larger - refilled;
            if span.kept && admitted <= span.from + TOGETHER {
                return;
            } else if span.kept && least > level + CLEAR * limit {
                self.found = Some(Counted::Used);
            } else if span.level <= 0.0 && least > about {
                let clear = CLEAR * limit + CALLS * latency * rate;
                next.kept = !span.kept && least > level + clear;
                (next.level, next.guesses) = (0.0, span.guesses.map(|guess| guess - refilled));
            } else if !span.kept && span.level > 0.0 && began > 0.0 {
                if admitted < span.from || both - by_use < APART * limit {
                    return;
                }
                let fell = level - span.level + refilled;
                let mut off_by = CLEAR * both;
                let all = [Counted::Used, Counted::Larger, Counted::Both];
                for (counted, guess) in all.into_iter().zip(span.guesses) {
                    let off = (fell - guess).abs();
                    if off <= off_by {
                        (self.found, off_by) = (Some(counted), off);
                    }
                }
            }
        }
        self.span = Some(next);
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

    /// What is reserved for a call: where the provider holds nothing of a bound, what calls like it
    /// are expected to write.
    pub(super) fn reserved(&self, model: &ModelQuota, ask: &Ask, now: f64) -> PerDimension<f64> {
        let mut amounts = ask.amounts.map(float);
        let known = || self.expectation(model.learns_as(ask.template), now);
        if self.counting.known() == Some(Counted::Produced)
            && let Some(known) = known()
        {
            amounts.output = amounts.output.min(float(known.output));
            amounts.combined = amounts.combined.min(amounts.input + amounts.output);
        }
        amounts
    }

    /// A call has ended and does not tell what it used: it failed, or was never made.
    pub(super) fn count_none(&mut self, entry: &Entry) {
        self.counting.untold(&entry.amounts);
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
        if !model.learns_counting() || !self.is_likely_bucket(model) {
            return;
        }
        let limit = self.limit_stated(model, settlement);
        let window = micros(model.limits.window);
        let latency = self.latency.unwrap_or_default();
        self.counting.told(level, (limit, window), latency, (admitted, now));
    }

    /// The same, where they were believed: whether the provider holds bounds.
    pub(super) fn learn_unheld(
        &mut self,
        model: &ModelQuota,
        settlement: &Settlement,
        entry: &Entry,
        now: f64,
    ) {
        let Some(burst) = &self.burst else { return };
        let told = (burst.told_at, burst.told.combined);
        if model.learns_counting() && now - entry.admitted >= 2.0 * TOGETHER {
            let limit = (self.limit_stated(model, settlement), micros(model.limits.window));
            self.counting.unheld(told, entry.amounts.combined, limit);
        }
    }

    fn limit_stated(&self, model: &ModelQuota, settlement: &Settlement) -> f64 {
        let stated = settlement.meter.limits.combined.map(|it| float(model.limits.with_margin(it)));
        let in_force = self.in_force(model).limits.window.combined;
        stated.filter(|it| *it > 0.0).unwrap_or(in_force)
    }
}
