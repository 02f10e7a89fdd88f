//! What operators hold, over several processes' worth of limiters.

mod common;

use std::{sync::Arc, time::Duration};

use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota};
use tidegate_testkit::{Redis, unique};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_is_held_in_every_process_until_it_is_let_go() {
    let Some(redis) = Redis::shared() else { return };
    let prefix = unique("test");
    let quota = || {
        let limits = Limits::default().with(Dimension::Requests, 100);
        let lanes = Arc::new(Lanes::single());
        let model = ModelQuota::new("a:b".parse().unwrap(), limits, Charge::default(), lanes);
        let options = Options {
            key_prefix: prefix.clone(),
            pause_ttl: Duration::from_secs(6),
            ..Options::default()
        };
        Quota::with_redis(&redis.url, [model.unwrap()], options).unwrap()
    };
    let (operator, worker, model) = (quota(), quota(), "a:b".parse().unwrap());
    let keeping = tokio::spawn({
        let worker = worker.clone();
        async move { worker.keep_holds().await }
    });
    operator.hold_batch("night", true).await.unwrap();
    operator.hold_model(&model, "holiday").await.unwrap();
    let began = tokio::time::Instant::now();
    while worker.batch_held_for("night").is_none() {
        assert!(began.elapsed() < Duration::from_secs(20), "the worker does not learn of it");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(worker.batch_held_for("day").is_none());
    // The gate would open by itself after 6 s.
    tokio::time::sleep_until(began + Duration::from_secs(10)).await;
    let seen = operator.inspect(&model).await.unwrap();
    assert!(!seen.pause.is_zero() && seen.reason == "holiday", "{seen:?}");
    let held = operator.held().await.unwrap();
    assert!(held.batches["night"] > 0 && held.models[&model] == "holiday", "{held:?}");
    let mut connection = redis.connection();
    let ttl: i64 =
        redis::cmd("TTL").arg(format!("{prefix}:v1:holds")).query(&mut connection).unwrap();
    assert!(ttl > 86_400, "{ttl}");

    operator.hold_batch("night", false).await.unwrap();
    operator.resume(&model).await.unwrap();
    assert!(operator.inspect(&model).await.unwrap().pause.is_zero());
    while worker.batch_held_for("night").is_some() {
        assert!(began.elapsed() < Duration::from_secs(60), "the worker does not learn of it");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    keeping.abort();
}
