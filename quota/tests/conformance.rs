//! One list of promises, kept by both stores: the model in memory and the scripts in a real Redis.

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

use common::{PAUSE_TTL, Rig, SECOND, START, both_stores, lanes, limits, model, model_with_lanes};
use tidegate_quota::{
    Amounts, Decision, Dimension, Limits, ModelQuota, Store,
    store::{Ask, Binding, Pause, Settled, Settlement, UsageSample},
};
use tidegate_types::Tenant;

both_stores! {
    the_window_holds_exactly_the_limit(model(limits(1_000)));
    a_refusal_names_the_exact_wait(model(limits(1_000)));
    the_pace_lets_no_minute_go_at_once(model(Limits { burst: Duration::from_secs(1), ..limits(6_000) }));
    every_dimension_binds(model(limits(8_000).with(Dimension::Requests, 10).with(Dimension::Input, 5_000).with(Dimension::Output, 50)));
    the_same_reservation_is_admitted_once(model(limits(1_000)));
    a_reservation_is_settled_once(model(limits(1_000)));
    what_is_not_used_is_given_back(model(limits(1_000)));
    an_overshoot_is_a_debt(model(limits(1_000)));
    what_can_never_fit_is_refused_at_once(model(limits(1_000)));
    turns_are_first_come_first_served(model(Limits { burst: Duration::from_secs(1), ..limits(60_000) }));
    a_newcomer_does_not_overtake(model(limits(1_000)));
    callers_that_never_come_back_block_no_other(model(Limits { burst: Duration::from_secs(1), ..limits(60_000) }));
    a_ticket_of_another_life_is_worth_nothing(model(limits(1_000)));
    a_pause_closes_the_gate_and_never_gets_shorter(model(limits(1_000)));
    a_pause_ends_with_its_time_to_live(model(limits(1_000)));
    a_pause_moves_every_turn(model(limits(1_000)));
    a_clock_that_steps_back_changes_nothing(model(limits(1_000)));
    a_clock_set_back_an_hour_freezes_nothing(model(Limits { concurrent: Some(3), ..limits(1_000) }));
    a_debt_lasts_no_longer_than_a_window(model(Limits { burst: Duration::from_secs(1), ..limits(1_000) }));
    a_lane_has_its_share_while_another_takes_all_it_can(three_lanes());
    a_lane_borrows_what_no_other_wants(three_lanes());
    a_lane_keeps_to_its_ceiling(model_with_lanes(limits(1_000), lanes(&[("batch", 0.5, 0.6)])));
    what_a_cache_gives_is_learned_and_lapses(model(limits(100_000)));
    expectations_are_learned(model(limits(100_000)));
    who_leaves_delays_nobody(model(Limits { burst: Duration::from_secs(1), ..limits(60_000) }));
    workers_that_are_configured_differently_share_one_ledger(three_lanes());
    a_large_document_gets_its_turn_beside_other_lanes(model_with_lanes(
        Limits { burst: Duration::from_secs(1), ..limits(1_000) },
        lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0), ("standard", 0.3, 1.0)]),
    ));
    models_of_a_group_share_one_quota(model(limits(1_000)).sharing("test:group"));
    of_calls_asked_about_together_the_first_go_and_the_others_have_turns(model(limits(1_000)));
    an_id_that_is_there_twice_is_admitted_once(model(limits(1_000)));
}

fn three_lanes() -> tidegate_quota::ModelQuota {
    let limits = Limits { burst: Duration::from_secs(120), ..limits(1_000) };
    model_with_lanes(
        limits,
        lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0), ("standard", 0.3, 1.0)]),
    )
}

fn used(reservation: &str, tokens: u64) -> Settlement {
    Settlement::used(reservation, Amounts::call(tokens, 0))
}

async fn the_window_holds_exactly_the_limit<S: Store>(rig: &Rig<S>) {
    for _ in 0..10 {
        assert_eq!(rig.reserve(&rig.ask(100)).await, Decision::Granted);
        rig.advance(Duration::from_secs(1));
    }
    let mut next = rig.ask(100);
    next.ticket = Some(rig.refused(&next).await.2);
    rig.at(START + 60 * SECOND - 1);
    rig.refused(&next).await;
    rig.at(START + 60 * SECOND);
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "the first has left the window");
    rig.refused(&rig.ask(1)).await;
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 1_000);
}

