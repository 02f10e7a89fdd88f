//! The cost of `max_output_tokens` where the provider counts it, used or not.

use tidegate_types::Usage;

use crate::{
    call_stats,
    conversions::{float, whole},
    dimension::{Dimension, PerDimension},
    model::ModelQuota,
    plan::Why,
    snapshot::Snapshot,
};

/// Ratio of the suggested bound to the mean answer: answers rarely use a third of a good bound.
const ROOM: f64 = 3.0;

/// Minimum number of finished calls for a suggestion.
const ENOUGH: u64 = 10;

/// Minimum gain that is worth a sentence.
const WORTH_SAYING: f64 = 1.3;

/// The cost of the bound on output, and the gain of a smaller one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputCapCost {
    /// Calls a second that the limits admit with the present bound.
    pub rate: f64,
    /// Three times the mean output: a `max_output_tokens` that most answers fit into.
    pub smaller: u64,
    /// Calls a second with the smaller bound.
    pub with_smaller: f64,
}

impl OutputCapCost {
    /// A sentence for people, without its full stop.
    pub fn sentence(&self) -> String {
        let knows =
            "max_output_tokens is taken to count, used or not, until headers show otherwise";
        let Self { rate, smaller, with_smaller, .. } = self;
        format!(
            "{knows}: {} at most; with max_output_tokens = {smaller} it would be {}",
            format_rate(*rate),
            format_rate(*with_smaller),
        )
    }
}

/// `3.1 calls a second`, `40 calls a minute`.
pub fn format_rate(rate: f64) -> String {
    if rate >= 1.0 {
        format!("{rate:.1} calls a second")
    } else {
        format!("{:.0} calls a minute", rate * 60.0)
    }
}

/// Calls a second that a model's limits admit, for calls of `input` tokens, `output` tokens used
/// and a bound of `bound`. `None` where no limit is a rate.
pub fn calls_per_second(model: &ModelQuota, input: u64, output: u64, bound: u64) -> Option<f64> {
    let limits = model.limits.effective();
    calls_per_second_within(model, &limits, [input, output, bound])
}

fn calls_per_second_within(
    model: &ModelQuota,
    limits: &PerDimension<u64>,
    [input, output, bound]: [u64; 3],
) -> Option<f64> {
    let usage = Usage { uncached_input: input, output, ..Usage::default() };
    let amounts = model.used(&usage, bound);
    call_stats::rate(limits, model.limits.window, &amounts.map(float))
}

/// The gain of a smaller `max_output_tokens`, from the finished calls in the window. `None` if it
/// is small, or too little is known.
pub fn output_cap_cost(model: &ModelQuota, snapshot: &Snapshot) -> Option<OutputCapCost> {
    // The level follows the provider's own meter, with any rules of counting.
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
    // Calls in flight show the bound better than settled ones, some of which may have failed.
    let held = snapshot.get(Dimension::Output).held / snapshot.get(Dimension::Requests).held.max(1);
    let bound = if held > 0 { held } else { mean.combined };
    let smaller = whole(ROOM * float(mean.output)).max(16).next_multiple_of(64);
    let limits = snapshot.dimensions.map(|seen| seen.limit);
    let at = |bound| calls_per_second_within(model, &limits, [mean.input, mean.output, bound]);
    let (now, with_smaller) = (at(bound)?, at(smaller)?);
    (with_smaller > WORTH_SAYING * now).then_some(OutputCapCost {
        rate: now,
        smaller,
        with_smaller,
    })
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

    /// 60 finished calls of 1,400 input and 200 output tokens with a bound of 9,000; two in flight.
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
    fn a_smaller_bound_gains_what_the_provider_then_counts_less() {
        let model = openai(Charge::CAUTIOUS);
        let larger = output_cap_cost(&model, &seen(Why::Strict)).unwrap();
        assert_eq!(larger.smaller, 640);
        assert!((larger.rate - 3.7).abs() < 0.01, "{larger:?}");
        assert!((larger.with_smaller - 20.8).abs() < 0.1, "{larger:?}");
        let words = larger.sentence();
        for part in ["until headers show otherwise", "3.7 calls a second", "= 640", "20.8 calls"] {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(output_cap_cost(&model, &seen(Why::Even)), None, "the level follows the meter");
    }

    #[test]
    fn there_is_no_cost_where_only_used_output_counts() {
        assert_eq!(output_cap_cost(&openai(Charge::default()), &seen(Why::Strict)), None);
        let hold = Charge { hold: OutputHold::Maximum, ..Charge::default() };
        assert_eq!(
            output_cap_cost(&openai(hold), &seen(Why::Strict)),
            None,
            "the unused part is given back"
        );
    }
}
