//! Days, and clocks that step back.

use super::*;

pub(super) async fn a_day_s_limit_ends_with_the_day<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn tokens_of_a_day_are_settled<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_clock_that_steps_back_stands_still<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    rig.at(START - 30 * SECOND);
    assert_eq!(rig.refused(&rig.ask(1)).await.0, Duration::from_secs(60));
    rig.at(START + 60 * SECOND);
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().used().combined, 0);
}

/// A failover to a server whose clock is behind: time goes on from there.
pub(super) async fn a_clock_set_back_an_hour_freezes_nothing<S: Store>(rig: &Rig<S>) {
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
    // The policy goes on too: it learns from a refusal.
    refused(rig, &next, ProviderSignal::RateLimited, None).await;
    let seen = rig.store.inspect(&rig.model).await.unwrap();
    assert_eq!(seen.get(Dimension::Combined).plan.unwrap().rate.why, Why::Refused);
    rig.advance(Duration::from_secs(100));
    assert_eq!(rig.store.inspect(&rig.model).await.unwrap().in_flight.used, 0, "leases end too");
}
