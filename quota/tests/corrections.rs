//! What moves the limits while a fleet runs: refusals, overloads, other users, operators, days,
//! calls at once, tenants. Kept by both stores.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::time::Duration;

use common::{Rig, SECOND, START, both_stores, lanes, limits, model, model_with_lanes};
use tidegate_quota::{
    Amounts, Change, DayLimit, Decision, Dimension, Limits, ModelQuota, PerDimension, PerLimit,
    Store,
    store::{Ask, Binding, LimitChanges, Meter, Pause, ProviderSignal, Settlement},
};
use tidegate_types::Tenant;

both_stores! {
    calls_at_once_are_bounded(at_once(3));
    a_call_that_outlives_the_window_is_still_in_flight(at_once(2));
    a_lane_has_its_part_of_the_calls_at_once(shared_at_once());
    a_day_s_limit_ends_with_the_day(model(Limits { requests_per_day: Some(5), ..limits(1_000_000) }));
    tokens_of_a_day_are_settled(model(Limits { tokens_per_day: Some(1_000), ..limits(1_000_000) }));
    a_refusal_lowers_the_limits_and_quiet_time_restores_them(model(limits(1_000)));
    a_limit_that_was_cut_is_found_by_what_goes_well(model(limits(1_000)));
    what_goes_well_between_two_refusals_shows_the_rate(model(limits(1_000)));
    refusals_of_a_model_with_little_use_show_no_rate(model(limits(1_000)));
    a_storm_of_refusals_takes_little_off(model(limits(1_000)));
    a_meter_that_agrees_brings_the_limits_back_sooner(model(limits(1_000)));
    a_few_refusals_lower_the_limits_to_half_at_most(model(limits(1_000)));
    a_call_as_large_as_the_whole_limit_survives_a_refusal(model(limits(1_000)));
    use_by_others_on_the_account_counts_and_fades(model(limits(1_000)));
    a_provider_that_states_less_is_believed(model(limits(1_000)));
    what_was_stated_long_ago_binds_no_longer(model(limits(1_000)));
    a_meter_of_long_ago_makes_no_phantom(model(limits(1_000)));
    what_is_in_flight_is_no_phantom(model(limits(1_000)));
    limits_set_act_at_once_and_keep_what_is_used(model(limits(1_000)));
    an_overload_cuts_the_calls_in_flight_and_closes_nothing(model(limits(1_000_000)));
    after_a_refusal_one_call_goes_first(model(limits(1_000)));
    a_refused_canary_closes_the_gate_again(model(limits(1_000)));
    what_is_exhausted_says_so_until_an_operator_opens_it(model(limits(1_000)));
    tenants_of_a_lane_get_equal_parts(model(Limits { burst: Duration::from_secs(1), ..limits(60_000) }));
    what_was_spent_elsewhere_is_charged_once(model(limits(1_000)));
    a_lane_without_a_share_is_not_starved(greedy());
    a_lost_call_stays_charged_and_is_not_in_flight(model(Limits { concurrent: Some(1), ..limits(1_000) }));
    a_raised_limit_moves_the_queue(model(Limits { burst: Duration::from_secs(1), ..limits(600) }));
}

fn at_once(calls: u64) -> ModelQuota {
    model(Limits { concurrent: Some(calls), lease: Duration::from_secs(120), ..Limits::default() })
}

fn shared_at_once() -> ModelQuota {
    let limits = Limits { concurrent: Some(10), ..Limits::default() };
    model_with_lanes(limits, lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0)]))
}

fn greedy() -> ModelQuota {
    model_with_lanes(limits(1_000), lanes(&[("batch", 0.0, 1.0), ("interactive", 1.0, 1.0)]))
}

fn pause(seconds: u64) -> Option<Pause> {
    Some(Pause { length: Duration::from_secs(seconds), reason: "says the provider".to_owned() })
}

