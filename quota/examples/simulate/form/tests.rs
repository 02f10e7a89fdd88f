//! What must hold of the mechanism whatever the policy says, and of the policy without a mechanism.

use tidegate_quota::{Dimension, PerDimension};

use super::{
    log::{Logged, Observation, Reading},
    mechanism::{Asked, Decision, End, Mechanism, Setup, Told, Units},
    numbers::Numbers,
    one,
    plan::{Allowance, Plan, Reasoned, Why},
    policy::{Configured, Knowledge},
    store::Variant,
};

const LIMIT: f64 = 60_000.0;

fn tokens(combined: f64) -> Units {
    Units { requests: 1.0, input: combined, output: 0.0, combined }
}

fn plan(capacity: f64, window: f64) -> Plan {
    let number = |value| Reasoned::new(value, Why::Configured);
    let combined = Some(Allowance {
        rate: number(LIMIT / 60.0),
        capacity: number(capacity),
        window: number(window),
        most: LIMIT,
    });
    let limits = PerDimension { requests: None, input: None, output: None, combined };
    Plan { version: 1, horizon: f64::INFINITY, limits }
}

fn mechanism(plan: Plan) -> Mechanism {
    let setup = Setup { window: 60.0, shares: vec![1.0], numbers: Numbers::default() };
    Mechanism::new(setup, plan, 1, 0.0)
}

fn asked(id: impl ToString, tenant: u64, amount: f64, turn: Option<f64>) -> Asked {
    let ticket = turn.map(|turn| (1, turn));
    Asked { id: id.to_string(), lane: 0, tenant, amounts: tokens(amount), ticket }
}

