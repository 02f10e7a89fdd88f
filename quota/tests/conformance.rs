//! One list of promises, kept by both stores: the mechanism in memory and the scripts in a real Redis.
//! Each begins when a quota has settled down, where nothing else is said: see `Rig::settled_down`.

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

use common::{
    Freezes, PAUSE_TTL, Rig, SECOND, START, both_stores, lanes, limits, model, model_with_lanes,
};
use tidegate_quota::{
    Amounts, Change, DayLimit, Decision, Dimension, Hold, Limits, ModelQuota, PerDimension,
    PerLimit, Store, Ticket,
    plan::Why,
    store::{Ask, LimitChanges, Meter, Pause, ProviderSignal, Settled, Settlement, UsageSample},
};
use tidegate_types::Tenant;

both_stores! {
    // Amounts.
    the_window_holds_exactly_the_limit(model(limits(1_000)));
    a_refusal_names_the_exact_wait_for_the_window(model(limits(1_000)));
    a_refusal_names_the_exact_wait_by_the_rate(model(paced(60_000)));
    of_a_window_so_many_entries_are_looked_at(model(limits(1_000)));
    the_pace_lets_no_minute_go_at_once(model(paced(6_000)));
    every_dimension_holds(model(limits(8_000).with(Dimension::Requests, 10).with(Dimension::Input, 5_000).with(Dimension::Output, 50)));
    what_can_never_fit_is_refused_at_once(model(limits(1_000)));
    a_call_larger_than_the_capacity_goes_when_nothing_is_drawn(model(paced(60_000)));
    no_longer_wait_is_told_than_is_known(model(limits(60_000)));
    // Reservations.
    the_same_reservation_is_admitted_once(model(limits(1_000)));
    an_id_that_is_there_twice_is_admitted_once(model(limits(1_000)));
    a_reservation_is_settled_once(model(limits(1_000)));
    what_is_not_used_is_given_back(model(limits(1_000)));
    an_overshoot_is_a_debt(model(limits(1_000)));
    a_debt_lasts_no_longer_than_a_window(model(paced(1_000)));
    a_lost_call_stays_charged_and_is_not_in_flight(model(Limits { concurrent: Some(1), ..limits(1_000) }));
    what_was_spent_elsewhere_is_charged_once(model(limits(1_000)));
    what_was_spent_elsewhere_brings_the_queue_on(model(paced(60_000)));
    who_settles_is_told_the_room(model(paced(60_000)));
    // Turns.
    turns_are_first_come_first_served(model(paced(60_000)));
    a_newcomer_does_not_overtake(model(limits(1_000)));
    of_calls_asked_about_together_the_first_go_and_the_others_have_turns(model(limits(1_000)));
    a_ticket_of_another_life_comes_first(model(paced(60_000)));
    a_caller_whose_turn_has_gone_by_comes_first(model(paced(60_000)));
    callers_that_never_come_back_hold_up_no_other(model(paced(60_000)));
    callers_that_never_come_back_hold_up_no_other_behind_a_closed_gate(model(paced(60_000)));
    who_leaves_delays_nobody(model(paced(60_000)));
    who_gives_up_delays_nobody(model(paced(60_000)));
    tenants_of_a_lane_get_equal_parts(model(paced(60_000)));
    a_tenant_alone_is_served_as_it_comes(model(paced(60_000)));
    // Lanes.
    a_lane_has_its_share_while_another_takes_all_it_can(three_lanes(limits(1_000)));
    a_lane_in_use_finds_its_standby_and_no_more(three_lanes(limits(1_000)));
    the_first_call_of_an_idle_lane_goes_at_once(three_lanes(limits(1_000)));
    a_lane_borrows_what_no_other_wants(three_lanes(limits(1_000)));
    a_lane_keeps_to_its_ceiling(model_with_lanes(limits(1_000), lanes(&[("batch", 0.5, 0.6)])));
    a_lane_without_a_share_is_not_starved(greedy());
    a_large_document_gets_its_turn_beside_other_lanes(three_lanes(paced(1_000)));
    // The gate.
    a_pause_closes_the_gate_and_never_gets_shorter(model(limits(1_000)));
    a_pause_ends_with_its_time_to_live(model(limits(1_000)));
    a_pause_changes_no_turn(model(paced(60_000)));
    after_a_refusal_one_call_goes_first(model(limits(1_000)));
    a_refused_probe_closes_the_gate_again(model(limits(1_000)));
    a_probe_that_is_answered_opens_the_gate(model(limits(1_000)));
    what_is_exhausted_says_so_until_an_operator_opens_it(model(limits(1_000)));
    // Calls at once.
    calls_at_once_are_bounded(at_once(3));
    a_call_that_outlives_the_window_is_still_in_flight(at_once(2));
    a_lane_has_its_part_of_the_calls_at_once(shared_at_once());
    where_nothing_else_is_limited_too(calls_at_once_alone());
    an_overload_cuts_the_calls_in_flight_and_closes_nothing(model(limits(1_000_000)));
    an_overload_says_nothing_that_was_known(model(limits(1_000_000)));
    // Days.
    a_day_s_limit_ends_with_the_day(model(Limits { requests_per_day: Some(5), ..limits(1_000_000) }));
    tokens_of_a_day_are_settled(model(Limits { tokens_per_day: Some(1_000), ..limits(1_000_000) }));
    // Clocks.
    a_clock_that_steps_back_stands_still(model(limits(1_000)));
    a_clock_set_back_an_hour_freezes_nothing(model(Limits { concurrent: Some(3), ..limits(1_000) }));
    // What is learned.
    expectations_are_learned(model(limits(100_000)));
    what_a_cache_gives_is_learned(model(limits(100_000)));
    models_of_a_group_share_one_quota(model(limits(1_000)).sharing("test:group"));
    // Limits, and the policy behind them.
    limits_set_act_at_once_and_keep_what_is_used(model(limits(1_000)));
    a_raised_limit_moves_the_queue(model(paced(600)));
    a_limit_that_is_set_where_there_was_none_counts_from_then(model(limits(1_000)));
    a_provider_that_states_less_is_believed_for_a_while(model(limits(1_000)));
    a_refusal_lowers_the_rate_and_time_restores_it(model(limits(1_000)));
    use_by_others_counts(model(limits(1_000)));
    the_task_is_handed_to_one_at_a_time_and_a_plan_of_before_is_not_written(model(limits(6_000)));
    the_log_keeps_the_last_observations(model(limits(1_000)));
}

fn paced(combined: u64) -> Limits {
    Limits { burst: Duration::from_secs(1), ..limits(combined) }
}

/// Batch 0, interactive 1, standard 2.
fn three_lanes(limits: Limits) -> ModelQuota {
    let all = [("batch", 0.1, 1.0), ("interactive", 0.6, 1.0), ("standard", 0.3, 1.0)];
    model_with_lanes(limits, lanes(&all))
}

fn greedy() -> ModelQuota {
    model_with_lanes(limits(1_000), lanes(&[("batch", 0.0, 1.0), ("interactive", 1.0, 1.0)]))
}

fn at_once(calls: u64) -> ModelQuota {
    model(Limits { concurrent: Some(calls), lease: Duration::from_secs(120), ..Limits::default() })
}

fn shared_at_once() -> ModelQuota {
    let limits = Limits { concurrent: Some(10), ..limits(1_000_000) };
    model_with_lanes(limits, lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0)]))
}

fn calls_at_once_alone() -> ModelQuota {
    let limits = Limits { concurrent: Some(10), ..Limits::default() };
    model_with_lanes(limits, lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0)]))
}

fn settled_as(ask: &Ask, tokens: u64) -> Settlement {
    Settlement::used(&ask.reservation, Amounts::call(tokens, 0))
}

