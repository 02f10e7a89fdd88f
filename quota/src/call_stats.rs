//! Little's law: the number of calls in flight that a limit can use.
//!
//! L = λ × W (J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9(3),
//! 1961): the calls in flight are the rate at which the limit admits them times the duration of
//! each. More calls only wait. Twice as many keep the limit used while the next ones get ready; any
//! further ones should stay queued in Temporal.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::{
    conversions::{float, whole},
    dimension::{Amounts, PerDimension},
    limits::Limits,
    model::ModelQuota,
    snapshot::Snapshot,
};

/// Calls in progress for each call that the limit can use.
pub const HEADROOM: f64 = 2.0;

/// Weight of the latest call in the means: about the last 20 calls decide.
const LATEST: f64 = 0.1;

/// Minimum length of an answer that shows a model's output speed: most of the time of shorter ones
/// is the prompt's.
const LONG_ANSWER: u64 = 200;

/// Time since its last call after which a model needs no slots.
const RECENT: Duration = Duration::from_secs(300);

/// Latency and token use of calls to one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Typical {
    /// Mean seconds from the start of a call to its end.
    pub seconds: f64,
    /// Mean use of each dimension.
    pub used: PerDimension<f64>,
}

/// Little's law: calls in flight, from calls a second and the seconds of each.
pub fn in_flight(calls_a_second: f64, seconds: f64) -> f64 {
    calls_a_second * seconds
}

/// Calls a second that the limits admit if each uses this much: the tightest dimension decides.
/// `None` where no limit is a rate.
pub fn admission_rate(limits: &Limits, used: &PerDimension<f64>) -> Option<f64> {
    rate(&limits.effective(), limits.window, used)
}

/// Like [`admission_rate`], for these limits of a window; 0 for no limit.
pub(crate) fn rate(limits: &Amounts, window: Duration, used: &PerDimension<f64>) -> Option<f64> {
    let binding = limits.iter().filter(|(it, limit)| **limit > 0 && used[*it] > 0.0);
    let rates = binding.map(|(it, limit)| float(*limit) / window.as_secs_f64() / used[it]);
    rates.min_by(f64::total_cmp)
}

/// Calls in flight that use the limits fully if calls stay as large and as long as those in the
/// window. `None` without calls in the window.
pub fn calls_to_fill_limits(window: Duration, snapshot: &Snapshot) -> Option<u64> {
    let (used, calls) = (snapshot.used(), float(snapshot.used().requests));
    if snapshot.latency.is_zero() || calls <= 0.0 {
        return None;
    }
    let limits = snapshot.dimensions.map(|seen| seen.limit);
    let rate = rate(&limits, window, &used.map(|used| float(used) / calls))?;
    Some(whole(in_flight(rate, snapshot.latency.as_secs_f64()).ceil()))
}

/// Maximum number of calls in flight that can be useful: rate × duration × [`HEADROOM`], and at
/// most the limit on calls at once with the same headroom. `None` where neither is limited.
pub fn max_in_flight(limits: &Limits, typical: &Typical) -> Option<f64> {
    let flow = admission_rate(limits, &typical.used).map(|rate| in_flight(rate, typical.seconds));
    let at_once = limits.concurrent.map(float);
    [flow, at_once].into_iter().flatten().min_by(f64::total_cmp).map(|calls| calls * HEADROOM)
}

/// Tracks latency and token use of this process's calls.
#[derive(Debug, Default)]
pub struct CallStats(Mutex<HashMap<ModelId, ModelStats>>);

#[derive(Debug, Clone, Copy)]
struct ModelStats {
    last: Instant,
    typical: Option<Typical>,
    /// Mean output tokens a second of long answers, the prompt's time included.
    speed: Option<f64>,
}

impl ModelStats {
    fn new(now: Instant) -> Self {
        Self { last: now, typical: None, speed: None }
    }
}

impl CallStats {
    /// Records the start of a call. The number of useful calls is unknown until one has ended.
    pub fn record_start(&self, model: &ModelId, now: Instant) {
        let mut models = self.0.lock();
        models.entry(model.clone()).or_insert_with(|| ModelStats::new(now)).last = now;
    }

    /// Records the end of a call after `took`, and its use.
    pub fn record_end(&self, model: &ModelId, took: Duration, used: Amounts, now: Instant) {
        let latest = Typical { seconds: took.as_secs_f64(), used: used.map(float) };
        let mut models = self.0.lock();
        let seen = models.entry(model.clone()).or_insert_with(|| ModelStats::new(now));
        let blend = |mean: f64, latest: f64| mean + LATEST * (latest - mean);
        seen.last = now;
        seen.typical = Some(seen.typical.map_or(latest, |mean| Typical {
            seconds: blend(mean.seconds, latest.seconds),
            used: PerDimension::from_fn(|it| blend(mean.used[it], latest.used[it])),
        }));
        if used.output >= LONG_ANSWER && !took.is_zero() {
            let speed = float(used.output) / took.as_secs_f64();
            seen.speed = Some(seen.speed.map_or(speed, |mean| blend(mean, speed)));
        }
    }

