//! Batches with short histories: Temporal suggests continuing as new after 100 events.

use std::sync::OnceLock;

use serde_json::json;
use temporalio_protos::temporal::api::history::v1::{HistoryEvent, history_event::Attributes};
use tidegate_testkit::Temporal;
use tidegate_workflows::contract::{CallCounts, FailureType};

use crate::common::{
    Act, Fake, Gate, Rig, assert_each_once, input, outcome, sticky_tasks, until, with_no_cache,
    with_worker,
};

const SUGGEST_AT: usize = 100;

fn short_histories() -> Option<&'static Temporal> {
    static SERVER: OnceLock<Option<Temporal>> = OnceLock::new();
    SERVER
        .get_or_init(|| {
            Temporal::start(&[&format!("limit.historyCount.suggestContinueAsNew={SUGGEST_AT}")])
        })
        .as_ref()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_document_is_lost_or_repeated_when_batch_and_shards_continue_as_new() {
    with_worker(short_histories(), one_in_each_shard_fails(), continue_as_new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_document_is_lost_or_repeated_where_every_task_of_such_a_batch_replays_its_history() {
    with_no_cache(short_histories(), one_in_each_shard_fails(), async |rig| {
        let history = Box::pin(continue_as_new(rig)).await;
        assert_eq!(sticky_tasks(&history), 0, "tasks were kept for a worker");
    })
    .await;
}

fn one_in_each_shard_fails() -> Fake {
    Fake::new(640, 32, |task| match task.index {
        7 => Act::Fail(
            FailureType::TooLarge,
            CallCounts { provider_calls: 1, ..CallCounts::default() },
        ),
        _ => Act::Succeed(outcome()),
    })
}

/// Runs a batch of twenty shards. Returns the history of its last run.
async fn continue_as_new(rig: Rig) -> Vec<HistoryEvent> {
    let batch = rig.start(&input(&json!({"max_in_flight": 16}))).await;
    let result = batch.result().await.unwrap();
    assert_eq!((result.documents, result.totals.succeeded, result.totals.failed), (640, 620, 20));
    assert_eq!(
        (result.totals.spend.provider_calls, result.totals.spend.input_tokens),
        (640, 62_000)
    );

    let calls = rig.fake.calls();
    assert_each_once(&calls, 20, 32);
    assert!(
        calls.seals.iter().all(|seal| seal.failures.len() == 1 && seal.failures[0].index == 7),
        "{:?}",
        calls.seals
    );
    assert_eq!((calls.plans.len(), calls.finishes.len()), (1, 1));
    assert_eq!(calls.finishes[0].progress, result);
    assert!(has_continued(&batch.history().await), "the batch has run once only");
    let mut shards = 0;
    for shard in 0..20 {
        shards += u32::from(has_continued(&batch.shard_history(shard).await));
    }
    assert!(shards > 0, "no shard has run more than once");
    batch.history().await
}

/// The first document is held while the others fill the history, so that the pause meets a run that
/// hands out no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_is_carried_into_the_next_run_of_a_shard() {
    let gate = Gate::default();
    let first = gate.clone();
    let fake = Fake::new(80, 80, move |task| {
        if task.index == 0 { Act::Wait(first.clone()) } else { Act::Succeed(outcome()) }
    });
    with_worker(short_histories(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
        rig.fake.until("the first document", |calls| calls.started.contains(&(0, 0))).await;
        until("only the first document is in flight", async || {
            let totals = batch.shard_totals(0).await;
            totals.ended() > 1 && totals.in_flight == 1
        })
        .await;
        batch.pause().await;
        batch.shard_has_signal(0, "pause", 1).await;
        gate.open();
        until("the shard continues", async || has_continued(&batch.shard_history(0).await)).await;
        until("the next run has begun", async || batch.shard_has_begun(0).await).await;

        let before = rig.fake.calls().started.len();
        let totals = batch.shard_totals(0).await;
        assert_eq!((totals.in_flight, totals.ended()), (0, before as u64));
        assert!(before < 80, "the shard has ended before it could continue");

        batch.resume().await;
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 80);
        assert_each_once(&rig.fake.calls(), 1, 80);
    })
    .await;
}

