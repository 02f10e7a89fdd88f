#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;

use super::*;

const BATCH: usize = 0;
const INTERACTIVE: usize = 1;
const STANDARD: usize = 2;

fn pool(limit: usize) -> Pool {
    let part = |share| Share { guaranteed: share, ceiling: 1.0 };
    Pool::new(vec![part(0.1), part(0.6), part(0.3)], limit)
}

fn fill(pool: &Pool, lane: usize) -> usize {
    (0..).take_while(|_| pool.try_take(lane)).count()
}

#[test]
fn a_lane_borrows_slots_of_idle_lanes_except_those_never_lent() {
    let pool = pool(103);
    assert_eq!([BATCH, INTERACTIVE, STANDARD].map(|lane| pool.guaranteed(lane)), [11, 61, 31]);
    assert_eq!([BATCH, INTERACTIVE, STANDARD].map(|lane| pool.never_lent(lane)), [3, 16, 8]);
    assert_eq!(pool.reach(BATCH), 103 - 16 - 8);
    assert_eq!(fill(&pool, BATCH), pool.reach(BATCH));
    assert_eq!(pool.reach(INTERACTIVE), 16);
    assert_eq!(fill(&pool, INTERACTIVE), 16);
    assert_eq!(fill(&pool, STANDARD), 8);
}

#[test]
fn a_lane_keeps_no_more_polls_open_than_it_never_lends() {
    assert_eq!([BATCH, INTERACTIVE, STANDARD].map(|lane| pool(100).polls(lane)), [3, 5, 5]);
}

#[tokio::test]
async fn returned_slots_go_to_a_lane_below_its_share_before_any_borrower() {
    let pool = Arc::new(pool(23));
    fill(&pool, BATCH);
    fill(&pool, INTERACTIVE);
    fill(&pool, STANDARD);
    let before = pool.held(INTERACTIVE);
    let waiter = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.take(INTERACTIVE).await }
    });
    while pool.state.lock().waiting[INTERACTIVE] == 0 {
        tokio::task::yield_now().await;
    }
    pool.give_back(BATCH);
    assert!(!pool.try_take(BATCH), "a borrower came first");
    tokio::time::timeout(Duration::from_secs(10), waiter)
        .await
        .expect("the waiter was not woken")
        .unwrap();
    assert_eq!(pool.held(INTERACTIVE), before + 1);
}

#[tokio::test]
async fn a_dropped_wait_does_not_prevent_borrowing() {
    let pool = pool(8);
    let borrowed = fill(&pool, BATCH);
    while pool.try_take(INTERACTIVE) {}
    assert!(tokio::time::timeout(Duration::ZERO, pool.take(INTERACTIVE)).await.is_err());
    pool.give_back(BATCH);
    assert!(pool.try_take(BATCH));
    assert_eq!(pool.held(BATCH), borrowed);
}

#[test]
fn a_ceiling_is_kept_when_all_else_is_idle() {
    let pool = Pool::new(
        vec![Share { guaranteed: 0.1, ceiling: 0.5 }, Share { guaranteed: 0.5, ceiling: 1.0 }],
        100,
    );
    assert_eq!(fill(&pool, 0), 50);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Take(usize),
    GiveBack(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_usize).prop_map(Step::Take),
        2 => (0..4_usize).prop_map(Step::GiveBack),
    ]
}

proptest! {
    /// The limit is never exceeded, and from any state every lane reaches its guaranteed part once the
    /// others give back.
    #[test]
    fn the_limit_and_every_guarantee_hold(
        shares in prop::collection::vec(0.0..0.25_f64, 4),
        limit in 0..60_usize,
        steps in prop::collection::vec(step(), 0..200),
        lane in 0..4_usize,
    ) {
        let pool = Pool::new(shares.iter().map(|share| Share { guaranteed: *share, ceiling: 1.0 }).collect(), limit);
        for step in steps {
            let before: usize = (0..4).map(|lane| pool.held(lane)).sum();
            match step {
                Step::Take(lane) => {
                    if pool.try_take(lane) {
                        prop_assert!(before < pool.limit());
                    }
                }
                Step::GiveBack(lane) => pool.give_back(lane),
            }
        }
        prop_assert!((0..4).map(|lane| pool.guaranteed(lane)).sum::<usize>() <= pool.limit());
        for other in (0..4).filter(|other| *other != lane) {
            while pool.held(other) > pool.guaranteed(other) {
                pool.give_back(other);
            }
        }
        while pool.held(lane) < pool.guaranteed(lane) {
            prop_assert!(pool.try_take(lane), "{pool:?}");
        }
    }
}
