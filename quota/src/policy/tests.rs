//! Tests of the policy: a reading in, a plan out.

use std::{sync::Arc, time::Duration};

use tidegate_types::Charge;

use super::*;
use crate::{
    dimension::{Change, PerLimit},
    lanes::Lanes,
    limits::Limits,
    mechanism::log::{MeterReading, RefusedUse},
    model::ModelQuota,
    numbers::{MINUTE, SECOND, numbers},
    plan::Reasoned,
};

const START: f64 = 1.79e15;
/// A thousand units a second.
const LIMIT: f64 = 60_000.0;

/// A policy between its runs, and its knowledge.
struct Case {
    known: Known,
    configured: Configured,
    now: f64,
    answers: u64,
}

/// The input of one run, for combined tokens.
#[derive(Default)]
struct Seen {
    drawn: f64,
    peak: f64,
    log: Vec<Observation>,
}

fn limits() -> Limits {
    Limits {
        margin: 1.0,
        window: Duration::from_secs(60),
        ..Limits::default().with(Dimension::Combined, 60_000)
    }
}

fn configured(limits: Limits) -> Configured {
    let lanes = Arc::new(Lanes::single());
    let id = "test:model".parse().unwrap();
    Configured::from_model(&ModelQuota::new(id, limits, Charge::default(), lanes).unwrap())
}

fn combined<T: Copy>(value: T) -> PerDimension<Option<T>> {
    PerDimension { combined: Some(value), ..PerDimension::default() }
}

impl Case {
    /// Creates a case without any knowledge.
    fn new(limits: Limits) -> Self {
        let (known, configured) = (Known::default(), configured(limits));
        Self { known, configured, now: START, answers: 0 }
    }

    /// Creates a case with one answered call.
    fn proven(limits: Limits) -> Self {
        let mut case = Self::new(limits);
        case.answers = 1;
        case.run(Seen::default());
        case
    }

    /// Creates a case in which this much was drawn at once and went well.
    fn went_well(limits: Limits, drawn: f64) -> Self {
        let mut case = Self::proven(limits);
        case.draws(drawn);
        case
    }

    fn draws(&mut self, peak: f64) {
        for _ in 0..2 {
            self.after(1.0, Seen { peak, ..Seen::default() });
        }
    }

    fn run(&mut self, seen: Seen) -> Outcome {
        let units = |combined| Units { combined, ..Units::default() };
        let reading = Reading {
            now: self.now,
            answers: self.answers,
            drawn: units(seen.drawn),
            peak: units(seen.peak),
            log: seen.log,
            ..Reading::default()
        };
        let outcome = run(self.known, &reading, &self.configured, &numbers());
        self.known = outcome.known;
        outcome
    }

    fn after(&mut self, seconds: f64, seen: Seen) -> Outcome {
        self.now += seconds * SECOND;
        self.run(seen)
    }

    fn idle(&mut self, seconds: f64) -> Allowance {
        allowance_of(&self.after(seconds, Seen::default()))
    }

    /// A refusal of a call that needed `need` and found `drawn` drawn; `spent` is the total ever
    /// drawn.
    fn refusal(&self, need: f64, drawn: f64, spent: f64) -> Refusal {
        Refusal { at: self.now, before: 0.5, retry: 0.0, probe: false, need, drawn, spent }
    }

    fn refuse(&mut self, refusal: &Refusal) -> Outcome {
        self.run(Seen {
            drawn: refusal.drawn + refusal.need,
            log: vec![refusal.log()],
            ..Seen::default()
        })
    }

    /// Readings of a meter, one after the other.
    fn read_meter(&mut self, all: impl IntoIterator<Item = MeterReading>) -> Outcome {
        let log = all.into_iter().map(|it| Observation::Metered(combined(it))).collect();
        self.after(1.0, Seen { log, ..Seen::default() })
    }

    fn lowered(&self) -> f64 {
        self.known.each.combined.lowered
    }
}

struct Refusal {
    at: f64,
    /// Seconds from the refused call's admission to the refusal.
    before: f64,
    retry: f64,
    probe: bool,
    need: f64,
    drawn: f64,
    spent: f64,
}