fn pause(seconds: u64) -> Option<Pause> {
    Some(Pause { length: Duration::from_secs(seconds), reason: "says the provider".to_owned() })
}

async fn refused<S: Store>(rig: &Rig<S>, ask: &Ask, signal: ProviderSignal, pause: Option<Pause>) {
    let settlement = Settlement { signal, pause, ..settled_as(ask, 0) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

/// Gets a turn.
async fn waits<S: Store>(rig: &Rig<S>, ask: Ask) -> (Ask, Duration) {
    let (wait, _, ticket) = rig.refused(&ask).await;
    (Ask { ticket: Some(ticket), ..ask }, wait)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

async fn the_window_holds_exactly_the_limit<S: Store>(rig: &Rig<S>) {
    for _ in 0..10 {
        assert_eq!(rig.reserve(&rig.ask(100)).await, Decision::Granted);
        rig.advance(Duration::from_secs(1));
    }
    let (next, _) = waits(rig, rig.ask(100)).await;
    rig.at(START + 60 * SECOND - 1);
    rig.refused(&next).await;
    rig.at(START + 60 * SECOND);
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "the first has left the window");
    rig.refused(&rig.ask(1)).await;
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 1_000);
}

async fn a_refusal_names_the_exact_wait_for_the_window<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(600)).await;
    rig.advance(Duration::from_secs(7));
    rig.reserve(&rig.ask(400)).await;
    rig.advance(Duration::from_secs(3));
    let mut ask = rig.ask(500);
    let (wait, hold, ticket) = rig.refused(&ask).await;
    assert_eq!((wait, hold), (Duration::from_secs(50), Hold::Window(Dimension::Combined)));
    ask.ticket = Some(ticket);
    rig.advance(wait - Duration::from_micros(1));
    assert_eq!(rig.refused(&ask).await.0, Duration::from_micros(1), "one microsecond too early");
    rig.advance(Duration::from_micros(1));
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
}

async fn a_refusal_names_the_exact_wait_by_the_rate<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    let ask = rig.ask(500);
    let Decision::Wait { wait, hold, deficit, ticket } = rig.reserve(&ask).await else {
        panic!("the second's worth is drawn");
    };
    let level = Hold::Level(Dimension::Combined);
    assert_eq!((wait, hold, deficit), (Duration::from_millis(500), level, 500));
    let next = Ask { ticket: Some(ticket), ..ask };
    let (behind, hold, _) = rig.refused(&rig.ask(300)).await;
    assert_eq!((behind.as_millis(), hold), (800, Hold::Turn), "and a grain");
    rig.advance(wait - Duration::from_micros(1));
    assert_eq!(rig.refused(&next).await.0, Duration::from_micros(1));
    rig.advance(Duration::from_micros(1));
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
}

async fn the_pace_lets_no_minute_go_at_once<S: Store>(rig: &Rig<S>) {
    let (mut admitted, mut turn) = (0, None);
    for _ in 0..300 {
        match rig.reserve(&Ask { ticket: turn, ..rig.ask(10) }).await {
            Decision::Granted => (admitted, turn) = (admitted + 10, None),
            Decision::Wait { ticket, .. } => turn = Some(ticket),
            other => panic!("{other:?}"),
        }
        rig.advance(Duration::from_millis(10));
    }
    // 100 tokens a second, one second ahead.
    assert!((390..=400).contains(&admitted), "{admitted} tokens in three seconds");
}

async fn every_dimension_holds<S: Store>(rig: &Rig<S>) {
    let ask = |input, output| Ask { amounts: Amounts::call(input, output), ..rig.ask(0) };
    assert_eq!(rig.reserve(&ask(0, 41)).await, Decision::Granted);
    assert_eq!(rig.refused(&ask(0, 10)).await.1, Hold::Window(Dimension::Output));
    rig.at(START + 200 * SECOND);
    assert_eq!(rig.reserve(&ask(4_900, 0)).await, Decision::Granted);
    assert_eq!(rig.refused(&ask(101, 0)).await.1, Hold::Window(Dimension::Input));
    rig.at(START + 400 * SECOND);
    for _ in 0..10 {
        assert_eq!(rig.reserve(&ask(1, 1)).await, Decision::Granted);
    }
    assert_eq!(rig.refused(&ask(0, 0)).await.1, Hold::Window(Dimension::Requests));
}

async fn what_can_never_fit_is_refused_at_once<S: Store>(rig: &Rig<S>) {
    let never = Decision::Never { dimension: Dimension::Combined, capacity: 1_000 };
    assert_eq!(rig.reserve(&rig.ask(1_001)).await, never);
    assert_eq!(rig.reserve(&rig.ask(1_000)).await, Decision::Granted);
}

async fn a_call_larger_than_the_capacity_goes_when_nothing_is_drawn<S: Store>(rig: &Rig<S>) {
    assert_eq!(rig.reserve(&rig.ask(400)).await, Decision::Granted);
    let (large, wait) = waits(rig, rig.ask(9_000)).await;
    assert_eq!(wait, Duration::from_millis(400), "until the 400 have refilled");
    rig.advance(wait);
    assert_eq!(rig.reserve(&large).await, Decision::Granted);
    let (_, wait) = waits(rig, rig.ask(1_000)).await;
    assert_eq!(wait, Duration::from_secs(9), "what it took comes back first");
}

async fn no_longer_wait_is_told_than_is_known<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    for _ in 0..30 {
        rig.refused(&rig.ask(1_000)).await;
    }
    assert!(rig.refused(&rig.ask(1_000)).await.0 > Duration::from_secs(25), "an hour is known");
    // Another limit changes no part.
    rig.store.set_limits(&rig.model, &combined_alone(Change::Set(30_000))).await.unwrap();
    let known = rig.store.inspect(&rig.model).await.unwrap().horizon;
    assert_eq!(known, Duration::from_hours(1), "the capacity is the same part of it");
    // A limit that was not there has no past.
    let window = PerDimension { requests: Change::Set(10), ..PerDimension::default() };
    let changes = PerLimit { window, ..PerLimit::default() };
    rig.store.set_limits(&rig.model, &changes).await.unwrap();
    let changed = rig.store.inspect(&rig.model).await.unwrap().horizon;
    assert_eq!(changed, Duration::from_secs(5));
    let mut told = Vec::new();
    for _ in 0..30 {
        told.push(rig.refused(&rig.ask(1_000)).await.0);
    }
    assert!(told.iter().all(|wait| *wait <= changed), "{told:?}");
    assert!(told.is_sorted(), "they do not come back together: {told:?}");
}

async fn the_same_reservation_is_admitted_once<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(400);
    for _ in 0..5 {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    }
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 400);
}

async fn an_id_that_is_there_twice_is_admitted_once<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(400);
    let answers =
        rig.store.reserve_all(&rig.model, &[ask.clone(), ask.clone(), ask]).await.unwrap();
    assert!(answers.iter().all(|(decision, _)| *decision == Decision::Granted));
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 400);
}

async fn a_reservation_is_settled_once<S: Store>(rig: &Rig<S>) {
    let settle = async |settlement| rig.store.settle(&rig.model, &settlement).await.unwrap().0;
    let ask = rig.ask(400);
    rig.reserve(&ask).await;
    assert_eq!(settle(settled_as(&ask, 300)).await, Settled::Done);
    assert_eq!(settle(settled_as(&ask, 100)).await, Settled::Before);
    let late = settle(Settlement::released(&ask.reservation)).await;
    assert_eq!(late, Settled::Before, "a late release frees no real use");
    assert_eq!(settle(settled_as(&rig.ask(1), 100)).await, Settled::Unknown);
    let snapshot = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((snapshot.used().combined, snapshot.lanes[0].in_flight), (300, 0));
    let ask = rig.ask(400);
    rig.reserve(&ask).await;
    assert_eq!(settle(Settlement::released(&ask.reservation)).await, Settled::Done);
    assert_eq!(settle(Settlement::released(&ask.reservation)).await, Settled::Unknown);
    assert_eq!(settle(settled_as(&ask, 9)).await, Settled::Unknown);
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 300);
}

