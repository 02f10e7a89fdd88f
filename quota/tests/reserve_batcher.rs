//! Concurrent callers of one process share a script call, and each gets its own answer.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use common::{limits, model};
use tidegate_quota::{
    Dimension, Limits, ModelQuota, Options, Permit, Quota, Refused, Request, Ticket,
};
use tidegate_testkit::{PATIENCE, Redis, unique};
use tidegate_types::Usage;
use tokio::task::JoinSet;

/// A limit of requests in a window, all at once if needed.
fn requests(number: u64, window: Duration) -> ModelQuota {
    let limits = Limits { window, burst: Some(window), ..limits(1_000_000_000) };
    model(limits.with(Dimension::Requests, number))
}

fn quota(server: &Redis, model: &ModelQuota, max_slot_wait: Duration) -> Quota {
    let options = Options {
        max_slot_wait,
        key_prefix: unique("together"),
        answer_within: PATIENCE,
        ..Options::default()
    };
    Quota::with_redis(&server.url, [model.clone()], options).unwrap()
}

fn request(model: &ModelQuota, number: usize) -> Request {
    Request::new(model.id.clone(), number.to_string())
}

/// On a busy machine the limiter may go on without Redis: then the test is tried again with an
/// empty Redis. A first call connects and names the lanes.
async fn undisturbed(
    model: &ModelQuota,
    max_slot_wait: Duration,
    work: impl AsyncFn(&Redis, &Quota) -> bool,
) {
    let Some(server) = Redis::start() else { return };
    for _ in 0..20 {
        let quota = quota(&server, model, max_slot_wait);
        let first = quota.admit(&Request::once(model.id.clone())).await;
        let Ok(mut first) = first else { continue };
        // Estimates count once a call has been answered.
        first.sent();
        first.settle(&Usage::default()).await;
        if work(&server, &quota).await {
            return;
        }
    }
    panic!("the machine is too busy");
}

/// How often a script ran.
fn scripts_run(server: &Redis) -> usize {
    let info: String =
        redis::cmd("INFO").arg("commandstats").query(&mut server.connection()).unwrap();
    let calls = |command: &str| {
        let line = info.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        line.map_or(0, |line| line.split(['=', ',']).nth(1).unwrap().parse::<usize>().unwrap())
    };
    calls("evalsha")
}

