//! Workers with different lanes on one Redis.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod common;

use common::{PATIENCE, PAUSE_TTL, ask, lanes, limits, model_with_lanes};
use tidegate_quota::{
    Amounts, Decision, Hold, Lanes, ModelQuota, Snapshot, Store, redis_store::Store as InRedis,
    store::Settlement,
};
use tidegate_testkit::{Redis, unique};
use tidegate_types::Lane;

const TOKENS: u64 = 100_000;

fn ours() -> Lanes {
    lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0), ("standard", 0.3, 1.0)])
}

/// One more lane, whose name sorts first.
fn theirs() -> Lanes {
    lanes(&[
        ("alpha", 0.2, 1.0),
        ("batch", 0.1, 1.0),
        ("interactive", 0.4, 1.0),
        ("standard", 0.3, 1.0),
    ])
}

struct Worker(InRedis, ModelQuota);

impl Worker {
    fn new(server: &Redis, prefix: &str, lanes: Lanes) -> Self {
        let store = InRedis::open_within(&server.url, prefix, PAUSE_TTL, PATIENCE).unwrap();
        Self(store, model_with_lanes(limits(TOKENS), lanes))
    }

    async fn takes(&self, id: &str, lane: &str, tokens: u64) {
        let lane = self.1.lanes.index(&Lane::new(lane).unwrap()).unwrap();
        let ask = tidegate_quota::store::Ask { lane, ..ask(id, Amounts::call(tokens, 0)) };
        let (decision, _) = self.0.reserve(&self.1, &ask).await.unwrap();
        assert_eq!(decision, Decision::Granted);
    }

    /// The use of each lane that it sees.
    async fn sees(&self) -> Vec<(String, u64)> {
        let seen: Snapshot = self.0.inspect(&self.1).await.unwrap();
        seen.lanes.iter().map(|it| (it.lane.to_string(), it.used.combined)).collect()
    }
}

fn used(lanes: &[(&str, u64)]) -> Vec<(String, u64)> {
    lanes.iter().map(|(name, tokens)| ((*name).to_owned(), *tokens)).collect()
}

#[tokio::test]
async fn a_lane_is_the_same_for_workers_with_other_lanes() {
    let Some(server) = Redis::shared() else { return };
    let prefix = unique("lanes");
    let (one, other) =
        (Worker::new(server, &prefix, ours()), Worker::new(server, &prefix, theirs()));
    one.takes("a", "batch", 1_000).await;
    other.takes("b", "alpha", 20).await;
    other.takes("c", "standard", 300).await;
    let all = [("batch", 1_000), ("interactive", 0), ("standard", 300), ("alpha", 20)];
    assert_eq!(one.sees().await, used(&all), "the others' lane comes last");
    let all = [("alpha", 20), ("batch", 1_000), ("interactive", 0), ("standard", 300)];
    assert_eq!(other.sees().await, used(&all));
    let seen = one.0.inspect(&one.1).await.unwrap();
    let alpha = seen.lanes.last().unwrap();
    assert!(alpha.elsewhere && (alpha.share.guaranteed - 0.2).abs() < 1e-9, "{alpha:?}");
    one.0.settle(&one.1, &Settlement::released("b")).await.unwrap();
    assert_eq!(
        one.sees().await,
        used(&[("batch", 1_000), ("interactive", 0), ("standard", 300)]),
        "whichever worker settles it"
    );
}

/// The room kept for a lane is also kept from a worker without that lane.
#[tokio::test]
async fn a_lane_of_others_keeps_its_standby() {
    let Some(server) = Redis::shared() else { return };
    let prefix = unique("lanes");
    let other = Worker::new(server, &prefix, lanes(&[("alpha", 0.5, 1.0), ("batch", 0.5, 1.0)]));
    let one = Worker::new(server, &prefix, lanes(&[("batch", 0.5, 1.0)]));
    for worker in [&other, &one] {
        worker.0.set_test_clock(common::START);
    }
    other.takes("a", "alpha", 10).await;
    let answered = Settlement::used("a", Amounts::call(10, 0));
    other.0.settle(&other.1, &answered).await.unwrap();
    for worker in [&other, &one] {
        worker.0.set_test_clock(common::START + 30 * common::SECOND);
    }
    // A fifth of alpha's half.
    one.takes("b", "batch", 90_000).await;
    let more = ask("c", Amounts::call(1, 0));
    let (decision, _) = one.0.reserve(&one.1, &more).await.unwrap();
    assert!(matches!(decision, Decision::Wait { hold: Hold::Lane, .. }), "{decision:?}");
    other.takes("d", "alpha", 9_990).await;
}

