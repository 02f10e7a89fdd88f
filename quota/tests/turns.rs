//! Turns kept under a name are returned once, the earliest first, and lapse.
#![allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]

use std::time::Duration;

use tidegate_quota::{Options, Quota, Ticket, turns::MAX_TURNS};
use tidegate_testkit::{Redis, unique};

const LONG: Duration = Duration::from_secs(60);

fn quota(server: &Redis, prefix: &str) -> Quota {
    let answer_within = Duration::from_secs(5);
    let options = Options { key_prefix: prefix.to_owned(), answer_within, ..Options::default() };
    Quota::with_redis(&server.url, [], options).unwrap()
}

fn turn(position: u64) -> Ticket {
    Ticket { epoch: 1_700_000_000_000_000, position }
}

#[tokio::test]
async fn the_earliest_turn_of_a_name_is_given_out_once_by_any_replica() {
    let Some(server) = Redis::start() else { return };
    let prefix = unique("turns");
    let (one, other) = (quota(&server, &prefix), quota(&server, &prefix));
    for position in [9_007_199_254_740_991, 20, 3, 20] {
        assert!(one.keep_turn("ops", "body", turn(position), LONG).await);
    }
    assert!(one.keep_turn("ops", "another", turn(1), LONG).await);
    assert_eq!(other.take_turn("web", "body").await, None, "another key has its own");
    let mut taken = Vec::new();
    while let Some(ticket) = other.take_turn("ops", "body").await {
        taken.push(ticket);
    }
    assert_eq!(taken, [3, 20, 20, 9_007_199_254_740_991].map(turn));
}

#[tokio::test]
async fn turns_lapse_and_no_more_than_so_many_are_kept() {
    let Some(server) = Redis::start() else { return };
    let prefix = unique("turns");
    let quota = quota(&server, &prefix);
    assert!(quota.keep_turn("ops", "another", turn(2), LONG).await);
    assert!(quota.keep_turn("ops", "body", turn(1), Duration::from_millis(30)).await);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(quota.take_turn("ops", "body").await, None);
    assert_eq!(quota.take_turn("ops", "another").await, Some(turn(2)));
    for position in 1..=MAX_TURNS {
        assert!(quota.keep_turn("ops", "body", turn(position), LONG).await);
    }
    assert!(!quota.keep_turn("ops", "body", turn(1), LONG).await);
    let mut connection = server.connection();
    for key in tidegate_quota::key::turns(&prefix, "ops") {
        let kept: u64 = redis::cmd("ZCARD").arg(&key).query(&mut connection).unwrap();
        let lives: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(kept == MAX_TURNS && (1..=60_000).contains(&lives), "{key}: {kept}, {lives}");
    }
}