async fn used<S: Store>(rig: &Rig<S>, ask: &Ask, tokens: u64) {
    rig.store
        .settle(&rig.model, &Settlement::used(&ask.reservation, Amounts::call(tokens, 0)))
        .await
        .unwrap();
}

async fn refused<S: Store>(rig: &Rig<S>, ask: &Ask, signal: ProviderSignal, pause: Option<Pause>) {
    let settlement =
        Settlement { signal, pause, ..Settlement::used(&ask.reservation, Amounts::call(0, 0)) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

async fn limit<S: Store>(rig: &Rig<S>) -> u64 {
    rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined).limit
}

async fn calls_at_once_are_bounded<S: Store>(rig: &Rig<S>) {
    let first = rig.ask(1);
    assert_eq!(rig.reserve(&first).await, Decision::Granted);
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    let mut next = rig.ask(1);
    let (wait, binding, ticket) = rig.refused(&next).await;
    assert_eq!((wait, binding), (Duration::from_secs(1) / 3, Binding::InFlight).into_rounded_up());
    rig.advance(Duration::from_secs(5));
    used(rig, &first, 1).await;
    next.ticket = Some(ticket);
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "a place came free");
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().in_flight.used, 3);
}

trait RoundedUp {
    fn into_rounded_up(self) -> Self;
}

impl RoundedUp for (Duration, Binding) {
    /// Replies are whole microseconds.
    fn into_rounded_up(self) -> Self {
        (Duration::from_micros(self.0.as_nanos().div_ceil(1_000).try_into().unwrap()), self.1)
    }
}

async fn a_call_that_outlives_the_window_is_still_in_flight<S: Store>(rig: &Rig<S>) {
    let (long, dead) = (rig.ask(1), rig.ask(1));
    rig.reserve(&long).await;
    rig.reserve(&dead).await;
    for _ in 0..5 {
        rig.advance(Duration::from_secs(30));
        rig.store.renew(&rig.model, &long.reservation).await.unwrap();
        rig.store.inspect(&rig.model).await.unwrap();
    }
    assert_eq!(
        rig.store.inspect(&rig.model).await.unwrap().in_flight.used,
        1,
        "the dead worker's place came back, the living one's not"
    );
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    assert_eq!(rig.refused(&rig.ask(1)).await.1, Binding::InFlight);
    // This provider counts output when the call ends: 70 tokens now, though the call began 150 s
    // ago.
    rig.store
        .settle(&rig.model, &Settlement::used(&long.reservation, Amounts::call(30, 70)))
        .await
        .unwrap();
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.in_flight.used, seen.used()), (1, Amounts::call(1, 70)));
    rig.store
        .settle(&rig.model, &Settlement::used(&long.reservation, Amounts::call(30, 70)))
        .await
        .unwrap();
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used(), Amounts::call(1, 70), "once");
}

async fn a_lane_has_its_part_of_the_calls_at_once<S: Store>(rig: &Rig<S>) {
    let in_lane = |lane| Ask { lane, ..rig.ask(1) };
    rig.reserve(&in_lane(1)).await;
    let mut batch = 0;
    while rig.reserve(&in_lane(0)).await == Decision::Granted {
        batch += 1;
    }
    assert!((7..=8).contains(&batch), "what interactive does not use, less a stand-by: {batch}");
    assert_eq!(
        rig.reserve(&in_lane(1)).await,
        Decision::Granted,
        "a place is left for the guaranteed lane"
    );
}

async fn a_day_s_limit_ends_with_the_day<S: Store>(rig: &Rig<S>) {
    for _ in 0..5 {
        assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
    }
    let left = Duration::from_micros(86_400 * SECOND - START % (86_400 * SECOND));
    assert_eq!(
        rig.reserve(&rig.ask(10)).await,
        Decision::Exhausted { wait: left, day: Some(DayLimit::Requests) }
    );
    rig.advance(left - Duration::from_micros(1));
    assert!(matches!(rig.reserve(&rig.ask(10)).await, Decision::Exhausted { .. }));
    rig.advance(Duration::from_micros(1));
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted, "a new day");
}