async fn what_is_not_used_is_given_back<S: Store>(rig: &Rig<S>) {
    let (one, other) = (rig.ask(600), rig.ask(400));
    rig.reserve(&one).await;
    rig.reserve(&other).await;
    let (next, _) = waits(rig, rig.ask(500)).await;
    rig.used(&one, 200).await;
    rig.refused(&next).await;
    rig.store.settle(&rig.model, &Settlement::released(&other.reservation)).await.unwrap();
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "800 came back at once");
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 700);
}

async fn an_overshoot_is_a_debt<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(100);
    rig.reserve(&ask).await;
    rig.used(&ask, 1_500).await;
    assert_eq!(rig.refused(&rig.ask(1)).await.0, Duration::from_secs(60));
}

/// One call was estimated at a hundredth of what it used: 96 windows of the pace.
async fn a_debt_lasts_no_longer_than_a_window<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(1_000);
    rig.reserve(&ask).await;
    let (next, _) = waits(rig, rig.ask(10)).await;
    rig.used(&ask, 100_000).await;
    let (wait, ..) = rig.refused(&next).await;
    assert!(wait <= Duration::from_secs(62), "a window, and the capacity: {wait:?}");
    rig.advance(wait);
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
}

/// A time-out: the work may have been done, but its worker waits for it no longer.
async fn a_lost_call_stays_charged_and_is_not_in_flight<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(600);
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    assert_eq!(rig.refused(&rig.ask(100)).await.1, Hold::InFlight);
    let lost = Settlement { signal: ProviderSignal::Lost, ..settled_as(&ask, 600) };
    rig.store.settle(&rig.model, &lost).await.unwrap();
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.in_flight.used, seen.get(Dimension::Combined).used), (0, 600));
    let says = (seen.factor, seen.pause, seen.cap, seen.latency);
    assert_eq!(says, (1.0, Duration::ZERO, None, Duration::ZERO), "it says nothing of limits");
    rig.advance(Duration::from_secs(10));
    assert_eq!(rig.reserve(&rig.ask(100)).await, Decision::Granted);
}

async fn what_was_spent_elsewhere_is_charged_once<S: Store>(rig: &Rig<S>) {
    let four_calls = Amounts { requests: 4, ..Amounts::call(300, 100) };
    let drawn = Amounts { requests: 2, ..Amounts::call(150, 50) };
    for _ in 0..3 {
        rig.store.charge(&rig.model, "away:1", 0, four_calls, drawn).await.unwrap();
    }
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.used(), seen.in_flight.used), (four_calls, 0));
    assert_eq!(rig.refused(&rig.ask(601)).await.0, Duration::from_secs(60), "the window is its");
    assert_eq!(seen.get(Dimension::Combined).ahead, Duration::ZERO);
}

/// Those who went elsewhere are no longer before those who wait here.
async fn what_was_spent_elsewhere_brings_the_queue_on<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    for _ in 0..20 {
        rig.refused(&rig.ask(1_000)).await;
    }
    let (last, before) = waits(rig, rig.ask(1_000)).await;
    let ten = Amounts { requests: 10, ..Amounts::call(10_000, 0) };
    rig.store.charge(&rig.model, "away:1", 0, ten, Amounts::default()).await.unwrap();
    let after = rig.refused(&last).await.0;
    let sooner = before - after;
    assert!((8..=12).contains(&sooner.as_secs()), "{before:?}, and then {after:?}");
}

async fn who_settles_is_told_the_room<S: Store>(rig: &Rig<S>) {
    let (one, other) = (rig.ask(600), rig.ask(300));
    rig.reserve(&one).await;
    rig.reserve(&other).await;
    let room = async |ask: &Ask, tokens| {
        rig.store.settle(&rig.model, &settled_as(ask, tokens)).await.unwrap().2
    };
    assert_eq!(room(&one, 600).await, Duration::from_millis(100));
    assert_eq!(room(&other, 100).await, Duration::from_millis(300));
    rig.store.pause(&rig.model, &pause(9).unwrap()).await.unwrap();
    assert_eq!(room(&other, 100).await, Duration::ZERO, "nothing goes");
}

/// Every caller comes back when told, in any order; large and small are admitted as they first came.
async fn turns_are_first_come_first_served<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    let mut waiting = Vec::new();
    for number in 0..40_u64 {
        let tokens = if number % 7 == 3 { 5_000 } else { 200 + 37 * number };
        let (ask, wait) = waits(rig, rig.ask(tokens)).await;
        waiting.push((rig.now() + micros(wait), number, ask));
        rig.advance(Duration::from_millis(1));
    }
    let (mut order, mut asks) = (Vec::new(), 0);
    while !waiting.is_empty() {
        waiting.sort_by_key(|(due, number, _)| (*due, *number));
        let (due, number, ask) = waiting.remove(0);
        rig.at(due.max(rig.now()));
        asks += 1;
        match rig.reserve(&ask).await {
            Decision::Granted => order.push(number),
            Decision::Wait { wait, ticket, .. } => {
                assert_eq!(Some(ticket), ask.ticket, "a turn is kept");
                waiting.push((rig.now() + micros(wait), number, ask));
            }
            other => panic!("{other:?}"),
        }
        assert!(asks < 1_000, "the queue does not move");
    }
    assert_eq!(order, (0..40).collect::<Vec<_>>());
    assert!(asks <= 40 * 4, "{asks} questions for 40 admissions");
}

async fn a_newcomer_does_not_overtake<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    rig.advance(Duration::from_secs(30));
    let (large, wait) = waits(rig, rig.ask(995)).await;
    rig.advance(wait);
    let (newcomer, hold, _) = rig.refused(&rig.ask(10)).await;
    assert_eq!(hold, Hold::Turn);
    assert!(newcomer > Duration::ZERO);
    assert_eq!(rig.reserve(&large).await, Decision::Granted);
}

async fn of_calls_asked_about_together_the_first_go_and_the_others_have_turns<S: Store>(
    rig: &Rig<S>,
) {
    let mut asks: Vec<Ask> = (0..8).map(|_| rig.ask(200)).collect();
    let all =
        |answers: Vec<_>| answers.into_iter().map(|(decision, _)| decision).collect::<Vec<_>>();
    let answers = all(rig.store.reserve_all(&rig.model, &asks).await.unwrap());
    assert!(answers[..5].iter().all(|decision| *decision == Decision::Granted), "{answers:?}");
    let turns: Vec<_> = answers[5..]
        .iter()
        .map(|decision| match decision {
            Decision::Wait { wait, ticket, .. } => (*wait, ticket.position, *ticket),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(turns.is_sorted_by(|one, next| one.1 < next.1), "{turns:?}");
    // The window has forgotten them: there is room for all who wait.
    rig.advance(Duration::from_secs(75));
    let mut waiting = asks.split_off(5);
    for (ask, (_, _, ticket)) in waiting.iter_mut().zip(turns) {
        ask.ticket = Some(ticket);
    }
    let answers = all(rig.store.reserve_all(&rig.model, &waiting).await.unwrap());
    assert_eq!(answers, [Decision::Granted; 3]);
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.used().combined, seen.lanes[0].waiting), (600, 0));
    assert!(rig.store.reserve_all(&rig.model, &[]).await.unwrap().is_empty());
}

