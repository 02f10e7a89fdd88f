//! All metrics of this crate; no other file contains a metric's name.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::LazyLock,
    time::{Duration, Instant},
};

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use parking_lot::{Mutex, MutexGuard};
use tidegate_providers::{Finish, Kind, StopReason};
use tidegate_quota::budget::Payer;
use tidegate_types::{ModelId, Usage};

const CALLS: &str = "tidegate_provider_calls_total";
const CALL_SECONDS: &str = "tidegate_provider_call_seconds";
const LITTLE_L: &str = "tidegate_little_l";
const TOKENS: &str = "tidegate_tokens_total";
const CACHE_HIT_RATIO: &str = "tidegate_cache_hit_ratio";
const TOKENS_PER_MINUTE: &str = "tidegate_tokens_per_minute";
const BUDGET: &str = "tidegate_budget_usd";
const BUDGET_LEFT: &str = "tidegate_budget_left_usd";
const CIRCUIT_OPEN: &str = "tidegate_circuit_open";
const KEY_REFUSED: &str = "tidegate_key_refused";
const CONFIGURATIONS_DIFFER: &str = "tidegate_configuration_differences";
const UNKNOWN_STOPS: &str = "tidegate_unknown_stop_reasons_total";

/// Bound on stop reasons that become labels, because providers may send any word.
const MAX_UNKNOWN_STOPS: usize = 50;

/// Seconds of ended calls over which Little's law is computed.
const RECENT_SECONDS: u64 = 60;

/// Gives each metric its help text.
pub fn describe() {
    describe_counter!(CALLS, "Provider calls; outcome: ok, or the failure");
    describe_histogram!(CALL_SECONDS, Unit::Seconds, "Duration of a provider call");
    describe_gauge!(
        LITTLE_L,
        "Mean number of this worker's calls in flight over the last minute (arrival rate x duration)"
    );
    describe_counter!(TOKENS, "Tokens used; kind: input, cached_input, cache_write, output");
    describe_gauge!(
        CACHE_HIT_RATIO,
        "Fraction of the input tokens that the provider's prompt cache supplied"
    );
    describe_gauge!(
        TOKENS_PER_MINUTE,
        "Tokens of this worker's calls that ended in the last minute, including cached input"
    );
    describe_gauge!(BUDGET, "Daily budget of a tenant in US dollars, as this worker is configured");
    describe_gauge!(
        BUDGET_LEFT,
        "US dollars that a tenant may still spend today, as last seen by this worker"
    );
    describe_counter!(
        UNKNOWN_STOPS,
        "Answers that ended for an unknown reason, by the provider's word"
    );
    describe_gauge!(
        KEY_REFUSED,
        "1 while a provider refuses this worker's key, or the key for one of its models"
    );
    describe_gauge!(
        CIRCUIT_OPEN,
        "1 while this worker makes only test calls to a model because its calls fail"
    );
    describe_gauge!(
        CONFIGURATIONS_DIFFER,
        "Configuration keys in which workers that share a quota differ; should be 0"
    );
}

/// Sums for the gauges that are ratios.
#[derive(Debug, Default)]
struct Sums {
    calls: f64,
    models: HashMap<ModelId, ModelSums>,
    unknown_stops: HashSet<String>,
}

#[derive(Debug, Default)]
struct ModelSums {
    input: f64,
    cached: f64,
    recent: Recent,
}

/// The calls that ended in the last minute, summed by second, so that a call costs the same however
/// many there were.
#[derive(Debug, Default)]
struct Recent(VecDeque<Second>);

/// The calls that ended within one second.
#[derive(Debug)]
struct Second {
    /// Seconds since the process began.
    number: u64,
    /// Sum of the durations.
    time: Duration,
    tokens: u64,
}

impl Recent {
    fn add(&mut self, now: u64, took: Duration, tokens: u64) {
        self.forget(now);
        match self.0.back_mut() {
            Some(last) if last.number == now => {
                last.time += took;
                last.tokens += tokens;
            }
            _ => self.0.push_back(Second { number: now, time: took, tokens }),
        }
    }