fn waits(decision: Decision) -> (f64, f64) {
    match decision {
        Decision::Wait { seconds, turn, .. } => (seconds, turn),
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_stretch_has_more_than_capacity_and_refill_and_no_window_more_than_its_limit() {
    let mut limiter = mechanism(plan(10_000.0, 50_000.0));
    let mut went: Vec<(f64, f64)> = Vec::new();
    let (mut call, mut turn) = (0, None);
    for step in 0..8_000 {
        let (now, amount) = (f64::from(step) * 0.025, 100.0 + f64::from(call * 37 % 900));
        match limiter.reserve(now, &asked(call, 0, amount, turn)) {
            Decision::Wait { turn: kept, .. } => turn = Some(kept),
            _ => {
                went.push((now, amount));
                (call, turn) = (call + 1, None);
            }
        }
    }
    for (first, (from, _)) in went.iter().enumerate() {
        let mut sum = 0.0;
        for (to, amount) in &went[first..] {
            sum += amount;
            assert!(sum <= 10_000.0 + (to - from) * LIMIT / 60.0 + 1e-6);
            assert!(to - from >= 60.0 || sum <= 50_000.0 + 1e-6);
        }
    }
    assert!(went.iter().map(|(_, amount)| amount).sum::<f64>() > 140_000.0);
}

#[test]
fn the_same_call_counts_once_and_a_settlement_too() {
    let mut limiter = mechanism(plan(10_000.0, LIMIT));
    for _ in 0..3 {
        assert_eq!(limiter.reserve(0.0, &asked("a", 0, 4_000.0, None)), Decision::Granted);
    }
    assert_eq!(limiter.used().combined, 4_000.0);
    assert!(limiter.settle(0.0, "a", End::Used(tokens(1_000.0)), &Told::default()));
    assert!(!limiter.settle(0.0, "a", End::Used(tokens(1_000.0)), &Told::default()));
    assert_eq!(limiter.used().combined, 1_000.0);
}

#[test]
fn callers_go_in_the_order_of_their_turns_and_a_later_one_does_not_pass() {
    let mut limiter = mechanism(plan(10_000.0, LIMIT));
    assert_eq!(limiter.reserve(0.0, &asked("first", 0, 10_000.0, None)), Decision::Granted);
    let (big, turn) = waits(limiter.reserve(0.0, &asked("big", 0, 8_000.0, None)));
    let (small, later) = waits(limiter.reserve(0.0, &asked("small", 0, 500.0, None)));
    assert!((big - 8.0).abs() < 1e-6 && (small - 8.5).abs() < 1e-6 && later > turn);
    waits(limiter.reserve(4.0, &asked("small", 0, 500.0, Some(later))));
    assert_eq!(limiter.reserve(8.0, &asked("big", 0, 8_000.0, Some(turn))), Decision::Granted);
    assert_eq!(limiter.reserve(8.5, &asked("small", 0, 500.0, Some(later))), Decision::Granted);
}

#[test]
fn a_turn_is_work_and_another_rate_changes_what_it_means() {
    let mut limiter = mechanism(plan(10_000.0, LIMIT));
    limiter.reserve(0.0, &asked("first", 0, 10_000.0, None));
    let (_, turn) = waits(limiter.reserve(0.0, &asked("next", 0, 8_000.0, None)));
    let reading = limiter.read(0.0);
    let mut faster = plan(10_000.0, 4.0 * LIMIT);
    if let Some(limit) = &mut faster.limits.combined {
        limit.rate.value *= 4.0;
    }
    assert!(limiter.write(0.0, &reading, faster, &Units::default()));
    let (wait, same) = waits(limiter.reserve(0.0, &asked("next", 0, 8_000.0, Some(turn))));
    assert!((wait - 2.0).abs() < 1e-6 && (same - turn).abs() < 1e-9);
}

#[test]
fn those_who_never_come_hold_up_nobody_for_long() {
    let mut limiter = mechanism(plan(10_000.0, LIMIT));
    limiter.reserve(0.0, &asked("first", 0, 10_000.0, None));
    waits(limiter.reserve(0.0, &asked("dead", 0, 6_000.0, None)));
    let (_, turn) = waits(limiter.reserve(0.0, &asked("alive", 0, 6_000.0, None)));
    // Room for both, or a full level and what has flowed over it.
    assert_eq!(limiter.reserve(12.1, &asked("alive", 0, 6_000.0, Some(turn))), Decision::Granted);
}

#[test]
fn tenants_take_turns() {
    let mut limiter = mechanism(plan(2_000.0, 10.0 * LIMIT));
    let mut turns = [[None; 40]; 2];
    let mut went = [0.0, 0.0];
    for step in 0..2_000 {
        let now = f64::from(step) * 0.05;
        // The first tenant has forty callers, the second four.
        for (tenant, callers) in [(0_usize, 40), (1, 4)] {
            for (caller, turn) in turns[tenant].iter_mut().enumerate().take(callers) {
                let id = format!("{tenant}-{caller}-{step}");
                let ask = asked(id, tenant as u64, 1_000.0, *turn);
                *turn = match limiter.reserve(now, &ask) {
                    Decision::Wait { turn, .. } => Some(turn),
                    _ => {
                        went[tenant] += 1_000.0;
                        None
                    }
                };
            }
        }
    }
    let part = went[0] / (went[0] + went[1]);
    assert!((0.4..=0.6).contains(&part), "{part}");
}

#[test]
fn a_thousand_admissions_between_reading_and_writing_are_not_lost() {
    let mut limiter = mechanism(plan(50_000.0, LIMIT));
    let reading = limiter.read(0.0);
    for call in 0..1_000 {
        assert_eq!(limiter.reserve(0.0, &asked(call, 0, 10.0, None)), Decision::Granted);
    }
    let change = Units { combined: 5_000.0, ..Units::default() };
    assert!(limiter.write(0.0, &reading, plan(50_000.0, LIMIT), &change));
    // A change is added: all that was admitted is still drawn.
    assert_eq!(limiter.read(0.0).drawn.combined, 15_000.0);
    assert_eq!(limiter.read(0.0).spent.combined, 10_000.0);
}

#[test]
fn a_frozen_writer_changes_nothing() {
    let mut limiter = mechanism(plan(50_000.0, LIMIT));
    let (frozen, other) = (limiter.read(0.0), limiter.read(0.0));
    assert!(limiter.write(0.0, &other, plan(40_000.0, LIMIT), &Units::default()));
    let change = Units { combined: 5_000.0, ..Units::default() };
    assert!(!limiter.write(10.0, &frozen, plan(1.0, 1.0), &change));
    assert_eq!(limiter.read(10.0).drawn.combined, 0.0);
    assert_eq!(limiter.plan.limits.combined.map(|limit| limit.capacity.value), Some(40_000.0));
}

#[test]
fn the_policy_has_one_caller_at_a_time_until_its_lease_ends() {
    let mut limiter = mechanism(plan(50_000.0, LIMIT));
    assert!(limiter.task(0.0));
    assert!(!limiter.task(1.9));
    assert!(limiter.task(2.0));
    let reading = limiter.read(2.0);
    assert!(limiter.write(2.0, &reading, plan(50_000.0, LIMIT), &Units::default()));
    assert!(!limiter.task(2.1));
    assert!(limiter.task(2.3));
}

#[test]
fn after_a_refusal_one_call_goes_first_and_nothing_refills_before() {
    let mut limiter = mechanism(plan(10_000.0, LIMIT));
    assert_eq!(limiter.reserve(0.0, &asked("a", 0, 1_000.0, None)), Decision::Granted);
    let refused = End::Refused { unused: Units::default(), retry: 5.0 };
    limiter.settle(0.0, "a", refused, &Told::default());
    let (wait, _) = waits(limiter.reserve(0.0, &asked("b", 0, 1_000.0, None)));
    assert!((wait - 5.0).abs() < 1e-6);
    assert_eq!(limiter.reserve(5.0, &asked("b", 0, 1_000.0, None)), Decision::Granted);
    waits(limiter.reserve(5.0, &asked("c", 0, 1_000.0, None)));
    assert_eq!(limiter.reserve(6.1, &asked("c", 0, 1_000.0, None)), Decision::Granted);
}

fn configured() -> Configured {
    let most = PerDimension { combined: Some(LIMIT), ..PerDimension::default() };
    Configured { most, window: 60.0, kept: 1.0, bucket: false, burst: None }
}

fn reading(now: f64, observations: Vec<Observation>) -> Reading {
    let each = tokens(0.0);
    let log = Logged { observations, answers: 1, end: 1 };
    Reading { now, version: 1, drawn: each, spent: each, peak: each, log }
}

fn refused(at: f64, drawn: f64, spent: f64) -> Observation {
    Observation::Refused {
        at,
        admitted: at,
        need: tokens(100.0),
        retry: 0.1,
        drawn: tokens(drawn),
        spent: tokens(spent),
        probe: false,
    }
}

/// The plan after these runs, the last of them.
fn runs(readings: impl IntoIterator<Item = Reading>) -> Allowance {
    let mut known = one::Known::default();
    let mut last = None;
    for reading in readings {
        let outcome = one::run(known, &reading, &configured(), &Numbers::default());
        known = outcome.knowledge;
        last = outcome.plan.limits[Dimension::Combined];
    }
    last.expect("a plan")
}

#[test]
fn what_goes_well_is_followed_by_a_step_more() {
    let peak = |now, drawn| Reading { peak: tokens(drawn), ..reading(now, vec![]) };
    let allowance = runs([peak(1.0, 4_000.0), peak(3.0, 0.0)]);
    let step = 4_000.0 * Numbers::default().grow;
    assert_eq!((allowance.capacity.value, allowance.capacity.why), (step, Why::Explored));
    assert_eq!(runs([peak(1.0, 4_000.0)]).capacity.why, Why::First);
}

#[test]
fn a_burst_that_is_refused_bounds_the_capacity_and_not_the_rate() {
    let went = Reading { peak: tokens(4_000.0), ..reading(1.0, vec![]) };
    let allowance =
        runs([went, reading(3.0, vec![]), reading(3.5, vec![refused(3.4, 5_000.0, 9_000.0)])]);
    assert_eq!(allowance.capacity.why, Why::TooDeep);
    assert!(allowance.capacity.value >= 4_000.0 * 0.99 && allowance.capacity.value <= 5_100.0);
    assert_eq!(allowance.rate.value, LIMIT / 60.0);
}

#[test]
fn what_goes_through_between_two_refusals_is_the_rate() {
    let went = Reading { peak: tokens(6_000.0), ..reading(1.0, vec![]) };
    let first = reading(100.0, vec![refused(100.0, 5_000.0, 100_000.0)]);
    let second = reading(110.0, vec![refused(110.0, 5_000.0, 107_900.0)]);
    let allowance = runs([went, reading(3.0, vec![]), first, second]);
    assert!((allowance.rate.value - 800.0).abs() < 1.0, "{}", allowance.rate.value);
    assert_eq!(allowance.rate.why, Why::Refused);
}

#[test]
fn a_meter_that_comes_back_evenly_is_a_bucket() {
    let told = |reset| Observation::Told {
        used: PerDimension { combined: Some(30_000.0), ..PerDimension::default() },
        reset: PerDimension { combined: Some(reset), ..PerDimension::default() },
        drawn: tokens(30_000.0),
        in_window: tokens(30_000.0),
    };
    let bucket = runs([reading(1.0, vec![told(30.0); 3])]);
    assert_eq!((bucket.window.why, bucket.capacity.why), (Why::Even, Why::Full));
    let margin = Configured { kept: 0.98, ..configured() };
    let with_margin = one::run(
        one::Known::default(),
        &reading(1.0, vec![told(30.0); 3]),
        &margin,
        &Numbers::default(),
    );
    let rate = with_margin.plan.limits.combined.map(|limit| limit.rate.value * 0.98);
    assert_eq!(rate, Some(LIMIT / 60.0));
    let window = runs([reading(1.0, vec![told(30.0), told(30.0), told(55.0), told(30.0)])]);
    assert_eq!(window.window.why, Why::Strict);
}

#[test]
fn both_variants_know_less_than_four_kilobytes_of_three_dimensions() {
    for variant in [Variant::One, Variant::Candidates] {
        assert!(Knowledge::new(variant).bytes() * 3 / 4 <= 4_096, "{variant:?}");
    }
}
