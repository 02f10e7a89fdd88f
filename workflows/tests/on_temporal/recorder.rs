//! Records histories under the version that writes them. Histories of an earlier version are never
//! overwritten: its batches may still run.

use std::path::PathBuf;

use serde_json::json;
use temporalio_protos::temporal::api::history::v1::HistoryEvent;
use tidegate_testkit::Temporal;
use tidegate_workflows::contract::{
    BatchState, CallCounts, DocumentOutcome, FailureType, LongHow, Parts, ProviderBatching,
};

use crate::common::{Act, Ended, Fake, Gate, input, outcome, server, until, with_worker};

pub(crate) const BATCH: &str = "batch.json";
pub(crate) const SHARD: &str = "shard.json";
pub(crate) const BATCH_CANCELLED: &str = "batch-cancelled.json";
pub(crate) const SHARD_CANCELLED: &str = "shard-cancelled.json";
pub(crate) const BATCH_CONTINUED: &str = "batch-continued.json";
pub(crate) const SHARD_CONTINUED: &str = "shard-continued.json";
const SHARD_PARTS: &str = "shard-parts.json";
/// A document of that shard.
pub(crate) const PARTS: &str = "parts.json";
pub(crate) const SHARD_PACKED: &str = "shard-packed.json";
pub(crate) const SHARD_ECONOMY: &str = "shard-economy.json";
/// Batches that work on their only shard themselves; a large batch, and a group of its shards.
const BATCH_SMALL: &str = "batch-small.json";
const BATCH_SMALL_CONTINUED: &str = "batch-small-continued.json";
const BATCH_SMALL_CANCELLED: &str = "batch-small-cancelled.json";
const BATCH_GROUPS: &str = "batch-groups.json";
const GROUP: &str = "group.json";
/// A batch whose plan grows while its shards run.
const BATCH_PAGES: &str = "batch-pages.json";
/// A batch whose documents go on to the route's next model.
pub(crate) const BATCH_ESCALATED: &str = "batch-escalated.json";
/// A shard that opens its window before any call has ended.
pub(crate) const SHARD_OPENED: &str = "shard-opened.json";
/// A message to a batch's webhook, and a call that a program submits.
const WEBHOOK: &str = "webhook.json";
const CALL: &str = "call.json";
/// A batch whose last shard starts with few places and gets more, and that shard.
const BATCH_TOPPED_UP: &str = "batch-topped-up.json";
pub(crate) const SHARD_TOPPED_UP: &str = "shard-topped-up.json";

/// Of ten documents, every second goes on to the next model, and the first of them to a third.
fn escalating() -> Fake {
    Fake::new(10, 10, |task| {
        let calls = task.escalated.map(|before| before.provider_calls);
        let escalates = match calls {
            None => task.index % 2 == 0,
            Some(calls) => task.index == 0 && calls == 1,
        };
        Act::Succeed(DocumentOutcome { escalates, ..outcome() })
    })
}

/// The folder with one folder of histories for each version.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

/// Writes the histories of one version.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
}

impl Recorder {
    /// A recorder for a version without histories.
    pub(crate) fn new(version: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        if version.len() < 5 || !version.chars().all(plain) {
            return Err(format!(
                "TIDEGATE_RECORD_HISTORIES names the version that is recorded, such as 0.2.0, and not \"{version}\""
            ));
        }
        let folder = folder().join(version);
        if folder.exists() {
            return Err(format!(
                "{} is there already, and batches of that version may still run; record under another name",
                folder.display()
            ));
        }
        Ok(Self { folder })
    }

    pub(crate) async fn record(&self) {
        std::fs::create_dir(&self.folder).unwrap();
        self.failures_and_a_pause().await;
        self.windows_that_open().await;
        self.a_cancellation().await;
        self.a_change_of_runs().await;
        self.other_paths().await;
        self.small_and_large_batches().await;
        self.documents_that_go_on().await;
        self.one_activity().await;
    }

