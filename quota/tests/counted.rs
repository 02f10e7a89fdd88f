//! What a provider counts of `max_output_tokens` is learned from its headers, by both stores.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::time::Duration;

use common::{Rig, SECOND, START, ask, both_stores, model_with_lanes};
use tidegate_quota::{
    Amounts, Charge, Counted, Decision, Dimension, Lanes, Limits, ModelQuota, PerDimension, Store,
    Ticket,
    store::{Ask, Meter, ProviderSignal, Settlement, UsageSample},
};

const LIMIT: u64 = 400_000;
const INPUT: u64 = 1_950;
const BOUND: u64 = 4_096;
const OUTPUT: u64 = 580;
/// Callers, each with a document after the other.
const CALLERS: usize = 60;
const STEP: u64 = SECOND / 10;

/// As OpenAI is: it holds the bound, its limits are token buckets, and what it counts in the end is
/// not documented.
fn openai() -> ModelQuota {
    let limits = Limits {
        margin: 1.0,
        window: Duration::from_secs(60),
        burst_max: Some(Duration::from_secs(60)),
        token_bucket: true,
        ..Limits::default().with(Dimension::Combined, LIMIT)
    };
    ModelQuota { charge: Charge::CAUTIOUS, ..model_with_lanes(limits, Lanes::single()) }
}

/// The same at a host of which nothing is known.
fn unnamed() -> ModelQuota {
    let mut model = openai();
    model.limits.token_bucket = false;
    model
}

/// A token bucket as deep as a minute.
struct Provider {
    counts: Counted,
    input: u64,
    level: f64,
    callers: usize,
    /// Between the first calls of two callers; then all calls take as long.
    apart: u64,
}

impl Provider {
    fn new(counts: Counted) -> Self {
        Self { counts, input: INPUT, level: LIMIT as f64, callers: CALLERS, apart: 0 }
    }

    /// Of whose limit little is used: short documents with short answers.
    fn idle(counts: Counted) -> Self {
        Self { input: 300, ..Self::new(counts) }
    }

    /// Each answer finds bounds held that are hardly more than what refilled since the last.
    fn calm(counts: Counted) -> Self {
        Self { callers: 13, apart: 5 * STEP, ..Self::idle(counts) }
    }

    fn refill(&mut self, micros: u64) {
        let more = LIMIT as f64 * micros as f64 / (60 * SECOND) as f64;
        self.level = (self.level + more).min(LIMIT as f64);
    }

    fn begins(&mut self) -> u64 {
        let held = match self.counts {
            Counted::Larger => self.input.max(BOUND),
            Counted::Produced => self.input + OUTPUT,
            Counted::Used | Counted::Both => self.input + BOUND,
        };
        self.level -= held as f64;
        self.used()
    }

    fn ends(&mut self) -> u64 {
        if self.counts == Counted::Used {
            self.level = (self.level + (BOUND - OUTPUT) as f64).min(LIMIT as f64);
        }
        self.used()
    }

    /// When all that is used will be there again.
    fn refilled(used: u64) -> Duration {
        Duration::from_secs_f64(60.0 * used as f64 / LIMIT as f64)
    }

    fn used(&self) -> u64 {
        (LIMIT as f64 - self.level) as u64
    }
}

#[derive(Default)]
struct Caller {
    calls: u32,
    ticket: Option<Ticket>,
    asks: u64,
    /// When the call ends, and what the headers said when it began.
    ends: Option<(u64, u64)>,
}