impl Refusal {
    fn log(&self) -> Observation {
        let Self { need, drawn, spent, .. } = *self;
        Observation::Refused {
            at: self.at,
            admitted: self.at - self.before * SECOND,
            retry: self.retry * SECOND,
            probe: self.probe,
            each: combined(RefusedUse { need, drawn, spent }),
        }
    }
}

fn allowance_of(outcome: &Outcome) -> Allowance {
    outcome.plan.limits.combined.unwrap()
}

/// A meter that refills evenly and agrees with the drawn amount.
fn even(used: f64) -> MeterReading {
    MeterReading {
        used,
        limit: LIMIT,
        reset: used / LIMIT * MINUTE,
        drawn: used,
        held: 0.0,
        total: used,
        since: 0.0,
    }
}

fn assert_reasoned(it: Reasoned, value: f64, why: Why) {
    let near = (it.value - value).abs() <= 1e-6 * value;
    assert!(near || it.value > f64::MAX && value > f64::MAX, "{it:?} is not {value}");
    assert_eq!(it.why, why);
}

/// Units a second.
fn a_second(it: Allowance) -> f64 {
    it.rate.value * SECOND
}

// 1. A lowered rate recovers.

#[test]
fn a_lowered_rate_recovers_in_two_minutes() {
    let mut case = Case::went_well(limits(), 20_000.0);
    case.known.each.combined.lowered = 0.1;
    let later = case.idle(120.0);
    assert!((case.lowered() - 0.075).abs() < 1e-9, "{}", case.lowered());
    assert!((a_second(later) - 925.0).abs() < 1e-6);
    assert_eq!(later.rate.why, Why::Refused);
    assert_reasoned(case.idle(3_600.0).rate, 1e-3, Why::Configured);
}

// 2. Refusals.

#[test]
fn a_refusal_deeper_than_what_went_well_bounds_the_depth() {
    let mut case = Case::went_well(limits(), 10_000.0);
    let outcome = case.refuse(&case.refusal(1_000.0, 12_000.0, 0.0));
    assert_reasoned(allowance_of(&outcome).capacity, 10_000.0, Why::TooDeep);
    assert_reasoned(allowance_of(&outcome).rate, 1e-3, Why::Configured);
    // The smallest refused depth counts, but no less than a step below it.
    let mut case = Case::proven(Limits { token_bucket: true, ..limits() });
    let outcome = case.refuse(&case.refusal(1_000.0, 12_000.0, 0.0));
    assert_reasoned(allowance_of(&outcome).capacity, 13_000.0 / 1.3, Why::TooDeep);
    case.now += SECOND;
    let outcome = case.refuse(&case.refusal(1_000.0, 25_000.0, 0.0));
    assert_reasoned(allowance_of(&outcome).capacity, 13_000.0 / 1.3, Why::TooDeep);
    case.now += SECOND;
    let outcome = case.refuse(&case.refusal(1_000.0, 5_500.0, 0.0));
    assert_reasoned(allowance_of(&outcome).capacity, 5_000.0, Why::TooDeep);
}

#[test]
fn a_refusal_hardly_deeper_than_what_went_well_does_not_bound_the_depth() {
    let mut case = Case::went_well(limits(), 10_000.0);
    let outcome = case.refuse(&case.refusal(1_000.0, 9_200.0, 0.0));
    assert_ne!(allowance_of(&outcome).capacity.why, Why::TooDeep, "by less than 3 %");
    let mut case = Case::went_well(limits(), 10_000.0);
    let outcome = case.refuse(&case.refusal(1_000.0, 9_400.0, 0.0));
    assert_eq!(allowance_of(&outcome).capacity.why, Why::TooDeep);
}