    /// Mean output tokens a second of a model's long answers.
    pub fn output_speed(&self, model: &ModelId) -> Option<f64> {
        self.0.lock().get(model)?.speed
    }

    /// Latency and token use of calls to this model, if one has ended.
    pub fn typical(&self, model: &ModelId) -> Option<Typical> {
        self.0.lock().get(model)?.typical
    }

    /// [`max_in_flight`], for the whole fleet, of each model that was called lately; `None` in
    /// place of a number while no call has ended.
    pub fn in_flight<'a>(
        &self,
        models: impl Iterator<Item = &'a ModelQuota>,
        now: Instant,
    ) -> Vec<(&'a ModelId, Option<f64>)> {
        let known = self.0.lock();
        let recent = models.filter_map(|model| Some((model, known.get(&model.id)?)));
        let recent = recent.filter(|(_, seen)| now.saturating_duration_since(seen.last) < RECENT);
        let in_flight = |model: &ModelQuota, seen: &ModelStats| {
            seen.typical.and_then(|typical| max_in_flight(&model.limits, &typical))
        };
        recent.map(|(model, seen)| (&model.id, in_flight(model, seen))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Charge, Dimension, Lanes};

    fn limits() -> Limits {
        Limits {
            margin: 1.0,
            window: Duration::from_secs(60),
            ..Limits::default().with(Dimension::Combined, 120_000)
        }
    }

    fn typical() -> Typical {
        Typical { seconds: 3.0, used: Amounts::call(900, 100).map(float) }
    }

    #[test]
    fn two_calls_a_second_of_three_seconds_can_use_twice_six() {
        assert_eq!(admission_rate(&limits(), &typical().used), Some(2.0));
        assert_eq!(max_in_flight(&limits(), &typical()), Some(12.0));
    }

    #[test]
    fn the_tightest_limit_decides_and_calls_at_once_are_one_of_them() {
        let requests = limits().with(Dimension::Requests, 60);
        assert_eq!(max_in_flight(&requests, &typical()), Some(6.0));
        assert_eq!(
            max_in_flight(&Limits { concurrent: Some(2), ..requests }, &typical()),
            Some(4.0)
        );
        assert_eq!(max_in_flight(&Limits::default(), &typical()), None);
    }

    #[test]
    fn a_model_counts_from_its_first_call_is_known_from_its_end_and_is_forgotten_when_it_rests() {
        let model = ModelQuota::new(
            "test:model".parse().unwrap(),
            limits(),
            Charge::default(),
            Arc::new(Lanes::single()),
        )
        .unwrap();
        let (call_stats, start) = (CallStats::default(), Instant::now());
        let in_flight = |now| {
            call_stats
                .in_flight([&model].into_iter(), now)
                .into_iter()
                .map(|(_, calls)| calls)
                .collect::<Vec<_>>()
        };
        assert!(in_flight(start).is_empty());
        call_stats.record_start(&model.id, start);
        assert_eq!(in_flight(start), [None]);
        for _ in 0..100 {
            call_stats.record_end(
                &model.id,
                Duration::from_secs(3),
                Amounts::call(900, 100),
                start,
            );
        }
        assert!((in_flight(start)[0].unwrap() - 12.0).abs() < 1e-6);
        // Slower calls move the mean, and no single one decides.
        call_stats.record_end(&model.id, Duration::from_secs(13), Amounts::call(900, 100), start);
        assert!((in_flight(start)[0].unwrap() - 16.0).abs() < 1e-6);
        assert!(in_flight(start + RECENT).is_empty());
    }

    #[test]
    fn output_speed_is_learned_from_long_answers() {
        let (call_stats, model, now) =
            (CallStats::default(), "test:model".parse().unwrap(), Instant::now());
        let ended = |seconds, output| {
            call_stats.record_end(
                &model,
                Duration::from_secs(seconds),
                Amounts::call(900, output),
                now,
            );
        };
        ended(2, 10);
        assert_eq!(call_stats.output_speed(&model), None);
        ended(10, 500);
        assert_eq!(call_stats.output_speed(&model), Some(50.0));
        ended(10, 1_000);
        assert_eq!(call_stats.output_speed(&model), Some(55.0));
    }
}