async fn tokens_of_a_day_are_settled<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(900);
    rig.reserve(&ask).await;
    assert!(matches!(
        rig.reserve(&rig.ask(200)).await,
        Decision::Exhausted { day: Some(DayLimit::Tokens), .. }
    ));
    used(rig, &ask, 500).await;
    assert_eq!(rig.reserve(&rig.ask(200)).await, Decision::Granted);
    rig.advance(Duration::from_secs(3_600));
    assert_eq!(
        rig.store.inspect(&rig.model).await.unwrap().day_tokens,
        700,
        "an hour's silence forgets nothing of the day"
    );
}

async fn a_refusal_lowers_the_limits_and_quiet_time_restores_them<S: Store>(rig: &Rig<S>) {
    for expected in [980, 980, 929] {
        // Some go well: else nothing is known of the rate.
        let (ask, well) = (rig.ask(10), rig.ask(10));
        rig.reserve(&well).await;
        used(rig, &well, 10).await;
        rig.reserve(&ask).await;
        refused(rig, &ask, ProviderSignal::Refused, None).await;
        assert_eq!(limit(rig).await, expected, "2 %, then 5 %, at most once in ten seconds");
        rig.advance(Duration::from_secs(5));
    }
    rig.advance(Duration::from_secs(55));
    assert_eq!(limit(rig).await, 929, "a minute of quiet first");
    rig.advance(Duration::from_secs(120));
    assert_eq!(limit(rig).await, 950, "then 1 % a minute");
    rig.advance(Duration::from_secs(600));
    assert_eq!(limit(rig).await, 1_000, "and never above the configured limit");
}

/// A provider that lets nothing through for a while says nothing about the rate.
async fn a_storm_of_refusals_takes_little_off<S: Store>(rig: &Rig<S>) {
    every_nth_is_refused(rig, 1_000, 60).await;
    every_nth_is_refused(rig, 1, 60).await;
    assert!(limit(rig).await >= 930, "{}", limit(rig).await);
    every_nth_is_refused(rig, 1_000, 20).await;
    assert!(limit(rig).await >= 930, "{}", limit(rig).await);
}

/// One call a second, of which every n-th is refused.
async fn every_nth_is_refused<S: Store>(rig: &Rig<S>, n: u32, calls: u32) {
    for call in 0..calls {
        let ask = rig.ask(2);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.advance(Duration::from_secs(1));
        if call % n == 0 {
            refused(rig, &ask, ProviderSignal::Refused, None).await;
        } else {
            used(rig, &ask, 2).await;
        }
    }
}

async fn a_limit_that_was_cut_is_found_by_what_goes_well<S: Store>(rig: &Rig<S>) {
    every_nth_is_refused(rig, 2, 7).await;
    let half = limit(rig).await;
    assert!((400..=600).contains(&half), "half of the calls went well: {half}");
    every_nth_is_refused(rig, 2, 7).await;
    let quarter = limit(rig).await;
    assert!((150..=350).contains(&quarter), "and half of those: {quarter}");
    rig.advance(Duration::from_secs(11 * 60));
    let later = limit(rig).await;
    assert!((quarter + 80..=quarter + 110).contains(&later), "1 % a minute comes back: {later}");
}

/// A call of 20 tokens every so many milliseconds, all of them answered.
async fn calls_go_well<S: Store>(rig: &Rig<S>, calls: u64, every: u64) {
    for _ in 0..calls {
        let ask = rig.ask(20);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        used(rig, &ask, 20).await;
        rig.advance(Duration::from_millis(every));
    }
}

async fn one_is_refused<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(20);
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    refused(rig, &ask, ProviderSignal::Refused, None).await;
}

