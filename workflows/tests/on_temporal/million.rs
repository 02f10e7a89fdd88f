//! The sizes of the histories of a batch of a million documents and of its groups; the shards are
//! scripted.
//!
//! ```text
//! TIDEGATE_FULL_SCALE=1 cargo test --workspace --locked --test on_temporal -- million:: --nocapture
//! ```

use std::time::Instant;

use prost::Message;
use serde_json::json;
use temporalio_protos::temporal::api::history::v1::{HistoryEvent, history_event::Attributes};

use crate::common::{Fake, Gate, full_scale, input, server, with_scripted_shards};

/// Events and bytes of one workflow's runs.
#[derive(Debug, Default)]
struct Histories {
    runs: usize,
    events: usize,
    bytes: usize,
    /// Events of the longest run.
    most_events: usize,
    most_bytes: usize,
    children: usize,
}

impl Histories {
    fn add(&mut self, history: &[HistoryEvent]) {
        let bytes = history.iter().map(Message::encoded_len).sum();
        let is_child = |event: &&HistoryEvent| {
            matches!(
                event.attributes,
                Some(Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(_))
            )
        };
        self.runs += 1;
        self.events += history.len();
        self.bytes += bytes;
        self.most_events = self.most_events.max(history.len());
        self.most_bytes = self.most_bytes.max(bytes);
        self.children += history.iter().filter(is_child).count();
    }
}

/// The plan comes in pages, like any plan of this size, and the window holds several thousand
/// documents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_history_of_a_large_batch_grows_with_it() {
    let (page, pages, window) =
        if full_scale() { (100_000, 10, 10_000) } else { (10_000, 4, 1_500) };
    let documents = page * pages;
    let gate = Gate::default();
    gate.open();
    let more: Vec<_> = (1..pages).map(|_| Some(page)).collect();
    let fake = Fake::willing(page, 500).in_pages(&more, &gate);
    with_scripted_shards(server(), fake, async |rig| {
        let started = Instant::now();
        let batch = rig.start(&input(&json!({"max_in_flight": window}))).await;
        let result = batch.result().await.unwrap();
        let took = started.elapsed();
        assert_eq!((result.documents, result.totals.succeeded), (documents, documents));
        assert_eq!((result.totals.in_flight, rig.fake.calls().finishes.len()), (0, 1));
        let mut parent = Histories::default();
        for history in batch.histories(&batch.id).await {
            parent.add(&history);
        }
        let (shards, of_batch) = (documents / 500, 20);
        let mut groups = Histories::default();
        for group in 0..parent.children - of_batch {
            for history in batch.histories(&format!("{}/group-{group:04}", batch.id)).await {
                groups.add(&history);
            }
        }
        println!(
            "{documents} documents in {shards} shards: {took:.0?}\nbatch: {parent:?}\ngroups: {groups:?}\n{}",
            memory()
        );
        let started = of_batch + groups.children;
        assert_eq!(u64::try_from(started), Ok(shards), "each shard once");
        assert!(parent.most_events <= 5_000, "{parent:?}");
        assert!(groups.most_events <= 5_000, "{groups:?}");
    })
    .await;
}

/// Peak memory of this process: the worker and the test.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned()
}
