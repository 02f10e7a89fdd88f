//! Limits set by operators or stated by providers, and the policy behind them.

use super::*;

pub(super) async fn limits_set_act_at_once_and_keep_what_is_used<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_raised_limit_moves_the_queue<S: Store>(rig: &Rig<S>) {
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

/// Use from the time without a limit is no debt.
pub(super) async fn a_limit_set_where_there_was_none_counts_from_then<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn a_provider_that_states_less_is_believed_for_a_while<S: Store>(rig: &Rig<S>) {
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
    // If no call fitted, the provider would never be heard again.
    assert_eq!(state(1).await, 1);
    rig.advance(Duration::from_secs(121));
    rig.store.settle(&rig.model, &Settlement::released("nothing")).await.unwrap();
    assert_eq!(limit(rig).await, 1_000);
}

pub(super) async fn a_refusal_lowers_the_rate_and_time_restores_it<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn use_by_others_counts<S: Store>(rig: &Rig<S>) {
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

pub(super) async fn one_caller_at_a_time_gets_the_task_and_an_outdated_plan_is_not_written<
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
    // At once after a refusal.
    let ask = rig.ask(1);
    rig.reserve(&ask).await;
    let refused = Settlement {
        signal: ProviderSignal::RateLimited,
        ..Settlement::used(&ask.reservation, Amounts::default())
    };
    rig.store.settle(&rig.model, &refused).await.unwrap();
    assert_eq!(tasks_of(&[]).await, [true]);
    assert_eq!(tasks_of(&[0.1]).await, [true; 0], "it has been read");
    // A killed program holds up the next one for as long as a frozen one.
    rig.advance(Duration::from_secs(1));
    room(rig).await;
    assert_eq!(rig.store.thaw(&rig.model, true).await, [true; 0]);
    assert_eq!(tasks_of(&[1.9]).await, [true; 0]);
    assert_eq!(tasks_of(&[0.2]).await, [true]);
}

/// The policy does not know observations that fall out of the log.
pub(super) async fn the_log_keeps_the_last_observations<S: Store + Freezes>(rig: &Rig<S>) {
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
        refused(rig, &all[0], ProviderSignal::RateLimited, None).await;
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
    // Makes the next refusal no deeper than what went well.
    is_refused(rig).await;
    rig.store.resume(&rig.model).await.unwrap();
    assert_eq!((lowers(40).await, lowers(60).await), (true, false));
}