#[test]
fn any_other_refusal_takes_a_fortieth_of_the_rate() {
    let mut case = Case::went_well(limits(), 20_000.0);
    let outcome = case.refuse(&case.refusal(1_000.0, 5_000.0, 0.0));
    assert_reasoned(allowance_of(&outcome).rate, 0.975e-3, Why::Refused);
    assert_reasoned(allowance_of(&outcome).window, LIMIT, Why::Strict);
    assert!(
        (allowance_of(&outcome).most - LIMIT).abs() < 1e-9,
        "a call as large as the limit still goes"
    );
}

#[test]
fn after_a_refusal_there_is_room_for_one_call() {
    let mut case = Case::went_well(limits(), 20_000.0);
    let outcome = case.refuse(&case.refusal(1_000.0, 5_000.0, 0.0));
    let drawn = 6_000.0 + outcome.change.combined;
    assert!((allowance_of(&outcome).capacity.value - drawn - 1_000.0).abs() < 1.0, "{outcome:?}");
}

#[test]
fn a_call_sent_before_another_refusal_was_known_changes_nothing() {
    let mut case = Case::went_well(limits(), 20_000.0);
    let first = case.refusal(1_000.0, 5_000.0, 0.0);
    case.refuse(&first);
    case.now += 0.2 * SECOND;
    let outcome = case.refuse(&case.refusal(1_000.0, 6_000.0, 0.0));
    assert!((case.lowered() - 0.025).abs() < 1e-4, "it was sent before: {}", case.lowered());
    assert!(outcome.change.combined > 0.0, "and nothing is left all the same");
    case.now += 1.0 * SECOND;
    case.refuse(&case.refusal(1_000.0, 6_000.0, 100_000.0));
    assert!((case.lowered() - 0.05).abs() < 1e-3, "{}", case.lowered());
}

#[test]
fn a_probe_that_is_refused_says_nothing_of_the_rate() {
    let mut case = Case::went_well(limits(), 20_000.0);
    case.refuse(&Refusal { probe: true, ..case.refusal(1_000.0, 5_000.0, 0.0) });
    assert!(case.lowered() <= 0.0);
}

/// Two refusals with this much spent between them.
fn measured(seconds: f64, spent: f64, need: f64, retry: f64) -> f64 {
    let mut case = Case::went_well(limits(), 20_000.0);
    case.refuse(&case.refusal(need, 5_000.0, 1e6));
    case.now += seconds * SECOND;
    case.refuse(&Refusal { retry, ..case.refusal(need, 5_000.0, 1e6 + spent) });
    1.0 - case.lowered()
}

#[test]
fn spending_between_two_refusals_measures_the_rate() {
    let rate = measured(10.0, 8_000.0, 500.0, 0.0);
    assert!((rate - 0.85).abs() < 1e-3, "8,500 in ten seconds: {rate}");
    let rate = measured(10.0, 20_000.0, 500.0, 0.0);
    assert!((rate - 0.9521).abs() < 1e-3, "more went than goes: a fortieth twice: {rate}");
    let rate = measured(10.0, 1_000.0, 500.0, 0.0);
    assert!((rate - 0.9771 / 1.3).abs() < 1e-2, "no more than a step at once: {rate}");
}

#[test]
fn too_short_a_time_measures_no_rate() {
    assert!(measured(2.7, 500.0, 500.0, 0.0) > 0.95, "less than four calls' time");
    assert!(measured(2.9, 500.0, 500.0, 0.0) < 0.80);
}

#[test]
fn a_wait_of_many_calls_measures_no_rate() {
    assert!(measured(10.0, 1_000.0, 500.0, 2.2) > 0.95, "more than four calls'");
    assert!(measured(10.0, 1_000.0, 500.0, 1.9) < 0.80);
}

#[test]
fn spending_in_a_window_measures_the_rate_whatever_the_wait() {
    assert!(measured(64.0, 30_000.0, 500.0, 5.0) > 0.95, "it was not open for all of it");
    assert!(measured(66.0, 30_000.0, 500.0, 5.0) < 0.80);
}

#[test]
fn refusals_far_apart_are_two_episodes() {
    assert!(measured(121.0, 60_000.0, 500.0, 0.0) > 0.95);
    assert!(measured(119.0, 60_000.0, 500.0, 0.0) < 0.80);
}

