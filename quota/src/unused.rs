//! What a bound on output costs where a provider counts it, used or not.

use tidegate_types::Usage;

use crate::{
    call_stats,
    dimension::{Dimension, PerDimension},
    model::ModelQuota,
    number::{float, whole},
    plan::Why,
    snapshot::Snapshot,
};

/// Answers rarely use a third of what such calls should be allowed.
const ROOM: f64 = 3.0;

/// Fewer finished calls say little.
const ENOUGH: u64 = 10;

/// Less gain is not worth a sentence.
const WORTH_SAYING: f64 = 1.3;

/// What the bound on output costs where the provider counts it, and what a smaller one would give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unused {
    /// Calls a second that the limits admit as they are.
    pub rate: f64,
    /// Three times what answers use in the mean: `max_output_tokens` that most of them fit into.
    pub smaller: u64,
    /// Calls a second with that.
    pub with_smaller: f64,
}

impl Unused {
    /// For people: a sentence without its end.
    pub fn sentence(&self) -> String {
        let knows =
            "max_output_tokens is taken to count, used or not, until headers show otherwise";
        let Self { rate, smaller, with_smaller, .. } = self;
        format!(
            "{knows}: {} at most; with max_output_tokens = {smaller} it would be {}",
            per_second(*rate),
            per_second(*with_smaller),
        )
    }
}

/// `3.1 calls a second`, `40 calls a minute`.
pub fn per_second(rate: f64) -> String {
    if rate >= 1.0 {
        format!("{rate:.1} calls a second")
    } else {
        format!("{:.0} calls a minute", rate * 60.0)
    }
}

/// Calls a second that these limits of a model admit, where each call has so much input, uses so much
/// output and allows `bound`. `None` where no limit is a rate.
pub fn rate(model: &ModelQuota, input: u64, output: u64, bound: u64) -> Option<f64> {
    let limits = model.limits.effective();
    rate_within(model, &limits, [input, output, bound])
}

fn rate_within(
    model: &ModelQuota,
    limits: &PerDimension<u64>,
    [input, output, bound]: [u64; 3],
) -> Option<f64> {
    let usage = Usage { uncached_input: input, output, ..Usage::default() };
    let amounts = model.used(&usage, bound);
    call_stats::rate(limits, model.limits.window, &amounts.map(float))
}

/// What a smaller `max_output_tokens` would give, by the finished calls of the window; `None` where
/// it would give little, or not enough is known.
pub fn unused(model: &ModelQuota, snapshot: &Snapshot) -> Option<Unused> {
    // The provider's own meter is what the level goes by, whatever it counts.
    let told = |it| {
        let plan = snapshot.get(it).plan;
        plan.is_some_and(|plan| plan.window.why == Why::Even && !model.limits.token_bucket)
    };
    if !model.charge.counts_bound() || told(Dimension::Combined) {
        return None;
    }
    let settled = snapshot.dimensions.map(|seen| seen.used.saturating_sub(seen.held));
    let calls = Some(settled.requests).filter(|calls| *calls >= ENOUGH)?;
    let mean = settled.map(|amount| amount / calls);
    // Held calls tell the bound better than settled ones, of which some may have failed.
    let held = snapshot.get(Dimension::Output).held / snapshot.get(Dimension::Requests).held.max(1);
    let bound = if held > 0 { held } else { mean.combined };
    let smaller = whole(ROOM * float(mean.output)).max(16).next_multiple_of(64);
    let limits = snapshot.dimensions.map(|seen| seen.limit);
    let at = |bound| rate_within(model, &limits, [mean.input, mean.output, bound]);
    let (now, with_smaller) = (at(bound)?, at(smaller)?);
    (with_smaller > WORTH_SAYING * now).then_some(Unused { rate: now, smaller, with_smaller })
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tidegate_types::{Charge, OutputHold};

    use super::*;
    use crate::{
        Lanes, Limits,
        plan::{Allowance, Reasoned},
        snapshot::DimensionSnapshot,
    };

    fn openai(charge: Charge) -> ModelQuota {
        let limits = Limits {
            margin: 1.0,
            window: Duration::from_secs(60),
            ..Limits::default().with(Dimension::Combined, 2_000_000)
        };
        let lanes = Arc::new(Lanes::single());
        ModelQuota::new("openai:m".parse().unwrap(), limits, charge, lanes).unwrap()
    }

    /// 60 finished calls of 1,400 tokens in and 200 out, which were allowed 9,000; two in flight.
    fn seen(meter: Why) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let of = |used, held| DimensionSnapshot { used, held, ..DimensionSnapshot::default() };
        let number = Reasoned::new(1.0, meter);
        let plan = Allowance { rate: number, capacity: number, window: number, most: 1.0 };
        snapshot.dimensions.requests = of(62, 2);
        snapshot.dimensions.input = of(62 * 1_400, 2 * 1_400);
        snapshot.dimensions.output = of(60 * 200 + 2 * 9_000, 2 * 9_000);
        snapshot.dimensions.combined =
            DimensionSnapshot { limit: 2_000_000, plan: Some(plan), ..of(62 * 9_000, 2 * 9_000) };
        snapshot
    }

    #[test]
    fn a_smaller_bound_is_worth_what_the_provider_counts_less() {
        let model = openai(Charge::CAUTIOUS);
        let larger = unused(&model, &seen(Why::Strict)).unwrap();
        assert_eq!(larger.smaller, 640);
        assert!((larger.rate - 3.7).abs() < 0.01, "{larger:?}");
        assert!((larger.with_smaller - 20.8).abs() < 0.1, "{larger:?}");
        let words = larger.sentence();
        for part in ["until headers show otherwise", "3.7 calls a second", "= 640", "20.8 calls"] {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(unused(&model, &seen(Why::Even)), None, "the level goes by the meter");
    }

    #[test]
    fn nothing_is_said_where_output_counts_as_it_is_used() {
        assert_eq!(unused(&openai(Charge::default()), &seen(Why::Strict)), None);
        let hold = Charge { hold: OutputHold::Maximum, ..Charge::default() };
        assert_eq!(unused(&openai(hold), &seen(Why::Strict)), None, "what is left comes back");
    }
}
