//! Plans of several programs.

use super::*;

/// The room that is left, as the time that an even pace takes to use it.
async fn room(rig: &Rig<redis_store::Store>) -> Duration {
    let settlement = Settlement::released("nothing");
    rig.store.settle(&rig.model, &settlement).await.unwrap().2
}

/// Ends a call with a reading of the provider's meter.
async fn settle_with_reading(rig: &Rig<redis_store::Store>, ask: &Ask, used: u64) {
    let used = PerDimension { combined: Some(used), ..PerDimension::default() };
    let meter = Meter { used, ..Meter::default() };
    let settlement = Settlement { meter, ..Settlement::used(&ask.reservation, ask.amounts) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

#[tokio::test]
async fn admissions_during_a_run_of_the_policy_count() {
    let Some(rig) = in_redis(simple(6_000), &unique("test")) else { return };
    rig.settled_down().await;
    rig.advance(Duration::from_secs(1));
    rig.store.keep_tasks(true);
    let ask = rig.ask(100);
    rig.reserve(&ask).await;
    settle_with_reading(&rig, &ask, 600).await;
    for _ in 0..1_000 {
        assert_eq!(rig.reserve(&rig.ask(1)).await, Decision::Granted);
    }
    assert_eq!(room(&rig).await, Duration::from_secs(49), "100 and 1,000 of 100 a second");
    assert_eq!(rig.store.end_tasks(&rig.model, false).await.unwrap(), [true]);
    assert_eq!(room(&rig).await, Duration::from_secs(44), "and 500 that others use");
}

#[tokio::test]
async fn the_newer_program_s_plan_is_in_force() {
    let prefix = unique("test");
    let program = |limit, began| {
        let rig = in_redis(simple(limit), &prefix)?;
        Some(Rig { store: rig.store.clone().begun_at(began), ..rig })
    };
    let (Some(old), Some(new), Some(newest)) =
        (program(1_000, 1), program(2_000, 2), program(3_000, 3))
    else {
        return;
    };
    let at = |second: u64| [&old, &new, &newest].map(|rig| rig.at(START + second * SECOND));
    let limit = async |rig: &Rig<redis_store::Store>| {
        let (ask, said) = (rig.ask(1), unique("id"));
        let ask = Ask { reservation: said.clone(), ..ask };
        let _ = rig.reserve(&ask).await;
        rig.store.settle(&rig.model, &Settlement::released(&said)).await.unwrap();
        rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined).limit
    };
    at(0);
    assert_eq!(limit(&old).await, 1_000);
    at(59);
    assert_eq!(limit(&new).await, 1_000, "at most once a minute");
    at(60);
    assert_eq!(limit(&new).await, 2_000);
    at(61);
    assert_eq!((limit(&old).await, limit(&newest).await), (2_000, 2_000));
    at(3_599);
    assert_eq!(limit(&new).await, 2_000);
    at(3_600);
    assert_eq!(limit(&old).await, 2_000, "an older program takes nothing from a newer one");
    assert_eq!(limit(&newest).await, 3_000);
    assert_eq!((limit(&new).await, limit(&old).await), (3_000, 3_000));
    let seen = async |rig: &Rig<redis_store::Store>| {
        rig.store.inspect(&rig.model).await.unwrap().other_fingerprint
    };
    let ((plan, own), (same, other)) = (seen(&old).await.unwrap(), seen(&new).await.unwrap());
    assert!(plan == same && own != other && own != plan, "{plan:x} {own:x} {other:x}");
    assert_eq!(seen(&newest).await, None, "it made the plan itself");
    at(3_659);
    assert_eq!(limit(&old).await, 3_000);
    at(3_661);
    assert_eq!(limit(&old).await, 1_000, "the newer programs are gone");
}

/// An operator's program is newer than the workers, and has another configuration.
#[tokio::test]
async fn limits_set_by_another_program_leave_the_plan_to_the_workers() {
    let prefix = unique("test");
    let (Some(worker), Some(operator)) =
        (in_redis(simple(1_000), &prefix), in_redis(simple(10), &prefix))
    else {
        return;
    };
    let operator = Rig { store: operator.store.clone().begun_at(u64::MAX >> 12), ..operator };
    worker.settled_down().await;
    let change = |combined| {
        let window = PerDimension { combined, ..PerDimension::default() };
        PerLimit { window, ..PerLimit::default() }
    };
    for (seconds, changed, limit) in
        [(100, Change::Set(500), 500), (200, Change::Clear, 1_000), (300, Change::Set(700), 700)]
    {
        for rig in [&worker, &operator] {
            rig.at(START + seconds * SECOND);
        }
        operator.store.set_limits(&operator.model, &change(changed)).await.unwrap();
        // The worker still gets the policy's task.
        worker.advance(Duration::from_secs(1));
        let said = worker.ask(1);
        let _ = worker.reserve(&said).await;
        worker.store.settle(&worker.model, &Settlement::released(said.reservation)).await.unwrap();
        let seen = worker.store.inspect(&worker.model).await.unwrap();
        assert_eq!(seen.get(Dimension::Combined).limit, limit, "{changed:?}");
        assert_eq!(seen.other_fingerprint, None);
    }
}