#[test]
fn a_refusal_is_about_the_dimension_of_which_most_was_drawn() {
    let both = limits().with(Dimension::Requests, 100);
    let mut case = Case::went_well(both, 20_000.0);
    case.known.each.requests.safe_depth = 90.0;
    let refused = |need, drawn| Some(RefusedUse { need, drawn, spent: 0.0 });
    let each = PerDimension {
        requests: refused(1.0, 60.0),
        combined: refused(1_000.0, 8_000.0),
        ..PerDimension::default()
    };
    let at = case.now;
    let admitted = at - SECOND;
    let log = vec![Observation::Refused { at, admitted, retry: 0.0, probe: false, each }];
    let outcome = case.run(Seen { drawn: 9_000.0, log, ..Seen::default() });
    assert!(outcome.known.each.requests.lowered > 0.0 && case.lowered() <= 0.0);
    assert!(outcome.change.requests > 0.0 && outcome.change.combined <= 0.0);
}

#[test]
fn a_refusal_of_another_clock_says_nothing() {
    let mut case = Case::went_well(limits(), 20_000.0);
    let refusal = case.refusal(1_000.0, 5_000.0, 0.0);
    case.known.each.combined.last_refusal = case.now;
    case.now -= 3_600.0 * SECOND;
    case.refuse(&refusal);
    assert!(case.lowered() <= 0.0);
    // Times of the present clock count.
    case.now += SECOND;
    case.refuse(&case.refusal(1_000.0, 5_000.0, 0.0));
    assert!(case.lowered() > 0.0);
}

// 3. Depths that went well.

#[test]
fn before_a_first_answer_a_quarter_of_the_limit_goes_at_most() {
    let fixed = Limits { burst: Some(Duration::from_secs(60)), ..limits() };
    for (limits, before, after) in [(limits(), 2_500.0, 2_500.0), (fixed, 15_000.0, 60_000.0)] {
        let mut case = Case::new(limits);
        let first = allowance_of(&case.run(Seen::default())).capacity.value;
        case.answers = 1;
        let then = case.idle(1.0).capacity.value;
        assert!((first - before).abs() < 1e-6 && (then - after).abs() < 1e-6, "{first}, {then}");
    }
    let mut bucket = Case::new(Limits { token_bucket: true, ..limits() });
    assert_reasoned(allowance_of(&bucket.run(Seen::default())).capacity, 15_000.0, Why::Unproven);
}

#[test]
fn a_first_burst_is_two_and_a_half_seconds_of_the_rate() {
    assert_reasoned(Case::proven(limits()).idle(1.0).capacity, 2_500.0, Why::First);
}

#[test]
fn a_third_more_than_what_went_well_is_tried() {
    assert_reasoned(
        Case::went_well(limits(), 10_000.0).idle(1.0).capacity,
        13_000.0,
        Why::Explored,
    );
    assert_reasoned(Case::went_well(limits(), 1_000.0).idle(1.0).capacity, 2_500.0, Why::First);
}

#[test]
fn a_burst_went_well_when_nothing_was_refused_for_a_while() {
    let mut case = Case::proven(limits());
    case.after(1.0, Seen { peak: 10_000.0, ..Seen::default() });
    assert_reasoned(case.idle(0.6).capacity, 2_500.0, Why::First);
    assert_reasoned(case.idle(0.2).capacity, 13_000.0, Why::Explored);
    // Runs without a call between them do not hide what was drawn before.
    let mut case = Case::proven(limits());
    case.after(1.0, Seen { peak: 10_000.0, ..Seen::default() });
    (0..4).for_each(|_| {
        case.idle(0.3);
    });
    case.after(0.3, Seen { peak: 12_000.0, ..Seen::default() });
    case.idle(0.3);
    assert_reasoned(case.idle(0.5).capacity, 15_600.0, Why::Explored);
    // Before an answer the bursts count too.
    let bucket = Limits { token_bucket: true, ..limits() };
    let mut case = Case::new(bucket);
    assert_reasoned(case.idle(1.0).capacity, 15_000.0, Why::Unproven);
    case.draws(15_000.0);
    assert_reasoned(case.idle(1.0).capacity, 19_500.0, Why::Unproven);
    // A refusal in between stops this.
    let mut case = Case::proven(limits());
    case.after(1.0, Seen { peak: 10_000.0, ..Seen::default() });
    case.now += 0.5 * SECOND;
    case.refuse(&case.refusal(1_000.0, 9_000.0, 0.0));
    assert_reasoned(case.idle(2.0).capacity, 2_500.0, Why::First);
}

