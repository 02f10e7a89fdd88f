//! Replays recorded histories through the current workflows.
//!
//! From 0.1.0 on, a change that decides differently from the recorded runs would break every
//! running batch when it is rolled out. Such a change goes behind a patch, and the new decisions
//! are recorded under their own version (`tidegate_workflows::COMMANDS`):
//! `TIDEGATE_RECORD_HISTORIES=0.2.0 cargo test -p tidegate-workflows replay`.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{
    WorkflowReplayError, WorkflowReplayer, WorkflowReplayerOptions,
};
use tidegate_workflows::{
    COMMANDS, ProcessCall, ProcessDocuments, ProcessGroup, ProcessParts, ProcessShard,
    ProcessWebhook,
};

use crate::recorder::{
    BATCH, BATCH_CANCELLED, BATCH_CONTINUED, BATCH_ESCALATED, PARTS, Recorder, SHARD,
    SHARD_CANCELLED, SHARD_CONTINUED, SHARD_ECONOMY, SHARD_OPENED, SHARD_PACKED, SHARD_TOPPED_UP,
    folder,
};

const SIGNAL: &str = "SignalExternalWorkflowExecutionInitiatedEventAttributes";

/// All versions that have recorded histories, in order.
fn versions() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
    let mut versions: Vec<String> = entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    versions.sort_unstable();
    versions
}