/// Some `seconds` of work; the headers are made when a call begins (`early`) or when it ends.
async fn works<S: Store>(rig: &Rig<S>, mut provider: Provider, early: bool, seconds: u64) {
    let (input, mut callers) = (provider.input, Vec::new());
    let mut asks = START;
    callers.resize_with(provider.callers, || {
        asks += provider.apart;
        Caller { asks, ..Caller::default() }
    });
    while rig.now() < START + seconds * SECOND {
        rig.advance(Duration::from_micros(STEP));
        provider.refill(STEP);
        let now = rig.now();
        for (at, caller) in callers.iter_mut().enumerate() {
            let id = format!("{at}#{}", caller.calls);
            if let Some((_, told)) = caller.ends.filter(|(ends, _)| *ends <= now) {
                let used = provider.ends();
                let told =
                    |it| (it == Dimension::Combined).then_some(if early { told } else { used });
                let sample = UsageSample { estimated_input: input, input, output: OUTPUT };
                let settlement = Settlement {
                    sample: Some(sample),
                    meter: Meter {
                        used: PerDimension::from_fn(told),
                        limits: PerDimension::from_fn(|it| told(it).map(|_| LIMIT)),
                        resets: PerDimension::from_fn(|it| told(it).map(Provider::refilled)),
                    },
                    ..Settlement::used(
                        id,
                        Amounts { combined: BOUND, ..Amounts::call(input, OUTPUT) },
                    )
                };
                rig.store.settle(&rig.model, &settlement).await.unwrap();
                *caller = Caller { calls: caller.calls + 1, asks: now, ..Caller::default() };
            } else if caller.ends.is_none() && caller.asks <= now {
                let ask =
                    Ask { ticket: caller.ticket, ..common::ask(id, Amounts::call(input, BOUND)) };
                match rig.reserve(&ask).await {
                    Decision::Granted => {
                        let varied = 4 + (at as u64 * 7 + u64::from(caller.calls)) % 5;
                        let seconds = if provider.apart > 0 { 7 } else { varied };
                        caller.ends = Some((now + seconds * SECOND, provider.begins()));
                    }
                    Decision::Wait { wait, ticket, .. } => {
                        caller.ticket = Some(ticket);
                        caller.asks = now + wait.as_micros() as u64;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

async fn finds<S: Store>(rig: &Rig<S>, counts: Counted, early: bool) {
    let before = rig.store.inspect(&rig.model).await.unwrap().counted;
    assert_eq!(before, None, "nothing is known at first");
    works(rig, Provider::new(counts), early, 900).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.counted, Some(counts), "{seen:?}");
    // The window's finished calls are settled by it.
    let calls = seen.dimensions.requests.used - seen.dimensions.requests.held;
    let each = (seen.dimensions.combined.used - seen.dimensions.combined.held) / calls;
    let expected = match counts {
        Counted::Used | Counted::Produced => INPUT + OUTPUT,
        Counted::Larger => BOUND,
        Counted::Both => INPUT + BOUND,
    };
    assert_eq!(each, expected, "{seen:?}");
}

async fn what_is_used_counts<S: Store>(rig: &Rig<S>) {
    finds(rig, Counted::Used, false).await;
}

async fn what_is_used_counts_early<S: Store>(rig: &Rig<S>) {
    finds(rig, Counted::Used, true).await;
}

async fn the_larger_counts<S: Store>(rig: &Rig<S>) {
    finds(rig, Counted::Larger, false).await;
}

async fn the_larger_counts_early<S: Store>(rig: &Rig<S>) {
    finds(rig, Counted::Larger, true).await;
}

async fn both_count<S: Store>(rig: &Rig<S>) {
    finds(rig, Counted::Both, false).await;
}

async fn both_count_early<S: Store>(rig: &Rig<S>) {
    finds(rig, Counted::Both, true).await;
}

/// Bounds are held, so the provider's bucket is always full: that tells, within a few minutes.
async fn tells_soon<S: Store>(rig: &Rig<S>, early: bool, seconds: u64) {
    works(rig, Provider::idle(Counted::Produced), early, seconds).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.counted, Some(Counted::Produced), "{seen:?}");
}

async fn a_full_bucket_tells<S: Store>(rig: &Rig<S>) {
    tells_soon(rig, false, 120).await;
}

async fn a_full_bucket_that_nobody_named_tells<S: Store>(rig: &Rig<S>) {
    tells_soon(rig, false, 300).await;
}

async fn calls_that_come_evenly_tell<S: Store>(rig: &Rig<S>) {
    works(rig, Provider::calm(Counted::Produced), false, 300).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.counted, Some(Counted::Used), "{seen:?}");
}

async fn a_full_bucket_tells_early<S: Store>(rig: &Rig<S>) {
    tells_soon(rig, true, 120).await;
}

/// At no time it is believed that bounds do not count.
async fn never_by_use<S: Store>(rig: &Rig<S>, counts: Counted, early: bool) {
    works(rig, Provider::idle(counts), early, 900).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    let by_use = [Some(Counted::Used), Some(Counted::Produced)];
    assert!(!by_use.contains(&seen.counted), "{seen:?}");
    let calls = seen.dimensions.requests.used - seen.dimensions.requests.held;
    let each = (seen.dimensions.combined.used - seen.dimensions.combined.held) / calls;
    assert!(each >= BOUND, "{seen:?}");
}

async fn short_calls_count_as_the_larger<S: Store>(rig: &Rig<S>) {
    never_by_use(rig, Counted::Larger, false).await;
}

async fn short_calls_count_as_the_larger_early<S: Store>(rig: &Rig<S>) {
    never_by_use(rig, Counted::Larger, true).await;
}

async fn short_calls_count_with_their_bounds<S: Store>(rig: &Rig<S>) {
    never_by_use(rig, Counted::Both, false).await;
}

async fn short_calls_count_with_their_bounds_early<S: Store>(rig: &Rig<S>) {
    never_by_use(rig, Counted::Both, true).await;
}

/// What is reserved for a call whose bound is `BOUND`, of all that counts together.
async fn reserves<S: Store>(rig: &Rig<S>, id: &str) -> u64 {
    let held = async || rig.store.inspect(&rig.model).await.unwrap().dimensions.combined.held;
    let before = held().await;
    let decision = rig.reserve(&ask(id.to_owned(), Amounts::call(300, BOUND))).await;
    assert_eq!(decision, Decision::Granted);
    held().await - before
}

/// Bounds that the provider does not hold are not reserved, until a refusal says otherwise.
async fn what_is_not_held_is_not_reserved<S: Store>(rig: &Rig<S>) {
    assert_eq!(reserves(rig, "first").await, 300 + BOUND, "nothing is known");
    let provider = Provider { callers: 40, ..Provider::idle(Counted::Produced) };
    works(rig, provider, false, 120).await;
    rig.advance(Duration::from_secs(50));
    // A mean, rounded up.
    let reserved = reserves(rig, "known").await;
    assert!((300 + OUTPUT..=301 + OUTPUT).contains(&reserved), "{reserved}");
    let refusal = Settlement { signal: ProviderSignal::Refused, ..Settlement::released("known") };
    rig.store.settle(&rig.model, &refusal).await.unwrap();
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().counted, None);
    assert_eq!(reserves(rig, "refused").await, 300 + BOUND);
}

/// A provider that says what it counts is believed.
async fn nothing_is_learned_where_it_is_documented<S: Store>(rig: &Rig<S>) {
    works(rig, Provider::new(Counted::Both), false, 900).await;
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().counted, None);
}

fn documented() -> ModelQuota {
    ModelQuota { charge: Charge { unused_returns: true, ..Charge::CAUTIOUS }, ..openai() }
}

both_stores! {
    nobody_sleeps_long_before_it_is_known_what_counts(openai());
    what_is_used_counts(openai());
    what_is_used_counts_early(openai());
    the_larger_counts(openai());
    the_larger_counts_early(openai());
    both_count(openai());
    both_count_early(openai());
    a_full_bucket_tells(openai());
    a_full_bucket_tells_early(openai());
    calls_that_come_evenly_tell(openai());
    a_full_bucket_that_nobody_named_tells(unnamed());
    what_is_not_held_is_not_reserved(openai());
    short_calls_count_as_the_larger(openai());
    short_calls_count_as_the_larger_early(openai());
    short_calls_count_with_their_bounds(openai());
    short_calls_count_with_their_bounds_early(openai());
    nothing_is_learned_where_it_is_documented(documented());
}

/// Told the wait for all of the bound, callers would sleep through the turns that come sooner.
async fn nobody_sleeps_long_before_it_is_known_what_counts<S: Store>(rig: &Rig<S>) {
    let mut longest = Duration::ZERO;
    for number in 0..400 {
        let call = ask(format!("q{number}"), Amounts::call(INPUT, BOUND));
        let call = Ask { curious: true, ..call };
        if let Decision::Wait { wait, .. } = rig.reserve(&call).await {
            longest = longest.max(wait);
        }
    }
    assert_eq!(longest, Duration::from_secs(10));
}