#[test]
fn six_tenths_of_the_limit_go_at_once_at_most_and_all_of_a_bucket_that_never_refused() {
    assert_reasoned(Case::went_well(limits(), 50_000.0).idle(1.0).capacity, 36_000.0, Why::Full);
    let bucket = Limits { token_bucket: true, ..limits() };
    let mut case = Case::proven(bucket);
    assert_reasoned(case.idle(1.0).capacity, 60_000.0, Why::Full);
    // Nothing was drawn: depth is not the reason.
    case.refuse(&case.refusal(1_000.0, 0.0, 0.0));
    assert_reasoned(case.idle(86_000.0).capacity, 54_000.0, Why::Full);
    assert_reasoned(case.idle(1_000.0).capacity, 60_000.0, Why::Full);
}

#[test]
fn a_meter_that_tells_shows_that_as_much_as_ever_may_go_at_once() {
    let mut case = Case::proven(limits());
    let of_a_window = MeterReading { reset: MINUTE, drawn: 9_000.0, ..even(9_000.0) };
    assert_reasoned(case.idle(1.0).capacity, 2_500.0, Why::First);
    assert_reasoned(allowance_of(&case.read_meter([of_a_window])).capacity, 36_000.0, Why::Full);
}

#[test]
fn a_burst_that_is_configured_is_not_learned() {
    let fixed = Limits { burst: Some(Duration::from_secs(3)), ..limits() };
    assert_reasoned(Case::went_well(fixed, 50_000.0).idle(1.0).capacity, 3_000.0, Why::Configured);
}

#[test]
fn another_limit_begins_anew_and_a_deeper_bucket_is_not_fuller() {
    let mut case = Case::went_well(limits(), 20_000.0);
    case.known.each.combined.lowered = 0.3;
    let raised = Change::Set(100_000);
    let window = PerDimension { combined: raised, ..PerDimension::default() };
    case.known.set_limits(&PerLimit { window, ..PerLimit::default() });
    let outcome = case.after(1.0, Seen::default());
    assert_reasoned(allowance_of(&outcome).rate, 100_000.0 / MINUTE, Why::Set);
    assert_reasoned(allowance_of(&outcome).capacity, 100_000.0 * 2.5 / 60.0, Why::First);
    assert!(outcome.change.combined <= 0.0, "less may be drawn at once than before");
    let mut case = Case::proven(Limits { token_bucket: true, ..limits() });
    case.idle(1.0);
    case.known.set_limits(&PerLimit { window, ..PerLimit::default() });
    let outcome = case.after(1.0, Seen::default());
    assert!((outcome.change.combined - 40_000.0).abs() < 1e-6, "{:?}", outcome.change);
    // A smaller bucket reduces nothing.
    let window = PerDimension { combined: Change::Clear, ..PerDimension::default() };
    case.known.set_limits(&PerLimit { window, ..PerLimit::default() });
    assert!(case.after(1.0, Seen::default()).change.combined <= 0.0);
}

// 4. Readings of a meter.

#[test]
fn three_even_readings_show_a_bucket() {
    let padded = Limits { margin: 0.98, window: Duration::from_millis(60_500), ..limits() };
    let mut case = Case::proven(padded);
    let two = allowance_of(&case.read_meter([even(10_000.0), even(20_000.0)]));
    assert_eq!(two.window.why, Why::Strict);
    let three = allowance_of(&case.read_meter([even(15_000.0)]));
    assert_reasoned(three.window, f64::INFINITY, Why::Even);
    assert_reasoned(three.capacity, 58_800.0, Why::Full);
    assert!((a_second(three) - 1_000.0).abs() < 1e-6, "no margin, no padding: {three:?}");
}