    /// Time and tokens of the last minute.
    fn sums(&mut self, now: u64) -> (Duration, u64) {
        self.forget(now);
        let tokens = self.0.iter().map(|second| second.tokens).sum();
        (self.0.iter().map(|second| second.time).sum(), tokens)
    }

    fn forget(&mut self, now: u64) {
        while self.0.front().is_some_and(|first| first.number + RECENT_SECONDS <= now) {
            self.0.pop_front();
        }
    }
}

static SUMS: LazyLock<Mutex<Sums>> = LazyLock::new(Mutex::default);

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn sums() -> MutexGuard<'static, Sums> {
    SUMS.lock()
}

/// One provider call under way.
#[derive(Debug)]
pub(crate) struct CallTimer {
    model: ModelId,
    pub(crate) started: Instant,
}

impl CallTimer {
    pub(crate) fn start(model: &ModelId) -> Self {
        Self { model: model.clone(), started: Instant::now() }
    }

    pub(crate) fn succeeded(self, usage: Option<&Usage>) {
        self.ended("ok", usage.map_or(0, |usage| usage.input() + usage.output));
        if let Some(usage) = usage {
            count_tokens(&self.model, usage);
        }
    }

    pub(crate) fn failed(self, kind: Kind) {
        self.ended(kind.label(), 0);
    }

    fn ended(&self, outcome: &'static str, tokens: u64) {
        let (now, took) = (BEGUN.elapsed().as_secs(), self.started.elapsed());
        counter!(CALLS, "model" => self.model.to_string(), "outcome" => outcome).increment(1);
        histogram!(CALL_SECONDS, "model" => self.model.to_string()).record(took.as_secs_f64());
        let mut sums = sums();
        sums.calls += 1.0;
        sums.models.entry(self.model.clone()).or_default().recent.add(now, took, tokens);
    }
}

/// Sets the gauges of the last minute; called before the metrics are read.
pub fn refresh() {
    let now = BEGUN.elapsed().as_secs();
    for (model, of_model) in &mut sums().models {
        let (time, tokens) = of_model.recent.sums(now);
        // λ × W = (calls / minute) × (time / calls) = time / minute.
        let mean = time.as_secs_f64() / RECENT_SECONDS as f64;
        gauge!(LITTLE_L, "model" => model.to_string()).set(mean);
        let per_minute = tokens as f64 * 60.0 / RECENT_SECONDS as f64;
        gauge!(TOKENS_PER_MINUTE, "model" => model.to_string()).set(per_minute);
    }
}

/// Counts the stop reason of an answer.
pub fn count_stop_reason(model: &ModelId, stop_reason: &StopReason) {
    if stop_reason.finish() != Finish::Unknown {
        return;
    }
    let reason = {
        let mut sums = sums();
        let known = sums.unknown_stops.contains(stop_reason.as_str());
        if !known && sums.unknown_stops.len() < MAX_UNKNOWN_STOPS {
            tracing::warn!(%model, %stop_reason, "an answer ended for a reason that is not known here; it is kept, and whether it is whole is not known");
            sums.unknown_stops.insert(stop_reason.as_str().to_owned());
        }
        let shown = sums.unknown_stops.contains(stop_reason.as_str());
        if shown { stop_reason.as_str() } else { "others" }.to_owned()
    };
    counter!(UNKNOWN_STOPS, "model" => model.to_string(), "reason" => reason).increment(1);
}

/// Counts used tokens.
fn count_tokens(model: &ModelId, usage: &Usage) {
    let kinds = [
        ("input", usage.uncached_input),
        ("cached_input", usage.cache_read),
        ("cache_write", usage.cache_write),
        ("output", usage.output),
    ];
    for (kind, tokens) in kinds {
        counter!(TOKENS, "model" => model.to_string(), "kind" => kind).increment(tokens);
    }
    let mut sums = sums();
    let of_model = sums.models.entry(model.clone()).or_default();
    of_model.input += usage.input() as f64;
    of_model.cached += usage.cache_read as f64;
    if of_model.input > 0.0 {
        gauge!(CACHE_HIT_RATIO, "model" => model.to_string()).set(of_model.cached / of_model.input);
    }
}

