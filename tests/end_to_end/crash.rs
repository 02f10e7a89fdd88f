//! What happens when something dies in the middle of a batch.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fleet::{MODEL, fleet, fleet_with_its_own_redis};

fn settings() -> String {
    format!("[models.\"{MODEL}\"]\ntpm = 120_000\n")
}

/// Two workers are killed one after the other; each time a new one takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_loses_no_document() {
    let Some(mut fleet) =
        fleet("[default]\ntpm = 120_000\n[latency]\nbase = \"1s\"\n", &settings()).await
    else {
        return;
    };
    fleet.documents(150, 400);
    fleet.worker();
    fleet.start("crash", &fleet.batch("out")).await;
    for (number, done) in [(0, 30), (1, 70)] {
        fleet.until("crash", |progress| progress["succeeded"].as_u64() >= Some(done)).await;
        fleet.kill_worker(number).await;
        let (killed, results) = (Instant::now(), fleet.results("out").len());
        fleet.worker();
        while fleet.results("out").len() <= results {
            assert!(killed.elapsed() < Duration::from_secs(30), "nothing goes on after a crash");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("new results {:.1} s after kill -9", killed.elapsed().as_secs_f64());
    }
    let result = fleet.result("crash").await.unwrap();
    assert_eq!(
        result["succeeded"].as_u64().unwrap() + result["skipped"].as_u64().unwrap(),
        150,
        "{result}"
    );
    assert_eq!(result["failed"], json!(0));
    assert_eq!((fleet.results("out").len(), fleet.lines("out/results.jsonl").len()), (150, 150));
    let account = fleet.account();
    // Only what was in flight at a kill may have been asked twice: its answer was lost with the
    // worker.
    assert!(account.requests <= 150 + 2 * 25, "{account:?}");
    fleet.stop().await;
}

/// Redis is away for ten seconds and comes back empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_goes_on_while_redis_is_away() {
    let Some(mut fleet) = fleet_with_its_own_redis(
        "[default]\ntpm = 120_000\nalgorithm = \"sliding-window\"\n",
        &settings(),
    )
    .await
    else {
        return;
    };
    fleet.documents(200, 450);
    fleet.worker();
    fleet.worker();
    fleet.start("outage", &fleet.batch("out")).await;
    fleet.until("outage", |progress| progress["succeeded"].as_u64() >= Some(40)).await;
    fleet.own_redis.as_mut().unwrap().kill();
    let before = fleet.results("out").len();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let during = fleet.results("out").len() - before;
    assert!(during >= 10, "only {during} documents in ten seconds without Redis");
    fleet.own_redis.as_mut().unwrap().restart();
    let result = fleet.result("outage").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(200), &json!(0)), "{result}");
    let account = fleet.account();
    let refused = account.refused.requests + account.refused.tokens;
    println!(
        "{during} documents in 10 s without Redis; {refused} of {} calls refused",
        account.requests
    );
    assert!(refused * 100 <= account.requests * 5, "{account:?}");
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    assert!(log.contains("Redis is away") && log.contains("Redis is back"), "{log}");
    fleet.stop().await;
}

/// SIGTERM: what is in flight is finished, and the process ends by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_asked_to_stop_finishes_what_it_has() {
    let Some(mut fleet) = fleet("[latency]\nbase = \"1s\"\n", &settings()).await else { return };
    fleet.documents(30, 60);
    fleet.worker();
    fleet.start("stop", &fleet.batch("out")).await;
    fleet.until("stop", |progress| progress["in_flight"].as_u64() > Some(0)).await;
    let pid = fleet.workers[0].id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = tokio::time::timeout(Duration::from_secs(60), fleet.workers[0].wait())
        .await
        .expect("the worker does not stop")
        .unwrap();
    assert!(status.success(), "{status}");
    fleet.worker();
    let result = fleet.result("stop").await.unwrap();
    assert_eq!(result["succeeded"], json!(30), "{result}");
    assert_eq!(fleet.account().requests, 30, "nothing was asked twice");
    fleet.stop().await;
}