#[test]
fn a_reading_that_is_not_even_undoes_nine() {
    let mut case = Case::proven(limits());
    case.read_meter([even(10_000.0), even(20_000.0), even(15_000.0)]);
    let uneven = MeterReading { reset: MINUTE, ..even(15_000.0) };
    assert_eq!(allowance_of(&case.read_meter([uneven])).window.why, Why::Strict);
    assert_eq!(allowance_of(&case.read_meter([even(15_000.0); 8])).window.why, Why::Strict);
    assert_eq!(allowance_of(&case.read_meter([even(15_000.0)])).window.why, Why::Even);
}

#[test]
fn a_reading_is_even_within_three_hundredths_of_a_minute() {
    for (off, kind) in [(1.7, Why::Even), (1.9, Why::Strict)] {
        let mut case = Case::proven(limits());
        let near = MeterReading { reset: even(20_000.0).reset + off * SECOND, ..even(20_000.0) };
        assert_eq!(allowance_of(&case.read_meter([near; 3])).window.why, kind, "{off} s");
    }
}

#[test]
fn a_meter_that_is_nearly_spent_or_full_shows_no_kind() {
    for (used, kind) in [(47_000.0, Why::Even), (49_000.0, Why::Strict), (0.0, Why::Strict)] {
        let mut case = Case::proven(limits());
        assert_eq!(allowance_of(&case.read_meter([even(used); 5])).window.why, kind, "{used}");
    }
}

/// A reading of a bucket of two seconds, with a limit of a minute.
fn shallow(used: f64) -> MeterReading {
    MeterReading { used: 58_000.0 + used, reset: used / 1_000.0 * SECOND, ..even(used) }
}

#[test]
fn a_bucket_of_two_seconds_is_taken_for_one_and_not_for_use_by_others() {
    let mut case = Case::proven(limits());
    let first = MeterReading { drawn: 200.0, since: 300.0, ..shallow(200.0) };
    let outcome = case.read_meter([first]);
    assert!(outcome.change.combined <= 0.0, "{:?}", outcome.change);
    assert_reasoned(allowance_of(&outcome).capacity, 2_000.0 * 0.6, Why::Full);
    let outcome = case.read_meter([shallow(900.0); 12]);
    assert_reasoned(allowance_of(&outcome).capacity, 2_000.0, Why::Full);
    assert_reasoned(allowance_of(&outcome).window, f64::INFINITY, Why::Even);
    // A bucket as deep as the minute shows the whole limit.
    assert_reasoned(
        allowance_of(&case.read_meter([even(30_000.0); 14])).capacity,
        60_000.0,
        Why::Full,
    );
}

#[test]
fn a_minute_that_is_nearly_over_is_taken_for_no_less_than_it_has_left() {
    let mut case = Case::proven(limits());
    // Others have used half, and everything is back in ten seconds.
    let late =
        MeterReading { used: 40_000.0, reset: 10.0 * SECOND, drawn: 0.0, since: 0.0, ..even(0.0) };
    let outcome = case.read_meter([late]);
    let room = allowance_of(&outcome).capacity.value - outcome.change.combined;
    assert!(room > 0.0 && room < 20_000.0, "{room}");
    let anew = MeterReading { used: 500.0, reset: 59.0 * SECOND, ..late };
    assert_reasoned(allowance_of(&case.read_meter([anew])).capacity, 36_000.0, Why::Full);
}