fn recorded(version: &str, name: &str) -> Value {
    let file = folder().join(version).join(name);
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The histories of one version.
fn names(version: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder().join(version)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

pub(crate) async fn replay(history: &Value) -> Result<(), WorkflowReplayError> {
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<ProcessDocuments>()
        .unwrap()
        .register_workflow::<ProcessGroup>()
        .unwrap()
        .register_workflow::<ProcessShard>()
        .unwrap()
        .register_workflow::<ProcessParts>()
        .unwrap()
        .register_workflow::<ProcessCall>()
        .unwrap()
        .register_workflow::<ProcessWebhook>()
        .unwrap()
        .build();
    let history = WorkflowHistory::from_json(&serde_json::to_vec(history).unwrap()).unwrap();
    WorkflowReplayer::new(options).unwrap().replay_workflow(history).await
}

/// Every history of every version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_histories_replay() {
    if let Ok(version) = std::env::var("TIDEGATE_RECORD_HISTORIES") {
        Recorder::new(&version).unwrap().record().await;
    }
    for version in versions() {
        for name in names(&version) {
            replay(&recorded(&version, &name))
                .await
                .unwrap_or_else(|error| panic!("{version}/{name}: {error}"));
        }
    }
}

#[test]
fn every_workflow_is_recorded() {
    let started = "WorkflowExecutionStartedEventAttributes";
    let kinds = names(COMMANDS).into_iter().map(|name| {
        let history = recorded(COMMANDS, &name);
        let kind = &history["events"][0]["attributes"][started]["workflow_type"]["name"];
        kind.as_str().unwrap().to_owned()
    });
    let kinds: BTreeSet<String> = kinds.collect();
    let all = ["Call", "Documents", "Group", "Parts", "Shard", "Webhook"];
    assert_eq!(kinds, all.iter().map(|kind| format!("Process{kind}")).collect());
}

#[test]
fn recordings_of_earlier_versions_are_not_overwritten() {
    assert!(versions().contains(&COMMANDS.to_owned()), "today's commands are recorded");
    let refused = Recorder::new(COMMANDS).unwrap_err();
    assert!(refused.contains("is there already"), "{refused}");
    for name in ["", "1", "../../src"] {
        let refused = Recorder::new(name).unwrap_err();
        assert!(refused.contains("names the version"), "{refused}");
    }
}

/// Events that a new recording must contain.
#[test]
fn recorded_histories_have_met_failures_pause_resume_cancellation_and_a_change_of_runs() {
    for version in versions() {
        let recorded = |name: &str| recorded(&version, name);
        for name in [BATCH, SHARD] {
            let history = recorded(name);
            let signals: Vec<_> = all(&history, "WorkflowExecutionSignaledEventAttributes")
                .map(|signal| signal["signal_name"].as_str().unwrap())
                .filter(|name| *name != "shard_progress")
                .collect();
            assert_eq!(signals, ["pause", "resume"], "{version}/{name}");
        }
        assert_eq!(all(&recorded(SHARD), "ActivityTaskFailedEventAttributes").count(), 2);
        let cancelled = recorded(SHARD_CANCELLED);
        assert_eq!(all(&cancelled, "ActivityTaskCanceledEventAttributes").count(), 3);
        for (name, end) in [
            (BATCH_CANCELLED, "WorkflowExecutionCanceledEventAttributes"),
            (SHARD_CANCELLED, "WorkflowExecutionCanceledEventAttributes"),
            (BATCH_CONTINUED, "WorkflowExecutionContinuedAsNewEventAttributes"),
            (SHARD_CONTINUED, "WorkflowExecutionContinuedAsNewEventAttributes"),
        ] {
            let history = recorded(name);
            let last = &history["events"].as_array().unwrap().last().unwrap()["attributes"];
            assert!(last.get(end).is_some(), "{version}/{name}: {last}");
        }
        let scheduled = |name: &str, activities: &[&str]| -> Vec<usize> {
            let history = recorded(name);
            let tasks = || all(&history, "ActivityTaskScheduledEventAttributes");
            let of = |activity: &&str| {
                tasks().filter(|task| task["activity_type"]["name"] == **activity).count()
            };
            activities.iter().map(of).collect()
        };
        assert_eq!(scheduled(PARTS, &["tidegate.process_part"]), [12 + 2 + 1], "{version}");
        let documents = scheduled(BATCH_ESCALATED, &["tidegate.process_document"]);
        assert_eq!(documents, [10 + 5 + 1], "{version}");
        let opened = recorded(SHARD_OPENED);
        assert!(all(&opened, "TimerFiredEventAttributes").count() > 0, "{version}");
        let signals = recorded(SHARD_TOPPED_UP);
        let mut signals = all(&signals, "WorkflowExecutionSignaledEventAttributes");
        assert!(signals.any(|signal| signal["signal_name"] == "places"), "{version}");
        let packed = ["tidegate.process_pack", "tidegate.process_document"];
        assert_eq!(scheduled(SHARD_PACKED, &packed), [3, 12], "{version}");
        let economy = [
            "tidegate.submit_batch",
            "tidegate.collect_batch",
            "tidegate.cancel_batch",
            "tidegate.process_document",
        ];
        assert_eq!(scheduled(SHARD_ECONOMY, &economy), [5, 4, 0, 12], "{version}");
    }
}

/// A passing replay proves something only if a wrong history fails.
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
        let mut history = recorded(COMMANDS, name);
        let event = history["events"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .find_map(|event| event["attributes"].get_mut(kind))
            .unwrap();
        *event.pointer_mut(field).unwrap() = json!(other);
        assert_refused(&history, &format!("{name} {field}")).await;
    }

    // A report moved before the document that was handed out with it.
    let (mut history, report) =
        names(COMMANDS).iter().find_map(|name| document_and_report(name)).unwrap();
    let events = history["events"].as_array_mut().unwrap();
    let [document, report] = &mut events[report - 1..=report] else { panic!("two events") };
    for part in ["attributes", "event_type"] {
        std::mem::swap(&mut document[part], &mut report[part]);
    }
    assert_refused(&history, "another order").await;
}

/// The recorded history, and the index of a report that directly follows a document handed out with it.
fn document_and_report(name: &str) -> Option<(Value, usize)> {
    let history = recorded(COMMANDS, name);
    let has = |event: &Value, kind: &str| event["attributes"].get(kind).is_some();
    let mut pairs = history["events"].as_array().unwrap().windows(2);
    let report = 1 + pairs.position(|pair| {
        has(&pair[0], "ActivityTaskScheduledEventAttributes") && has(&pair[1], SIGNAL)
    })?;
    Some((history, report))
}

async fn assert_refused(history: &Value, how: &str) {
    let replayed = tokio::time::timeout(Duration::from_secs(60), replay(history)).await;
    match replayed.expect(how) {
        Err(WorkflowReplayError::Replay(failure)) => println!("{how}: {failure}"),
        result => panic!("{how}: {result:?}"),
    }
}

/// The attributes of all events of one kind.
fn all<'a>(history: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    history["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(move |event| event["attributes"].get(kind))
}