async fn what_goes_well_between_two_refusals_shows_the_rate<S: Store>(rig: &Rig<S>) {
    calls_go_well(rig, 40, 1_200).await;
    one_is_refused(rig).await;
    assert_eq!(limit(rig).await, 980);
    rig.advance(Duration::from_secs(1));
    calls_go_well(rig, 6, 1_500).await;
    one_is_refused(rig).await;
    let shown = limit(rig).await;
    assert!((800..=850).contains(&shown), "less than 140 tokens went in ten seconds: {shown}");
}

async fn refusals_of_a_model_with_little_use_show_no_rate<S: Store>(rig: &Rig<S>) {
    one_is_refused(rig).await;
    calls_go_well(rig, 5, 2_100).await;
    one_is_refused(rig).await;
    assert_eq!(limit(rig).await, 929, "5 % of the limit, rounded down");
}

async fn a_meter_that_agrees_brings_the_limits_back_sooner<S: Store>(rig: &Rig<S>) {
    every_nth_is_refused(rig, 2, 7).await;
    let cut = limit(rig).await;
    rig.advance(Duration::from_secs(60));
    let a_minute_of_calls = async |told_use| {
        for _ in 0..60 {
            let ask = rig.ask(2);
            assert_eq!(rig.reserve(&ask).await, Decision::Granted);
            rig.advance(Duration::from_secs(1));
            let stated = PerDimension { combined: Some(1_000), ..PerDimension::default() };
            told_of(rig, &ask, told_use, stated).await;
        }
        limit(rig).await
    };
    let by_others = a_minute_of_calls(250).await;
    assert!((cut..=cut + 20).contains(&by_others), "others use what is left: {by_others}");
    rig.advance(Duration::from_secs(60));
    let alone = a_minute_of_calls(2).await;
    let came_back = (alone - by_others) as f64 / (1_000 - by_others) as f64;
    assert!((0.3..0.4).contains(&came_back), "1 - e^-0.4 of what was taken off: {came_back}");
}

async fn a_few_refusals_lower_the_limits_to_half_at_most<S: Store>(rig: &Rig<S>) {
    every_nth_is_refused(rig, 60, 4_000).await;
    assert!(limit(rig).await >= 500);
}

async fn a_call_as_large_as_the_whole_limit_survives_a_refusal<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask, ProviderSignal::Refused, None).await;
    rig.advance(Duration::from_secs(60));
    assert_eq!(rig.reserve(&rig.ask(1_000)).await, Decision::Granted);
}

async fn use_by_others_on_the_account_counts_and_fades<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(100);
    rig.reserve(&ask).await;
    let used = PerDimension { combined: Some(700), ..PerDimension::default() };
    let meter = Meter { used, ..Meter::default() };
    let settlement =
        Settlement { meter, ..Settlement::used(&ask.reservation, Amounts::call(100, 0)) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
    let seen = *rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined);
    assert_eq!((seen.used, seen.others), (100, 600));
    let mut ask = rig.ask(400);
    ask.ticket = Some(rig.refused(&ask).await.2);
    rig.advance(Duration::from_secs(30));
    assert_eq!(
        rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined).others,
        100,
        "it fades at the limit's rate"
    );
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
}

async fn a_provider_that_states_less_is_believed<S: Store>(rig: &Rig<S>) {
    let state = async |stated| {
        let ask = rig.ask(1);
        rig.reserve(&ask).await;
        let limits = PerDimension { combined: Some(stated), ..PerDimension::default() };
        let meter = Meter { limits, ..Meter::default() };
        let settlement =
            Settlement { meter, ..Settlement::used(&ask.reservation, Amounts::call(1, 0)) };
        rig.store.settle(&rig.model, &settlement).await.unwrap();
        limit(rig).await
    };
    assert_eq!(state(5_000).await, 1_000, "never more than is configured");
    assert_eq!(state(400).await, 400);
    assert_eq!(
        rig.reserve(&rig.ask(401)).await,
        Decision::Never { dimension: Dimension::Combined, capacity: 400 }
    );
    assert_eq!(state(1_000).await, 1_000, "the tier was raised again");
}

