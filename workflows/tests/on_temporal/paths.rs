//! Documents that do not go one by one: several in a call, or through their provider's batch API.

use std::time::{Duration, SystemTime};

use serde_json::json;
use temporalio_protos::temporal::api::history::v1::history_event::Attributes;
use tidegate_workflows::contract::{BatchState, ProviderBatching};

use crate::common::{Ended, Fake, input, server, with_worker};

/// The first pack fails for good, so each of its documents goes alone; of the others only those
/// that the answer left out do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_share_a_call_are_counted_one_by_one() {
    with_worker(server(), Fake::willing(25, 25).packed(10), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 10}))).await;
        let result = batch.result().await.unwrap();
        let calls = rig.fake.calls();
        assert_eq!(
            (result.totals.succeeded, result.totals.failed, result.totals.in_flight),
            (25, 0, 0),
            "{result:?}"
        );
        let ranges: Vec<_> = calls.packs.iter().map(|pack| (pack.from, pack.to)).collect();
        assert_eq!(ranges, [(0, 10), (10, 20), (20, 25)]);
        let mut alone: Vec<u32> = calls.started.iter().map(|(_, index)| *index).collect();
        alone.sort_unstable();
        assert_eq!(alone, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 23]);
        let mut asked = calls.asked.clone();
        asked.sort_unstable();
        assert_eq!(asked, alone, "each was in a call already");
        // One call for each pack, including the failed one, and one for each document that went
        // alone.
        assert_eq!(result.totals.spend.provider_calls, 3 + 12);
    })
    .await;
}

/// Two provider batches; the second finds no room at first. Even documents are answered there, odd
/// ones directly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_providers_batch_has_not_answered_goes_directly() {
    let fake = Fake::willing(20, 20).in_provider_batches(
        ProviderBatching { until: None },
        |batch, times| match (batch.submitted.from, times) {
            (10, 1) if batch.submitted.round == 0 => BatchState::Full,
            (_, 1) => BatchState::Running,
            _ => BatchState::Ended,
        },
    );
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
        rig.fake.until("both are handed in", |calls| calls.submitted.len() == 2).await;
        let result = batch.result().await.unwrap();
        assert_eq!(
            (result.totals.succeeded, result.totals.in_flight, result.totals.spend.provider_calls),
            (20, 0, 20),
            "{result:?}"
        );
        let calls = rig.fake.calls();
        let submitted: Vec<_> =
            calls.submitted.iter().map(|task| (task.from, task.to, task.round)).collect();
        assert_eq!(
            submitted,
            [(0, 20, 0), (10, 20, 0), (10, 15, 1), (15, 20, 1)],
            "in halves, as the queue may be too small"
        );
        let mut direct: Vec<u32> = calls.started.iter().map(|(_, index)| *index).collect();
        direct.sort_unstable();
        assert_eq!(direct, (0..20).filter(|index| index % 2 == 1).collect::<Vec<_>>());
        assert!(calls.cancelled.is_empty());
        let mut raised = calls.raised.clone();
        raised.sort_unstable();
        assert_eq!((raised, result.totals.cuts.raised), (vec![7, 17], 2), "cut, not unanswered");
        let mut asked = calls.asked.clone();
        asked.sort_unstable();
        assert_eq!(asked, [7, 9, 17, 19], "the others expired unasked");
    })
    .await;
}

/// Time is up: the provider is asked to stop, its answers are collected, and the rest goes
/// directly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_ends_the_wait() {
    let until =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + Duration::from_secs(8);
    // Checked first after 5 s, then when time is up.
    let fake = Fake::willing(6, 6).in_provider_batches(
        ProviderBatching { until: Some(until.as_secs()) },
        |_, times| {
            if times < 3 { BatchState::Running } else { BatchState::Ended }
        },
    );
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (6, 0), "{result:?}");
        let calls = rig.fake.calls();
        assert_eq!((calls.cancelled.len(), calls.collected.len(), calls.started.len()), (1, 1, 3));
    })
    .await;
}

