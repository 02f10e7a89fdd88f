//! Many idle workers with many models on one Redis, each with all requests that a worker makes by itself.
//! `docs/scale.md` has the figures for a thousand workers:
//!
//! ```text
//! TIDEGATE_WORKERS=1000 TIDEGATE_MODELS=50 TIDEGATE_BUSY=0 \
//!     cargo test --workspace --locked --test end_to_end -- workers:: --nocapture
//! ```

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tidegate_calls::{
    health::Health,
    keys::Keys,
    status_beat::keep_status,
    worker_status::{self, Configuration, WorkerFacts},
};
use tidegate_providers::Providers;
use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request};
use tidegate_testkit::{PATIENCE, Redis};
use tidegate_types::ModelId;

use crate::fleet::number;

fn model(number: u32) -> ModelId {
    format!("a:{number:03}").parse().unwrap()
}

/// Redis's counters so far: processor time, and bytes sent.
pub(super) fn server(redis: &Redis) -> BTreeMap<String, f64> {
    let stats: String =
        redis::cmd("INFO").arg("everything").query(&mut redis.connection()).unwrap();
    let pair = |line: &str| {
        let (name, value) = line.trim().split_once(':')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    stats.lines().filter_map(pair).collect()
}

/// Commands that clients have sent so far, without those inside scripts: idle workers send no other
/// commands than these.
fn sent(redis: &Redis) -> u64 {
    let stats: String =
        redis::cmd("INFO").arg("commandstats").query(&mut redis.connection()).unwrap();
    let calls = |line: &str| {
        let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let calls = figures.split(',').next()?.parse::<u64>().ok()?;
        ["evalsha", "eval", "hgetall", "ping"].contains(&name).then_some(calls)
    };
    stats.lines().filter_map(calls).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_does_nothing_asks_for_little() {
    let Some(redis) = Redis::start() else { return };
    let workers = number("TIDEGATE_WORKERS", 60);
    let (models, busy) = (number("TIDEGATE_MODELS", 12), number("TIDEGATE_BUSY", 0));
    let window = Duration::from_secs(number("TIDEGATE_SECONDS", 20).into());
    let lanes = Arc::new(Lanes::single());
    let models: Vec<ModelQuota> = (0..models)
        .map(|number| {
            let limits = Limits::default().with(Dimension::Combined, 1_000_000);
            ModelQuota::new(model(number), limits, Charge::default(), Arc::clone(&lanes)).unwrap()
        })
        .collect();
    let patient = Options { answer_within: PATIENCE, ..Options::default() };
    let fleet: Vec<Quota> = (0..workers)
        .map(|_| Quota::with_redis(&redis.url, models.clone(), patient.clone()).unwrap())
        .collect();
    let mut tasks = tokio::task::JoinSet::new();
    for (number, quota) in fleet.iter().cloned().enumerate() {
        tasks.spawn(async move {
            // Workers do not all start at once.
            tokio::time::sleep(Duration::from_millis(5) * u32::try_from(number).unwrap()).await;
            let (worker, never) = (format!("worker-{number:04}"), std::future::pending::<()>);
            let (keys, health, providers) =
                (Keys::default(), Health::default(), Providers::default());
            let about =
                WorkerFacts { version: "0.1.0".to_owned(), slots: 200, ..WorkerFacts::default() };
            let parts = (&keys, &providers, &quota, &health);
            let told = (about, &Configuration::new());
            let status = keep_status(parts, (&worker, "tidegate"), told, never());
            tokio::join!(status, quota.keep_holds(), quota.keep_alive(&worker, never())).2.unwrap();
        });
    }
    let mut calls = Vec::new();
    for number in 0..busy {
        let request = Request::new(model(number), format!("call-{number}"));
        calls.push(fleet[0].admit(&request).await.unwrap());
    }
    // Each asks for each model once, and hears once how the others are configured.
    let begins = Duration::from_millis(5) * workers + Duration::from_secs(12);
    tokio::time::sleep(begins).await;
    let cards = worker_status::worker_statuses(&fleet[0]).await.unwrap();
    assert_eq!(u32::try_from(cards.len()), Ok(workers), "all of them live");
    let longest = cards.iter().map(|(_, card)| serde_json::to_string(card).unwrap().len()).max();

    let (before, commands) = (server(&redis), sent(&redis));
    tokio::time::sleep(window).await;
    let (after, commands) = (server(&redis), sent(&redis) - commands);
    let seconds = window.as_secs_f64();
    let each = f64::from(u32::try_from(commands).unwrap()) / seconds / f64::from(workers);
    let grown = |name: &str| (after[name] - before[name]) / seconds;
    println!(
        "{workers} workers, {} models, {busy} of them busy: {each:.2} commands a second from each worker; \
         Redis: {:.1} % of a core, {:.0} kB/s out; {} bytes of words of a worker",
        models.len(),
        100.0 * (grown("used_cpu_user") + grown("used_cpu_sys")),
        grown("total_net_output_bytes") / 1e3,
        longest.unwrap(),
    );
    assert!(each < 1.0 + f64::from(busy), "{each} commands a second from each worker");
    assert!(longest < Some(400), "what all have in common is not said by each");
    for call in calls {
        call.release().await;
    }
    tasks.shutdown().await;
}
