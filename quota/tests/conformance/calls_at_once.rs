//! Calls in flight, and overloads.

use super::*;

pub(super) async fn calls_at_once_are_bounded<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_call_that_outlives_the_window_is_still_in_flight<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_lane_has_its_part_of_the_calls_at_once<S: Store>(rig: &Rig<S>) {
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
    assert_eq!(hold, Hold::Lane, "six are interactive's, which waits");
    assert_eq!(rig.reserve(&interactive).await, Decision::Granted);
}

/// The same promise, and a caller that is gone holds no place for its lane.
pub(super) async fn calls_at_once_may_be_the_only_limit<S: Store>(rig: &Rig<S>) {
    a_lane_has_its_part_of_the_calls_at_once(rig).await;
    rig.store.leave(&rig.model, 0, &Tenant::default()).await.unwrap();
    let batch = || Ask { lane: 0, ..rig.ask(1) };
    let (one, other) = (batch(), batch());
    assert_eq!(rig.reserve(&one).await, Decision::Granted);
    assert_eq!(rig.reserve(&other).await, Decision::Granted);
    waits(rig, Ask { lane: 1, ..rig.ask(1) }).await;
    rig.advance(Duration::from_secs(1));
    rig.used(&one, 1).await;
    assert_eq!(rig.refused(&batch()).await.1, Hold::Lane, "interactive waits");
    rig.advance(Duration::from_secs(2));
    assert_eq!(rig.reserve(&batch()).await, Decision::Granted, "it does not come");
}

/// Other callers ask first when a place comes free, as those of the process do whose call ended.
/// Tenants get equal parts, and callers that are gone hold no place.
pub(super) async fn a_free_place_is_for_the_first_in_turn<S: Store>(rig: &Rig<S>) {
    let of = |tenant: &str| Ask { tenant: Tenant::new(tenant).unwrap(), ..rig.ask(1) };
    let mut running = vec![of("large"), of("large")];
    for ask in &running {
        assert_eq!(rig.reserve(ask).await, Decision::Granted);
    }
    let mut waiting = Vec::new();
    for round in 0..3 {
        for tenant in ["large", "small"] {
            waiting.push((round, waits(rig, of(tenant)).await.0));
        }
    }
    let (newcomer, _) = waits(rig, of("large")).await;
    let mut order = Vec::new();
    while !waiting.is_empty() {
        rig.advance(Duration::from_secs(3));
        rig.used(&running.remove(0), 1).await;
        assert_eq!(rig.refused(&newcomer).await.1, Hold::Turn);
        let mut at = waiting.len() - 1;
        while rig.reserve(&waiting[at].1).await != Decision::Granted {
            at = at.checked_sub(1).expect("the first in turn goes");
        }
        let (round, ask) = waiting.remove(at);
        order.push(round);
        running.push(ask);
    }
    assert_eq!(order, [0, 0, 1, 1, 2, 2]);
    for _ in 0..5 {
        rig.refused(&of("large")).await;
    }
    rig.advance(Duration::from_secs(1));
    for ask in running {
        rig.used(&ask, 1).await;
    }
    let (ask, wait) = waits(rig, of("large")).await;
    assert!(wait <= Duration::from_secs(20), "six calls of 6 s by two: {wait:?}");
    rig.advance(wait);
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
}

pub(super) async fn a_free_place_beside_other_limits_is_for_the_first_in_turn<S: Store>(
    rig: &Rig<S>,
) {
    a_free_place_is_for_the_first_in_turn(rig).await;
}

/// No call has been answered yet, so nothing is known of how long calls take.
pub(super) async fn absent_callers_hold_no_place_before_the_first_answer<S: Store>(rig: &Rig<S>) {
    let unsent = rig.ask(1);
    assert_eq!(rig.reserve(&unsent).await, Decision::Granted);
    for _ in 0..2 {
        rig.refused(&rig.ask(1)).await;
    }
    rig.store.settle(&rig.model, &Settlement::released(&unsent.reservation)).await.unwrap();
    let mut ask = rig.ask(1);
    for _ in 0..2 {
        let (wait, _, ticket) = rig.refused(&ask).await;
        ask.ticket = Some(ticket);
        rig.advance(wait);
    }
    assert_eq!(rig.reserve(&ask).await, Decision::Granted);
}

/// No script but renewals runs while the call leaves the window and for some time after.
pub(super) async fn a_long_call_on_a_quiet_quota_is_still_in_flight<S: Store>(rig: &Rig<S>) {
    let (long, mut next) = (rig.ask(1), rig.ask(1));
    assert_eq!(rig.reserve(&long).await, Decision::Granted);
    for _ in 0..4 {
        rig.advance(Duration::from_secs(40));
        rig.store.renew(&rig.model, &long.reservation).await.unwrap();
    }
    rig.advance(Duration::from_secs(1));
    let (_, hold, ticket) = rig.refused(&next).await;
    assert_eq!(hold, Hold::InFlight);
    next.ticket = Some(ticket);
    rig.advance(Duration::from_secs(120));
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "nobody renewed the lease");
}

pub(super) async fn an_overload_cuts_the_calls_in_flight_and_closes_nothing<S: Store>(
    rig: &Rig<S>,
) {
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
    // A twentieth of the peak for each round of all calls in flight.
    assert!(caps.is_sorted() && caps[49] == 54 && caps[98] == 59, "{caps:?}");
    for _ in 0..700 {
        let ask = rig.ask(1);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.used(&ask, 1).await;
    }
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().cap, None);
}

pub(super) async fn a_known_overload_changes_nothing<S: Store>(rig: &Rig<S>) {
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