    async fn failures_and_a_pause(&self) {
        let gate = Gate::default();
        let at = gate.clone();
        let fake = Fake::new(24, 12, move |task| match task.index {
            2 => Act::Fail(
                FailureType::InvalidRequest,
                CallCounts { provider_calls: 1, ..CallCounts::default() },
            ),
            5 => Act::Fail(FailureType::TooLarge, CallCounts::default()),
            _ => Act::Wait(at.clone()),
        });
        let recorded = with_worker(server(), fake, async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 6}))).await;
            rig.fake.until("a full window", |calls| calls.started.len() == 8).await;
            batch.pause().await;
            batch.shard_has_signal(0, "pause", 1).await;
            gate.pass(6);
            until("the shard is idle", async || batch.shard_totals(0).await.in_flight == 0).await;
            batch.resume().await;
            batch.shard_has_signal(0, "resume", 1).await;
            gate.open();
            assert_eq!(batch.result().await.unwrap().totals.failed, 4);
            self.save(BATCH, &batch.history().await);
            self.save(SHARD, &batch.shard_history(0).await);
        });
        assert!(
            recorded.await.is_some(),
            "histories can be recorded only with a Temporal dev server"
        );
    }

    async fn windows_that_open(&self) {
        let gate = Gate::default();
        let fake = Fake::waiting(60, 30, &gate).opening(40, 10).expecting(1);
        with_worker(server(), fake, async |rig| {
            let batch = rig.start(&input(&json!({}))).await;
            rig.fake.until("the whole window", |calls| calls.started.len() == 40).await;
            gate.open();
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 60);
            self.save(SHARD_OPENED, &batch.shard_history(0).await);
        })
        .await;
        let (first, second) = (Gate::default(), Gate::default());
        let gates = [first.clone(), second.clone()];
        let fake = Fake::new(32, 16, move |task| Act::Wait(gates[task.shard as usize].clone()));
        with_worker(server(), fake, async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 22}))).await;
            rig.fake.until("sixteen and six", |calls| calls.started.len() == 22).await;
            first.open();
            rig.fake.until("all are in flight", |calls| calls.started.len() == 32).await;
            second.open();
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 32);
            self.save(BATCH_TOPPED_UP, &batch.history().await);
            self.save(SHARD_TOPPED_UP, &batch.shard_history(1).await);
        })
        .await;
    }

    async fn a_cancellation(&self) {
        let gate = Gate::default();
        with_worker(server(), Fake::waiting(24, 12, &gate), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 3}))).await;
            rig.fake.until("a full window", |calls| calls.started.len() == 3).await;
            gate.pass(4);
            rig.fake.until("the window moves on", |calls| calls.started.len() == 7).await;
            batch.cancel().await;
            assert_eq!(batch.result().await, Err(Ended::Cancelled));
            self.save(BATCH_CANCELLED, &batch.history().await);
            self.save(SHARD_CANCELLED, &batch.shard_history(0).await);
        })
        .await;
    }

    async fn a_change_of_runs(&self) {
        let server = Temporal::start(&["limit.historyCount.suggestContinueAsNew=60"]);
        with_worker(server.as_ref(), Fake::willing(360, 30), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 8}))).await;
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 360);
            self.save(BATCH_CONTINUED, &batch.first_history().await);
            self.save(SHARD_CONTINUED, &batch.first_shard_history(0).await);
        })
        .await;
    }

    /// A document in parts, documents that share calls, and documents in provider batches, one of
    /// which finds no room at first.
    async fn other_paths(&self) {
        let parts = Parts { count: 12, text: 1, how: LongHow::MapReduce };
        with_worker(server(), Fake::long(2, 1, parts), async |rig| {
            let batch = rig.start(&input(&json!({}))).await;
            assert_eq!(batch.result().await.unwrap().totals.spend.provider_calls, 2 * (14 + 1));
            self.save(SHARD_PARTS, &batch.shard_history(0).await);
            let document = format!("{}/shard-00000/document-00000", batch.id);
            self.save(PARTS, &batch.histories(&document).await.remove(0));
        })
        .await;
        with_worker(server(), Fake::willing(50, 25).packed(10), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 50);
            self.save(SHARD_PACKED, &batch.shard_history(0).await);
        })
        .await;
        let economy = Fake::willing(25, 24).in_provider_batches(
            ProviderBatching { until: None },
            |batch, times| match (batch.submitted.from, times) {
                (10, 1) if batch.submitted.round == 0 => BatchState::Full,
                (_, 1) => BatchState::Running,
                _ => BatchState::Ended,
            },
        );
        with_worker(server(), economy, async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 25);
            self.save(SHARD_ECONOMY, &batch.shard_history(0).await);
        })
        .await;
    }

    /// Batches with one shard, and a batch with groups of shards.
    async fn small_and_large_batches(&self) {
        let gate = Gate::default();
        with_worker(server(), Fake::waiting(12, 12, &gate), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 3}))).await;
            rig.fake.until("a full window", |calls| calls.started.len() == 3).await;
            batch.pause().await;
            gate.pass(3);
            until("it is idle", async || batch.progress().await.totals.in_flight == 0).await;
            batch.resume().await;
            rig.fake.until("a full window", |calls| calls.started.len() == 6).await;
            batch.cancel().await;
            assert_eq!(batch.result().await, Err(Ended::Cancelled));
            self.save(BATCH_SMALL_CANCELLED, &batch.history().await);
        })
        .await;
        let server = Temporal::start(&["limit.historyCount.suggestContinueAsNew=60"]);
        with_worker(server.as_ref(), Fake::willing(40, 40), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 8}))).await;
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 40);
            self.save(BATCH_SMALL, &batch.history().await);
            self.save(BATCH_SMALL_CONTINUED, &batch.first_history().await);
        })
        .await;
        with_worker(self::server(), Fake::willing(28, 1), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 28);
            self.save(BATCH_GROUPS, &batch.history().await);
            let group = format!("{}/group-0000", batch.id);
            self.save(GROUP, &batch.histories(&group).await.remove(0));
        })
        .await;
        let gate = Gate::default();
        let fake = Fake::willing(20, 10).in_pages(&[Some(20), Some(5)], &gate);
        with_worker(self::server(), fake, async |rig| {
            let batch = rig.start(&input(&json!({}))).await;
            rig.fake.until("all of the first page", |calls| calls.ended.len() == 20).await;
            gate.open();
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 45);
            self.save(BATCH_PAGES, &batch.history().await);
        })
        .await;
    }

    /// Answers that fail their checks: documents go on to the next model, one of them to a third.
    async fn documents_that_go_on(&self) {
        with_worker(server(), escalating(), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
            assert_eq!(batch.result().await.unwrap().totals.spend.provider_calls, 10 + 5 + 1);
            self.save(BATCH_ESCALATED, &batch.history().await);
        })
        .await;
    }

    /// The workflows of a single activity.
    async fn one_activity(&self) {
        with_worker(server(), Fake::willing(4, 2), async |rig| {
            let batch = rig.start(&input(&json!({"webhook": "ours"}))).await;
            batch.result().await.unwrap();
            let calls = rig.fake.until("it is told", |calls| !calls.notified.is_empty()).await;
            self.save(WEBHOOK, &rig.webhook_history(&calls.notified[0]).await);
            self.save(CALL, &rig.call().await);
        })
        .await;
    }

    /// Writes one event per line, so that a new recording can be compared with the last.
    fn save(&self, name: &str, events: &[HistoryEvent]) {
        let lines: Vec<_> =
            events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        std::fs::write(
            self.folder.join(name),
            format!("{{\"events\":[\n{}\n]}}\n", lines.join(",\n")),
        )
        .unwrap();
    }
}