async fn a_refusal_names_the_exact_wait<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(600)).await;
    rig.advance(Duration::from_secs(7));
    rig.reserve(&rig.ask(400)).await;
    rig.advance(Duration::from_secs(3));
    let mut ask = rig.ask(500);
    let (wait, binding, ticket) = rig.refused(&ask).await;
    assert_eq!((wait, binding), (Duration::from_secs(50), Binding::Limit(Dimension::Combined)));
    ask.ticket = Some(ticket);
    rig.advance(wait - Duration::from_micros(1));
    assert_eq!(rig.refused(&ask).await.0, Duration::from_micros(1), "one microsecond too early");
    rig.advance(Duration::from_micros(1));
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
}

async fn the_pace_lets_no_minute_go_at_once<S: Store>(rig: &Rig<S>) {
    let (mut admitted, mut turn) = (0, None);
    for _ in 0..300 {
        let ask = tidegate_quota::store::Ask { ticket: turn, ..rig.ask(10) };
        match rig.reserve(&ask).await {
            Decision::Granted => (admitted, turn) = (admitted + 10, None),
            Decision::Wait { ticket, .. } => turn = Some(ticket),
            other => panic!("{other:?}"),
        }
        rig.advance(Duration::from_millis(10));
    }
    // 100 tokens a second, one second ahead, and one call that runs into debt.
    assert!((380..=420).contains(&admitted), "{admitted} tokens in three seconds");
}

async fn every_dimension_binds<S: Store>(rig: &Rig<S>) {
    let ask = |input, output| tidegate_quota::store::Ask {
        amounts: Amounts::call(input, output),
        ..rig.ask(0)
    };
    assert_eq!(rig.reserve(&ask(0, 41)).await, Decision::Granted);
    assert_eq!(rig.refused(&ask(0, 10)).await.1, Binding::Limit(Dimension::Output));
    rig.at(START + 200 * SECOND);
    assert_eq!(rig.reserve(&ask(4_900, 0)).await, Decision::Granted);
    assert_eq!(rig.refused(&ask(101, 0)).await.1, Binding::Limit(Dimension::Input));
    rig.at(START + 400 * SECOND);
    for _ in 0..10 {
        assert_eq!(rig.reserve(&ask(1, 1)).await, Decision::Granted);
    }
    assert_eq!(rig.refused(&ask(0, 0)).await.1, Binding::Limit(Dimension::Requests));
}

async fn the_same_reservation_is_admitted_once<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(400);
    for _ in 0..5 {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    }
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 400);
}

async fn a_reservation_is_settled_once<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(400);
    rig.reserve(&ask).await;
    let settle = async |settlement| rig.store.settle(&rig.model, &settlement).await.unwrap().0;
    assert_eq!(settle(used(&ask.reservation, 300)).await, Settled::Done);
    assert_eq!(settle(used(&ask.reservation, 100)).await, Settled::Before);
    assert_eq!(
        settle(Settlement::released(&ask.reservation)).await,
        Settled::Before,
        "a late release frees no real use"
    );
    assert_eq!(settle(used("never-reserved", 100)).await, Settled::Unknown);
    let snapshot = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((snapshot.used().combined, snapshot.lanes[0].in_flight), (300, 0));
    let ask = rig.ask(400);
    rig.reserve(&ask).await;
    assert_eq!(settle(Settlement::released(&ask.reservation)).await, Settled::Done);
    assert_eq!(settle(Settlement::released(&ask.reservation)).await, Settled::Unknown);
    assert_eq!(settle(used(&ask.reservation, 9)).await, Settled::Unknown);
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 300);
}

async fn what_is_not_used_is_given_back<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(1_000);
    rig.reserve(&ask).await;
    let mut next = rig.ask(500);
    next.ticket = Some(rig.refused(&next).await.2);
    rig.store.settle(&rig.model, &used(&ask.reservation, 500)).await.unwrap();
    let (wait, binding, _) = rig.refused(&next).await;
    assert_eq!(
        (wait, binding),
        (Duration::from_secs(30), Binding::Turn),
        "the queue moved up by the refund"
    );
    rig.advance(wait);
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 1_000);
}

async fn an_overshoot_is_a_debt<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(100);
    rig.reserve(&ask).await;
    rig.store.settle(&rig.model, &used(&ask.reservation, 1_500)).await.unwrap();
    let (wait, ..) = rig.refused(&rig.ask(1)).await;
    assert_eq!(wait, Duration::from_secs(60));
}

async fn what_can_never_fit_is_refused_at_once<S: Store>(rig: &Rig<S>) {
    let never = Decision::Never { dimension: Dimension::Combined, capacity: 1_000 };
    assert_eq!(rig.reserve(&rig.ask(1_001)).await, never);
    assert_eq!(rig.reserve(&rig.ask(1_000)).await, Decision::Granted);
}