async fn a_ticket_of_another_life_comes_first<S: Store>(rig: &Rig<S>) {
    let of_before = Ticket { epoch: 7, position: 9_000_000_000_000_000 };
    let of_before = |tokens| Ask { ticket: Some(of_before), ..rig.ask(tokens) };
    let decision = rig.reserve(&of_before(1_000)).await;
    assert_eq!(decision, Decision::Granted, "no caller waits, so none is made to wait");
    for _ in 0..5 {
        rig.refused(&rig.ask(1_000)).await;
    }
    let (wait, ..) = rig.refused(&of_before(1_000)).await;
    assert_eq!(wait, Duration::from_secs(1), "it has waited");
    assert!(
        rig.refused(&rig.ask(1_000)).await.0 >= Duration::from_secs(6),
        "and a newcomer has not"
    );
}

/// It was away for longer than it was told, and others went.
async fn a_caller_whose_turn_has_gone_by_comes_first<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str, ask| Ask { tenant: Tenant::new(tenant).unwrap(), ..ask };
    rig.reserve(&rig.ask(1_000)).await;
    let (late, _) = waits(rig, of("late", rig.ask(1_000))).await;
    for _ in 0..30 {
        rig.advance(Duration::from_secs(1));
        let asked = of("others", rig.ask(1_000));
        let _ = rig.reserve(&asked).await;
    }
    let (late, wait) = match rig.reserve(&late).await {
        Decision::Granted => return,
        Decision::Wait { wait, .. } => (late, wait),
        other => panic!("{other:?}"),
    };
    assert!(wait <= Duration::from_secs(1), "{wait:?}");
    let (_, hold, _) = rig.refused(&of("others", rig.ask(500))).await;
    assert_eq!(hold, Hold::Turn, "it is waited for");
    rig.advance(wait);
    assert_eq!(rig.reserve(&late).await, Decision::Granted);
}

async fn callers_that_never_come_back_hold_up_no_other<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    for _ in 0..100 {
        rig.refused(&rig.ask(1_000)).await;
    }
    let (ask, wait) = waits(rig, rig.ask(1_000)).await;
    assert!((90..=102).contains(&wait.as_secs()), "a hundred turns of a second: {wait:?}");
    // Nothing goes meanwhile: what nobody came for brings the queue on.
    rig.advance(wait + Duration::from_millis(1));
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    rig.advance(Duration::from_secs(1));
    assert_eq!(rig.reserve(&rig.ask(1_000)).await, Decision::Granted);
}

async fn callers_that_never_come_back_hold_up_no_other_behind_a_closed_gate<S: Store>(
    rig: &Rig<S>,
) {
    let first = rig.ask(900);
    rig.reserve(&first).await;
    refused(rig, &first, ProviderSignal::Refused, pause(20)).await;
    for _ in 0..10 {
        let decision = rig.reserve(&rig.ask(900)).await;
        assert!(matches!(decision, Decision::Paused { ticket: Some(_), .. }), "{decision:?}");
    }
    rig.advance(Duration::from_secs(10));
    let mut ask = rig.ask(900);
    let (start, mut due) = (rig.now(), rig.now());
    loop {
        rig.at(due);
        match rig.reserve(&ask).await {
            Decision::Granted => break,
            Decision::Paused { wait, ticket } => {
                (ask.ticket, due) = (ticket.or(ask.ticket), due + micros(wait));
            }
            Decision::Wait { wait, ticket, .. } => {
                (ask.ticket, due) = (Some(ticket), due + micros(wait));
            }
            other => panic!("{other:?}"),
        }
    }
    let took = (rig.now() - start) / SECOND;
    assert!(took <= 10 + 12, "the gate, and ten turns of 0.9 s that nobody comes for: {took} s");
}

/// A batch of a hundred seconds is cancelled. The tenant's next call does not wait for those that
/// never come, and another tenant's keeps its turn.
async fn who_leaves_delays_nobody<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str, ask| Ask { tenant: Tenant::new(tenant).unwrap(), ..ask };
    while rig.reserve(&of("cancels", rig.ask(1_000))).await == Decision::Granted {}
    for _ in 0..100 {
        rig.refused(&of("cancels", rig.ask(1_000))).await;
    }
    let (stays, _) = waits(rig, of("stays", rig.ask(1_000))).await;
    let late = rig.refused(&of("cancels", rig.ask(1_000))).await.0;
    assert!(late > Duration::from_secs(60), "{late:?}");
    for _ in 0..2 {
        rig.store.leave(&rig.model, 0, &Tenant::new("cancels").unwrap()).await.unwrap();
    }
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert!(seen.lanes[0].queue < Duration::from_secs(5), "{:?}", seen.lanes);
    let (newcomer, soon) = waits(rig, of("cancels", rig.ask(1_000))).await;
    assert!(soon < Duration::from_secs(3), "{soon:?}");
    rig.advance(Duration::from_secs(4));
    for ask in [stays, newcomer] {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.advance(Duration::from_secs(2));
    }
}

/// A hundred callers wait and hang up, but for one. It, and whoever comes next, wait for none of them.
async fn who_gives_up_delays_nobody<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(waits(rig, rig.ask(1_000)).await.0);
    }
    let stays = waiting.remove(50);
    for ask in &waiting {
        rig.store.give_up(&rig.model, ask).await.unwrap();
    }
    let (newcomer, soon) = waits(rig, rig.ask(1_000)).await;
    assert!(soon < Duration::from_secs(4), "{soon:?}");
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert!(seen.lanes[0].queue < Duration::from_secs(4), "{:?}", seen.lanes);
    rig.advance(Duration::from_secs(2));
    assert_eq!(rig.reserve(&stays).await, Decision::Granted);
    rig.advance(Duration::from_secs(2));
    // But for what is rounded.
    if let Decision::Wait { wait, .. } = rig.reserve(&newcomer).await {
        assert!(wait <= Duration::from_millis(1), "{wait:?}");
    }
}

/// One tenant has a thousand documents waiting, another comes later with a few at a time: each gets
/// its half.
async fn tenants_of_a_lane_get_equal_parts<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str| Ask { tenant: Tenant::new(tenant).unwrap(), ..rig.ask(1_000) };
    while rig.reserve(&of("large")).await == Decision::Granted {}
    let mut waiting: Vec<(u64, Ask)> = Vec::new();
    for _ in 0..300 {
        let (ask, wait) = waits(rig, of("large")).await;
        waiting.push((rig.now() + micros(wait), ask));
    }
    let (mut large, mut small, start) = (0, 0, rig.now());
    for _ in 0..5 {
        waiting.push((start, of("small")));
    }
    while rig.now() < start + 59 * SECOND {
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
                waiting.push((rig.now() + micros(wait), ask));
            }
            other => panic!("{other:?}"),
        }
    }
    let all = large + small;
    assert!(all >= 50, "{all} of 59");
    assert!(small * 100 / all >= 40 && small * 100 / all <= 60, "small {small}, large {large}");
}

/// One that has had much is not made to wait for it later.
async fn a_tenant_alone_is_served_as_it_comes<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str| Ask { tenant: Tenant::new(tenant).unwrap(), ..rig.ask(500) };
    for _ in 0..20 {
        assert_eq!(rig.reserve(&of("alone")).await, Decision::Granted);
        rig.advance(Duration::from_millis(500));
    }
    assert_eq!(rig.reserve(&of("another")).await, Decision::Granted);
    assert_eq!(rig.reserve(&of("alone")).await, Decision::Granted);
    let (first, _) = waits(rig, of("alone")).await;
    let (second, _) = waits(rig, of("another")).await;
    rig.advance(Duration::from_millis(1_001));
    for ask in [first, second] {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    }
}

