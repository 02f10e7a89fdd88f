//! Documents that wait in provider batches, through crashes, deadlines and continued runs.

use std::time::{Duration, SystemTime};

use serde_json::json;
use temporalio_protos::temporal::api::history::v1::{HistoryEvent, history_event::Attributes};
use tidegate_testkit::Temporal;
use tidegate_workflows::contract::{BatchState, ProviderBatching};

use crate::common::{Calls, Ended, Fake, Gate, input, server, until, with_few_slots, with_worker};

/// Each document was answered once: an even one by the provider batch, an odd one directly.
fn assert_each_answered_once(calls: &Calls, documents: u32) {
    let mut answered: Vec<u32> = calls
        .collected
        .iter()
        .flat_map(|batch| batch.submitted.from..batch.submitted.to)
        .filter(|index| index % 2 == 0)
        .chain(calls.started.iter().map(|(_, index)| *index))
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..documents).collect::<Vec<_>>());
}

fn scheduled(history: &[HistoryEvent], activity: &str) -> usize {
    let of = |event: &&HistoryEvent| {
        matches!(&event.attributes, Some(Attributes::ActivityTaskScheduledEventAttributes(task))
            if task.activity_type.as_ref().is_some_and(|kind| kind.name == activity))
    };
    history.iter().filter(of).count()
}

/// A shard that has submitted all its provider batches continues as new: the next run knows them
/// and checks them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_continues_as_new_while_its_provider_works() {
    let server = Temporal::start(&["limit.historyCount.suggestContinueAsNew=60"]);
    let fake = Fake::willing(120, 120).in_provider_batches(
        ProviderBatching { until: None },
        |_, times| {
            if times < 2 { BatchState::Running } else { BatchState::Ended }
        },
    );
    with_worker(server.as_ref(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (120, 0), "{result:?}");
        let calls = rig.fake.calls();
        assert_eq!(calls.submitted.len(), 12, "each is handed in once: {:?}", calls.submitted);
        assert_each_answered_once(&calls, 120);
        let runs = batch.histories(&batch.shard_id(0)).await;
        let of_runs = |activity: &str| -> Vec<usize> {
            runs.iter().map(|run| scheduled(run, activity)).collect()
        };
        assert_eq!(of_runs("tidegate.submit_batch")[..2], [12, 0]);
        assert_eq!(of_runs("tidegate.collect_batch")[0], 0, "the next run collects");
    })
    .await;
}

/// The workers are away while a provider batch's time runs out. Its answers are collected, and all
/// other documents go directly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_outlives_its_deadline_without_workers_ends() {
    let server = server();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let deadline = now + Duration::from_secs(15);
    let fake = Fake::willing(25, 25).in_provider_batches(
        ProviderBatching { until: Some(deadline.as_secs()) },
        |_, times| {
            if times < 2 { BatchState::Running } else { BatchState::Ended }
        },
    );
    let before = with_worker(server, fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("all are handed in", |calls| calls.submitted.len() == 3).await;
        (rig, batch)
    });
    let Some((rig, batch)) = before.await else { return };
    let over = SystemTime::UNIX_EPOCH + deadline;
    until("its time is over", async || SystemTime::now() > over).await;
    rig.with_worker(async |rig| {
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (25, 0), "{result:?}");
        let calls = rig.fake.calls();
        assert_eq!((calls.submitted.len(), calls.cancelled.len()), (3, 3));
        assert_each_answered_once(&calls, 25);
    })
    .await;
}

/// A worker holds few provider batches at once, so submissions wait. Other activities do not wait
/// with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_seals_and_finishes_do_not_wait_for_submissions() {
    let gate = Gate::default();
    let fake = Fake::willing(60, 20)
        .in_provider_batches(ProviderBatching { until: None }, |_, _| BatchState::Ended)
        .submitting_at(&gate);
    with_few_slots(server(), fake, 1, async |rig| {
        let slow = rig.start(&input(&json!({}))).await;
        rig.fake.until("three submissions wait", |calls| calls.submitted.len() == 3).await;
        let quick = rig.start(&input(&json!({"tenant": "direct"}))).await;
        assert_eq!(quick.result().await.unwrap().totals.succeeded, 60);
        gate.open();
        assert_eq!(slow.result().await.unwrap().totals.succeeded, 60);
    })
    .await;
}

/// A timer may fire in the same workflow task as the cancellation, if the worker is away during
/// both. A timer that is cancelled then makes the SDK panic.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_may_fire_together_with_the_cancellation() {
    let fake =
        Fake::willing(10, 10).in_provider_batches(ProviderBatching { until: None }, |_, times| {
            if times < 2 { BatchState::Running } else { BatchState::Ended }
        });
    let before = with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("it is handed in", |calls| calls.submitted.len() == 1).await;
        until("it waits", async || timers(&batch.shard_history(0).await).0 == 1).await;
        (rig, batch)
    });
    let Some((rig, batch)) = before.await else { return };
    batch.cancel_shard(0).await;
    until("the timer has fired", async || timers(&batch.shard_history(0).await).1 == 1).await;
    rig.with_worker(async |rig| {
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let calls = rig.fake.calls();
        assert_eq!((calls.collected.len(), calls.started.len()), (1, 0));
        let failed = batch.shard_history(0).await.into_iter().filter(|event| {
            matches!(event.attributes, Some(Attributes::WorkflowTaskFailedEventAttributes(_)))
        });
        assert_eq!(failed.count(), 0, "no workflow task fails");
    })
    .await;
}

/// Timers that were started, and timers that fired.
fn timers(history: &[HistoryEvent]) -> (usize, usize) {
    let started = |event: &&HistoryEvent| {
        matches!(event.attributes, Some(Attributes::TimerStartedEventAttributes(_)))
    };
    let fired = |event: &&HistoryEvent| {
        matches!(event.attributes, Some(Attributes::TimerFiredEventAttributes(_)))
    };
    (history.iter().filter(started).count(), history.iter().filter(fired).count())
}