/// Every caller comes back when told, a little late, in any order; large and small are admitted as
/// they first came.
async fn turns_are_first_come_first_served<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    let mut waiting = Vec::new();
    for number in 0..40_u64 {
        let mut ask = rig.ask(if number % 7 == 3 { 5_000 } else { 200 + 37 * number });
        let (wait, _, ticket) = rig.refused(&ask).await;
        ask.ticket = Some(ticket);
        waiting.push((rig.now() + u64::try_from(wait.as_micros()).unwrap(), number, ask));
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
                waiting.push((rig.now() + u64::try_from(wait.as_micros()).unwrap(), number, ask));
            }
            other => panic!("{other:?}"),
        }
        assert!(asks < 1_000, "the queue does not move");
    }
    assert_eq!(order, (0..40).collect::<Vec<_>>());
    assert!(asks <= 40 * 4, "{asks} questions for 40 admissions");
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
    assert!(turns.is_sorted_by(|one, next| one.0 <= next.0 && one.1 < next.1), "{turns:?}");
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

async fn an_id_that_is_there_twice_is_admitted_once<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(400);
    let answers =
        rig.store.reserve_all(&rig.model, &[ask.clone(), ask.clone(), ask]).await.unwrap();
    assert!(answers.iter().all(|(decision, _)| *decision == Decision::Granted));
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 400);
}

async fn a_newcomer_does_not_overtake<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    rig.advance(Duration::from_secs(30));
    let mut large = rig.ask(900);
    let (wait, _, ticket) = rig.refused(&large).await;
    large.ticket = Some(ticket);
    rig.advance(wait);
    let (newcomer, binding, _) = rig.refused(&rig.ask(10)).await;
    assert_eq!(binding, Binding::Turn);
    assert!(newcomer > Duration::ZERO);
    assert_eq!(rig.reserve(&large).await, Decision::Granted);
}

async fn callers_that_never_come_back_block_no_other<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    for _ in 0..100 {
        rig.refused(&rig.ask(1_000)).await;
    }
    let mut ask = rig.ask(1_000);
    let (wait, _, ticket) = rig.refused(&ask).await;
    assert!(
        wait > Duration::from_secs(80),
        "a hundred turns of a second each come first: {wait:?}"
    );
    ask.ticket = Some(ticket);
    rig.advance(Duration::from_secs(4));
    assert_eq!(
        rig.reserve(&ask).await,
        Decision::Granted,
        "no call used the capacity, so the queue moves up"
    );
}

async fn a_ticket_of_another_life_is_worth_nothing<S: Store>(rig: &Rig<S>) {
    let mut ask = rig.ask(100);
    ask.ticket = Some(tidegate_quota::Ticket { epoch: 7, position: 9_000_000_000_000_000 });
    assert_eq!(
        rig.reserve(&ask).await,
        Decision::Granted,
        "no caller waits, so none is made to wait"
    );
}

async fn a_pause_closes_the_gate_and_never_gets_shorter<S: Store>(rig: &Rig<S>) {
    let pause = |seconds| Pause { length: Duration::from_secs(seconds), reason: "429".to_owned() };
    assert_eq!(rig.store.pause(&rig.model, &pause(20)).await.unwrap(), Duration::from_secs(20));
    assert_eq!(rig.store.pause(&rig.model, &pause(5)).await.unwrap(), Duration::from_secs(20));
    assert_eq!(
        rig.reserve(&rig.ask(1)).await,
        Decision::Paused { wait: Duration::from_secs(20), ticket: None }
    );
    let snapshot = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!((snapshot.pause, snapshot.reason.as_str()), (Duration::from_secs(20), "429"));
    rig.advance(Duration::from_secs(20));
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    rig.store.pause(&rig.model, &pause(20)).await.unwrap();
    rig.store.resume(&rig.model).await.unwrap();
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
}

async fn a_pause_ends_with_its_time_to_live<S: Store>(rig: &Rig<S>) {
    let day = Pause { length: Duration::from_secs(86_400), reason: "retry-after".to_owned() };
    assert_eq!(rig.store.pause(&rig.model, &day).await.unwrap(), PAUSE_TTL);
    rig.advance(PAUSE_TTL);
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
}