/// Like the test above, with the batch in place of the shard: its first shard is held while the
/// others fill the history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_is_carried_into_the_next_run_of_a_batch() {
    let gate = Gate::default();
    let first = gate.clone();
    let fake = Fake::new(100, 5, move |task| {
        if (task.shard, task.index) == (0, 0) {
            Act::Wait(first.clone())
        } else {
            Act::Succeed(outcome())
        }
    });
    with_worker(short_histories(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 10}))).await;
        until("only the first shard runs", async || only_one_shard_runs(&batch.history().await))
            .await;
        batch.pause().await;
        batch.shard_has_signal(0, "pause", 1).await;
        let before = rig.fake.calls().started.len();
        gate.open();
        until("the batch continues", async || has_continued(&batch.history().await)).await;
        let next = u32::try_from(before / 5).unwrap();
        for shard in next..next + 2 {
            until("a shard of the next run has begun", async || batch.shard_has_begun(shard).await)
                .await;
            assert_eq!(batch.shard_totals(shard).await.in_flight, 0);
        }
        let progress = batch.progress().await;
        assert!(progress.paused && progress.documents == 100, "{progress:?}");
        assert_eq!(
            (rig.fake.calls().started.len(), progress.totals.succeeded),
            (before, before as u64)
        );

        batch.resume().await;
        let result = batch.result().await.unwrap();
        assert_eq!(result.totals.succeeded, 100);
        assert_eq!(result.started_at, progress.started_at);
        assert_each_once(&rig.fake.calls(), 20, 5);
        assert_eq!(rig.fake.calls().finishes.len(), 1);
    })
    .await;
}

/// A batch of one shard, which it processes itself. Its run ends when the flag of its pause is cleared;
/// until then a signal still counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_while_the_flag_is_cleared_is_carried_into_the_next_run() {
    let (gate, clear) = (Gate::default(), Gate::default());
    let first = gate.clone();
    let fake = Fake::new(80, 80, move |task| {
        if task.index == 0 { Act::Wait(first.clone()) } else { Act::Succeed(outcome()) }
    });
    with_worker(short_histories(), fake.with_a_flag_that_is_cleared_at(&clear), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 4}))).await;
        until("only the first document is in flight", async || {
            let totals = batch.shard_totals(0).await;
            totals.ended() > 1 && totals.in_flight == 1
        })
        .await;
        batch.pause().await;
        rig.fake.until("the flag is raised", |calls| calls.marks == [true]).await;
        gate.open();
        rig.fake.until("the flag is being cleared", |calls| calls.marks == [true, false]).await;
        batch.resume().await;
        clear.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 80);
        assert!(has_continued(&batch.history().await));
        assert_each_once(&rig.fake.calls(), 1, 80);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_that_meet_the_change_of_runs_do_no_harm() {
    with_worker(short_histories(), Fake::willing(180, 30), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 40}))).await;
        let restless = async {
            loop {
                batch.pause().await;
                batch.resume().await;
                tokio::task::yield_now().await;
            }
        };
        let all = rig.fake.until("most documents", |calls| calls.ended.len() >= 150);
        tokio::select! {
            _ = all => {}
            () = restless => {}
        }
        batch.resume().await;
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 180);
        assert_each_once(&rig.fake.calls(), 6, 30);
        assert!(has_continued(&batch.history().await));
    })
    .await;
}

/// Whether this run continues another.
fn has_continued(history: &[HistoryEvent]) -> bool {
    history.iter().any(|event| {
        matches!(&event.attributes, Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) if !started.continued_execution_run_id.is_empty())
    })
}

/// Whether one shard still runs of a run that starts no more.
fn only_one_shard_runs(history: &[HistoryEvent]) -> bool {
    let (mut running, mut decided) = (0, false);
    for event in history {
        match event.attributes {
            Some(Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(_)) => {
                running += 1
            }
            Some(Attributes::ChildWorkflowExecutionCompletedEventAttributes(_)) => {
                (running, decided) = (running - 1, false)
            }
            Some(Attributes::WorkflowTaskCompletedEventAttributes(_)) => decided = true,
            _ => {}
        }
    }
    history.len() >= SUGGEST_AT && running == 1 && decided
}
