//! Invalid inputs and signals, and queries after a batch's end.

use serde_json::{Value, json};
use temporalio_client::{UntypedSignal, WorkflowSignalOptions};
use temporalio_common::data_converters::RawValue;
use temporalio_protos::temporal::api::history::v1::{HistoryEvent, history_event::Attributes};
use tidegate_workflows::contract::FailureType;

use crate::common::{Batch, Ended, Fake, Gate, input, server, with_worker};

async fn signal(batch: &Batch, name: &str, payload: Option<&Value>) {
    let payloads = RawValue::new(payload.into_iter().map(crate::common::json_payload).collect());
    batch
        .handle
        .signal(UntypedSignal::new(name), payloads, WorkflowSignalOptions::default())
        .await
        .unwrap();
}

/// A signal that does not decode would fail the workflow task for ever; no later signal could
/// correct it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_with_an_unexpected_input_does_no_harm() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(4, 4, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 2}))).await;
        rig.fake.until("a full window", |calls| calls.started.len() == 2).await;
        signal(&batch, "pause", Some(&json!("maintenance"))).await;
        batch.shard_has_signal(0, "pause", 1).await;
        assert!(batch.progress().await.paused);
        for (name, payload) in [
            ("shard_progress", None),
            ("shard_progress", Some(json!("garbage"))),
            ("shard_progress", Some(json!({"shard": 77, "totals": {}}))),
            ("puase", None),
            ("resume", Some(json!({"reason": "done"}))),
        ] {
            signal(&batch, name, payload.as_ref()).await;
        }
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 4);
    })
    .await;
}

/// Shards take their places from the batch's window, and start while there are enough. All these
/// start in one workflow task: once a document runs, the history shows their number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_documents_are_in_flight_than_asked_for_however_few() {
    for (most, shards) in [(1, 1), (2, 1), (9, 4)] {
        let gate = Gate::default();
        with_worker(server(), Fake::waiting(12, 2, &gate), async |rig| {
            let batch = rig.start(&input(&json!({"max_in_flight": most}))).await;
            rig.fake.until("a document has begun", |calls| !calls.started.is_empty()).await;
            let begun = |event: &&HistoryEvent| {
                matches!(
                    event.attributes,
                    Some(Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(_))
                )
            };
            assert_eq!(
                batch.history().await.iter().filter(begun).count(),
                shards,
                "{most} asked for"
            );
            gate.open();
            assert_eq!(batch.result().await.unwrap().totals.succeeded, 12);
            let at_once = rig.fake.calls().most_at_once;
            assert!(at_once <= most, "{at_once} at once, {most} asked for");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_after_the_end_is_the_result() {
    with_worker(server(), Fake::willing(6, 6), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        assert!(result.done);
        assert_eq!(batch.progress().await, result);
    })
    .await;
}

/// A continued run's state gives no way around the checks of the input.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_cannot_begin_in_the_middle() {
    let job = json!({"source": {"prefix": "x"}, "output": "file:///elsewhere/", "instructions": "", "model": "a:b", "lane": "batch", "tenant": "default", "max_output_tokens": 0});
    let plan = json!({"job": "file:///elsewhere/", "documents": 3, "shard_size": 3, "pages": 1});
    let state = json!({"job": job, "max_in_flight": 4_000, "plan": plan, "next_shard": 0, "totals": {}, "paused": false, "started_at": null});
    with_worker(server(), Fake::willing(3, 3), async |rig| {
        match rig.start(&json!({"continued": state})).await.result().await {
            Err(Ended::Failed { kind, message }) => {
                assert_eq!(kind, FailureType::InvalidInput.as_str());
                assert!(message.starts_with("unknown field \"continued\""), "{message}");
            }
            other => panic!("{other:?}"),
        }
        assert!(rig.fake.calls().started.is_empty());
    })
    .await;
}
