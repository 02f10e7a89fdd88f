//! A batch's window over many shards: it stays full, is never exceeded, and takes few signals.

use std::collections::BTreeSet;

use serde_json::json;
use temporalio_protos::temporal::api::history::v1::{HistoryEvent, history_event::Attributes};

use tidegate_workflows::contract::{DocumentOutcome, Totals};

use crate::common::{
    Act, Calls, Ended, Fake, Gate, assert_each_once, input, outcome, server, signals, until,
    with_worker,
};
use crate::replay::replay;

fn children(history: &[HistoryEvent]) -> usize {
    let begun = |event: &&HistoryEvent| {
        matches!(
            event.attributes,
            Some(Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(_))
        )
    };
    history.iter().filter(begun).count()
}

/// The documents at these positions wait at the gate; the others answer at once.
fn stragglers(documents: u64, shard_size: u32, gate: &Gate, at: &[(u32, u32)]) -> Fake {
    let (gate, at) = (gate.clone(), BTreeSet::from_iter(at.iter().copied()));
    Fake::new(documents, shard_size, move |task| {
        if at.contains(&(task.shard, task.index)) {
            Act::Wait(gate.clone())
        } else {
            Act::Succeed(outcome())
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_one_shard_needs_no_other_workflow_and_no_signal() {
    with_worker(server(), Fake::willing(40, 40), async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (40, 0), "{result:?}");
        assert_each_once(&rig.fake.calls(), 1, 40);
        let history = batch.history().await;
        assert_eq!((children(&history), signals(&history, "shard_progress")), (0, 0));
    })
    .await;
}

/// Documents that go on to their next model wait there, and take no place of the window.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_goes_on_leaves_the_window() {
    let gate = Gate::default();
    let at = gate.clone();
    let fake = Fake::new(12, 12, move |task| match task.escalated {
        None if task.index < 10 => Act::Succeed(DocumentOutcome { escalates: true, ..outcome() }),
        None => Act::Succeed(outcome()),
        Some(before) => {
            assert_eq!(before, outcome().spend);
            Act::WaitFor(at.clone(), outcome())
        }
    });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 3}))).await;
        let all = |calls: &Calls| calls.started.len() == 22 && calls.ended.len() == 12;
        rig.fake.until("all were asked, and ten wait", all).await;
        let progress = batch.progress().await.totals;
        assert_eq!((progress.in_flight, progress.succeeded), (10, 2), "{progress:?}");
        gate.pass(4);
        rig.fake.until("four have ended", |calls| calls.ended.len() == 16).await;
        gate.open();
        let totals = batch.result().await.unwrap().totals;
        assert_eq!((totals.succeeded, totals.in_flight, totals.failed), (12, 0, 0), "{totals:?}");
        assert_eq!(totals.spend.provider_calls, 22);
        replay(&json!({"events": batch.history().await})).await.unwrap();
    })
    .await;
}

/// Like the test above, with the batch cancelled meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_goes_on_is_cancelled_as_any() {
    let gate = Gate::default();
    let at = gate.clone();
    let fake = Fake::new(8, 8, move |task| match task.escalated {
        None => Act::Succeed(DocumentOutcome { escalates: true, ..outcome() }),
        Some(_) => Act::Wait(at.clone()),
    });
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 3}))).await;
        rig.fake.until("all wait", |calls| calls.started.len() == 16).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let totals = batch.progress().await.totals;
        assert_eq!((totals.cancelled, totals.in_flight), (8, 0), "{totals:?}");
        assert_eq!(totals.spend.provider_calls, 8, "what was asked counts");
    })
    .await;
}

/// In each shard one document never ends: the places of the others go to the next shard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_shard_waits_for_anothers_last_document() {
    let gate = Gate::default();
    let held: Vec<_> = (0..6).map(|shard| (shard, 0)).collect();
    with_worker(server(), stragglers(60, 10, &gate, &held), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 10}))).await;
        let all = |documents| move |calls: &Calls| calls.started.len() == documents;
        rig.fake.until("every document is handed out", all(60)).await;
        assert!(rig.fake.calls().seals.is_empty(), "no shard has ended");
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 60);
        let calls = rig.fake.calls();
        assert_each_once(&calls, 6, 10);
        assert!(calls.most_at_once <= 10, "{} at once", calls.most_at_once);
    })
    .await;
}

/// A shard that starts with few free places gets more when no other is left to start, so that its
/// last documents do not run one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_that_started_with_few_places_are_given_more() {
    let (first, second) = (Gate::default(), Gate::default());
    let gates = [first.clone(), second.clone()];
    let fake = Fake::new(32, 16, move |task| Act::Wait(gates[task.shard as usize].clone()));
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 22}))).await;
        let started = |documents| move |calls: &Calls| calls.started.len() == documents;
        rig.fake.until("sixteen and six are in flight", started(22)).await;
        first.open();
        rig.fake.until("the second shard has the places of the first", started(32)).await;
        second.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 32);
        let calls = rig.fake.calls();
        assert_each_once(&calls, 2, 16);
        assert!(calls.most_at_once <= 22, "{} at once", calls.most_at_once);
        let shard = batch.shard_history(1).await;
        assert_eq!(signals(&shard, "places"), 1);
        for history in [batch.history().await, shard] {
            replay(&json!({"events": history})).await.unwrap();
        }
    })
    .await;
}

