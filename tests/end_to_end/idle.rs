//! What a worker costs that has nothing to do.

use std::time::Duration;

use tidegate_testkit::Redis;

use crate::fleet::{MODEL, fleet_with_its_own_redis};

/// Commands that an idle worker sends: scripts, and what is held. What scripts do themselves is counted
/// under other names.
fn commands(redis: &Redis) -> u64 {
    let sent = ["evalsha", "eval", "hgetall", "ping"];
    let mut connection = redis.connection();
    let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut connection).unwrap();
    let calls = |line: &str| {
        let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let calls = figures.split(',').next().filter(|_| sent.contains(&name))?;
        calls.parse::<u64>().ok()
    };
    stats.lines().filter_map(calls).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_with_fifty_models_asks_redis_less_than_once_a_second() {
    let mut settings = format!("[models.\"{MODEL}\"]\nrpm = 60\n");
    for number in 1..50 {
        settings += &format!("[models.\"anthropic:other-{number:02}\"]\nrpm = 60\n");
    }
    let Some(mut fleet) = fleet_with_its_own_redis("", &settings).await else { return };
    fleet.worker();
    let looks = |fleet: &crate::fleet::Fleet| commands(fleet.own_redis.as_ref().unwrap());
    // Each model is looked at once, when the worker begins.
    let mut before = 0;
    for _ in 0..400 {
        before = looks(&fleet);
        if before >= 50 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(before >= 50, "the worker does not begin");
    tokio::time::sleep(Duration::from_secs(8)).await;
    before = looks(&fleet);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let asked = looks(&fleet) - before;
    println!("{asked} commands in 30 s");
    assert!((3..=30).contains(&asked), "{asked} commands in 30 s");
    fleet.stop().await;
}
