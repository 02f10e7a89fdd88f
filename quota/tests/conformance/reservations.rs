//! Reservations: admitted once, settled once, given back.

use super::*;

pub(super) async fn the_same_reservation_is_admitted_once<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(400);
    for _ in 0..5 {
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
    }
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 400);
}

pub(super) async fn an_id_that_is_there_twice_is_admitted_once<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(400);
    let answers =
        rig.store.reserve_all(&rig.model, &[ask.clone(), ask.clone(), ask]).await.unwrap();
    assert!(answers.iter().all(|(decision, _)| *decision == Decision::Granted));
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 400);
}

pub(super) async fn a_reservation_is_settled_once<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn unused_amounts_are_given_back<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn an_overshoot_is_a_debt<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(100);
    rig.reserve(&ask).await;
    rig.used(&ask, 1_500).await;
    assert_eq!(rig.refused(&rig.ask(1)).await.0, Duration::from_secs(60));
}

/// One call was estimated at a hundredth of what it used: 96 windows of the pace.
pub(super) async fn a_debt_lasts_no_longer_than_a_window<S: Store>(rig: &Rig<S>) {
    let ask = rig.ask(1_000);
    rig.reserve(&ask).await;
    let (next, _) = waits(rig, rig.ask(10)).await;
    rig.used(&ask, 100_000).await;
    let (wait, ..) = rig.refused(&next).await;
    assert!(wait <= Duration::from_secs(62), "a window, and the capacity: {wait:?}");
    rig.advance(wait);
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
}

/// A time-out: the provider may have done the work, but the worker no longer waits for it.
pub(super) async fn a_lost_call_stays_charged_and_is_not_in_flight<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn spending_elsewhere_is_charged_once<S: Store>(rig: &Rig<S>) {
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

/// Callers that went elsewhere no longer stand before those that wait here.
pub(super) async fn spending_elsewhere_moves_the_queue_on<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_settlement_returns_the_room<S: Store>(rig: &Rig<S>) {
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
