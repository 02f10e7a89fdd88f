//! Operators' holds, over several limiters that stand for processes.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first fault")]

mod common;

use std::{sync::Arc, time::Duration};

use tidegate_quota::{
    Change, Charge, Dimension, Lanes, Limited, Limits, ModelQuota, Options, PerLimit, Quota,
    Request, key, usage_history::History,
};
use tidegate_testkit::{PATIENCE, Redis, unique};
use tidegate_types::{ModelId, Usage};

/// A process that shares the quota of `a:b`, 100 requests a minute, under this prefix.
fn process(redis: &Redis, prefix: &str) -> Quota {
    let limits = Limits::default().with(Dimension::Requests, 100);
    let lanes = Arc::new(Lanes::single());
    let model = ModelQuota::new("a:b".parse().unwrap(), limits, Charge::default(), lanes);
    let options = Options {
        key_prefix: prefix.to_owned(),
        pause_ttl: Duration::from_secs(6),
        answer_within: PATIENCE,
        ..Options::default()
    };
    Quota::with_redis(&redis.url, [model.unwrap()], options).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_reach_every_process_until_they_are_released() {
    let Some(redis) = Redis::shared() else { return };
    let prefix = unique("test");
    let (operator, worker) = (process(redis, &prefix), process(redis, &prefix));
    let model = "a:b".parse().unwrap();
    let keeping = tokio::spawn({
        let worker = worker.clone();
        async move { worker.keep_holds().await }
    });
    operator.hold_batch("night/1", "night", true).await.unwrap();
    operator.hold_model(&model, "holiday").await.unwrap();
    let began = tokio::time::Instant::now();
    while worker.batch_held_for("night/1").is_none() {
        assert!(began.elapsed() < Duration::from_secs(20), "the worker does not learn of it");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(worker.batch_held_for("night/2").is_none());
    let mut connection = redis.connection();
    let mut changes =
        || -> u64 { redis::cmd("GET").arg(key::news(&prefix)).query(&mut connection).unwrap() };
    let before = changes();
    // The gate would open by itself after 6 s.
    tokio::time::sleep_until(began + Duration::from_secs(10)).await;
    let seen = operator.inspect(&model).await.unwrap();
    assert!(!seen.pause.is_zero() && seen.reason == "holiday", "{seen:?}");
    assert_eq!(changes(), before, "a gate that stays closed is no change");
    let held = operator.operator_holds().await.unwrap();
    assert!(
        held.batches["night/1"].since > 0
            && held.batches["night/1"].batch == "night"
            && held.models[&model] == "holiday",
        "{held:?}"
    );
    let ttl: i64 = redis::cmd("TTL").arg(key::holds(&prefix)).query(&mut connection).unwrap();
    assert!(ttl > 86_400, "{ttl}");

    operator.hold_batch("night/1", "night", false).await.unwrap();
    operator.resume(&model).await.unwrap();
    assert!(operator.inspect(&model).await.unwrap().pause.is_zero());
    while worker.batch_held_for("night/1").is_some() {
        assert!(began.elapsed() < Duration::from_secs(60), "the worker does not learn of it");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    keeping.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_is_set_for_some_time_ends_in_every_process() {
    let Some(redis) = Redis::shared() else { return };
    let prefix = unique("test");
    let (operator, worker) = (process(redis, &prefix), process(redis, &prefix));
    let model = "a:b".parse().unwrap();
    let set_to = |value| {
        PerLimit::from_fn(move |limited| match limited {
            Limited::Window(Dimension::Requests) => Change::Set(value),
            _ => Change::Keep,
        })
    };
    let set = async || operator.inspect(&model).await.unwrap().get(Dimension::Requests).set;
    operator.set_limits_expiry(&model, Some(Duration::from_secs(3))).await.unwrap();
    operator.set_limits(&model, &set_to(50)).await.unwrap();
    let left = operator.operator_holds().await.unwrap().limit_left(&model).unwrap();
    assert!(left <= Duration::from_secs(3), "{left:?}");
    // While no worker runs there are no calls, and the limit stays.
    assert_eq!(set().await, Some(50));
    let keeping = tokio::spawn({
        let worker = worker.clone();
        async move { worker.keep_holds().await }
    });
    let began = std::time::Instant::now();
    while set().await.is_some() {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(operator.operator_holds().await.unwrap().limits.is_empty());
    // A limit without an end outlives the end of the earlier one.
    operator.set_limits_expiry(&model, Some(Duration::from_secs(2))).await.unwrap();
    operator.set_limits(&model, &set_to(50)).await.unwrap();
    operator.set_limits_expiry(&model, None).await.unwrap();
    operator.set_limits(&model, &set_to(70)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(set().await, Some(70));
    keeping.abort();
}

/// Each worker reports what it has seen: gauges do not add up, calls do, and nothing is sent if
/// nothing was seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_workers_report_the_last_hour_and_it_is_bounded() {
    let Some(redis) = Redis::shared() else { return };
    let prefix = unique("test");
    let model: ModelId = "a:b".parse().unwrap();
    let key = format!("{prefix}:v1:{{a:b}}:history:a:b");
    let mut connection = redis.connection();
    let quota = || process(redis, &prefix);
    let idle = quota();
    assert_eq!(idle.history(&model).await.unwrap(), History::default());
    let beats = |quota: Quota, name: &'static str| {
        tokio::spawn(async move { quota.keep_alive(name, std::future::pending()).await })
    };
    let workers = [quota(), quota()];
    for (number, worker) in workers.iter().enumerate() {
        for call in 0..3 {
            let request = Request::new(model.clone(), format!("{number}-{call}"));
            let mut permit = worker.admit(&request).await.unwrap();
            permit.sent();
            match call {
                0 => permit.keep_charged().await,
                _ => permit.settle(&Usage::default()).await,
            }
        }
    }
    let tasks = [beats(workers[0].clone(), "w-0"), beats(workers[1].clone(), "w-1")];
    let began = std::time::Instant::now();
    let history = loop {
        let history = idle.history(&model).await.unwrap();
        if history.points.iter().map(|point| point.calls.answered).sum::<u64>() == 4 {
            break history;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{history:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let calls = history.days.last().unwrap().calls;
    assert_eq!((calls.answered, calls.failed, calls.rate_limited), (4, 2, 0));
    let used = history.points.iter().map(|point| point.used).fold(0.0, f64::max);
    assert!((0.05..0.08).contains(&used), "six of 98, seen by both: {history:?}");
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let ttl: i64 = redis::cmd("TTL").arg(&key).query(&mut connection).unwrap();
    assert!(ttl > 86_400, "{ttl}");

    // The history is bounded: 120 half minutes and 14 days.
    let text = tidegate_lua::HISTORY;
    let (_, clock) = tidegate_lua::PARTS.iter().find(|(name, _)| *name == "include/clock").unwrap();
    for minutes in 0..3_000_u64 {
        let at = (1_700_000_000 + minutes * 600) * 1_000_000;
        let mut eval = redis::cmd("EVAL");
        eval.arg(format!("{clock}{text}")).arg(1).arg(&key).arg(&[500, 1, 0, 0, 1, 0, 0]).arg(at);
        let _: Vec<i64> = eval.query(&mut connection).unwrap();
    }
    let fields: usize = redis::cmd("HLEN").arg(&key).query(&mut connection).unwrap();
    assert!((14..=134).contains(&fields), "{fields}");
    for bad in
        [vec!["1"; 7], vec!["1"; 9], vec!["1", "1", "-1", "1", "1", "1", "1", "0"], vec!["nan"; 8]]
    {
        let mut eval = redis::cmd("EVAL");
        eval.arg(format!("{clock}{text}")).arg(1).arg("never").arg(bad);
        let error = eval.query::<redis::Value>(&mut connection).unwrap_err().to_string();
        assert!(error.contains("TIDEGATE"), "{error}");
    }
    assert!(!redis::cmd("EXISTS").arg("never").query::<bool>(&mut connection).unwrap());
}
