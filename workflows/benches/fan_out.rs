//! Measures tidegate's fan-out against a bare one, on the same worker and the same dev server.
//!
//! `cargo bench -p tidegate-workflows --bench fan_out` runs 2,000 documents a round, `... -- 200`
//! runs 200. Compared with the bare workflow, tidegate adds the plan, the shards, their reports,
//! the seals and the finish. Both take turns, so that other load on the machine affects both. A
//! document costs the server far more than the worker; the number of history events shows the
//! server's work on any machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    missing_debug_implementations,
    reason = "a benchmark has a clock, may stop at the first fault, and talks to people"
)]

mod bare;
#[path = "../tests/on_temporal/common/mod.rs"]
mod common;

use std::time::Instant;

use bare::{Bare, IN_FLIGHT, Noop};
use common::{Fake, client, input, json_payload};
use serde_json::json;
use temporalio_client::{
    Client, UntypedWorkflow, WorkflowFetchHistoryOptions, WorkflowGetResultOptions, WorkflowHandle,
    WorkflowStartOptions,
};
use temporalio_common::data_converters::RawValue;
use temporalio_protos::temporal::api::history::v1::history_event::Attributes;
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    runtime::{
        RuntimeOptions,
        worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
    },
};
use tidegate_testkit::Temporal;
use tidegate_types::Lane;
use tidegate_workflows::{ProcessDocuments, ProcessGroup, ProcessParts, ProcessShard, policy};

const QUEUE: &str = "fan-out";
const DOCUMENTS: u32 = 2_000;
const SHARD_SIZE: u32 = 500;
const ROUNDS: usize = 3;
/// Target: tidegate's documents per second as a fraction of the bare workflow's.
const AIM: f64 = 0.9;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let documents =
        std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(DOCUMENTS);
    let Some(server) = Temporal::start(&[]) else { return };
    let client = client(&server).await;
    let runtime = Runtime::from_current_tokio(RuntimeOptions::default()).unwrap();
    let [mut worker, mut lane] = worker_options(documents)
        .map(|options| Worker::new(&runtime, client.clone(), options).unwrap());
    let stops = [worker.shutdown_handle(), lane.shutdown_handle()];
    let rounds = Box::pin(async {
        rounds(&client, documents).await;
        stops.iter().for_each(|stop| stop());
    });
    let (run, documents, ()) = tokio::join!(Box::pin(worker.run()), Box::pin(lane.run()), rounds);
    run.and(documents).unwrap();
}

/// One worker for the workflows, one for the documents of the lane.
fn worker_options(documents: u32) -> [WorkerOptions; 2] {
    let slots = FixedSizeSlotSupplier::new;
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(slots(100))
        .activity_task_slot_supplier(slots(IN_FLIGHT as usize))
        .local_activity_task_slot_supplier(slots(1))
        .nexus_task_slot_supplier(slots(1))
        .build();
    let workflows = WorkerOptions::new(QUEUE)
        .tuner(tuner.clone())
        .max_eager_activity_reservations_per_workflow_task(0)
        .register_workflow::<Bare>()
        .unwrap()
        .register_workflow::<ProcessDocuments>()
        .unwrap()
        .register_workflow::<ProcessGroup>()
        .unwrap()
        .register_workflow::<ProcessShard>()
        .unwrap()
        .register_workflow::<ProcessParts>()
        .unwrap()
        .register_activities(Fake::willing(documents.into(), SHARD_SIZE))
        .build();
    let documents = WorkerOptions::new(policy::lane_queue(QUEUE, &Lane::default()))
        .tuner(tuner)
        .register_activities(Noop)
        .register_activities(Fake::willing(documents.into(), SHARD_SIZE))
        .build();
    [workflows, documents]
}

/// A warm-up of both, then alternating rounds.
async fn rounds(client: &Client, documents: u32) {
    println!(
        "{documents} documents, {IN_FLIGHT} in flight, shards of {SHARD_SIZE}; documents per second\n"
    );
    println!("{:<8} {:>8} {:>9} {:>7}", "round", "bare", "tidegate", "ratio");
    let (mut bare, mut tidegate) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (one, other) = (
            bare::run(client, QUEUE, &bare_id(round), documents).await,
            run_tidegate(client, documents, round).await,
        );
        if round == 0 {
            row("warm-up", one, other);
        } else {
            row(&round.to_string(), one, other);
            bare.push(one);
            tidegate.push(other);
        }
    }
    let (bare, tidegate) = (median(bare), median(tidegate));
    row("median", bare, tidegate);
    let verdict = if tidegate >= AIM * bare { "reached" } else { "missed" };
    println!("\naim: a ratio of at least {AIM:.2}, {verdict}\n");

    println!("{:<8} {:>8} {:>16} {:>10}", "history", "events", "workflow tasks", "documents");
    let bare = events(client, &[bare_id(ROUNDS)]).await;
    let batch = batch_id(ROUNDS);
    let shards =
        (0..documents.div_ceil(SHARD_SIZE)).map(|shard| format!("{batch}/shard-{shard:05}"));
    let tidegate =
        events(client, &std::iter::once(batch.clone()).chain(shards).collect::<Vec<_>>()).await;
    for (name, (events, tasks)) in [("bare", bare), ("tidegate", tidegate)] {
        println!("{name:<8} {events:>8} {tasks:>16} {documents:>10}");
    }
}

fn row(round: &str, bare: f64, tidegate: f64) {
    println!("{round:<8} {bare:>8.0} {tidegate:>9.0} {:>7.2}", tidegate / bare);
}

fn bare_id(round: usize) -> String {
    format!("bare-{round}")
}

fn batch_id(round: usize) -> String {
    format!("tidegate-{round}")
}

/// Documents per second, from the start of the batch to its result.
async fn run_tidegate(client: &Client, documents: u32, round: usize) -> f64 {
    let input = RawValue::new(vec![json_payload(&input(&json!({ "max_in_flight": IN_FLIGHT })))]);
    let started = Instant::now();
    let options = WorkflowStartOptions::new(QUEUE, batch_id(round)).build();
    let handle = client.start_workflow(ProcessDocuments::run, input, options).await.unwrap();
    let progress = handle.get_result(WorkflowGetResultOptions::default()).await.unwrap();
    let took = started.elapsed();
    assert_eq!(progress.totals.succeeded, u64::from(documents));
    f64::from(documents) / took.as_secs_f64()
}

/// Events and workflow tasks in the histories of these workflows.
async fn events(client: &Client, workflows: &[String]) -> (usize, usize) {
    let (mut events, mut tasks) = (0, 0);
    for id in workflows {
        let handle: WorkflowHandle<Client, UntypedWorkflow> = client.get_workflow_handle(id);
        let history = handle
            .fetch_history(WorkflowFetchHistoryOptions::default())
            .into_events()
            .await
            .unwrap();
        let is_task = |attributes: &Option<Attributes>| {
            matches!(attributes, Some(Attributes::WorkflowTaskStartedEventAttributes(_)))
        };
        events += history.len();
        tasks += history.iter().filter(|event| is_task(&event.attributes)).count();
    }
    (events, tasks)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
