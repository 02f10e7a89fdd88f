//! Token buckets in memory and in a real Redis: equal answers, and never more than capacity and
//! refill.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::time::Duration;

use common::{SECOND, START};
use proptest::prelude::*;
use tidegate_quota::{
    Bucket, BucketLimit,
    bucket::{BucketLimitError, BucketRefused},
    redis_store::Store,
};
use tidegate_testkit::{PATIENCE, Redis, unique};

const SEC: Duration = Duration::from_secs(1);

/// A limit of 10 at once and 2 a second.
fn limit() -> BucketLimit {
    BucketLimit::new(10, 4, Duration::from_secs(2)).unwrap()
}

fn store(server: &Redis, prefix: &str) -> Store {
    Store::open_within(&server.url, prefix, Duration::from_secs(300), PATIENCE).unwrap()
}

/// A bucket in Redis on a clock that the test sets.
struct Rig {
    store: Store,
    prefix: String,
    now: u64,
}

impl Rig {
    fn new() -> Option<Self> {
        let prefix = unique("test");
        let rig = Self { store: store(Redis::shared()?, &prefix), prefix, now: START };
        rig.store.set_test_clock(START);
        Some(rig)
    }

    fn bucket(&self, limit: BucketLimit) -> Bucket {
        Bucket::in_redis(self.store.clone(), "search", limit)
    }

    fn advance(&mut self, by: Duration) {
        self.now += u64::try_from(by.as_micros()).unwrap();
        self.store.set_test_clock(self.now);
    }

    fn key(&self) -> String {
        format!("{}:v1:{{bucket:search}}:level", self.prefix)
    }
}

fn wait(answer: Result<(), BucketRefused>) -> (Duration, i64) {
    match answer {
        Err(BucketRefused::Wait { wait, level, .. }) => (wait, level),
        other => panic!("expected a wait, got {other:?}"),
    }
}

#[tokio::test]
async fn taken_amounts_are_gone_until_they_refill() {
    let Some(mut rig) = Rig::new() else { return };
    let bucket = rig.bucket(limit());
    assert_eq!(bucket.peek().await.unwrap(), 10, "a new bucket is full");
    bucket.consume(7).await.unwrap();
    assert_eq!(wait(bucket.consume(4).await), (SEC / 2, 3), "one lacks, at two a second");
    assert_eq!(bucket.peek().await.unwrap(), 3, "a refusal changes nothing");
    rig.advance(SEC / 2 - Duration::from_millis(1));
    assert!(matches!(bucket.consume(4).await, Err(BucketRefused::Wait { .. })));
    rig.advance(Duration::from_millis(1));
    bucket.consume(4).await.unwrap();
    assert_eq!(bucket.promise(6, SEC * 3).await.unwrap(), SEC * 3, "promised");
    assert_eq!(wait(bucket.consume(1).await), (SEC * 7 / 2, -6));
    assert!(matches!(
        bucket.consume(11).await,
        Err(BucketRefused::Never { amount: 11, capacity: 10 })
    ));
    rig.advance(SEC * 3600);
    assert_eq!(bucket.peek().await.unwrap(), 10);
}

#[tokio::test]
async fn a_waiting_caller_asks_once_and_goes_in_order() {
    let bucket = Bucket::in_memory(BucketLimit::new(10, 100, SEC).unwrap());
    let started = std::time::Instant::now();
    let mut waits = Vec::new();
    for _ in 0..30 {
        let bucket = bucket.clone();
        waits.push(tokio::spawn(async move {
            bucket.take(1, SEC * 60).await.map(|()| started.elapsed())
        }));
    }
    let mut before = Duration::ZERO;
    for (place, wait) in waits.into_iter().enumerate() {
        let least = SEC / 100 * u32::try_from(place.saturating_sub(9)).unwrap();
        let waited = wait.await.unwrap().unwrap();
        assert!(waited + SEC / 100 > least, "{place}. waited {waited:?}, too short");
        assert!(waited + SEC / 100 > before, "{place}. went before the one in front");
        before = waited;
    }
    bucket.consume(5).await.unwrap_err();
    assert!(
        matches!(bucket.take(10, SEC / 1000).await, Err(BucketRefused::Wait { .. })),
        "longer than it would wait"
    );
}

#[tokio::test]
async fn a_caller_that_gives_up_gives_back() {
    let limit = BucketLimit::new(10, 1, SEC * 100).unwrap();
    gives_back(Bucket::in_memory(limit)).await;
    if let Some(rig) = Rig::new() {
        gives_back(rig.bucket(limit)).await;
        let charge = ["6", "10", "2", "-1", &START.to_string()].map(str::to_owned);
        let mut call = redis::cmd("EVAL");
        call.arg(tidegate_lua::BUCKET).arg(1).arg(rig.key()).arg(&charge);
        let charged: Vec<i64> = call.query(&mut Redis::shared().unwrap().connection()).unwrap();
        assert_eq!(charged, [1, 0, -6], "charged at any level");
    }
}

