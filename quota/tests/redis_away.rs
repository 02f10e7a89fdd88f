//! Redis goes away and comes back: what a worker does alone, and what it reports to the fleet.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::time::{Duration, Instant};

use common::{PATIENCE, limits, model_with_lanes};
use tidegate_quota::{
    Amounts, Decision, Dimension, Hold, Lanes, Limits, Options, Permit, Quota, Refused, Request,
    Store as _,
};
use tidegate_testkit::Redis;
use tidegate_types::Usage;

/// Redis goes away and comes back: calls go on within this worker's share, and it joins the fleet
/// again.
#[tokio::test]
async fn while_redis_is_away_a_worker_keeps_to_its_share() {
    let Some(mut server) = Redis::start() else { return };
    let limits = Limits { burst: Some(Duration::from_secs(1)), ..limits(1_000_000) }
        .with(Dimension::Requests, 600);
    let model = model_with_lanes(limits, Lanes::single());
    let quota = Quota::with_redis(
        &server.url,
        [model.clone()],
        Options { max_slot_wait: Duration::ZERO, ..Default::default() },
    )
    .unwrap();
    let mut number = 0;
    let mut admit = async || {
        number += 1;
        quota.admit(&Request::new(model.id.clone(), number.to_string()).tokens(1, 1)).await
    };
    let first = Request::new(model.id.clone(), "first").tokens(1, 1);
    admitted(&quota, &first).await.release().await;
    server.kill();
    let mut admitted = 0;
    while let Ok(permit) = admit().await {
        permit.settle(&Usage { uncached_input: 1, ..Default::default() }).await;
        admitted += 1;
        assert!(admitted < 60, "not bounded");
    }
    assert!(quota.is_degraded());
    assert!(admitted >= 5, "{admitted} calls without Redis");
}