async fn a_lane_has_its_share_while_another_takes_all_it_can<S: Store>(rig: &Rig<S>) {
    let ask = |lane| Ask { lane, ..rig.ask(10) };
    let (mut interactive, callers) = (0, [1, 1, 1, 1, 1, 0, 0]);
    let mut waiting = [None; 7];
    for _ in 0..240 {
        rig.advance(Duration::from_millis(500));
        for (caller, lane) in callers.into_iter().enumerate() {
            match rig.reserve(&Ask { ticket: waiting[caller], ..ask(lane) }).await {
                Decision::Granted => {
                    interactive += 10 * lane;
                    waiting[caller] = None;
                }
                Decision::Wait { ticket, .. } => waiting[caller] = Some(ticket),
                other => panic!("{other:?}"),
            }
        }
    }
    let lanes = rig.store.inspect(&rig.model).await.unwrap().lanes;
    let share = lanes[1].used.combined;
    assert!(share >= 580, "interactive has {share} of its 600 ({interactive} in all)");
    assert!(lanes[0].used.combined >= 80, "batch is not starved: {:?}", lanes[0]);
}

/// A fifth of its share of the capacity: 120 of 1,000.
async fn a_lane_in_use_finds_its_standby_and_no_more<S: Store>(rig: &Rig<S>) {
    let interactive = |tokens| Ask { lane: 1, ..rig.ask(tokens) };
    assert_eq!(rig.reserve(&interactive(10)).await, Decision::Granted);
    rig.advance(Duration::from_secs(30));
    let batch = fills(rig, &|| rig.ask(10)).await;
    assert_eq!(batch, 870, "all but its standby, and one call of the other lane");
    assert_eq!(rig.refused(&rig.ask(10)).await.1, Hold::Turn);
    let found = fills(rig, &|| interactive(10)).await;
    assert!((120..=130).contains(&found), "{found}");
    let (_, hold, _) = rig.refused(&interactive(1)).await;
    assert!(matches!(hold, Hold::Turn | Hold::Lane), "{hold:?}");
}

async fn the_first_call_of_an_idle_lane_goes_at_once<S: Store>(rig: &Rig<S>) {
    let batch = fills(rig, &|| rig.ask(10)).await;
    assert_eq!(batch, 980, "all but one call of each of the other two");
    let found = fills(rig, &|| Ask { lane: 1, ..rig.ask(10) }).await;
    assert_eq!(found, 10);
}

/// Asks until it has to wait: the tokens that were granted, in calls of ten.
async fn fills<S: Store>(rig: &Rig<S>, ask: &impl Fn() -> Ask) -> u64 {
    let mut granted = 0;
    while rig.reserve(&ask()).await == Decision::Granted {
        granted += 10;
    }
    granted
}

