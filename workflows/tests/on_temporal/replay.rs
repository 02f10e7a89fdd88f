//! Histories that were recorded earlier, replayed through the workflows as they are now.
//!
//! A change that decides otherwise than the recorded runs did would break every batch that is under
//! way when it is rolled out. Where such a change is meant, guard it by a patch, or write down that
//! batches must have ended, and record again:
//! `TIDEGATE_RECORD_HISTORIES=1 cargo test -p tidegate-workflows replay`.

use std::path::PathBuf;

use serde_json::{Value, json};
use temporalio_client::WorkflowHistory;
use temporalio_protos::temporal::api::history::v1::HistoryEvent;
use temporalio_sdk::workflow_replayer::{
    WorkflowReplayError, WorkflowReplayer, WorkflowReplayerOptions,
};
use tidegate_testkit::Temporal;
use tidegate_workflows::{
    ProcessDocuments, ProcessShard,
    contract::{
        BatchState, CallCounts, DocumentOutcome, FailureType, LongHow, Parts, ProviderBatching,
    },
};

use crate::common::{Act, Ended, Fake, Gate, input, server, until, with_worker};

const BATCH: &str = "batch.json";
const SHARD: &str = "shard.json";
const BATCH_CANCELLED: &str = "batch-cancelled.json";
const SHARD_CANCELLED: &str = "shard-cancelled.json";
const BATCH_CONTINUED: &str = "batch-continued.json";
const SHARD_CONTINUED: &str = "shard-continued.json";
const SHARD_PARTS: &str = "shard-parts.json";
const SHARD_PACKED: &str = "shard-packed.json";
const SHARD_ECONOMY: &str = "shard-economy.json";

const SIGNAL: &str = "SignalExternalWorkflowExecutionInitiatedEventAttributes";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories").join(name)
}

fn recorded(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}

async fn replay(history: &Value) -> Result<(), WorkflowReplayError> {
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<ProcessDocuments>()
        .unwrap()
        .register_workflow::<ProcessShard>()
        .unwrap()
        .build();
    let history = WorkflowHistory::from_json(&serde_json::to_vec(history).unwrap()).unwrap();
    WorkflowReplayer::new(options).unwrap().replay_workflow(history).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_histories_replay() {
    if std::env::var_os("TIDEGATE_RECORD_HISTORIES").is_some_and(|value| value == "1") {
        record_failures_and_a_pause().await;
        record_a_cancellation().await;
        record_a_change_of_runs().await;
        record_other_paths().await;
    }
    let all = [
        BATCH,
        SHARD,
        BATCH_CANCELLED,
        SHARD_CANCELLED,
        BATCH_CONTINUED,
        SHARD_CONTINUED,
        SHARD_PARTS,
        SHARD_PACKED,
        SHARD_ECONOMY,
    ];
    for name in all {
        replay(&recorded(name)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// What the next recording must not leave out.
#[test]
fn recorded_histories_have_met_failures_pause_resume_cancellation_and_a_change_of_runs() {
    for name in [BATCH, SHARD] {
        let history = recorded(name);
        let signals: Vec<_> = all(&history, "WorkflowExecutionSignaledEventAttributes")
            .map(|signal| signal["signal_name"].as_str().unwrap())
            .filter(|name| *name != "shard_progress")
            .collect();
        assert_eq!(signals, ["pause", "resume"], "{name}");
    }
    assert_eq!(all(&recorded(SHARD), "ActivityTaskFailedEventAttributes").count(), 2);
    assert_eq!(all(&recorded(SHARD_CANCELLED), "ActivityTaskCanceledEventAttributes").count(), 3);
    let last = |name: &str| {
        recorded(name)["events"].as_array().unwrap().last().unwrap()["attributes"].clone()
    };
    assert!(last(BATCH_CANCELLED).get("WorkflowExecutionCanceledEventAttributes").is_some());
    assert!(last(SHARD_CANCELLED).get("WorkflowExecutionCanceledEventAttributes").is_some());
    assert!(last(BATCH_CONTINUED).get("WorkflowExecutionContinuedAsNewEventAttributes").is_some());
    assert!(last(SHARD_CONTINUED).get("WorkflowExecutionContinuedAsNewEventAttributes").is_some());
    let scheduled = |name: &str, activity: &str| {
        let history = recorded(name);
        all(&history, "ActivityTaskScheduledEventAttributes")
            .filter(|task| task["activity_type"]["name"] == activity)
            .count()
    };
    assert_eq!(scheduled(SHARD_PARTS, "tidegate.process_part"), 12 + 2 + 1);
    assert_eq!(
        (
            scheduled(SHARD_PACKED, "tidegate.process_pack"),
            scheduled(SHARD_PACKED, "tidegate.process_document")
        ),
        (3, 12)
    );
    assert_eq!(
        (
            scheduled(SHARD_ECONOMY, "tidegate.submit_batch"),
            scheduled(SHARD_ECONOMY, "tidegate.collect_batch")
        ),
        (5, 4)
    );
    assert_eq!(
        (
            scheduled(SHARD_ECONOMY, "tidegate.cancel_batch"),
            scheduled(SHARD_ECONOMY, "tidegate.process_document")
        ),
        (0, 12)
    );
}

/// A replay that passes proves something only if one that should fail does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_that_the_workflows_would_not_write_is_refused() {
    for (name, kind, field, other) in [
        (SHARD, "ActivityTaskScheduledEventAttributes", "/activity_type/name", "tidegate.other"),
        (BATCH, "ActivityTaskScheduledEventAttributes", "/activity_type/name", "tidegate.other"),
        (BATCH, "StartChildWorkflowExecutionInitiatedEventAttributes", "/workflow_id", "other"),
        (
            BATCH,
            "StartChildWorkflowExecutionInitiatedEventAttributes",
            "/workflow_type/name",
            "Other",
        ),
    ] {
        let mut history = recorded(name);
        let event = history["events"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .find_map(|event| event["attributes"].get_mut(kind))
            .unwrap();
        *event.pointer_mut(field).unwrap() = json!(other);
        assert_refused(&history, &format!("{name} {field}")).await;
    }

    // The report of the first documents, before the last of them.
    let mut history = recorded(SHARD);
    let events = history["events"].as_array_mut().unwrap();
    let report = events.iter().position(|event| event["attributes"].get(SIGNAL).is_some()).unwrap();
    let [document, report] = &mut events[report - 1..=report] else { panic!("two events") };
    for part in ["attributes", "event_type"] {
        std::mem::swap(&mut document[part], &mut report[part]);
    }
    assert_refused(&history, "another order").await;
}

async fn assert_refused(history: &Value, how: &str) {
    match replay(history).await {
        Err(WorkflowReplayError::Replay(failure)) => println!("{how}: {failure}"),
        result => panic!("{how}: {result:?}"),
    }
}

async fn record_failures_and_a_pause() {
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
        for shard in [0, 1] {
            batch.shard_has_signal(shard, "pause", 1).await;
        }
        gate.pass(6);
        for shard in [0, 1] {
            until("a shard is idle", async || batch.shard_totals(shard).await.in_flight == 0).await;
        }
        batch.resume().await;
        for shard in [0, 1] {
            batch.shard_has_signal(shard, "resume", 1).await;
        }
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.failed, 4);
        save(BATCH, &batch.history().await);
        save(SHARD, &batch.shard_history(0).await);
    });
    assert!(recorded.await.is_some(), "histories can be recorded only with a Temporal dev server");
}

async fn record_a_cancellation() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(24, 12, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 6}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 6).await;
        gate.pass(4);
        rig.fake.until("the window moves on", |calls| calls.started.len() == 10).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        save(BATCH_CANCELLED, &batch.history().await);
        save(SHARD_CANCELLED, &batch.shard_history(0).await);
    })
    .await;
}

