//! Many documents end to end, at a provider without latency: all of them are in the results, and a
//! document costs no more in a large batch than in a small one. Temporal's processor time is that of
//! these batches if no other test runs at the same time.
//!
//! ```text
//! TIDEGATE_FULL_SCALE=1 cargo test --workspace --locked --test end_to_end -- through:: --nocapture
//! ```

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::fleet::{Fleet, fleet, full_scale, number};

/// The measurements of one batch.
struct Batch {
    documents: u32,
    /// Processor time.
    worker: Duration,
    server: Duration,
    /// The number of events of the longest run.
    events: u64,
}

impl Batch {
    /// Milliseconds of it for each document.
    fn each(&self, time: Duration) -> f64 {
        1e3 * time.as_secs_f64() / f64::from(self.documents)
    }
}

/// Runs a batch of the first `documents` documents.
async fn batch(fleet: &Fleet, documents: u32, id: &str) -> Batch {
    let used = || [fleet.processor_time(), fleet.temporal.processor_time().unwrap()];
    let (before, started) = (used(), Instant::now());
    let mut input = fleet.batch(id);
    let listed: String = (0..documents)
        .map(|number| {
            let name = format!("report-{number:04}.md");
            format!("{{\"id\":\"{name}\",\"uri\":\"{}\"}}\n", fleet.uri(&format!("in/{name}")))
        })
        .collect();
    std::fs::write(fleet.path(&format!("{id}.jsonl")), listed).unwrap();
    input["source"] = Value::Null;
    input["manifest"] = fleet.uri(&format!("{id}.jsonl")).into();
    fleet.start(id, &input).await;
    let result = fleet.result(id).await.unwrap();
    let (took, after) = (started.elapsed(), used());
    assert_eq!(
        (&result["succeeded"], &result["done"]),
        (&documents.into(), &true.into()),
        "{result}"
    );
    let ids: Vec<Value> = fleet
        .lines(&format!("{id}/results.jsonl"))
        .into_iter()
        .map(|line| line["id"].clone())
        .collect();
    let all: BTreeSet<&str> = ids.iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!((ids.len(), all.len()), (documents as usize, documents as usize), "each once");
    let (events, runs) = history(fleet, id).await;
    let [worker, server] = [0, 1].map(|it| after[it] - before[it]);
    let batch = Batch { documents, worker, server, events };
    println!(
        "{documents} documents: {:.0} s, {:.1} a second; for each {:.2} ms of the worker's processor and {:.2} of Temporal's; \
         {events} events in the longest of the batch's {runs} runs; {} MB at most in the worker so far",
        took.as_secs_f64(),
        f64::from(documents) / took.as_secs_f64(),
        batch.each(worker),
        batch.each(server),
        fleet.peak_memory(),
    );
    batch
}

/// The number of events of a batch's longest run, and the number of its runs.
async fn history(fleet: &Fleet, id: &str) -> (u64, usize) {
    let query = format!("WorkflowId = '{id}'");
    for _ in 0..100 {
        let listed = fleet.cli(&["workflow", "list", "--query", &query, "-o", "json"]).await;
        let runs: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
        let events = runs.iter().map(|run| run["historyLength"].as_str()?.parse::<u64>().ok());
        // The list is updated a moment later.
        if let Some(most) = events.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max())
        {
            return (most, runs.len());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{id} is not listed");
}

/// Compares a tenth of the documents with all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_of_a_large_batch_costs_no_more_than_one_of_a_small() {
    let documents = number("TIDEGATE_DOCUMENTS", if full_scale() { 100_000 } else { 600 });
    let settings = "[models.\"anthropic:claude-sonnet-5\"]\nrpm = 6_000_000\n";
    let Some(mut fleet) = fleet("", settings).await else { return };
    fleet.documents(documents as usize, 60);
    fleet.worker();
    fleet.working().await;
    // This batch does everything that happens only once.
    batch(&fleet, documents / 50, "warm").await;
    let small = batch(&fleet, documents / 10, "small").await;
    let large = batch(&fleet, documents, "large").await;
    let more = |time: fn(&Batch) -> Duration| large.each(time(&large)) / small.each(time(&small));
    let (worker, server) = (more(|batch| batch.worker), more(|batch| batch.server));
    println!(
        "a document of the large batch, beside one of the small: {worker:.2} in the worker, {server:.2} in Temporal"
    );
    // A batch's fixed cost weighs more in the smaller one.
    assert!(worker < 1.3, "{worker} times the worker's time for each document");
    assert!(large.events <= 5_000, "{} events", large.events);
    fleet.stop().await;
}