async fn a_pause_moves_every_turn<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    let mut ask = rig.ask(500);
    let (wait, _, ticket) = rig.refused(&ask).await;
    assert_eq!(wait, Duration::from_secs(60));
    ask.ticket = Some(ticket);
    let pause = Pause { length: Duration::from_secs(10), reason: String::new() };
    rig.store.pause(&rig.model, &pause).await.unwrap();
    rig.advance(Duration::from_secs(10));
    let (wait, binding, _) = rig.refused(&ask).await;
    assert_eq!(
        (wait, binding),
        (Duration::from_secs(60), Binding::Turn),
        "as far away as before the pause"
    );
}

async fn a_clock_that_steps_back_changes_nothing<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    rig.at(START - 3_600 * SECOND);
    let (wait, ..) = rig.refused(&rig.ask(1)).await;
    assert_eq!(wait, Duration::from_secs(60));
    rig.at(START + 60 * SECOND);
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 0);
}

/// A failover to a server whose clock is behind: time goes on from there.
async fn a_clock_set_back_an_hour_freezes_nothing<S: Store>(rig: &Rig<S>) {
    let (long, short) = (rig.ask(1), rig.ask(999));
    rig.reserve(&long).await;
    rig.advance(Duration::from_secs(61));
    rig.reserve(&short).await;
    let mut next = rig.ask(900);
    next.ticket = Some(rig.refused(&next).await.2);
    let pause = Pause { length: Duration::from_secs(30), reason: "test".to_owned() };
    rig.store.pause(&rig.model, &pause).await.unwrap();
    rig.at(START - 3_600 * SECOND);
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.pause, Duration::from_secs(30), "the gate is closed for as long as before");
    assert_eq!((seen.used().combined, seen.in_flight.used), (999, 2));
    rig.advance(Duration::from_secs(59));
    assert!(rig.refused(&next).await.0 <= Duration::from_secs(31), "the turn is kept");
    rig.advance(Duration::from_secs(31));
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "the window has passed");
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 900);
    rig.advance(Duration::from_secs(100));
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().in_flight.used, 1, "leases end too");
}

/// One call was estimated at a hundredth of what it used: 96 windows of the pace.
async fn a_debt_lasts_no_longer_than_a_window<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(1_000);
    rig.reserve(&ask).await;
    let mut next = rig.ask(10);
    next.ticket = Some(rig.refused(&next).await.2);
    rig.store.settle(&rig.model, &used(&ask.reservation, 100_000)).await.unwrap();
    let (wait, ..) = rig.refused(&next).await;
    assert!(wait <= Duration::from_secs(120), "a window, and the place in the queue: {wait:?}");
    rig.advance(Duration::from_secs(120));
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
}

