//! A large fleet of simulated workers in the registry, with one real worker: every view of the fleet is
//! right and quick, and the worker makes no more requests.
//!
//! ```text
//! TIDEGATE_FULL_SCALE=1 cargo test --workspace --locked --test end_to_end -- registry:: --nocapture
//! ```

use std::{
    process::Output,
    time::{Duration, Instant},
};

use serde_json::Value;
use tidegate::config::Config;
use tidegate_calls::{
    health::Health,
    keys::Keys,
    status_beat::keep_status,
    worker_status::{Configuration, WorkerFacts},
};
use tidegate_providers::Providers;
use tidegate_quota::Quota;
use tokio::{process::Command, task::JoinSet};

use crate::{
    fleet::{Fleet, MODEL, fleet_with_its_own_redis, full_scale, number},
    idle::{clients, count_commands, has_begun},
    page,
    workers::server,
};

/// Workers that do all that a worker does in the registry, and nothing else. They have one
/// connection together.
fn simulated(
    quota: &Quota,
    workers: u32,
    (about, settings): (&WorkerFacts, &Configuration),
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..workers {
        let (quota, about, settings) = (quota.clone(), about.clone(), settings.clone());
        tasks.spawn(async move {
            // Workers do not all start at once.
            tokio::time::sleep(Duration::from_millis(5) * number).await;
            let (worker, never) = (format!("simulated-{number:04}"), std::future::pending::<()>);
            let (keys, health, providers) =
                (Keys::default(), Health::default(), Providers::default());
            let place = (worker.as_str(), "default/tidegate");
            let parts = (&keys, &providers, &quota, &health);
            let status = keep_status(parts, place, (about, &settings), never());
            tokio::join!(status, quota.keep_alive(&worker, never())).1.unwrap();
        });
    }
    tasks
}

/// Runs one of the program's commands, and measures its time.
async fn command(fleet: &Fleet, arguments: &[&str]) -> (Output, Duration) {
    let started = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).arg("--config").arg(fleet.path("tidegate.toml"));
    let output = command.env("SIMULATED_KEY", "sk-simulated-secret").output().await.unwrap();
    (output, started.elapsed())
}

/// Every view of the fleet: its name, its time, and its size in bytes. Each must name this many workers.
async fn faces(fleet: &Fleet, page: &str, workers: usize) -> Vec<(&'static str, Duration, usize)> {
    let mut faces = Vec::new();
    for name in ["workers", "quota", "status", "doctor"] {
        let (output, took) = command(fleet, &[name, "--json"]).await;
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        if name == "workers" {
            assert_eq!(seen.as_array().unwrap().len(), workers);
        } else if name == "doctor" {
            let checks = seen["checks"].as_array().unwrap();
            assert!(checks.iter().all(|it| it["name"] != "configuration of workers"), "{seen:#}");
        } else {
            assert!(output.status.success(), "{name}: {seen:#}");
        }
        faces.push((name, took, output.stdout.len()));
    }
    for (name, path) in [("page", ""), ("snapshot", "snapshot.json")] {
        // The page is up to two seconds old.
        faces.push(loop {
            let started = Instant::now();
            let text = page::http().get(format!("{page}{path}")).send().await.unwrap();
            let text = text.text().await.unwrap();
            if text.matches("simulated-").count() + 1 >= workers {
                break (name, started.elapsed(), text.len());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        });
    }
    faces
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_fleet_is_seen_at_once_and_costs_a_worker_nothing() {
    let workers = number("TIDEGATE_WORKERS", if full_scale() { 1_000 } else { 200 });
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 60\n");
    let Some(mut fleet) = fleet_with_its_own_redis("", &settings).await else { return };
    fleet.worker_with(&[("TIDEGATE_DASHBOARD__LISTEN", "127.0.0.1:0")]);
    has_begun(&fleet, 1).await;
    let page = page::url(&fleet).await;
    let alone = faces(&fleet, &page, 1).await;
    let real = clients(&fleet);
    let config = Config::load(Some(fleet.path("tidegate.toml").as_path())).unwrap();
    let quota = config.quota().unwrap();
    let about = WorkerFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        slots: 200,
        ..WorkerFacts::default()
    };
    let mut tasks = simulated(&quota, workers, (&about, &config.shared_settings()));
    let all = usize::try_from(workers).unwrap() + 1;
    // Each worker hears once, soon after its start, how all others are configured.
    let bytes_sent = || server(fleet.own_redis.as_ref().unwrap())["total_net_output_bytes"];
    let mut before = bytes_sent();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = bytes_sent();
        if now - before < 1e6 && quota.worker_statuses().await.is_ok_and(|said| said.len() == all) {
            break;
        }
        before = now;
    }
    let among = faces(&fleet, &page, all).await;
    for ((name, before, bytes), (_, took, more)) in alone.iter().zip(&among) {
        println!(
            "{name}: {:.2} s and {bytes} bytes with one worker, {:.2} s and {more} bytes with {all}",
            before.as_secs_f64(),
            took.as_secs_f64(),
        );
        // Most of the time is the program's start, and other work of this machine.
        assert!(*took < 3 * *before + Duration::from_secs(3), "{name}: {took:?} beside {before:?}");
    }
    let (url, window) = (fleet.redis_url.clone(), Duration::from_mins(1));
    let sent =
        tokio::task::spawn_blocking(move || count_commands(&url, window, |it| real.contains(it)));
    let sent = sent.await.unwrap();
    let commands: u64 = sent.values().sum();
    println!("the real worker, among {workers}: {commands} commands in a minute: {sent:?}");
    assert!((6..=60).contains(&commands), "{commands} commands in a minute: {sent:?}");
    assert_eq!(quota.worker_statuses().await.unwrap().len(), all, "all of them live");
    tasks.shutdown().await;
    fleet.stop().await;
}