/// A submission that may have reached the provider is looked for when time is up, and collected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_may_have_been_submitted_is_looked_for() {
    let until =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + Duration::from_secs(8);
    let fake = Fake::willing(6, 6)
        .in_provider_batches(ProviderBatching { until: Some(until.as_secs()) }, |_, _| {
            BatchState::Ended
        })
        .never_sure();
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (6, 0), "{result:?}");
        let calls = rig.fake.calls();
        assert!(
            calls.submitted.last().unwrap().only_find && calls.submitted.len() > 1,
            "{:?}",
            calls.submitted
        );
        assert_eq!((calls.cancelled.len(), calls.collected.len(), calls.started.len()), (1, 1, 3));
    })
    .await;
}

/// A cancelled batch stops its provider batches, keeps their answers, and makes no more calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_batch_collects_what_is_paid_for() {
    let fake =
        Fake::willing(10, 10).in_provider_batches(ProviderBatching { until: None }, |_, times| {
            if times < 2 { BatchState::Running } else { BatchState::Ended }
        });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("it is handed in", |calls| calls.submitted.len() == 1).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let calls = rig.fake.calls();
        assert_eq!((calls.cancelled.len(), calls.collected.len(), calls.started.len()), (1, 1, 0));
        assert_eq!(calls.finishes[0].progress.totals.succeeded, 5, "{:?}", calls.finishes);
    })
    .await;
}

/// Documents that the provider refuses go directly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_as_a_whole_goes_directly() {
    let fake = Fake::willing(3, 3)
        .in_provider_batches(ProviderBatching { until: None }, |_, _| BatchState::Failed);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 3);
        assert_eq!((rig.fake.calls().collected.len(), rig.fake.calls().started.len()), (0, 3));
    })
    .await;
}

/// Earlier submissions are collected before the shard fails because nothing more can be submitted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_does_not_abandon_what_is_paid_for() {
    let fake = Fake::willing(20, 20)
        .in_provider_batches(ProviderBatching { until: None }, |_, _| BatchState::Ended)
        .without_batches_from(10);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let Err(Ended::Failed { message, .. }) = batch.result().await else {
            panic!("it must fail")
        };
        assert!(message.contains("there is no batch API"), "{message}");
        let calls = rig.fake.calls();
        assert_eq!(
            (calls.collected.len(), calls.finishes[0].progress.totals.succeeded),
            (1, 5),
            "{:?}",
            calls.finishes
        );
    })
    .await;
}

/// A pause holds back documents that are not submitted yet; documents that a provider batch has
/// answered need no resume.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_keeps_documents_from_the_provider() {
    let fake = Fake::willing(11, 11)
        .in_provider_batches(ProviderBatching { until: None }, |_, _| BatchState::Full);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("all are handed in", |calls| calls.submitted.len() == 2).await;
        batch.pause().await;
        batch.shard_has_signal(0, "pause", 1).await;
        // Both batches find no room, and neither is submitted again.
        rig.fake.until("both are asked after", |calls| calls.checked.len() == 2).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(rig.fake.calls().submitted.len(), 2);
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
    })
    .await;
}

/// A worker that dies sets no delay, so Temporal's own applies. A document that waits for quota may
/// wait for days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_come_within_a_minute_and_have_no_end() {
    with_worker(server(), Fake::willing(4, 2), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        batch.result().await.unwrap();
        let mut histories = batch.history().await;
        histories.extend(batch.shard_history(0).await);
        let mut scheduled = 0;
        for event in histories {
            let Some(Attributes::ActivityTaskScheduledEventAttributes(activity)) = event.attributes
            else {
                continue;
            };
            let name = activity.activity_type.unwrap().name;
            let policy = activity.retry_policy.unwrap();
            assert_eq!(policy.maximum_interval.unwrap().seconds, 60, "{name}");
            assert_eq!(policy.maximum_attempts, 0, "{name}");
            let end = activity.schedule_to_close_timeout.map_or(0, |timeout| timeout.seconds);
            assert_eq!(end, 0, "{name}");
            scheduled += 1;
        }
        assert!(scheduled >= 5, "plan, documents, seal, finish: {scheduled}");
    })
    .await;
}