/// In use a limit is stated with every answer; one of long ago may have been wrong, or the account
/// may have been raised, and where nothing fits into it nothing would ever be heard again.
async fn what_was_stated_long_ago_binds_no_longer<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(1);
    rig.reserve(&ask).await;
    let limits = PerDimension { combined: Some(1), ..PerDimension::default() };
    let meter = Meter { limits, ..Meter::default() };
    let settlement =
        Settlement { meter, ..Settlement::used(&ask.reservation, Amounts::call(1, 0)) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
    rig.advance(Duration::from_secs(9 * 60));
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    let combined = seen.get(Dimension::Combined);
    assert_eq!((combined.limit, combined.stated), (1, Some(1)));
    rig.advance(Duration::from_secs(2 * 60));
    assert_eq!(limit(rig).await, 1_000);
    assert_eq!(rig.reserve(&rig.ask(500)).await, Decision::Granted);
}

async fn told(rig: &Rig<impl Store>, ask: &Ask, used: u64) -> u64 {
    told_of(rig, ask, used, PerDimension::default()).await
}

async fn told_of(
    rig: &Rig<impl Store>,
    ask: &Ask,
    used: u64,
    limits: PerDimension<Option<u64>>,
) -> u64 {
    let used = PerDimension { combined: Some(used), ..PerDimension::default() };
    let meter = Meter { used, limits, ..Meter::default() };
    let settlement = Settlement { meter, ..Settlement::used(&ask.reservation, ask.amounts) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
    rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined).others
}

/// A call of 50 seconds tells what the account used when it began: by then our own calls of before
/// have left the window.
async fn a_meter_of_long_ago_makes_no_phantom<S: Store>(rig: &Rig<S>) {
    let (before, long) = (rig.ask(700), rig.ask(100));
    rig.reserve(&before).await;
    rig.store
        .settle(&rig.model, &Settlement::used(&before.reservation, before.amounts))
        .await
        .unwrap();
    rig.advance(Duration::from_secs(11));
    rig.reserve(&long).await;
    rig.advance(Duration::from_secs(50));
    assert_eq!(told(rig, &long, 800).await, 0);
}

/// Calls in flight may take more than was estimated.
async fn what_is_in_flight_is_no_phantom<S: Store>(rig: &Rig<S>) {
    let (open, done) = (rig.ask(400), rig.ask(100));
    rig.reserve(&open).await;
    rig.reserve(&done).await;
    assert_eq!(told(rig, &done, 650).await, 0, "the other took 550 and not 400");
    let another = rig.ask(100);
    rig.reserve(&another).await;
    assert!(told(rig, &another, 1_000).await > 0, "that is more than a bad estimate");
}

fn combined_alone(change: Change) -> LimitChanges {
    let window = PerDimension { combined: change, ..PerDimension::default() };
    PerLimit { window, ..PerLimit::default() }
}

async fn limits_set_act_at_once_and_keep_what_is_used<S: Store>(rig: &Rig<S>) {
    let set = async |change| {
        rig.store.set_limits(&rig.model, &combined_alone(change)).await.unwrap();
    };
    rig.reserve(&rig.ask(600)).await;
    set(Change::Set(500)).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    let combined = seen.get(Dimension::Combined);
    assert_eq!((combined.limit, combined.used, combined.set), (500, 600, Some(500)));
    assert_eq!(
        rig.refused(&rig.ask(1)).await.0,
        Duration::from_secs(60),
        "nothing fits until the use has left the window"
    );
    set(Change::Set(2_000)).await;
    rig.advance(Duration::from_secs(61));
    assert_eq!(rig.reserve(&rig.ask(1_900)).await, Decision::Granted);
    rig.advance(Duration::from_secs(3_600));
    assert_eq!(limit(rig).await, 2_000, "an hour's silence forgets nothing");
    set(Change::Clear).await;
    assert_eq!(limit(rig).await, 1_000, "as configured");
}

