//! The batches of a fleet that wait at a provider.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may stop at the first fault")]

mod common;

use common::{limits, model};
use tidegate_quota::{Error, Options, Quota, enqueued::Enqueued, key::ModelKeys};
use tidegate_testkit::{PATIENCE, Redis, unique};

const LIMIT: u64 = 1_000;

/// Two workers of one fleet, and the key of their only model.
fn fleet(server: &Redis) -> ([Quota; 2], String) {
    let prefix = unique("enqueued");
    let model = model(limits(1_000));
    let key = ModelKeys::new(&prefix, &model.quota_name()).enqueued(&model.id);
    let worker = || {
        let options =
            Options { key_prefix: prefix.clone(), answer_within: PATIENCE, ..Options::default() };
        Quota::with_redis(&server.url, [model.clone()], options).unwrap()
    };
    ([worker(), worker()], key)
}

#[tokio::test]
async fn batches_of_all_workers_are_within_the_limit_together() {
    let Some(server) = Redis::start() else { return };
    let ([one, other], _) = fleet(&server);
    let id = model(limits(1)).id;
    let enter = async |worker: &Quota, batch: &str, tokens| {
        worker.enqueue(&id, batch, tokens, LIMIT).await.unwrap()
    };
    assert_eq!(enter(&one, "a", 600).await, Enqueued::Entered);
    assert_eq!(enter(&other, "b", 500).await, Enqueued::Full { others: 600 });
    assert_eq!(enter(&other, "b", 400).await, Enqueued::Entered);
    // Entered again: after a lost reply, or with a part of its documents.
    assert_eq!(enter(&one, "a", 600).await, Enqueued::Entered);
    assert_eq!(enter(&one, "a", 300).await, Enqueued::Entered);
    assert_eq!(enter(&other, "c", 301).await, Enqueued::Full { others: 700 });
    other.dequeue(&id, "a").await.unwrap();
    other.dequeue(&id, "never entered").await.unwrap();
    assert_eq!(enter(&other, "c", 600).await, Enqueued::Entered);
}

/// A batch larger than the limit would never be entered beside others; alone it is.
#[tokio::test]
async fn one_that_is_larger_than_the_limit_is_entered_alone() {
    let Some(server) = Redis::start() else { return };
    let ([one, other], _) = fleet(&server);
    let id = model(limits(1)).id;
    let large = 2 * LIMIT;
    assert_eq!(one.enqueue(&id, "a", large, LIMIT).await.unwrap(), Enqueued::Entered);
    let full = other.enqueue(&id, "b", 1, LIMIT).await.unwrap();
    assert_eq!(full, Enqueued::Full { others: large });
}

#[tokio::test]
async fn racing_workers_never_enter_more_than_the_limit() {
    let Some(server) = Redis::start() else { return };
    let ([one, other], _) = fleet(&server);
    let id = model(limits(1)).id;
    let mut race = tokio::task::JoinSet::new();
    for batch in 0..100 {
        let (worker, id) = (if batch % 2 == 0 { &one } else { &other }.clone(), id.clone());
        race.spawn(
            async move { worker.enqueue(&id, &batch.to_string(), 30, LIMIT).await.unwrap() },
        );
    }
    let entered = race.join_all().await.into_iter().filter(|it| *it == Enqueued::Entered).count();
    assert_eq!(entered as u64, LIMIT / 30);
}

/// Expired and unreadable entries are removed; the key has a time to live.
#[tokio::test]
async fn an_entry_that_is_not_removed_expires() {
    let Some(server) = Redis::start() else { return };
    let ([one, _], key) = fleet(&server);
    let id = model(limits(1)).id;
    let mut connection = server.connection();
    for (batch, kept) in [("lost", "900 1700000000"), ("odd", "many")] {
        redis::cmd("HSET").arg(&key).arg(batch).arg(kept).exec(&mut connection).unwrap();
    }
    assert_eq!(one.enqueue(&id, "a", 900, LIMIT).await.unwrap(), Enqueued::Entered);
    let kept: Vec<String> = redis::cmd("HKEYS").arg(&key).query(&mut connection).unwrap();
    assert_eq!(kept, ["a"]);
    let lives: u64 = redis::cmd("TTL").arg(&key).query(&mut connection).unwrap();
    assert!((80_000..=90_000).contains(&lives), "{lives}");
}

#[tokio::test]
async fn an_unknown_model_is_named_and_without_a_redis_nothing_is_counted() {
    let alone = Quota::in_memory([model(limits(1))], Options::default());
    let known = model(limits(1)).id;
    for _ in 0..2 {
        let entered = alone.enqueue(&known, "a", 2 * LIMIT, LIMIT).await.unwrap();
        assert_eq!(entered, Enqueued::Entered);
    }
    let unknown = alone.enqueue(&"openai:none".parse().unwrap(), "a", 1, LIMIT).await;
    assert!(matches!(unknown, Err(Error::UnknownModel(_))), "{unknown:?}");
}