async fn record_a_change_of_runs() {
    let server = Temporal::start(&["limit.historyCount.suggestContinueAsNew=60"]);
    with_worker(server.as_ref(), Fake::willing(180, 30), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 8}))).await;
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 180);
        save(BATCH_CONTINUED, &batch.first_history().await);
        save(SHARD_CONTINUED, &batch.first_shard_history(0).await);
    })
    .await;
}

/// A document in parts, documents that share calls, and documents in a provider's batches, one of
/// which finds no room at first.
async fn record_other_paths() {
    let parts = Parts { count: 12, text: 1, how: LongHow::MapReduce };
    let long = Fake::new(1, 1, move |_| {
        Act::Succeed(DocumentOutcome { parts: Some(parts), ..DocumentOutcome::default() })
    });
    with_worker(server(), long, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        assert_eq!(batch.result().await.unwrap().totals.spend.provider_calls, 14 + 1);
        save(SHARD_PARTS, &batch.shard_history(0).await);
    })
    .await;
    with_worker(server(), Fake::willing(25, 25).packed(10), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 25);
        save(SHARD_PACKED, &batch.shard_history(0).await);
    })
    .await;
    let economy = Fake::willing(24, 24).in_provider_batches(
        ProviderBatching { until: None },
        |batch, times| match (batch.submitted.from, times) {
            (10, 1) if batch.submitted.round == 0 => BatchState::Full,
            (_, 1) => BatchState::Running,
            _ => BatchState::Ended,
        },
    );
    with_worker(server(), economy, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 24);
        save(SHARD_ECONOMY, &batch.shard_history(0).await);
    })
    .await;
}

/// One event to a line, so that a new recording can be compared with the last.
fn save(name: &str, events: &[HistoryEvent]) {
    let lines: Vec<_> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    std::fs::write(path(name), format!("{{\"events\":[\n{}\n]}}\n", lines.join(",\n"))).unwrap();
}

/// The attributes of all events of a kind.
fn all<'a>(history: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    history["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(move |event| event["attributes"].get(kind))
}
