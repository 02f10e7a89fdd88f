//! The gate: pauses, probes, exhaustion.

use super::*;

pub(super) async fn a_pause_closes_the_gate_and_never_gets_shorter<S: Store>(rig: &Rig<S>) {
    let close = async |seconds| {
        rig.store.pause(&rig.model, &pause(seconds).unwrap()).await.unwrap().as_secs()
    };
    assert_eq!((close(20).await, close(5).await), (20, 20));
    let decision = rig.reserve(&rig.ask(1)).await;
    let wait = Duration::from_secs(20);
    assert!(
        matches!(decision, Decision::GateClosed { wait: told, .. } if told == wait),
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

pub(super) async fn a_pause_ends_with_its_time_to_live<S: Store>(rig: &Rig<S>) {
    let day = Pause { length: Duration::from_hours(24), reason: "retry-after".to_owned() };
    assert_eq!(rig.store.pause(&rig.model, &day).await.unwrap(), PAUSE_TTL);
    rig.advance(PAUSE_TTL);
    assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
}

pub(super) async fn a_pause_changes_no_turn<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_wait_for_the_gate_is_exact<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    rig.store.pause(&rig.model, &pause(60).unwrap()).await.unwrap();
    let first = rig.ask(1_000);
    let decision = rig.reserve(&first).await;
    let Decision::GateClosed { ticket, .. } = decision else { panic!("{decision:?}") };
    // A queue longer than the pause.
    for _ in 0..100 {
        rig.reserve(&rig.ask(1_000)).await;
    }
    let decision = rig.reserve(&Ask { ticket: Some(ticket), ..first }).await;
    let closed = Duration::from_secs(60);
    assert!(
        matches!(decision, Decision::GateClosed { wait, .. } if wait == closed),
        "{decision:?}"
    );
}

pub(super) async fn after_a_refusal_one_call_goes_first<S: Store>(rig: &Rig<S>) {
    is_refused(rig).await;
    assert!(matches!(rig.reserve(&rig.ask(10)).await, Decision::GateClosed { .. }));
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

pub(super) async fn a_probe_that_is_answered_opens_the_gate<S: Store>(rig: &Rig<S>) {
    is_refused(rig).await;
    rig.advance(Duration::from_secs(20));
    let probe = rig.ask(10);
    rig.reserve(&probe).await;
    assert_eq!(rig.refused(&rig.ask(5)).await.1, Hold::Probe);
    rig.advance(Duration::from_millis(400));
    rig.used(&probe, 1).await;
    assert_eq!(rig.reserve(&rig.ask(5)).await, Decision::Granted);
}

pub(super) async fn a_refused_probe_closes_the_gate_again<S: Store>(rig: &Rig<S>) {
    is_refused(rig).await;
    rig.advance(Duration::from_secs(20));
    let probe = rig.ask(10);
    assert_eq!(rig.reserve(&probe).await, Decision::Granted);
    rig.advance(Duration::from_millis(200));
    let before = rig.store.inspect(&rig.model).await.unwrap().factor;
    refused(rig, &probe, ProviderSignal::RateLimited, pause(30)).await;
    let decision = rig.reserve(&rig.ask(10)).await;
    assert!(
        matches!(decision, Decision::GateClosed { wait, .. } if wait == Duration::from_secs(30)),
        "{decision:?}"
    );
    let after = rig.store.inspect(&rig.model).await.unwrap().factor;
    assert!(after >= before, "it says nothing of the rate: {before}, {after}");
    rig.advance(Duration::from_secs(50));
    assert_eq!(rig.reserve(&rig.ask(10)).await, Decision::Granted, "the next one");
    assert_eq!(rig.refused(&rig.ask(1)).await.1, Hold::Probe);
}

pub(super) async fn an_exhausted_quota_stays_closed_until_an_operator_opens_it<S: Store>(
    rig: &Rig<S>,
) {
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