#[test]
fn use_beyond_our_own_count_is_use_by_others() {
    let mut case = Case::proven(limits());
    let told = MeterReading { drawn: 0.0, total: 4_000.0, since: 1_000.0, ..even(20_000.0) };
    let outcome = case.read_meter([told]);
    assert!((outcome.change.combined - 15_000.0).abs() < 1e-6, "{:?}", outcome.change);
    let outcome = case.read_meter([MeterReading { total: 17_300.0, ..told }]);
    assert!(outcome.change.combined <= 0.0, "by less than 3 % they are one");
    // A window that is not known completely has at least the drawn amount.
    let lost = MeterReading { drawn: 19_000.0, total: 0.0, ..told };
    assert!(case.read_meter([lost]).change.combined <= 0.0);
    // The highest reading counts; for a bucket the drawn amount counts and not the content of the
    // window.
    let mut case = Case::proven(limits());
    case.read_meter([even(20_000.0); 3]);
    let both = [MeterReading { drawn: 12_000.0, total: 0.0, ..even(20_000.0) }, even(20_000.0)];
    let outcome = case.read_meter(both);
    assert!((outcome.change.combined - 8_000.0).abs() < 1e-6, "{:?}", outcome.change);
}

#[test]
fn room_that_a_bucket_shows_in_three_readings_is_believed() {
    let mut case = Case::proven(limits());
    case.read_meter([even(20_000.0); 3]);
    case.known.each.combined.lowered = 0.2;
    let below = |by: f64| MeterReading { drawn: 20_000.0 + by, ..even(20_000.0) };
    assert!(
        case.read_meter([below(9_000.0), below(5_000.0)]).change.combined >= 0.0,
        "two are not enough"
    );
    let outcome = case.read_meter([below(7_000.0)]);
    assert!((outcome.change.combined + 5_000.0).abs() < 1e-6, "the least: {:?}", outcome.change);
    assert!(case.lowered() <= 0.0, "and the rate is as it was");
    // The provider may or may not count the amount held for calls that it has.
    let held = MeterReading { held: 5_000.0, ..below(6_000.0) };
    assert!(case.read_meter([held; 3]).change.combined >= 0.0);
}

#[test]
fn a_meter_that_showed_room_which_is_not_there_tells_of_something_else() {
    let shown = |after: f64| {
        let mut case = Case::proven(limits());
        case.read_meter([even(20_000.0); 3]);
        case.known.each.combined.lowered = 0.2;
        case.read_meter([MeterReading { drawn: 30_000.0, ..even(20_000.0) }; 3]);
        case.now += after * SECOND;
        case.refuse(&case.refusal(1_000.0, 5_000.0, 0.0));
        (allowance_of(&case.read_meter([even(20_000.0); 30])).window.why, case.lowered() > 0.15)
    };
    let no_bucket = (Why::Strict, true);
    assert_eq!((shown(60.0), shown(119.0)), (no_bucket, no_bucket), "the rate is what it was");
    assert_eq!(shown(130.0), (Why::Even, false));
}

#[test]
fn where_less_may_be_drawn_after_all_that_much_counts_as_drawn() {
    let mut case = Case::proven(limits());
    case.read_meter([even(20_000.0); 3]);
    case.known.each.combined.lowered = 0.2;
    case.known.each.combined.safe_depth = 54_000.0;
    case.read_meter([MeterReading { drawn: 30_000.0, ..even(20_000.0) }; 3]);
    let outcome = case.refuse(&case.refusal(1_000.0, 53_000.0, 0.0));
    let drawn = 54_000.0 + outcome.change.combined;
    assert!((allowance_of(&outcome).capacity.value - drawn - 1_000.0).abs() < 1.0, "{outcome:?}");
}

#[test]
fn a_stated_limit_holds_for_an_episode() {
    let mut case = Case::proven(limits());
    let less = MeterReading { used: -1.0, limit: 30_000.0, ..even(0.0) };
    let stated = allowance_of(&case.read_meter([less]));
    assert_reasoned(stated.rate, 0.5e-3, Why::Stated);
    assert_reasoned(stated.window, 30_000.0, Why::Strict);
    assert!((stated.most - 30_000.0).abs() < 1e-9);
    assert_eq!(case.idle(119.0).rate.why, Why::Stated);
    assert_eq!(case.idle(2.0).rate.why, Why::Configured);
    let more = MeterReading { limit: 90_000.0, ..less };
    assert_reasoned(allowance_of(&case.read_meter([more])).rate, 1e-3, Why::Configured);
}

