//! The cost of a document: documents a second, and the processor time of each process for one document,
//! compared with a no-op activity in a workflow of its own on the same Temporal server.
//!
//! `cargo bench --bench document` runs 3,000 tiny documents at a time, `... -- 500` runs 500: a Temporal
//! dev server, a Redis, one worker, and in this process a provider that answers at once and has no
//! limits. In each round, the bare workflow runs in this process, then tidegate runs a batch. They take
//! turns, so that other load on the machine affects both: it changes the rate by any factor, and the
//! processor time by half.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "a benchmark may stop at the first fault and talks to people"
)]

#[path = "../workflows/benches/bare/mod.rs"]
mod bare;
#[path = "../tests/end_to_end/fleet.rs"]
mod fleet;

use std::time::{Duration, Instant};

use bare::{Bare, IN_FLIGHT, Noop};
use fleet::{Fleet, fleet_with_its_own_redis};
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    runtime::{
        RuntimeOptions,
        worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
    },
};
use tidegate_testkit::processor_time;
use tidegate_types::Lane;
use tidegate_workflows::policy;

const DOCUMENTS: u32 = 3_000;
const ROUNDS: usize = 3;
const QUEUE: &str = "bare";

/// No latency, and no limits.
const PROVIDER: &str = "latency = { base = \"0s\", per-output-token = \"0s\", jitter = 0 }\n";
const MODEL: &str = "[models.\"anthropic:claude-sonnet-5\"]\nrpm = 6_000_000\n";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let documents =
        std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(DOCUMENTS);
    let Some(mut fleet) = fleet_with_its_own_redis(PROVIDER, MODEL).await else { return };
    fleet.documents(documents as usize, 60);
    fleet.worker();
    println!(
        "{documents} documents, {IN_FLIGHT} slots; processor time of each process, for one document\n"
    );
    println!(
        "{:<14} {:>11} {:>12} {:>11} {:>9} {:>13} {:>12} {:>6}",
        "round",
        "documents/s",
        "Temporal ms",
        "worker ms",
        "Redis ms",
        "simulator ms",
        "first result",
        "load"
    );
    for round in 1..=ROUNDS {
        bare(&fleet, documents, round).await;
        tidegate(&fleet, documents, round).await;
    }
    fleet.stop().await;
}

/// Processor time so far, of the Temporal server, the worker, Redis and this process.
fn taken(fleet: &Fleet) -> [Duration; 4] {
    let worker = fleet.workers[0].id().and_then(processor_time);
    let redis = fleet.own_redis.as_ref().and_then(|redis| redis.processor_time());
    let these =
        [fleet.temporal.processor_time(), worker, redis, processor_time(std::process::id())];
    these.map(Option::unwrap_or_default)
}

/// Processor time since `before`, in ms for each document.
fn each(fleet: &Fleet, before: [Duration; 4], documents: u32) -> [f64; 4] {
    let now = taken(fleet);
    std::array::from_fn(|it| 1e3 * (now[it] - before[it]).as_secs_f64() / f64::from(documents))
}

async fn bare(fleet: &Fleet, documents: u32, round: usize) {
    let url: url::Url = format!("http://{}", fleet.temporal.address()).parse().unwrap();
    let connection = Connection::connect(ConnectionOptions::new(url).build()).await.unwrap();
    let client = Client::new(connection, ClientOptions::new("default").build()).unwrap();
    let slots = FixedSizeSlotSupplier::new;
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(slots(100))
        .activity_task_slot_supplier(slots(IN_FLIGHT as usize))
        .local_activity_task_slot_supplier(slots(1))
        .nexus_task_slot_supplier(slots(1))
        .build();
    let workflows = WorkerOptions::new(QUEUE).tuner(tuner.clone()).register_workflow::<Bare>();
    let activities = WorkerOptions::new(policy::lane_queue(QUEUE, &Lane::default()));
    let runtime = Runtime::from_current_tokio(RuntimeOptions::default()).unwrap();
    let worker = |options| Worker::new(&runtime, client.clone(), options).unwrap();
    let mut workers = [
        worker(workflows.unwrap().build()),
        worker(activities.tuner(tuner).register_activities(Noop).build()),
    ];
    let stops = workers.each_ref().map(Worker::shutdown_handle);
    let work = async {
        let before = taken(fleet);
        let rate = bare::run(&client, QUEUE, &format!("bare-{round}"), documents).await;
        let [temporal, _, _, own] = each(fleet, before, documents);
        stops.iter().for_each(|stop| stop());
        println!(
            "{:<14} {rate:>11.0} {temporal:>12.2} {own:>11.2} {:>49.1}",
            format!("bare {round}"),
            load()
        );
    };
    let [one, other] = &mut workers;
    let (one, other, ()) = tokio::join!(Box::pin(one.run()), Box::pin(other.run()), work);
    one.and(other).unwrap();
}

async fn tidegate(fleet: &Fleet, documents: u32, round: usize) {
    let id = format!("tidegate-{round}");
    let (started, before) = (Instant::now(), taken(fleet));
    fleet.start(&id, &fleet.batch(&id)).await;
    let first = async {
        let results = fleet.path(&id).join("results");
        while std::fs::read_dir(&results).map_or(0, Iterator::count) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        started.elapsed()
    };
    let (first, result) = tokio::join!(first, fleet.result(&id));
    let took = started.elapsed();
    let result = result.unwrap();
    assert_eq!(result["succeeded"], documents, "{result}");
    let [temporal, worker, redis, simulator] = each(fleet, before, documents);
    println!(
        "{:<14} {:>11.0} {temporal:>12.2} {worker:>11.2} {redis:>9.2} {simulator:>13.2} {:>10.1} s {:>6.1}",
        id,
        f64::from(documents) / took.as_secs_f64(),
        first.as_secs_f64(),
        load()
    );
}

/// Processes that ran or waited for a processor, over the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}