/// A time-out: the work may have been done, but its worker waits for it no longer.
async fn a_lost_call_stays_charged_and_is_not_in_flight<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(600);
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    assert_eq!(rig.refused(&rig.ask(100)).await.1, Binding::InFlight);
    let lost = Settlement {
        signal: ProviderSignal::Lost,
        ..Settlement::used(&ask.reservation, ask.amounts)
    };
    rig.store.settle(&rig.model, &lost).await.unwrap();
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.in_flight.used, seen.get(Dimension::Combined).used), (0, 600));
    assert_eq!(
        (seen.factor, seen.pause, seen.cap),
        (1.0, Duration::ZERO, None),
        "it says nothing of limits"
    );
    rig.advance(Duration::from_secs(10));
    assert_eq!(rig.reserve(&rig.ask(100)).await, Decision::Granted);
}

async fn an_overload_cuts_the_calls_in_flight_and_closes_nothing<S: Store>(rig: &Rig<S>) {
    let mut all: Vec<Ask> = Vec::new();
    for _ in 0..20 {
        let ask = rig.ask(10);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        all.push(ask);
    }
    refused(rig, &all.pop().unwrap(), ProviderSignal::Overloaded, None).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.cap, seen.in_flight.used, seen.pause), (Some(14), 19, Duration::ZERO));
    assert_eq!(rig.refused(&rig.ask(10)).await.1, Binding::InFlight);
    rig.advance(Duration::from_secs(1));
    for ask in all.drain(..) {
        used(rig, &ask, 10).await;
    }
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
    let cap = rig.store.inspect(&rig.model).await.unwrap().cap;
    assert!(cap > Some(14), "successes raise it: {cap:?}");
    rig.advance(Duration::from_secs(301));
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().cap, None, "five quiet minutes end it");
}

async fn after_a_refusal_one_call_goes_first<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask, ProviderSignal::Refused, pause(20)).await;
    assert!(matches!(rig.reserve(&rig.ask(10)).await, Decision::Paused { .. }));
    rig.advance(Duration::from_secs(20));
    let canary = rig.ask(10);
    assert_eq!(rig.reserve(&canary).await, Decision::Granted);
    let mut next = rig.ask(10);
    let (wait, binding, ticket) = rig.refused(&next).await;
    assert_eq!((wait, binding), (Duration::from_secs(1), Binding::Canary));
    next.ticket = Some(ticket);
    rig.advance(Duration::from_millis(400));
    used(rig, &canary, 10).await;
    rig.advance(Duration::from_millis(600));
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
}

async fn a_refused_canary_closes_the_gate_again<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask, ProviderSignal::Refused, pause(20)).await;
    rig.advance(Duration::from_secs(20));
    let canary = rig.ask(10);
    rig.reserve(&canary).await;
    rig.advance(Duration::from_millis(200));
    refused(rig, &canary, ProviderSignal::Refused, pause(30)).await;
    assert_eq!(
        rig.reserve(&rig.ask(10)).await,
        Decision::Paused { wait: Duration::from_secs(30), ticket: None }
    );
    rig.advance(Duration::from_secs(30));
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted, "the next canary");
    assert_eq!(rig.refused(&rig.ask(10)).await.1, Binding::Canary);
}

async fn what_is_exhausted_says_so_until_an_operator_opens_it<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask, ProviderSignal::Exhausted, pause(10 * 3_600)).await;
    rig.advance(Duration::from_secs(3_600));
    let wait = Duration::from_secs(9 * 3_600);
    assert_eq!(
        rig.reserve(&rig.ask(10)).await,
        Decision::Exhausted { wait, day: None },
        "longer than any pause"
    );
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(
        (seen.exhausted, seen.pause, seen.reason.as_str()),
        (true, wait, "says the provider")
    );
    rig.store.resume(&rig.model).await.unwrap();
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
}