async fn gives_back(bucket: Bucket) {
    bucket.consume(10).await.unwrap();
    let waiting = tokio::time::timeout(SEC / 20, bucket.take(8, SEC * 6_000)).await;
    assert!(waiting.is_err(), "eight need 800 seconds");
    for _ in 0..500 {
        if bucket.peek().await.unwrap() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("what was promised is still missing: {}", bucket.peek().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_get_exactly_the_capacity() {
    let Some(server) = Redis::shared() else { return };
    let prefix = unique("test");
    // A refill so slow that nothing refills during the test.
    let limit = BucketLimit::new(100, 1, SEC * 3600).unwrap();
    let clients: Vec<Bucket> =
        (0..4).map(|_| Bucket::in_redis(store(server, &prefix), "search", limit)).collect();
    let asks: Vec<_> = (0..400)
        .map(|ask| {
            let bucket = clients[ask % 4].clone();
            tokio::spawn(async move { bucket.consume(3).await.is_ok() })
        })
        .collect();
    let mut taken = 0;
    for ask in asks {
        taken += usize::from(ask.await.unwrap());
    }
    assert_eq!(taken, 33);
    assert_eq!(clients[0].peek().await.unwrap(), 1);
}

#[tokio::test]
async fn changed_limits_keep_the_used_amount() {
    let Some(rig) = Rig::new() else { return };
    rig.bucket(limit()).consume(4).await.unwrap();
    let half = rig.bucket(BucketLimit::new(5, 1, SEC).unwrap());
    assert_eq!(half.peek().await.unwrap(), 5, "6 of 10 left, but it holds 5");
    let tenfold = rig.bucket(BucketLimit::new(100, 20, SEC).unwrap());
    assert_eq!(wait(tenfold.consume(26).await), (SEC, 6), "20 a second now");
}

#[tokio::test]
async fn a_clock_that_steps_back_refills_nothing() {
    let Some(mut rig) = Rig::new() else { return };
    let bucket = rig.bucket(limit());
    bucket.consume(10).await.unwrap();
    rig.advance(SEC);
    bucket.consume(2).await.unwrap();
    rig.store.set_test_clock(START);
    assert_eq!(bucket.peek().await.unwrap(), 0);
    rig.advance(SEC);
    assert_eq!(bucket.peek().await.unwrap(), 2, "from where it was before the step");
}

#[tokio::test]
async fn the_key_lives_until_the_bucket_is_full_and_lost_scripts_are_sent_again() {
    let Some(rig) = Rig::new() else { return };
    let mut connection = Redis::shared().unwrap().connection();
    let bucket = rig.bucket(limit());
    bucket.consume(8).await.unwrap();
    let ttl: i64 = redis::cmd("PTTL").arg(rig.key()).query(&mut connection).unwrap();
    assert!((3_000..=5_000).contains(&ttl), "8 at two a second are back in 4 s, not {ttl} ms");
    redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
    assert_eq!(bucket.peek().await.unwrap(), 2);
    redis::cmd("DEL").arg(rig.key()).exec(&mut connection).unwrap();
    assert_eq!(bucket.peek().await.unwrap(), 10, "a lost bucket is a new one");
}

#[tokio::test]
async fn bad_arguments_are_an_error_and_change_nothing() {
    let Some(rig) = Rig::new() else { return };
    let mut connection = Redis::shared().unwrap().connection();
    for arguments in [
        &["1"][..],
        &["1", "0", "1", "0", "0"],
        &["1", "10", "0", "0", "0"],
        &["x", "10", "1", "0", "0"],
        &["nan", "10", "1", "0", "0"],
        &["1", "1e300", "1", "0", "0"],
    ] {
        let mut call = redis::cmd("EVAL");
        call.arg(tidegate_lua::BUCKET).arg(1).arg(rig.key()).arg(arguments);
        let error = call.query::<redis::Value>(&mut connection).unwrap_err();
        assert!(error.to_string().contains("TIDEGATE"), "{arguments:?}: {error}");
    }
    assert_eq!(rig.bucket(limit()).peek().await.unwrap(), 10);
}

#[tokio::test]
async fn a_redis_that_is_away_is_said() {
    let store =
        Store::open("redis://127.0.0.1:1", &unique("test"), Duration::from_secs(300)).unwrap();
    let refused = Bucket::in_redis(store, "search", limit()).consume(1).await.unwrap_err();
    assert!(refused.to_string().starts_with("the bucket cannot be asked: "), "{refused}");
}

#[test]
fn a_limit_that_gives_nothing_is_refused() {
    for (capacity, refill, per) in [(0, 1, SEC), (1, 0, SEC), (1, 1, Duration::ZERO)] {
        assert_eq!(
            BucketLimit::new(capacity, refill, per),
            Err(BucketLimitError { capacity, refill, per })
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// An independent check: in any span, what was granted, at the time when it may be used, stays
    /// within capacity and refill.
    #[test]
    fn no_span_gets_more_than_capacity_and_refill(
        steps in proptest::collection::vec((0_u64..3_000_000, 1_u32..12, 0_u64..4_000_000), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let Some(mut rig) = Rig::new() else { return Ok(()) };
        let bucket = rig.bucket(limit());
        let mut used: Vec<(f64, f64)> = Vec::new();
        for (pause, amount, longest) in steps {
            rig.advance(Duration::from_micros(pause));
            let now = (rig.now - START) as f64 / SECOND as f64;
            // The server's clock stands still, so waits are only read; no caller sleeps here.
            match runtime.block_on(bucket.promise(amount, Duration::from_micros(longest))) {
                Ok(wait) => used.push((now + wait.as_secs_f64(), f64::from(amount))),
                Err(BucketRefused::Wait { wait, .. }) => prop_assert!(wait > Duration::from_micros(longest)),
                Err(BucketRefused::Never { .. }) => prop_assert!(amount > 10),
                Err(BucketRefused::Unknown(error)) => panic!("{error}"),
            }
        }
        for (first, (from, _)) in used.iter().enumerate() {
            let mut sum = 0.0;
            for (until, amount) in &used[first..] {
                sum += amount;
                prop_assert!(sum <= 10.0 + 2.0 * (until - from) + 1e-3, "{sum} from {from} to {until}: {used:?}");
            }
        }
    }
}