/// As many shards run at once as fill the window.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_is_the_batchs_and_not_a_shards() {
    let gate = Gate::default();
    with_worker(server(), Fake::waiting(90, 10, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 80}))).await;
        rig.fake.until("eight shards at once", |calls| calls.started.len() == 80).await;
        let progress = batch.progress().await;
        assert_eq!(progress.totals.in_flight, 80, "also before any report");
        // A program that shows the batch finds the children to ask, and what it must not count
        // twice.
        let live = batch.live().await;
        assert_eq!((live.progress, live.ended), (progress, Totals::default()));
        let ids: Vec<_> = (0..8).map(|shard| batch.shard_id(shard)).collect();
        assert_eq!(live.running.iter().map(|child| child.id.clone()).collect::<Vec<_>>(), ids);
        assert!(live.running.iter().all(|child| child.totals.in_flight == 10 && !child.is_group));
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 90);
        assert_eq!(rig.fake.calls().most_at_once, 80);
    })
    .await;
}

/// Few signals: two for a shard whose places others wait for, none for the last. Five shards have a
/// slow document: even on a busy machine they are still there to report their places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_report_their_places_and_little_else() {
    let gate = Gate::default();
    let held: Vec<_> = (0..5).map(|shard| (shard, 0)).collect();
    with_worker(server(), stragglers(200, 20, &gate, &held), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
        rig.fake.until("every document is handed out", |calls| calls.started.len() == 200).await;
        until("the five have reported", async || {
            signals(&batch.history().await, "shard_progress") >= 5
        })
        .await;
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 200);
        let reports = signals(&batch.history().await, "shard_progress");
        assert!((5..=30).contains(&reports), "{reports} for ten shards");
        assert_eq!(signals(&batch.shard_history(9).await, "shard_progress"), 0);
    })
    .await;
}

/// Shards after the first twenty belong to groups: the batch's history does not grow with them. The
/// window moves from one group to the next although the first shard never ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_shards_are_started_in_groups() {
    let gate = Gate::default();
    with_worker(server(), stragglers(74, 1, &gate, &[(0, 0), (40, 0)]), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
        let all = |calls: &Calls| calls.started.len() == 74;
        rig.fake.until("every document is handed out", all).await;
        until("the batch has heard of all others", async || {
            batch.progress().await.totals.succeeded >= 60
        })
        .await;
        gate.open();
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (74, 0), "{result:?}");
        let calls = rig.fake.calls();
        assert_each_once(&calls, 74, 1);
        assert!(calls.most_at_once <= 20, "{} at once", calls.most_at_once);
        let history = batch.history().await;
        assert_eq!(children(&history), 20 + 2, "the groups have 50 and 4");
        let group = batch.histories(&format!("{}/group-0000", batch.id)).await.remove(0);
        assert_eq!(children(&group), 50);
    })
    .await;
}

/// A pause and a cancellation reach the shards of a group, and their ended documents are counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_paused_and_cancelled_with_its_batch() {
    let gate = Gate::default();
    let held: Vec<_> = (30..60).map(|shard| (shard, 0)).collect();
    with_worker(server(), stragglers(60, 1, &gate, &held), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 10}))).await;
        let held = |calls: &Calls| calls.started.len() == 40;
        rig.fake.until("the group's window is full", held).await;
        batch.pause().await;
        let group = format!("{}/group-0000", batch.id);
        until("the group is paused", async || {
            signals(&batch.histories(&group).await.remove(0), "pause") == 1
        })
        .await;
        gate.pass(4);
        rig.fake.until("four have ended", |calls| calls.ended.len() == 34).await;
        batch.cancel().await;
        assert_eq!(batch.result().await, Err(Ended::Cancelled));
        let calls = rig.fake.calls();
        let totals = calls.finishes[0].progress.totals;
        assert_eq!((totals.succeeded, totals.cancelled, totals.in_flight), (34, 26, 0));
    })
    .await;
}

/// A plan of three pages, the last with less than a shard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_run_while_the_plan_grows() {
    let gate = Gate::default();
    let fake = Fake::willing(20, 10).in_pages(&[Some(20), Some(5)], &gate);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("all of the first page", |calls| calls.ended.len() == 20).await;
        let calls = rig.fake.calls();
        assert!(calls.pages.is_empty(), "no more is planned");
        assert_eq!(batch.progress().await.documents, 20);
        gate.open();
        let result = batch.result().await.unwrap();
        assert_eq!((result.documents, result.totals.succeeded), (45, 45));
        let calls = rig.fake.calls();
        assert_eq!((calls.pages.as_slice(), calls.seals.len()), ([1, 2].as_slice(), 5));
        let places: BTreeSet<_> = calls.started.iter().collect();
        assert_eq!((calls.started.len(), places.len()), (45, 45), "each once");
    })
    .await;
}

/// Planned documents are worked on and reported; then the batch fails with the plan's failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_cannot_be_planned_fails_the_batch_with_its_own_type() {
    let gate = Gate::default();
    gate.open();
    let fake = Fake::willing(20, 10).in_pages(&[None], &gate);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        match batch.result().await.unwrap_err() {
            Ended::Failed { kind, message } => assert_eq!(kind, "InvalidInput", "{message}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(rig.fake.calls().finishes.len(), 1, "what was done can be used");
    })
    .await;
}

/// The continued run of a batch goes on planning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_grows_over_a_change_of_runs() {
    let server = tidegate_testkit::Temporal::start(&["limit.historyCount.suggestContinueAsNew=60"]);
    let gate = Gate::default();
    gate.open();
    let pages: Vec<_> = (0..12).map(|_| Some(15)).collect();
    with_worker(server.as_ref(), Fake::willing(20, 10).in_pages(&pages, &gate), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 10}))).await;
        let result = batch.result().await.unwrap();
        assert_eq!((result.documents, result.totals.succeeded), (200, 200));
        let calls = rig.fake.calls();
        let places: BTreeSet<_> = calls.started.iter().collect();
        assert_eq!((calls.started.len(), places.len()), (200, 200), "each once");
        assert_eq!(calls.pages, (1..=12).collect::<Vec<_>>());
    })
    .await;
}