async fn all(quota: &Quota, model: &ModelQuota, number: usize) -> Vec<Result<Permit, Refused>> {
    let mut asked = JoinSet::new();
    for number in 0..number {
        let (quota, request) = (quota.clone(), request(model, number));
        asked.spawn(async move { (number, quota.admit(&request).await) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[tokio::test]
async fn a_hundred_calls_are_four_questions_and_each_has_its_own_answer() {
    let model = requests(61, Duration::from_mins(1));
    undisturbed(&model, Duration::ZERO, async |server, quota| {
        let before = scripts_run(server);
        let answers = all(quota, &model, 100).await;
        let questions = scripts_run(server) - before;
        if quota.is_degraded() || questions == 0 {
            return false;
        }
        assert_eq!(questions, 4, "32 calls in each at most");
        assert!(answers[..60].iter().all(Result::is_ok));
        let ticket = |answer: &Result<Permit, Refused>| match answer {
            Err(Refused::Wait { ticket, .. }) => *ticket,
            other => panic!("{other:?}"),
        };
        let turns: Vec<Ticket> = answers[60..].iter().map(ticket).collect();
        assert!(turns.is_sorted_by(|one, next| one.position < next.position), "{turns:?}");
        let used = quota.inspect(&model.id).await.unwrap().used();
        assert_eq!(used.requests, 61);
        true
    })
    .await;
}

/// Callers are dropped at any point: before the script call, while it is under way, or with an
/// untaken answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_caller_leaves_nothing_behind() {
    let model = requests(1_000_000, Duration::from_mins(1));
    undisturbed(&model, Duration::ZERO, async |_, quota| {
        let mut going = JoinSet::new();
        for number in 0..400_usize {
            let (quota, request) = (quota.clone(), request(&model, number));
            going.spawn(async move {
                let patience = Duration::from_micros(number as u64 % 40 * 50);
                let permit = tokio::time::timeout(patience, quota.admit(&request)).await;
                drop(permit);
            });
        }
        going.join_all().await;
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if quota.is_degraded() {
                return false;
            }
            let Ok(seen) = quota.inspect(&model.id).await else { return false };
            if seen.used().requests == 1 && seen.in_flight.used == 0 {
                return true;
            }
            assert!(Instant::now() < deadline, "{seen:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn no_caller_waits_on_when_redis_goes_away() {
    let Some(mut server) = Redis::start() else { return };
    let model = requests(1_000_000, Duration::from_mins(1));
    let quota = quota(&server, &model, Duration::ZERO);
    let deadline = Instant::now() + Duration::from_mins(1);
    while quota.admit(&Request::once(model.id.clone())).await.is_err() {
        assert!(Instant::now() < deadline);
    }
    let asked = tokio::spawn({
        let (quota, model) = (quota.clone(), model.clone());
        async move { all(&quota, &model, 200).await }
    });
    tokio::task::yield_now().await;
    server.kill();
    let answers = asked.await.unwrap();
    let refused = answers.iter().filter(|answer| answer.is_err()).count();
    assert_eq!(refused, 0, "this worker's own share has room for all");
    let alone = all(&quota, &model, 50).await;
    assert!(alone.iter().all(Result::is_ok) && quota.is_degraded());
    server.restart();
    while quota.is_degraded() {
        assert!(Instant::now() < deadline, "Redis is back");
        let _ = quota.admit(&Request::once(model.id.clone())).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A program may have several runtimes: the sender stops with the runtime of the first caller.
#[test]
fn a_runtime_that_ends_leaves_no_caller_of_another_waiting() {
    let Some(server) = Redis::start() else { return };
    let model = requests(1_000_000, Duration::from_mins(1));
    let lasting = tokio::runtime::Runtime::new().unwrap();
    // As a worker; with short time-outs Redis would count as away before this test fails.
    let options = Options { max_slot_wait: Duration::ZERO, ..Options::default() };
    let (quota, deadline) = {
        let _inside = lasting.enter();
        let quota = Quota::with_redis(&server.url, [model.clone()], options).unwrap();
        (quota, Instant::now() + Duration::from_mins(1))
    };
    let admitted = |number: usize| {
        let asked = async {
            tokio::time::timeout(Duration::from_secs(30), quota.admit(&request(&model, number)))
                .await
        };
        lasting.block_on(asked).expect("an answer, of Redis or of this worker").is_ok()
    };
    while !admitted(0) {
        assert!(Instant::now() < deadline);
    }
    redis::cmd("CLIENT").arg(&["PAUSE", "60000"]).exec(&mut server.connection()).unwrap();
    let ending = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    ending.block_on(async {
        let (quota, request) = (quota.clone(), request(&model, 1));
        tokio::spawn(async move { quota.admit(&request).await });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    });
    drop(ending);
    assert!(admitted(2), "this worker's own share has room");
}

/// Sixty callers that wait in place, for a limit of ten a second.
#[tokio::test]
async fn callers_that_wait_in_place_share_batches_and_go_in_order() {
    let model = requests(20, Duration::from_secs(2));
    undisturbed(&model, Duration::from_mins(1), async |server, quota| {
        let before = scripts_run(server);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = JoinSet::new();
        for number in 0..60_usize {
            let (quota, request) = (quota.clone(), request(&model, number));
            let order = Arc::clone(&order);
            waiting.spawn(async move {
                let permit = quota.admit(&request).await.unwrap();
                order.lock().unwrap().push(number);
                permit.settle(&Usage::default()).await;
            });
        }
        waiting.join_all().await;
        let questions = scripts_run(server) - before - 60;
        if quota.is_degraded() {
            return false;
        }
        let order = order.lock().unwrap();
        // The callers of one batch go together.
        let moved = |(place, number): (usize, &usize)| place.abs_diff(*number) <= 5;
        assert!(order.iter().enumerate().all(moved), "{order:?}");
        assert!(questions <= 60, "{questions} questions for 60 admissions");
        true
    })
    .await;
}

/// A worker that stops does not wait for the batch of an earlier caller.
#[tokio::test]
async fn a_caller_behind_another_ends_its_wait_when_told_to() {
    let model = requests(2, Duration::from_secs(20));
    undisturbed(&model, Duration::from_mins(1), async |_, quota| {
        let Ok(_last_of_the_room) = quota.admit(&request(&model, 0)).await else { return false };
        let earlier = tokio::spawn({
            let (quota, request) = (quota.clone(), request(&model, 1));
            async move { quota.admit(&request).await.map(drop) }
        });
        let waiting = async || match quota.inspect(&model.id).await {
            Ok(seen) => seen.lanes.iter().map(|lane| lane.waiting).sum::<u64>(),
            Err(_) => 0,
        };
        while waiting().await == 0 && !earlier.is_finished() && !quota.is_degraded() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let began = Instant::now();
        let stop = tokio::time::sleep(Duration::from_millis(50));
        let answer = quota.admit_until(&request(&model, 2), stop).await;
        if earlier.is_finished() || quota.is_degraded() {
            return false;
        }
        assert!(matches!(answer, Err(Refused::Wait { .. })), "{answer:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "the earlier caller is due after 9 s");
        earlier.abort();
        true
    })
    .await;
}