// 5. The horizon.

#[test]
fn the_horizon_is_the_time_without_a_change_of_capacities() {
    let mut case = Case::proven(limits());
    let seconds = |outcome: &Outcome| outcome.plan.horizon / SECOND;
    assert!((seconds(&case.after(1.0, Seen::default())) - 5.0).abs() < 1e-6);
    assert!((seconds(&case.after(60.0, Seen::default())) - 61.0).abs() < 1e-6);
    case.draws(10_000.0);
    assert!((seconds(&case.after(3.0, Seen::default())) - 5.0).abs() < 1e-6, "it is another one");
    // At most this large.
    case.draws(10_500.0);
    assert!(seconds(&case.after(60.0, Seen::default())) > 60.0);
    let mut paced = Case::new(Limits { burst: Some(Duration::from_secs(1)), ..limits() });
    assert!((seconds(&paced.run(Seen::default())) - 5.0).abs() < 1e-6, "nothing is known yet");
}

// 6. The stored knowledge.

#[test]
fn stored_knowledge_is_small_and_is_read_back_unchanged() {
    let mut case = Case::went_well(limits().with(Dimension::Requests, 100), 10_000.0);
    case.read_meter([even(20_000.0); 7]);
    case.refuse(&case.refusal(1_000.0, 5_000.0, 0.0));
    let kept = case.known.encode_json();
    assert!(kept.len() <= 4_096, "{} bytes", kept.len());
    assert_eq!(Known::from_json(&kept), case.known);
    assert!(
        [&b"[1]"[..], b"{}", b""].map(Known::from_json) == [Known::default(); 3],
        "nothing is known"
    );
}

#[test]
fn a_worker_s_part_is_a_part_of_all_that_has_an_amount() {
    let mut case = Case::went_well(limits(), 20_000.0);
    case.refuse(&case.refusal(1_000.0, 5_000.0, 0.0));
    let rate = a_second(case.idle(1.0));
    let share = ModelQuota::new(
        "test:model".parse().unwrap(),
        limits(),
        Charge::default(),
        Arc::new(Lanes::single()),
    );
    let share = Configured::from_model(&share.unwrap().share(4));
    let mut alone = Case {
        known: case.known.share(4, &share, &numbers(), 1e12),
        configured: share,
        now: 1e12,
        answers: 0,
    };
    let part = allowance_of(&alone.run(Seen::default()));
    assert!((a_second(part) - rate / 4.0).abs() < 1.0, "{part:?}, and {rate}");
    assert_reasoned(part.capacity, 26_000.0 / 4.0, Why::Explored);
    assert!((part.most - 15_000.0).abs() < 1.0);
}

#[test]
fn calls_at_once_are_as_configured_or_as_set() {
    let mut case = Case::proven(Limits { concurrent: Some(7), ..limits() });
    let at_once = |case: &mut Case| case.after(1.0, Seen::default()).plan.concurrent;
    assert!((at_once(&mut case) - 7.0).abs() < 1e-9);
    case.known.set_limits(&PerLimit { in_flight: Change::Set(3), ..PerLimit::default() });
    assert!((at_once(&mut case) - 3.0).abs() < 1e-9);
    case.known.set_limits(&PerLimit { in_flight: Change::Clear, ..PerLimit::default() });
    assert!((at_once(&mut case) - 7.0).abs() < 1e-9);
}

#[test]
fn another_configuration_has_another_fingerprint() {
    let base = configured(limits()).fingerprint();
    assert_eq!(base, configured(limits()).fingerprint());
    for other in [
        limits().with(Dimension::Requests, 1),
        Limits { margin: 0.9, ..limits() },
        Limits { token_bucket: true, ..limits() },
        Limits { concurrent: Some(1), ..limits() },
        Limits { burst: Some(Duration::from_secs(1)), ..limits() },
        Limits { window: Duration::from_secs(61), ..limits() },
    ] {
        let fingerprint = configured(other).fingerprint();
        assert!(fingerprint != base && fingerprint < 1 << 53, "{other:?}");
    }
}
