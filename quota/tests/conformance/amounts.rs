//! Limits of windows, rates and paces.

use super::*;

pub(super) async fn the_window_holds_exactly_the_limit<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_refusal_names_the_exact_wait_for_the_window<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_refusal_names_the_exact_wait_by_the_rate<S: Store>(rig: &Rig<S>) {
    rig.reserve(&rig.ask(1_000)).await;
    let ask = rig.ask(500);
    let Decision::Wait { wait, hold, deficit, ticket, turn } = rig.reserve(&ask).await else {
        panic!("the second's worth is drawn");
    };
    let level = Hold::Level(Dimension::Combined);
    assert_eq!((wait, hold, deficit, turn), (Duration::from_millis(500), level, 500, wait));
    let next = Ask { ticket: Some(ticket), ..ask };
    let (behind, hold, _) = rig.refused(&rig.ask(300)).await;
    assert_eq!((behind.as_millis(), hold), (800, Hold::Turn), "and a grain");
    rig.advance(wait - Duration::from_micros(1));
    assert_eq!(rig.refused(&next).await.0, Duration::from_micros(1));
    rig.advance(Duration::from_micros(1));
    assert_eq!(rig.reserve(&next).await, Decision::Granted);
}

pub(super) async fn the_pace_lets_no_minute_go_at_once<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn every_dimension_holds<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_call_that_never_fits_is_refused_at_once<S: Store>(rig: &Rig<S>) {
    let never = Decision::Never { dimension: Dimension::Combined, capacity: 1_000 };
    assert_eq!(rig.reserve(&rig.ask(1_001)).await, never);
    assert_eq!(rig.reserve(&rig.ask(1_000)).await, Decision::Granted);
}

pub(super) async fn a_call_larger_than_the_capacity_goes_when_nothing_is_drawn<S: Store>(
    rig: &Rig<S>,
) {
    assert_eq!(rig.reserve(&rig.ask(400)).await, Decision::Granted);
    let (large, wait) = waits(rig, rig.ask(9_000)).await;
    assert_eq!(wait, Duration::from_millis(400), "until the 400 have refilled");
    rig.advance(wait);
    assert_eq!(rig.reserve(&large).await, Decision::Granted);
    let (_, wait) = waits(rig, rig.ask(1_000)).await;
    assert_eq!(wait, Duration::from_secs(9), "what it took comes back first");
}

pub(super) async fn a_bucket_keeps_a_margin_while_calls_are_under_way<S: Store>(rig: &Rig<S>) {
    let first = rig.ask(10_000);
    assert_eq!(rig.reserve(&first).await, Decision::Granted);
    let (next, wait) = waits(rig, rig.ask(45_001)).await;
    assert_eq!(wait, Duration::from_millis(1), "half of what is reserved is kept");
    rig.store.settle(&rig.model, &settled_as(&first, 10_000)).await.unwrap();
    assert_eq!(rig.reserve(&next).await, Decision::Granted, "and no more once its use is known");
    let (_, wait) = waits(rig, rig.ask(1)).await;
    assert_eq!(wait, Duration::from_millis(1_002), "a tenth of the capacity at most");
}

pub(super) async fn no_wait_is_longer_than_the_horizon<S: Store>(rig: &Rig<S>) {
    while rig.reserve(&rig.ask(1_000)).await == Decision::Granted {}
    for _ in 0..30 {
        rig.refused(&rig.ask(1_000)).await;
    }
    assert!(rig.refused(&rig.ask(1_000)).await.0 > Duration::from_secs(25), "an hour is known");
    // Another limit does not change the used part.
    rig.store.set_limits(&rig.model, &combined_alone(Change::Set(30_000))).await.unwrap();
    let known = rig.store.inspect(&rig.model).await.unwrap().horizon;
    assert_eq!(known, Duration::from_hours(1), "the capacity is the same part of it");
    // A new limit starts without use.
    let window = PerDimension { requests: Change::Set(10), ..PerDimension::default() };
    let changes = PerLimit { window, ..PerLimit::default() };
    rig.store.set_limits(&rig.model, &changes).await.unwrap();
    let changed = rig.store.inspect(&rig.model).await.unwrap().horizon;
    assert_eq!(changed, Duration::from_secs(5));
    let (mut told, mut turns) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let Decision::Wait { wait, turn, .. } = rig.reserve(&rig.ask(1_000)).await else {
            panic!("all is drawn");
        };
        told.push(wait);
        turns.push(turn);
    }
    assert!(turns.iter().zip(&told).all(|(turn, wait)| turn >= wait), "{told:?} {turns:?}");
    let last = turns[29] - turns[0];
    assert!(last >= Duration::from_secs(58), "30,000 a minute, and 29 calls of 1,000: {turns:?}");
    assert!(told.iter().all(|wait| *wait <= changed), "{told:?}");
    assert!(told.is_sorted(), "they do not come back together: {told:?}");
}

/// A hundred calls were admitted a tenth of a second apart. The first 48 leave at known times; what
/// is needed beyond them comes at the rate.
pub(super) async fn a_bounded_number_of_entries_is_read_for_a_wait<S: Store>(rig: &Rig<S>) {
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