#[tokio::test]
async fn numbers_outlive_a_redis_that_loses_them() {
    let Some(server) = Redis::start() else { return };
    let flush = || redis::cmd("FLUSHALL").exec(&mut server.connection()).unwrap();
    let one = Worker::new(&server, "lanes", ours());
    one.takes("a", "standard", 10).await;
    flush();
    one.takes("b", "standard", 70).await;
    // As a worker's beat does; then another worker starts that would number them differently.
    one.0.name_lanes(&one.1.lanes).await.unwrap();
    let other = Worker::new(&server, "lanes", theirs());
    let all = [("alpha", 0), ("batch", 0), ("interactive", 0), ("standard", 70)];
    assert_eq!(other.sees().await, used(&all));
    other.takes("c", "alpha", 5).await;
    one.0.name_lanes(&one.1.lanes).await.unwrap();
    let all = [("batch", 0), ("interactive", 0), ("standard", 70), ("alpha", 5)];
    assert_eq!(one.sees().await, used(&all));
}

/// Earlier programs number lanes by rank: with the same lanes the numbers agree.
#[tokio::test]
async fn the_first_numbers_are_the_ranks() {
    let Some(server) = Redis::start() else { return };
    Worker::new(&server, "lanes", ours()).takes("a", "interactive", 10).await;
    let number = |lane: &str| {
        let kept: String = redis::cmd("HGET")
            .arg("lanes:v1:lanes")
            .arg(lane)
            .query(&mut server.connection())
            .unwrap();
        kept.rsplit_once(' ').unwrap().0.to_owned()
    };
    assert_eq!(["batch", "interactive", "standard"].map(number), ["1 0.1 1", "2 0.6 1", "3 0.3 1"]);
}

/// A lane that no program names any more makes room, though others are named.
#[test]
fn a_lane_is_forgotten_after_its_life() {
    let Some(server) = Redis::shared() else { return };
    let key = format!("{}:v1:lanes", unique("lanes"));
    let script = common::joined("lanes-1");
    let name = |words: &[&str]| -> Vec<String> {
        let mut command = redis::cmd("EVAL");
        command.arg(&script).arg(1).arg(&key).arg(words);
        command.query(&mut server.connection()).unwrap()
    };
    name(&["2", "old", "1", "1", "0"]);
    let deadline = std::time::Instant::now() + PATIENCE;
    while name(&["2", "kept", "1", "1", "0"]).len() > 2 {
        assert!(std::time::Instant::now() < deadline, "the lane is kept");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut all = name(&["2", "new", "0.5", "1", "0", "kept", "1", "1", "0"]);
    all.sort();
    assert_eq!(all, ["1 0.5 1", "2 1 1", "kept", "new"], "its number is free");
}

#[test]
fn bad_lanes_change_nothing() {
    let Some(server) = Redis::shared() else { return };
    let key = format!("{}:v1:lanes", unique("lanes"));
    let script = common::joined("lanes-1");
    let name = |words: &[&str]| -> redis::RedisResult<Vec<String>> {
        let mut command = redis::cmd("EVAL");
        command.arg(&script).arg(1).arg(&key).arg(words);
        command.query(&mut server.connection())
    };
    for words in [
        &["60"][..],
        &["0", "a", "1", "1", "0"],
        &["x", "a", "1", "1", "0"],
        &["60", "a", "1", "1"],
        &["60", "", "1", "1", "0"],
        &["60", "a", "1.5", "1", "0"],
        &["60", "a", "nan", "1", "0"],
        &["60", "a", "1", "-1", "0"],
        &["60", "a", "1", "1", "0.5"],
        &["60", "a", "1", "1", "1e9"],
        &["60", "good", "1", "1", "0", "bad", "2", "1", "0"],
    ] {
        let error = name(words).unwrap_err().to_string();
        assert!(error.contains("TIDEGATE"), "{words:?}: {error}");
    }
    let kept = name(&["60", "a", "1", "1", "0"]).unwrap();
    assert_eq!(kept, ["a", "1 1 1"], "nothing was kept of the others");
}