async fn a_lane_borrows_what_no_other_wants<S: Store>(rig: &Rig<S>) {
    let (mut batch, mut ticket) = (0, None);
    while rig.now() < START + 15 * SECOND {
        match rig.reserve(&Ask { ticket, ..rig.ask(10) }).await {
            Decision::Granted => (batch, ticket) = (batch + 10, None),
            Decision::Wait { ticket: turn, .. } => {
                ticket = Some(turn);
                rig.advance(Duration::from_millis(100));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(batch, 1_000);
}

async fn a_lane_keeps_to_its_ceiling<S: Store>(rig: &Rig<S>) {
    let never = Decision::Never { dimension: Dimension::Combined, capacity: 600 };
    assert_eq!(rig.reserve(&rig.ask(601)).await, never);
    let mut batch = 0;
    while rig.reserve(&rig.ask(10)).await == Decision::Granted {
        batch += 10;
    }
    assert_eq!(batch, 600);
    assert_eq!(rig.refused(&rig.ask(10)).await.1, Hold::Turn);
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

/// Small calls of one lane fill the model for half an hour; a call of six tenths of the limit waits in a
/// lane that is guaranteed one: within eight minutes it goes, and the others go on meanwhile.
async fn a_large_document_gets_its_turn_beside_other_lanes<S: Store>(rig: &Rig<S>) {
    let small = |ticket| Ask { lane: 1, ticket, ..rig.ask(50) };
    let mut callers: Vec<(u64, Ask)> = (0..40).map(|_| (START, small(None))).collect();
    let mut large = rig.ask(600);
    let (mut asks_at, mut served) = (START + 60 * SECOND, 0);
    for second in 0..1_800 {
        rig.at(START + second * SECOND);
        for (at, ask) in callers.iter_mut().filter(|(at, _)| *at <= rig.now()) {
            match rig.reserve(ask).await {
                Decision::Granted => (*ask, served) = (small(None), served + 1),
                Decision::Wait { wait, ticket, .. } => {
                    ask.ticket = Some(ticket);
                    *at = rig.now() + micros(wait) / 20 * 17;
                }
                other => panic!("{other:?}"),
            }
        }
        if rig.now() >= asks_at {
            match rig.reserve(&large).await {
                Decision::Granted => {
                    assert!(second < 8 * 60, "after {second} s");
                    assert!(served > 50, "the others were held up: {served}");
                    return;
                }
                Decision::Wait { wait, ticket, .. } => {
                    large.ticket = Some(ticket);
                    asks_at = rig.now() + micros(wait) / 20 * 17;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("it never went");
}

async fn a_pause_closes_the_gate_and_never_gets_shorter<S: Store>(rig: &Rig<S>) {
    let close = async |seconds| {
        rig.store.pause(&rig.model, &pause(seconds).unwrap()).await.unwrap().as_secs()
    };
    assert_eq!((close(20).await, close(5).await), (20, 20));
    let decision = rig.reserve(&rig.ask(1)).await;
    let wait = Duration::from_secs(20);
    assert!(
        matches!(decision, Decision::Paused { wait: told, ticket: Some(_) } if told == wait),
        "{decision:?}"
    );
    let snapshot = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((snapshot.pause, snapshot.reason.as_str()), (wait, "says the provider"));
    rig.advance(wait);
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    close(20).await;
    rig.store.resume(&rig.model).await.unwrap();
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
}

async fn a_pause_ends_with_its_time_to_live<S: Store>(rig: &Rig<S>) {
    let day = Pause { length: Duration::from_hours(24), reason: "retry-after".to_owned() };
    assert_eq!(rig.store.pause(&rig.model, &day).await.unwrap(), PAUSE_TTL);
    rig.advance(PAUSE_TTL);
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
}

async fn a_pause_changes_no_turn<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    let (one, _) = waits(rig, rig.ask(1_000)).await;
    let (other, _) = waits(rig, rig.ask(1_000)).await;
    rig.store.pause(&rig.model, &pause(10).unwrap()).await.unwrap();
    rig.advance(Duration::from_secs(10));
    let (wait, hold, _) = rig.refused(&rig.ask(1_000)).await;
    assert_eq!((wait, hold), (Duration::from_secs(2), Hold::Turn));
    assert_eq!(rig.reserve(&one).await, Decision::Granted);
    assert_eq!(rig.refused(&other).await.0, Duration::from_secs(1));
}

/// Half of the limit has gone well, and an hour later a call is refused.
async fn is_refused<S: Store>(rig: &Rig<S>) {
    for _ in 0..2 {
        let ask = rig.ask(500);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.advance(Duration::from_mins(1));
        rig.used(&ask, 500).await;
        rig.advance(Duration::from_secs(1));
    }
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask, ProviderSignal::Refused, pause(20)).await;
}

async fn after_a_refusal_one_call_goes_first<S: Store>(rig: &Rig<S>) {
    is_refused(rig).await;
    assert!(matches!(rig.reserve(&rig.ask(10)).await, Decision::Paused { .. }));
    rig.advance(Duration::from_secs(20));
    let probe = rig.ask(10);
    assert_eq!(rig.reserve(&probe).await, Decision::Granted);
    let (wait, hold, _) = rig.refused(&rig.ask(9)).await;
    assert_eq!((wait, hold), (Duration::from_micros(700_000), Hold::Probe));
    rig.advance(wait);
    let (wait, hold, _) = rig.refused(&rig.ask(9)).await;
    assert_eq!(hold, Hold::Turn, "there was room for one, and what refills since the gate is open");
    assert!(wait <= Duration::from_secs(2), "{wait:?}");
}

async fn a_probe_that_is_answered_opens_the_gate<S: Store>(rig: &Rig<S>) {
    is_refused(rig).await;
    rig.advance(Duration::from_secs(20));
    let probe = rig.ask(10);
    rig.reserve(&probe).await;
    assert_eq!(rig.refused(&rig.ask(5)).await.1, Hold::Probe);
    rig.advance(Duration::from_millis(400));
    rig.used(&probe, 1).await;
    assert_eq!(rig.reserve(&rig.ask(5)).await, Decision::Granted);
}

async fn a_refused_probe_closes_the_gate_again<S: Store>(rig: &Rig<S>) {
    is_refused(rig).await;
    rig.advance(Duration::from_secs(20));
    let probe = rig.ask(10);
    assert_eq!(rig.reserve(&probe).await, Decision::Granted);
    rig.advance(Duration::from_millis(200));
    let before = rig.store.inspect(&rig.model).await.unwrap().factor;
    refused(rig, &probe, ProviderSignal::Refused, pause(30)).await;
    let decision = rig.reserve(&rig.ask(10)).await;
    assert!(
        matches!(decision, Decision::Paused { wait, .. } if wait == Duration::from_secs(30)),
        "{decision:?}"
    );
    let after = rig.store.inspect(&rig.model).await.unwrap().factor;
    assert!(after >= before, "it says nothing of the rate: {before}, {after}");
    rig.advance(Duration::from_secs(50));
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted, "the next one");
    assert_eq!(rig.refused(&rig.ask(1)).await.1, Hold::Probe);
}

async fn what_is_exhausted_says_so_until_an_operator_opens_it<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask, ProviderSignal::Exhausted, pause(10 * 3_600)).await;
    rig.advance(Duration::from_hours(1));
    let wait = Duration::from_hours(9);
    let decision = rig.reserve(&rig.ask(10)).await;
    assert_eq!(decision, Decision::Exhausted { wait, day: None }, "longer than any pause");
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    let says = (seen.exhausted, seen.pause, seen.reason.as_str());
    assert_eq!(says, (true, wait, "says the provider"));
    rig.store.resume(&rig.model).await.unwrap();
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
}

async fn calls_at_once_are_bounded<S: Store>(rig: &Rig<S>) {
    let all: Vec<Ask> = (0..3).map(|_| rig.ask(1)).collect();
    for ask in &all {
        assert_eq!(rig.reserve(ask).await, Decision::Granted);
    }
    let (next, wait) = waits(rig, rig.ask(1)).await;
    assert_eq!(wait, Duration::from_millis(250), "how long calls take is not known");
    rig.advance(Duration::from_secs(6));
    rig.used(&all[0], 1).await;
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "a place came free");
    let (wait, hold, _) = rig.refused(&rig.ask(1)).await;
    assert_eq!(
        (wait, hold),
        (Duration::from_secs(2), Hold::InFlight),
        "one of three that take 6 s"
    );
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().in_flight.used, 3);
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
    let in_flight = rig.store.inspect(&rig.model).await.unwrap().in_flight.used;
    assert_eq!(in_flight, 1, "the dead worker's place came back, the living one's not");
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    assert_eq!(rig.refused(&rig.ask(1)).await.1, Hold::InFlight);
    // This provider counts output when the call ends: 70 tokens now, though the call began 150 s
    // ago.
    for _ in 0..2 {
        let settlement = Settlement::used(&long.reservation, Amounts::call(30, 70));
        rig.store.settle(&rig.model, &settlement).await.unwrap();
        let seen = rig.store.inspect(&rig.model).await.unwrap();
        assert_eq!((seen.in_flight.used, seen.used()), (1, Amounts::call(1, 70)), "once");
    }
}

async fn a_lane_has_its_part_of_the_calls_at_once<S: Store>(rig: &Rig<S>) {
    let in_lane = |lane| Ask { lane, ..rig.ask(1) };
    let mut batch = Vec::new();
    loop {
        let ask = in_lane(0);
        if rig.reserve(&ask).await != Decision::Granted {
            break;
        }
        batch.push(ask);
    }
    assert_eq!(batch.len(), 10, "no other wants any");
    let (interactive, _) = waits(rig, in_lane(1)).await;
    for ask in &batch[..3] {
        rig.used(ask, 1).await;
    }
    let (_, hold, _) = rig.refused(&in_lane(0)).await;
    assert_eq!(hold, Hold::InFlight, "six are interactive's, which waits");
    assert_eq!(rig.reserve(&interactive).await, Decision::Granted);
}

/// The same; and a caller that is gone holds no place for its lane.
async fn where_nothing_else_is_limited_too<S: Store>(rig: &Rig<S>) {
    a_lane_has_its_part_of_the_calls_at_once(rig).await;
    let batch = || Ask { lane: 0, ..rig.ask(1) };
    let (one, other) = (batch(), batch());
    assert_eq!(rig.reserve(&one).await, Decision::Granted);
    assert_eq!(rig.reserve(&other).await, Decision::Granted);
    waits(rig, Ask { lane: 1, ..rig.ask(1) }).await;
    rig.advance(Duration::from_secs(1));
    rig.used(&one, 1).await;
    assert_eq!(rig.refused(&batch()).await.1, Hold::InFlight, "interactive waits");
    rig.advance(Duration::from_secs(2));
    assert_eq!(rig.reserve(&batch()).await, Decision::Granted, "it does not come");
}

async fn an_overload_cuts_the_calls_in_flight_and_closes_nothing<S: Store>(rig: &Rig<S>) {
    let mut all: Vec<Ask> = Vec::new();
    for _ in 0..100 {
        let ask = rig.ask(10);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        all.push(ask);
    }
    refused(rig, &all.pop().unwrap(), ProviderSignal::Overloaded, None).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((seen.cap, seen.in_flight.used, seen.pause), (Some(50), 99, Duration::ZERO));
    assert_eq!(rig.refused(&rig.ask(10)).await.1, Hold::InFlight);
    rig.advance(Duration::from_secs(1));
    let mut caps = Vec::new();
    for ask in all.drain(..) {
        rig.used(&ask, 10).await;
        caps.push(rig.store.inspect(&rig.model).await.unwrap().cap.unwrap());
    }
    // A twentieth of what was in flight for each time that all have been round.
    assert!(caps.is_sorted() && caps[49] == 54 && caps[98] == 59, "{caps:?}");
    for _ in 0..700 {
        let ask = rig.ask(1);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.used(&ask, 1).await;
    }
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().cap, None);
}

async fn an_overload_says_nothing_that_was_known<S: Store>(rig: &Rig<S>) {
    let all: Vec<Ask> = (0..8).map(|_| rig.ask(10)).collect();
    for ask in &all {
        assert_eq!(rig.reserve(ask).await, Decision::Granted);
    }
    rig.advance(Duration::from_secs(1));
    for ask in &all {
        refused(rig, ask, ProviderSignal::Overloaded, None).await;
        assert_eq!(rig.store.inspect(&rig.model).await.unwrap().cap, Some(4));
    }
    rig.advance(Duration::from_secs(1));
    let later = rig.ask(10);
    rig.reserve(&later).await;
    refused(rig, &later, ProviderSignal::Overloaded, None).await;
    let cap = rig.store.inspect(&rig.model).await.unwrap().cap;
    assert_eq!(cap, Some(1), "only one was in flight");
}