/// One tenant has a thousand documents waiting, another comes later with a few at a time: each gets
/// its half.
async fn tenants_of_a_lane_get_equal_parts<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str| Ask { tenant: Tenant::new(tenant).unwrap(), ..rig.ask(1_000) };
    while rig.reserve(&of("large")).await == Decision::Granted {}
    let mut waiting: Vec<(u64, Ask)> = Vec::new();
    let due = |rig: &Rig<S>, wait: Duration| rig.now() + u64::try_from(wait.as_micros()).unwrap();
    for _ in 0..300 {
        let mut ask = of("large");
        let (wait, _, ticket) = rig.refused(&ask).await;
        ask.ticket = Some(ticket);
        waiting.push((due(rig, wait), ask));
    }
    let (mut large, mut small, start) = (0, 0, rig.now());
    for _ in 0..5 {
        waiting.push((start, of("small")));
    }
    while rig.now() < start + 60 * SECOND {
        waiting.sort_by_key(|(due, _)| *due);
        let (at, mut ask) = waiting.remove(0);
        rig.at(at.max(rig.now()));
        match rig.reserve(&ask).await {
            Decision::Granted if ask.tenant.as_str() == "small" => {
                small += 1;
                waiting.push((rig.now(), of("small")));
            }
            Decision::Granted => large += 1,
            Decision::Wait { wait, ticket, .. } => {
                ask.ticket = Some(ticket);
                waiting.push((due(rig, wait), ask));
            }
            other => panic!("{other:?}"),
        }
    }
    let all = large + small;
    assert!(all >= 50, "{all} of 60");
    assert!(small * 100 / all >= 40 && small * 100 / all <= 60, "small {small}, large {large}");
}

async fn what_was_spent_elsewhere_is_charged_once<S: Store>(rig: &Rig<S>) {
    let four_calls = Amounts { requests: 4, ..Amounts::call(300, 100) };
    for _ in 0..3 {
        rig.store.charge(&rig.model, "away:1", 0, four_calls).await.unwrap();
    }
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.used(), seen.in_flight.used), (four_calls, 0));
    assert_eq!(rig.refused(&rig.ask(601)).await.0, Duration::from_secs(60));
}

/// Shares guarantee, they do not forbid: a lane without one still gets a call now and then.
async fn a_lane_without_a_share_is_not_starved<S: Store>(rig: &Rig<S>) {
    let in_lane = |lane| Ask { lane, ..rig.ask(50) };
    let mut waiting = in_lane(0);
    let (mut batch, mut turns) = (0, Vec::new());
    for _ in 0..600 {
        rig.advance(Duration::from_millis(500));
        let mut ask = turns.pop().unwrap_or_else(|| in_lane(1));
        if let Decision::Wait { ticket, .. } = rig.reserve(&ask).await {
            ask.ticket = Some(ticket);
            turns.push(ask);
        }
        match rig.reserve(&waiting).await {
            Decision::Granted => {
                batch += 1;
                waiting = in_lane(0);
            }
            Decision::Wait { ticket, .. } => waiting.ticket = Some(ticket),
            other => panic!("{other:?}"),
        }
    }
    assert!(batch >= 2, "{batch} calls in five minutes");
}

async fn a_raised_limit_moves_the_queue<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(600)).await;
    let mut last = rig.ask(600);
    for _ in 0..10 {
        last = rig.ask(600);
        last.ticket = Some(rig.refused(&last).await.2);
    }
    assert!(rig.refused(&last).await.0 > Duration::from_secs(300), "ten minutes of turns");
    let changes = combined_alone(Change::Set(600_000));
    rig.store.set_limits(&rig.model, &changes).await.unwrap();
    rig.advance(Duration::from_secs(1));
    assert_eq!(rig.reserve(&last).await, Decision::Granted);
}
