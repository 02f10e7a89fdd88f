//! The Temporal actions of a batch, which Temporal's cloud charges for; the arithmetic is in
//! `docs/temporal-cost.md`. Queries by its viewers are not included.

use tidegate_types::Spend;
use tidegate_workflows::contract::{Plan, SHARD_WINDOW};

use crate::{
    number::{float, whole},
    output::forecast::{Forecast, Range},
};

/// Seconds between heartbeats; a shorter call needs none.
const BEAT: f64 = 25.0;

/// Longest wait in a slot, in seconds: the default of `max-slot-wait`. A longer one is a deferral
/// through Temporal.
const IN_PLACE: f64 = 10.0;

/// Actions of a deferral: the heartbeat that carries the turn, and the next attempt.
const DEFERRAL: f64 = 2.0;

/// Maximum deferrals of a document at tight limits: 0.00 to 0.28 were measured
/// (`benches/deferrals.rs`).
const DEFERRALS: f64 = 0.5;

/// Actions of every batch: its start, its plan, its labels, its finish.
const OF_EACH: f64 = 4.0;

/// Actions of a shard in a large batch: its start, its seal, and the signals that pass its slots on.
const SHARD: f64 = 5.0;

/// Shards that a batch starts itself, shards of each group after them, and actions of a group: a start
/// and a few signals.
const UNGROUPED: f64 = 20.0;
const GROUPED: f64 = 50.0;
const GROUP: f64 = 4.0;

/// Polls of a provider's batch in a day.
const CHECKS: f64 = 150.0;
const DAY: f64 = 86_400.0;

/// Forecasts the actions of a batch. `call` is the seconds of a call, if known.
pub(crate) fn forecast_actions(forecast: &Forecast, call: f64) -> Range {
    let documents = float(forecast.documents);
    let seconds = forecast.seconds.unwrap_or(Range { from: 0.0, to: 0.0 });
    let shards = shards(documents);
    if forecast.provider_batch {
        let of = |seconds: f64| batch_actions(shards, seconds, true);
        return Range { from: of(seconds.from), to: of(seconds.to) };
    }
    let attempts = documents / f64::from(forecast.pack.max(1));
    let beats = |seconds: f64| attempts * (seconds / BEAT).floor();
    let binds = seconds.to > IN_PLACE.max(2.0 * call);
    let waits = if binds { attempts * DEFERRALS * DEFERRAL } else { 0.0 };
    let calls = forecast.calls.unwrap_or(Range { from: 1.0, to: 1.0 });
    Range {
        from: calls.from * attempts
            + beats(call / 2.0)
            + batch_actions(shards, seconds.from, false),
        to: calls.to * attempts
            + beats(2.0 * call)
            + waits
            + batch_actions(shards, seconds.to, false),
    }
}

/// Counts the actions of a batch that has ended. Heartbeats of calls longer than [`BEAT`] are not
/// counted.
pub(crate) fn count_actions(plan: &Plan, spend: &Spend, seconds: f64) -> u64 {
    let asked = float(plan.asked());
    let shards = f64::from(plan.shards());
    if plan.provider_batching.is_some() {
        return whole(batch_actions(shards, seconds, true));
    }
    let first = (asked / f64::from(plan.pack.max(1))).ceil();
    let again = (float(spend.provider_calls) - first).max(0.0);
    let attempts = first + DEFERRAL * (again + float(spend.deferrals));
    whole(
        attempts + f64::from(plan.pages.saturating_sub(1)) + batch_actions(shards, seconds, false),
    )
}

/// Start, plan, labels and finish, the actions of its shards, and its progress reports.
fn batch_actions(shards: f64, seconds: f64, asleep: bool) -> f64 {
    let checks = if asleep { shards * (2.0 + CHECKS * (seconds / DAY).min(1.0)) } else { 0.0 };
    if shards <= 1.0 {
        return OF_EACH + shards + checks;
    }
    let groups = ((shards - UNGROUPED) / GROUPED).ceil().max(0.0);
    // One report in ten seconds; after a thousand seconds, one in each hundredth of the time so far.
    let reports = (seconds.min(1_000.0) / 10.0) + 100.0 * (seconds / 1_000.0).max(1.0).ln();
    OF_EACH + SHARD * shards + GROUP * groups + reports + checks
}

fn shards(documents: f64) -> f64 {
    (documents / f64::from(SHARD_WINDOW)).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dev server counted 1.04 for each of 100 documents with calls of 12 s
    /// (`docs/temporal-cost.md`). Labels of batches, which were added later, are one more.
    #[test]
    fn as_a_server_has_counted() {
        let plan = Plan { documents: 100, shard_size: 500, pages: 1, ..Plan::default() };
        let spend = Spend { provider_calls: 100, ..Spend::default() };
        assert_eq!(count_actions(&plan, &spend, 13.0), 105);
        let waited = Spend { deferrals: 20, provider_calls: 103, ..spend };
        assert_eq!(count_actions(&plan, &waited, 60.0), 105 + 2 * 23);
        let large = Plan { documents: 10_000, ..plan.clone() };
        let spend = Spend { provider_calls: 10_000, ..spend };
        assert_eq!(count_actions(&large, &spend, 200.0), 10_000 + 4 + 20 * 5 + 20);
        let settled = Plan { settled: 10_000, ..large };
        assert_eq!(count_actions(&settled, &Spend::default(), 1.0), 4);
        let packed = Plan { pack: 20, ..plan };
        assert_eq!(count_actions(&packed, &Spend { provider_calls: 5, ..spend }, 5.0), 5 + 5);
    }

    #[test]
    fn a_forecast_spans_what_the_batch_may_take() {
        let none = Range { from: 0.0, to: 0.0 };
        let forecast = Forecast {
            documents: 100,
            sampled: 40,
            asked: None,
            unreadable: 0,
            input_tokens: none,
            output_tokens: none,
            cost_usd: None,
            seconds: None,
            calls: None,
            pack: 1,
            provider_batch: false,
            temporal_actions: None,
            notes: Vec::new(),
            full_price: None,
            of_the_first: false,
        };
        let free = forecast_actions(&forecast, 7.0);
        assert_eq!((free.from, free.to), (105.0, 105.0), "nothing binds, no call needs a beat");
        let slow = forecast_actions(&forecast, 40.0);
        assert_eq!((slow.from, slow.to), (105.0, 405.0), "none or three beats");
        let seconds = Some(Range { from: 60.0, to: 90.0 });
        let bound = forecast_actions(&Forecast { seconds, ..forecast.clone() }, 7.0);
        assert_eq!((bound.from, bound.to), (105.0, 205.0));
        let asleep = Forecast { seconds, provider_batch: true, ..forecast };
        assert!(forecast_actions(&asleep, 7.0).to < 10.0);
    }
}