/// A busy machine may answer too late for the limiter; until it has answered once, a call waits.
async fn admitted(quota: &Quota, request: &Request) -> Permit {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match quota.admit(request).await {
            Ok(permit) => return permit,
            Err(refused) => assert!(Instant::now() < deadline, "{refused}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Calls until Redis answers again.
async fn back(quota: &Quota, request: &Request) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while quota.is_degraded() {
        admitted(quota, request).await.release().await;
        assert!(Instant::now() < deadline, "Redis is not found again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A limit on calls in flight holds while Redis goes and comes back: neither store counts all of
/// them.
#[tokio::test]
async fn calls_in_flight_are_counted_across_both_stores() {
    let Some(mut server) = Redis::start() else { return };
    let limits = Limits { concurrent: Some(2), ..limits(1_000_000) };
    let model = model_with_lanes(limits, Lanes::single());
    let options =
        Options { max_slot_wait: Duration::ZERO, answer_within: PATIENCE, ..Default::default() };
    let quota = Quota::with_redis(&server.url, [model.clone()], options).unwrap();
    let request = |name: &str| Request::new(model.id.clone(), name).tokens(10, 1);
    let is_full = async |name: &str| {
        let answer = quota.admit(&request(name)).await;
        assert!(matches!(answer, Err(Refused::Wait { .. })), "{name}: {answer:?}");
    };
    let usage = Usage { uncached_input: 10, ..Default::default() };

    let first = admitted(&quota, &request("1")).await;
    let second = admitted(&quota, &request("2")).await;
    server.kill();
    is_full("both run, and Redis alone knows them").await;
    assert!(quota.is_degraded());
    first.settle(&usage).await;
    let third = admitted(&quota, &request("3")).await;
    is_full("one is known to each").await;
    second.settle(&usage).await;
    let fourth = admitted(&quota, &request("4")).await;

    server.restart();
    let deadline = Instant::now() + Duration::from_secs(60);
    while quota.is_degraded() {
        is_full("both run, and Redis does not know them").await;
        assert!(Instant::now() < deadline, "Redis is not found again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    is_full("Redis is back, and does not know them").await;
    third.settle(&usage).await;
    is_full("one is left").await;
    fourth.settle(&usage).await;
    admitted(&quota, &request("5")).await.release().await;
}

/// Calls that end while Redis refuses or cannot be asked are in flight there no longer once it is
/// back.
#[tokio::test]
async fn ends_that_redis_did_not_hear_of_are_told_later() {
    let Some(server) = Redis::start() else { return };
    let limits = Limits { concurrent: Some(2), ..limits(1_000_000) };
    let model = model_with_lanes(limits, Lanes::single());
    let options =
        Options { max_slot_wait: Duration::ZERO, answer_within: PATIENCE, ..Default::default() };
    let quota = Quota::with_redis(&server.url, [model.clone()], options).unwrap();
    let request = |name: &str| Request::new(model.id.clone(), name).tokens(10, 1);
    let usage = Usage { uncached_input: 7, ..Default::default() };
    let allow = |scripts: &str| {
        let rule = ["SETUSER", "default", scripts];
        redis::cmd("ACL").arg(&rule).exec(&mut server.connection()).unwrap();
    };
    let (first, second) =
        (admitted(&quota, &request("1")).await, admitted(&quota, &request("2")).await);
    allow("-evalsha");
    first.settle(&usage).await;
    second.release().await;
    assert!(quota.is_degraded());
    allow("+evalsha");
    back(&quota, &request("probe")).await;
    // Both places are free long before the leases end.
    let third = admitted(&quota, &request("3")).await;
    let fourth = admitted(&quota, &request("4")).await;
    third.release().await;
    fourth.release().await;
    let seen = quota.inspect(&model.id).await.unwrap();
    assert_eq!((seen.in_flight.used, seen.get(Dimension::Combined).used), (0, 7));
}

/// Redis may grant what it is asked after its worker has gone on alone: that is given back.
#[tokio::test]
async fn a_grant_that_nobody_waits_for_is_given_back() {
    let Some(server) = Redis::start() else { return };
    let limits = Limits { concurrent: Some(2), ..limits(1_000_000) };
    let model = model_with_lanes(limits, Lanes::single());
    let options = Options { max_slot_wait: Duration::ZERO, ..Default::default() };
    let quota = Quota::with_redis(&server.url, [model.clone()], options).unwrap();
    let request = |name: &str| Request::new(model.id.clone(), name).tokens(10, 1);
    let probe = request("probe");
    admitted(&quota, &request("first")).await.release().await;
    back(&quota, &probe).await;
    let info: String = redis::cmd("INFO").arg("server").query(&mut server.connection()).unwrap();
    let process = info.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap();
    let signal = |signal: &str| {
        let kill = format!("kill {signal} {process}");
        let sent = std::process::Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    let alone = admitted(&quota, &request("alone")).await;
    assert!(quota.is_degraded());
    signal("-CONT");
    alone.settle(&Usage { uncached_input: 7, ..Default::default() }).await;
    // The server has carried out what it was asked while it stood still.
    let deadline = Instant::now() + PATIENCE;
    loop {
        back(&quota, &probe).await;
        let seen = quota.inspect(&model.id).await;
        let seen = seen.map(|seen| (seen.in_flight.used, seen.get(Dimension::Combined).used));
        if seen.as_ref().is_ok_and(|seen| *seen == (0, 7)) {
            break;
        }
        assert!(Instant::now() < deadline, "{seen:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Spending without Redis is reported to the fleet once, however often Redis goes away.
#[tokio::test]
async fn spending_without_redis_is_charged_once() {
    let Some(mut server) = Redis::start() else { return };
    let model = model_with_lanes(limits(1_000_000), Lanes::single());
    let options = Options { max_slot_wait: Duration::ZERO, ..Default::default() };
    let quota = Quota::with_redis(&server.url, [model.clone()], options).unwrap();
    let mut number = 0;
    let mut call = async || {
        number += 1;
        let request = Request::new(model.id.clone(), number.to_string()).tokens(100, 1);
        let permit = admitted(&quota, &request).await;
        permit.settle(&Usage { uncached_input: 100, ..Default::default() }).await;
    };
    call().await;
    let mut charged = Vec::new();
    for _ in 0..2 {
        server.kill();
        call().await;
        assert!(quota.is_degraded());
        server.restart();
        while quota.is_degraded() {
            call().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let charges = || -> Vec<String> {
            let mut connection = server.connection();
            let ids: Vec<String> = redis::cmd("ZRANGE")
                .arg("tidegate:v1:{test:model}:ledger")
                .arg(0)
                .arg(-1)
                .query(&mut connection)
                .unwrap();
            ids.into_iter().filter(|id| id.starts_with("away:")).collect()
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while charges().is_empty() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Only what this worker spent since: with the first report it would be more.
        charged.push(quota.inspect(&model.id).await.unwrap().get(Dimension::Requests).used);
    }
    assert!(number >= 5);
    let all: u64 = charged.iter().sum();
    assert!(all <= number, "{charged:?} of {number} calls");
}

/// Workers that start while Redis is away do not know their number.
#[tokio::test]
async fn a_worker_that_never_reached_redis_waits_for_it() {
    let Some(mut server) = Redis::start() else { return };
    server.kill();
    let model = model_with_lanes(limits(1_000), Lanes::single());
    let options = Options { max_slot_wait: Duration::ZERO, ..Default::default() };
    let quota = Quota::with_redis(&server.url, [model.clone()], options).unwrap();
    let request = Request::new(model.id.clone(), "early").tokens(1, 1);
    let refused = quota.admit(&request).await.unwrap_err();
    assert!(matches!(refused, Refused::Undecided { .. }), "{refused}");
    server.restart();
    let deadline = Instant::now() + Duration::from_secs(30);
    while quota.admit(&request).await.is_err() {
        assert!(Instant::now() < deadline, "Redis is back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A program with a wrong address is told so: nobody sees that it waits.
#[tokio::test]
async fn a_patient_call_ends_where_redis_was_never_reached() {
    let Some(mut server) = Redis::start() else { return };
    server.kill();
    let model = model_with_lanes(limits(1_000), Lanes::single());
    let options = Options { max_slot_wait: Duration::from_secs(1), ..Default::default() };
    let quota = Quota::with_redis(&server.url, [model.clone()], options).unwrap();
    let request = |name: &str| Request::new(model.id.clone(), name).tokens(1, 1);
    for name in ["first", "second"] {
        let (request, began) = (request(name), Instant::now());
        let told = tokio::time::timeout(Duration::from_secs(60), quota.admit_patiently(&request));
        let refused = told.await.expect("it ends").unwrap_err();
        assert!(matches!(refused, Refused::Undecided { .. }), "{refused}");
        assert!(refused.to_string().contains("without Redis (redis://127.0.0.1:"), "{refused}");
        assert!(name == "first" || began.elapsed() < Duration::from_secs(1), "it is known");
    }
    server.restart();
    admitted(&quota, &request("third")).await.release().await;
}

/// A key of a wrong type is a fault of one model; the others stay in Redis.
#[tokio::test]
async fn one_models_fault_is_no_reason_to_believe_redis_away() {
    let Some(server) = Redis::start() else { return };
    let model = model_with_lanes(limits(1_000), Lanes::single());
    let quota = Quota::with_redis(&server.url, [model.clone()], Options::default()).unwrap();
    let request = |id: &str| Request::new(model.id.clone(), id).tokens(1, 1);
    admitted(&quota, &request("first")).await.release().await;
    let mut connection = server.connection();
    let key = "tidegate:v1:{test:model}:state";
    redis::cmd("DEL").arg(key).exec(&mut connection).unwrap();
    redis::cmd("LPUSH").arg(key).arg("nonsense").exec(&mut connection).unwrap();
    // A busy machine may answer late; a second try shows the difference.
    for attempt in 0..20 {
        admitted(&quota, &request(&format!("second-{attempt}"))).await.release().await;
        if !quota.is_degraded() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(!quota.is_degraded());
    redis::cmd("DEL").arg(key).exec(&mut connection).unwrap();
    admitted(&quota, &request("third")).await.release().await;
    let seen = quota.inspect(&model.id).await.unwrap();
    assert_eq!(seen.get(Dimension::Requests).used, 0);
}

/// A worker alone, in virtual time: it has a quarter of the quota and goes on from what was drawn.
#[tokio::test]
async fn alone_a_worker_goes_on_from_what_it_saw() {
    let whole = common::in_memory(model_with_lanes(limits(60_000), Lanes::single()));
    whole.settled_down().await;
    assert_eq!(whole.reserve(&whole.ask(40_000)).await, Decision::Granted);
    let remembered = whole.store.remembered(&whole.model);
    let share = common::in_memory(whole.model.share(4));
    share.store.begin(&share.model, &remembered, 4);
    assert!(share.store.drawn_alone(&share.model) == Amounts::default(), "Redis knows of that");
    let seen = share.store.inspect(&share.model).await.unwrap();
    let plan = seen.get(Dimension::Combined).plan.unwrap();
    assert_eq!((seen.get(Dimension::Combined).limit, plan.at_once()), (15_000, 15_000));
    // A quarter of the 40,000 is drawn here, and is in the window as if it had been used evenly.
    assert_eq!(share.reserve(&share.ask(3_000)).await, Decision::Granted);
    let (wait, hold, _) = share.refused(&share.ask(2_250)).await;
    assert_eq!((wait, hold), (Duration::from_millis(2_500), Hold::Window(Dimension::Combined)));
    // Some of what is drawn here has refilled together with the earlier part.
    share.advance(Duration::from_secs(20));
    assert_eq!(share.store.drawn_alone(&share.model).combined, 3_000);
    share.advance(Duration::from_secs(30));
    assert_eq!(share.store.drawn_alone(&share.model).combined, 500);
    share.advance(Duration::from_secs(60));
    assert_eq!(share.store.drawn_alone(&share.model).combined, 0);
}

/// Redis goes away twice within a minute: the window of the fleet counts once, on all lanes.
#[tokio::test]
async fn alone_again_a_worker_counts_the_fleet_s_use_once() {
    let two = || common::lanes(&[("batch", 0.5, 0.6), ("interactive", 0.5, 1.0)]);
    let whole = common::in_memory(model_with_lanes(limits(60_000), two()));
    whole.settled_down().await;
    assert_eq!(whole.reserve(&whole.ask(19_200)).await, Decision::Granted);
    let remembered = whole.store.remembered(&whole.model);
    let share = common::in_memory(whole.model.share(2));
    let own = share.ask(100);
    for calls in [0, 100] {
        share.store.begin(&share.model, &remembered, 2);
        let seen = share.store.inspect(&share.model).await.unwrap();
        assert_eq!(seen.get(Dimension::Combined).used, 9_600 + calls);
        assert_eq!(seen.lanes[1].used.combined, 4_800);
        assert_eq!(share.reserve(&own).await, Decision::Granted);
    }
    share.advance(Duration::from_secs(60));
    let seen = share.store.inspect(&share.model).await.unwrap();
    assert_eq!(seen.get(Dimension::Combined).used, 0, "in the order of time");
}

/// No call goes before the use that filled the window leaves it.
#[tokio::test]
async fn alone_a_worker_remembers_a_full_window() {
    let deep = Limits { burst: Some(Duration::from_secs(60)), ..limits(60_000) };
    let whole = common::in_memory(model_with_lanes(deep, Lanes::single()));
    whole.settled_down().await;
    assert_eq!(whole.reserve(&whole.ask(60_000)).await, Decision::Granted);
    whole.advance(Duration::from_secs(30));
    let remembered = whole.store.remembered(&whole.model);
    let share = common::in_memory(whole.model.share(2));
    share.store.begin(&share.model, &remembered, 2);
    let (wait, ..) = share.refused(&share.ask(500)).await;
    assert_eq!(wait, Duration::from_millis(1_250), "a forty-eighth of a minute");
}