async fn a_day_s_limit_ends_with_the_day<S: Store>(rig: &Rig<S>) {
    for _ in 0..5 {
        assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
    }
    let left = Duration::from_micros(86_400 * SECOND - START % (86_400 * SECOND));
    let spent = Decision::Exhausted { wait: left, day: Some(DayLimit::Requests) };
    assert_eq!(rig.reserve(&rig.ask(10)).await, spent);
    rig.advance(left - Duration::from_micros(1));
    assert!(matches!(rig.reserve(&rig.ask(10)).await, Decision::Exhausted { .. }));
    rig.advance(Duration::from_micros(1));
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted, "a new day");
}

async fn tokens_of_a_day_are_settled<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(900);
    rig.reserve(&ask).await;
    let spent = rig.reserve(&rig.ask(200)).await;
    assert!(matches!(spent, Decision::Exhausted { day: Some(DayLimit::Tokens), .. }), "{spent:?}");
    rig.used(&ask, 500).await;
    assert_eq!(rig.reserve(&rig.ask(200)).await, Decision::Granted);
    rig.advance(Duration::from_hours(1));
    let tokens = rig.store.inspect(&rig.model).await.unwrap().day_tokens;
    assert_eq!(tokens, 700, "an hour's silence forgets nothing of the day");
}

async fn a_clock_that_steps_back_stands_still<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    rig.at(START - 30 * SECOND);
    assert_eq!(rig.refused(&rig.ask(1)).await.0, Duration::from_secs(60));
    rig.at(START + 60 * SECOND);
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 0);
}

/// A failover to a server whose clock is behind: time goes on from there.
async fn a_clock_set_back_an_hour_freezes_nothing<S: Store>(rig: &Rig<S>) {
    let (long, short) = (rig.ask(1), rig.ask(999));
    rig.reserve(&long).await;
    rig.advance(Duration::from_secs(61));
    rig.reserve(&short).await;
    let (next, _) = waits(rig, rig.ask(900)).await;
    rig.store.pause(&rig.model, &pause(30).unwrap()).await.unwrap();
    rig.at(START - 3_600 * SECOND);
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.pause, Duration::from_secs(30), "the gate is closed for as long as before");
    assert_eq!((seen.used().combined, seen.in_flight.used), (999, 2));
    rig.advance(Duration::from_secs(59));
    assert!(rig.refused(&next).await.0 <= Duration::from_secs(31), "the turn is kept");
    rig.advance(Duration::from_secs(31));
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "the window has passed");
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 900);
    // The policy goes on, too: a refusal is learned from.
    refused(rig, &next, ProviderSignal::Refused, None).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.get(Dimension::Combined).plan.unwrap().rate.why, Why::Refused);
    rig.advance(Duration::from_secs(100));
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().in_flight.used, 0, "leases end too");
}

async fn expectations_are_learned<S: Store>(rig: &Rig<S>) {
    // Long calls count by their latency: (100 × 1 s + 400 × 9 s) / 10 s = 370 tokens, where a plain
    // mean says 250.
    let mut last = None;
    for round in 0..20_u64 {
        let ask = rig.ask(100);
        rig.reserve(&ask).await;
        let (latency, output) = if round % 2 == 0 { (1, 100) } else { (9, 400) };
        rig.advance(Duration::from_secs(latency));
        let sample = UsageSample { estimated_input: 1_000, input: 1_250, output };
        let settlement = Settlement { sample: Some(sample), ..settled_as(&ask, 100) };
        last = rig.store.settle(&rig.model, &settlement).await.unwrap().1;
        assert!(last.is_some(), "one call teaches");
    }
    let learned = last.unwrap();
    assert!((learned.input_ratio - 1.25).abs() < 1e-6, "{learned:?}");
    // The first, which is a short one, has counted twice.
    assert!((367..=374).contains(&learned.output), "{learned:?}");
}

/// What a cache gives is learned from hits, and lapses with the first miss.
async fn what_a_cache_gives_is_learned<S: Store>(rig: &Rig<S>) {
    let call = async |cached| {
        let ask = rig.ask(100);
        rig.reserve(&ask).await;
        rig.advance(Duration::from_secs(1));
        let sample = UsageSample { estimated_input: 1_000, input: 1_000, output: 10 };
        let settlement = Settlement { sample: Some(sample), cached, ..settled_as(&ask, 100) };
        let known = rig.store.settle(&rig.model, &settlement).await.unwrap().1;
        known.map_or(0, |known| known.cached)
    };
    for _ in 0..10 {
        call(Some(800)).await;
    }
    let learned = call(Some(800)).await;
    assert!((790..=800).contains(&learned), "{learned}");
    assert_eq!(call(None).await, learned, "what is not known teaches nothing");
    assert_eq!(call(Some(0)).await, 0, "a miss");
    assert_eq!(call(Some(800)).await, 400, "and the first hit after it");
}

/// What one model uses the other has no more; what calls use is learned of each.
async fn models_of_a_group_share_one_quota<S: Store>(rig: &Rig<S>) {
    let other = ModelQuota { id: "test:other".parse().unwrap(), ..rig.model.clone() };
    for _ in 0..3 {
        let ask = rig.ask(1);
        rig.store.reserve(&rig.model, &ask).await.unwrap();
        let sample = UsageSample { estimated_input: 1, input: 1, output: 7 };
        let used = Settlement::used(&ask.reservation, ask.amounts);
        let settlement = Settlement { sample: Some(sample), ..used };
        rig.store.settle(&rig.model, &settlement).await.unwrap();
    }
    let known = async |model: &ModelQuota| {
        let ask = Ask { curious: true, ..rig.ask(1) };
        rig.store.reserve(model, &ask).await.unwrap().1.is_some()
    };
    assert_eq!((known(&rig.model).await, known(&other).await), (true, false));
    assert_eq!(rig.reserve(&rig.ask(600)).await, Decision::Granted);
    let (decision, _) = rig.store.reserve(&other, &rig.ask(600)).await.unwrap();
    assert!(matches!(decision, Decision::Wait { .. }), "{decision:?}");
    rig.store.pause(&other, &pause(9).unwrap()).await.unwrap();
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().pause, Duration::from_secs(9));
}

fn combined_alone(change: Change) -> LimitChanges {
    let window = PerDimension { combined: change, ..PerDimension::default() };
    PerLimit { window, ..PerLimit::default() }
}

async fn limit<S: Store>(rig: &Rig<S>) -> u64 {
    rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined).limit
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
    assert_eq!(combined.plan.unwrap().rate.why, Why::Set);
    let wait = rig.refused(&rig.ask(1)).await.0;
    assert_eq!(wait, Duration::from_secs(60), "nothing fits until the use has left the window");
    set(Change::Set(2_000)).await;
    rig.advance(Duration::from_secs(61));
    assert_eq!(rig.reserve(&rig.ask(1_900)).await, Decision::Granted);
    rig.advance(Duration::from_hours(1));
    assert_eq!(limit(rig).await, 2_000, "an hour's silence forgets nothing");
    set(Change::Clear).await;
    assert_eq!(limit(rig).await, 1_000, "as configured");
}