/// Counts a call that came out of a provider's batch.
pub fn count_batch_call(model: &ModelId, usage: Option<&Usage>, failed: Option<Kind>) {
    let outcome = failed.map_or("ok", Kind::label);
    counter!(CALLS, "model" => model.to_string(), "outcome" => outcome).increment(1);
    if let Some(usage) = usage {
        count_tokens(model, usage);
    }
    sums().calls += 1.0;
}

/// Calls of this process so far.
pub fn calls() -> f64 {
    sums().calls
}

/// Whether a provider refuses this worker's key.
pub(crate) fn key_refused(provider: &str, refused: bool) {
    gauge!(KEY_REFUSED, "provider" => provider.to_owned()).set(f64::from(u8::from(refused)));
}

/// Sets whether calls to a model are held by its circuit.
pub(crate) fn circuit_open(model: &ModelId, open: bool) {
    gauge!(CIRCUIT_OPEN, "model" => model.to_string()).set(f64::from(u8::from(open)));
}

/// Sets the number of keys in which the workers' configurations differ.
pub(crate) fn configurations_differ(keys: usize) {
    gauge!(CONFIGURATIONS_DIFFER).set(u32::try_from(keys).unwrap_or(u32::MAX));
}

/// Budgets of batches have no gauge, because batches are many and short-lived.
pub(crate) fn budget_left(payer: &Payer, of_usd: f64, usd: f64) {
    if let Payer::Tenant(tenant) = payer {
        gauge!(BUDGET, "tenant" => tenant.to_string()).set(of_usd);
        gauge!(BUDGET_LEFT, "tenant" => tenant.to_string()).set(usd);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    };

    use super::*;

    /// Counters by name and labels.
    #[derive(Default)]
    struct Counts(Arc<Mutex<HashMap<String, u64>>>);

    struct Count(String, Arc<Mutex<HashMap<String, u64>>>);

    impl CounterFn for Count {
        fn increment(&self, value: u64) {
            *self.1.lock().entry(self.0.clone()).or_default() += value;
        }

        fn absolute(&self, _: u64) {}
    }

    impl Recorder for Counts {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            let labels: Vec<&str> = key.labels().map(|label| label.value()).collect();
            let name = format!("{} {}", key.name(), labels.join(" "));
            Counter::from_arc(Arc::new(Count(name, Arc::clone(&self.0))))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn the_last_minute_is_kept_by_second_and_forgotten() {
        let mut recent = Recent::default();
        for number in 0..100_000 {
            recent.add(number / 1_000, Duration::from_millis(600), 7);
        }
        assert!(recent.0.len() <= 60, "{}", recent.0.len());
        assert_eq!(recent.sums(99), (Duration::from_millis(600 * 60_000), 7 * 60_000));
        assert_eq!(recent.sums(158), (Duration::from_millis(600_000), 7_000));
        assert_eq!(recent.sums(159), (Duration::ZERO, 0));
    }

    #[test]
    fn unknown_ends_are_counted_by_name_and_not_without_bound() {
        let counts = Counts::default();
        metrics::with_local_recorder(&counts, || {
            let model: ModelId = "a:b".parse().unwrap();
            for known in [StopReason::EndTurn, StopReason::MaxTokens, StopReason::StopSequence] {
                count_stop_reason(&model, &known);
            }
            for number in 0..MAX_UNKNOWN_STOPS + 9 {
                count_stop_reason(&model, &StopReason::Other(format!("tide-{number}")));
                count_stop_reason(&model, &StopReason::Other("tide-0".to_owned()));
            }
        });
        let counts = counts.0.lock();
        assert_eq!(counts.len(), MAX_UNKNOWN_STOPS + 1, "{counts:?}");
        let of = |reason: &str| counts[&format!("{UNKNOWN_STOPS} a:b {reason}")];
        assert_eq!((of("tide-0"), of("tide-1"), of("others")), (60, 1, 9));
    }
}