/// Lanes are numbered by name: batch 0, interactive 1, standard 2.
async fn a_lane_has_its_share_while_another_takes_all_it_can<S: Store>(rig: &Rig<S>) {
    let ask = |lane| tidegate_quota::store::Ask { lane, ..rig.ask(10) };
    assert_eq!(rig.reserve(&ask(1)).await, Decision::Granted, "interactive shows itself");
    let mut batch = 0;
    while rig.reserve(&ask(0)).await == Decision::Granted {
        batch += 10;
    }
    assert!(
        (780..=860).contains(&batch),
        "at once batch borrows all but what interactive is guaranteed: {batch}"
    );
    // Interactive wants its share: batch gets nothing that leaves the window until interactive has
    // it.
    let (mut interactive, callers) = (10, [1, 1, 1, 1, 1, 0, 0]);
    let mut waiting = [None; 7];
    for _ in 0..240 {
        rig.advance(Duration::from_millis(500));
        for (caller, lane) in callers.into_iter().enumerate() {
            let mut next = ask(lane);
            next.ticket = waiting[caller];
            match rig.reserve(&next).await {
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

async fn a_lane_borrows_what_no_other_wants<S: Store>(rig: &Rig<S>) {
    let mut batch = 0;
    while rig.reserve(&rig.ask(10)).await == Decision::Granted {
        batch += 10;
    }
    assert_eq!(batch, 1_000);
}

async fn a_lane_keeps_to_its_ceiling<S: Store>(rig: &Rig<S>) {
    let mut batch = 0;
    while rig.reserve(&rig.ask(10)).await == Decision::Granted {
        batch += 10;
    }
    assert_eq!(batch, 600);
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
        let settlement = Settlement { sample: Some(sample), ..used(&ask.reservation, 100) };
        last = rig.store.settle(&rig.model, &settlement).await.unwrap().1;
        assert_eq!(last.is_some(), round >= 2, "three calls teach enough");
    }
    let learned = last.unwrap();
    assert!((learned.input_ratio - 1.25).abs() < 1e-6, "{learned:?}");
    assert!((360..=375).contains(&learned.output), "{learned:?}");
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
    let pause = Pause { length: Duration::from_secs(9), reason: "both".to_owned() };
    rig.store.pause(&other, &pause).await.unwrap();
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().pause, Duration::from_secs(9));
}

/// What a cache gives is learned from hits, lapses with the first miss, and with time.
async fn what_a_cache_gives_is_learned_and_lapses<S: Store>(rig: &Rig<S>) {
    let call = async |cached| {
        let ask = rig.ask(100);
        rig.reserve(&ask).await;
        rig.advance(Duration::from_secs(1));
        let sample = UsageSample { estimated_input: 1_000, input: 1_000, output: 10 };
        let settlement = Settlement { sample: Some(sample), cached, ..used(&ask.reservation, 100) };
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
    rig.advance(Duration::from_secs(300));
    assert_eq!(call(None).await, 0, "the cache has forgotten it");
}

/// A batch of a hundred seconds is cancelled. The tenant's next call does not wait for those that
/// never come, and another tenant's keeps its turn.
async fn who_leaves_delays_nobody<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str, ask| Ask { tenant: Tenant::new(tenant).unwrap(), ..ask };
    while rig.reserve(&of("cancels", rig.ask(1_000))).await == Decision::Granted {}
    for _ in 0..100 {
        rig.refused(&of("cancels", rig.ask(1_000))).await;
    }
    let mut stays = of("stays", rig.ask(1_000));
    stays.ticket = Some(rig.refused(&stays).await.2);
    let late = rig.refused(&of("cancels", rig.ask(1_000))).await.0;
    assert!(late > Duration::from_secs(60), "{late:?}");
    for _ in 0..2 {
        rig.store.leave(&rig.model, 0, &Tenant::new("cancels").unwrap()).await.unwrap();
    }
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert!(seen.lanes[0].queue < Duration::from_secs(5), "{:?}", seen.lanes);
    let mut newcomer = of("cancels", rig.ask(1_000));
    let (soon, _, ticket) = rig.refused(&newcomer).await;
    assert!(soon < Duration::from_secs(3), "{soon:?}");
    newcomer.ticket = Some(ticket);
    rig.advance(Duration::from_secs(4));
    for ask in [stays, newcomer] {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.advance(Duration::from_secs(2));
    }
}

/// Each question is decided by the limits of the worker that asks, and all use is counted together.
/// With other lanes use may be counted for another lane; the sums hold, and so does the limit.
async fn workers_that_are_configured_differently_share_one_ledger<S: Store>(rig: &Rig<S>) {
    let other = model_with_lanes(limits(500), lanes(&[("batch", 0.5, 1.0), ("vip", 0.2, 1.0)]));
    let four =
        lanes(&[("a", 0.1, 1.0), ("batch", 0.1, 1.0), ("interactive", 0.4, 1.0), ("z", 0.4, 1.0)]);
    let more = model_with_lanes(limits(1_000), four);
    let ask = |tokens, lane| Ask { lane, ..rig.ask(tokens) };
    let reserve = async |model: &ModelQuota, tokens, lane| {
        rig.store.reserve(model, &ask(tokens, lane)).await.unwrap().0
    };
    assert_eq!(reserve(&other, 300, 0).await, Decision::Granted);
    assert_eq!(reserve(&rig.model, 300, 1).await, Decision::Granted, "its own limit is 1,000");
    let low = reserve(&other, 50, 1).await;
    assert!(matches!(low, Decision::Wait { .. }), "it finds the fleet over its 500: {low:?}");
    assert_eq!(reserve(&more, 50, 3).await, Decision::Granted);
    for model in [&other, &rig.model, &more] {
        let seen = rig.store.inspect(model).await.unwrap();
        assert_eq!(seen.get(Dimension::Combined).used, 650);
    }
    let high = reserve(&rig.model, 400, 2).await;
    assert!(matches!(high, Decision::Wait { .. }), "that would be 1,050: {high:?}");
    rig.advance(Duration::from_secs(61));
    for model in [&other, &rig.model, &more] {
        let seen = rig.store.inspect(model).await.unwrap();
        assert!(seen.lanes.iter().all(|lane| lane.used == Amounts::default()), "{seen:?}");
    }
}

/// Small calls of one lane fill the model for half an hour; a call of six tenths of the limit waits
/// in a lane that is guaranteed one. Without anyone who makes room it never goes.
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
                    *at = rig.now() + u64::try_from(wait.as_micros()).unwrap() / 20 * 17;
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
                    asks_at = rig.now() + u64::try_from(wait.as_micros()).unwrap() / 20 * 17;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("it never went");
}