async fn a_raised_limit_moves_the_queue<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(600)).await;
    let mut last = rig.ask(600);
    for _ in 0..10 {
        last = waits(rig, rig.ask(600)).await.0;
    }
    assert!(rig.refused(&last).await.0 > Duration::from_secs(300), "ten minutes of turns");
    let changes = combined_alone(Change::Set(600_000));
    rig.store.set_limits(&rig.model, &changes).await.unwrap();
    let wait = rig.refused(&last).await.0;
    assert!(wait < Duration::from_secs(60), "{wait:?}");
    rig.advance(wait);
    assert_eq!(rig.reserve(&last).await, Decision::Granted);
}

/// What was used while nothing was limited is no debt.
async fn a_limit_that_is_set_where_there_was_none_counts_from_then<S: Store>(rig: &Rig<S>) {
    for _ in 0..200 {
        assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    }
    let window = PerDimension { requests: Change::Set(300), ..PerDimension::default() };
    let changes = PerLimit { window, ..PerLimit::default() };
    rig.store.set_limits(&rig.model, &changes).await.unwrap();
    for _ in 0..100 {
        assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    }
    assert_eq!(rig.refused(&rig.ask(1)).await.1, Hold::Window(Dimension::Requests));
}

async fn a_provider_that_states_less_is_believed_for_a_while<S: Store>(rig: &Rig<S>) {
    let state = async |stated| {
        rig.advance(Duration::from_secs(1));
        let ask = rig.ask(1);
        rig.reserve(&ask).await;
        let limits = PerDimension { combined: Some(stated), ..PerDimension::default() };
        let meter = Meter { limits, ..Meter::default() };
        let settlement = Settlement { meter, ..settled_as(&ask, 1) };
        rig.store.settle(&rig.model, &settlement).await.unwrap();
        limit(rig).await
    };
    assert_eq!(state(5_000).await, 1_000, "never more than is configured");
    assert_eq!(state(400).await, 400);
    let never = Decision::Never { dimension: Dimension::Combined, capacity: 400 };
    assert_eq!(rig.reserve(&rig.ask(401)).await, never);
    assert_eq!(state(1_000).await, 1_000, "the tier was raised again");
    // Where nothing fits into it nothing would ever be heard again.
    assert_eq!(state(1).await, 1);
    rig.advance(Duration::from_secs(121));
    rig.store.settle(&rig.model, &Settlement::released("nothing")).await.unwrap();
    assert_eq!(limit(rig).await, 1_000);
}

async fn a_refusal_lowers_the_rate_and_time_restores_it<S: Store>(rig: &Rig<S>) {
    is_refused(rig).await;
    assert_eq!(limit(rig).await, 975);
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.get(Dimension::Combined).plan.unwrap().rate.why, Why::Refused);
    assert!((seen.factor - 0.975).abs() < 1e-9, "{}", seen.factor);
    rig.advance(Duration::from_secs(48));
    rig.store.settle(&rig.model, &Settlement::released("nothing")).await.unwrap();
    assert_eq!(limit(rig).await, 985, "all of it in two minutes");
    rig.advance(Duration::from_secs(120));
    rig.store.settle(&rig.model, &Settlement::released("nothing")).await.unwrap();
    assert_eq!(limit(rig).await, 1_000, "and never above the configured limit");
}

async fn use_by_others_counts<S: Store>(rig: &Rig<S>) {
    rig.advance(Duration::from_secs(1));
    let ask = rig.ask(100);
    rig.reserve(&ask).await;
    let used = PerDimension { combined: Some(700), ..PerDimension::default() };
    let meter = Meter { used, ..Meter::default() };
    let settlement = Settlement { meter, ..settled_as(&ask, 100) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
    let seen = *rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined);
    assert_eq!((seen.used, seen.others), (100, 600));
    let (ask, wait) = waits(rig, rig.ask(400)).await;
    assert_eq!(wait, Duration::from_secs(6), "100 too many at 1,000 a minute");
    rig.advance(wait);
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
}

/// A settlement that changes nothing, and may be handed the policy's task.
async fn room<S: Store>(rig: &Rig<S>) {
    rig.store.settle(&rig.model, &Settlement::released("nothing")).await.unwrap();
}

async fn the_task_is_handed_to_one_at_a_time_and_a_plan_of_before_is_not_written<
    S: Store + Freezes,
>(
    rig: &Rig<S>,
) {
    rig.store.freeze(true);
    let tasks_of = async |seconds: &[f64]| {
        for after in seconds {
            rig.advance(Duration::from_secs_f64(*after));
            room(rig).await;
        }
        rig.store.thaw(&rig.model, false).await
    };
    let done = tasks_of(&[0.2, 0.04, 0.02, 1.9, 0.09]).await;
    assert_eq!(done, [true], "a quarter of a second after the last; then for two seconds none");
    let done = tasks_of(&[0.3, 1.9, 0.2, 0.1]).await;
    assert_eq!(done, [true, false], "one that is not done goes to another, and the first wins");
    // After a refusal at once.
    let ask = rig.ask(1);
    rig.reserve(&ask).await;
    let refused = Settlement {
        signal: ProviderSignal::Refused,
        ..Settlement::used(&ask.reservation, Amounts::default())
    };
    rig.store.settle(&rig.model, &refused).await.unwrap();
    assert_eq!(tasks_of(&[]).await, [true]);
    assert_eq!(tasks_of(&[0.1]).await, [true; 0], "it has been read");
    // One that is killed holds up the next for as long as one that is frozen.
    rig.advance(Duration::from_secs(1));
    room(rig).await;
    assert_eq!(rig.store.thaw(&rig.model, true).await, [true; 0]);
    assert_eq!(tasks_of(&[1.9]).await, [true; 0]);
    assert_eq!(tasks_of(&[0.2]).await, [true]);
}

/// What falls out of the log is unknown to the policy.
async fn the_log_keeps_the_last_observations<S: Store + Freezes>(rig: &Rig<S>) {
    let lowers = async |readings: u64| {
        rig.advance(Duration::from_hours(1));
        room(rig).await;
        let before = rig.store.inspect(&rig.model).await.unwrap().factor;
        rig.advance(Duration::from_secs(1));
        rig.store.freeze(true);
        room(rig).await;
        let all: Vec<Ask> = (0..=readings).map(|_| rig.ask(1)).collect();
        for ask in &all {
            assert_eq!(rig.reserve(ask).await, Decision::Granted);
        }
        refused(rig, &all[0], ProviderSignal::Refused, None).await;
        let used = PerDimension { combined: Some(1), ..PerDimension::default() };
        for ask in &all[1..] {
            let meter = Meter { used, ..Meter::default() };
            let settlement = Settlement { meter, ..settled_as(ask, 1) };
            rig.store.settle(&rig.model, &settlement).await.unwrap();
        }
        rig.store.thaw(&rig.model, true).await;
        rig.advance(Duration::from_secs(5));
        room(rig).await;
        rig.store.freeze(false);
        assert_eq!(rig.store.thaw(&rig.model, false).await, [true]);
        rig.store.inspect(&rig.model).await.unwrap().factor < before
    };
    // So that the next refusal is no deeper than what went well.
    is_refused(rig).await;
    rig.store.resume(&rig.model).await.unwrap();
    assert_eq!((lowers(40).await, lowers(60).await), (true, false));
}

/// A hundred calls went at a tenth of a second each. When 48 of them leave is known; what is needed
/// beyond them comes at the rate.
async fn of_a_window_so_many_entries_are_looked_at<S: Store>(rig: &Rig<S>) {
    for _ in 0..100 {
        assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted);
        rig.advance(Duration::from_millis(100));
    }
    let wait = rig.refused(&rig.ask(480)).await.0;
    assert_eq!(wait, Duration::from_millis(54_700));
    rig.store.leave(&rig.model, 0, &Tenant::default()).await.unwrap();
    let wait = rig.refused(&rig.ask(600)).await.0;
    assert_eq!(wait.as_millis(), 54_700 + 7_200);
}
