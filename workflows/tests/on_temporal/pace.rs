//! A shard hands out what the quota will soon admit: each ended document reports how long it lay in
//! its task queue.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use temporalio_protos::temporal::api::history::v1::{HistoryEvent, history_event::Attributes};
use tidegate_workflows::contract::DocumentOutcome;

use crate::{
    common::{
        Act, Calls, Fake, Gate, assert_each_once, input, outcome, server, until, with_worker,
    },
    replay::replay,
};

/// Seconds in the queue: no wait, a short wait, and one that is too long, longer than the test takes
/// up to there: an attempt has taken no less time than it lay in the queue.
const FREE: u32 = 0;
const SHORT: u32 = 2;
const LONG: u32 = 40;

/// Documents that each take a pass, and report how long they lay in the queue.
fn behind(documents: u64, shard_size: u32, gate: &Gate, queue: &Arc<Mutex<u32>>) -> Fake {
    let (gate, queue) = (gate.clone(), Arc::clone(queue));
    Fake::new(documents, shard_size, move |_| {
        let queued_seconds = *queue.lock().unwrap();
        Act::WaitFor(gate.clone(), DocumentOutcome { queued_seconds, ..outcome() })
    })
}

fn started(documents: usize) -> impl Fn(&Calls) -> bool {
    move |calls| calls.started.len() == documents
}

/// Timers that a run has started.
fn timers(history: &[HistoryEvent]) -> usize {
    let timer = |event: &&HistoryEvent| {
        matches!(event.attributes, Some(Attributes::TimerStartedEventAttributes(_)))
    };
    history.iter().filter(timer).count()
}

/// Whether a timer has fired and the workflow has processed it.
fn has_fired(history: &[HistoryEvent]) -> bool {
    let fired = |event: &HistoryEvent| {
        matches!(event.attributes, Some(Attributes::TimerFiredEventAttributes(_)))
    };
    let done = |event: &HistoryEvent| {
        matches!(event.attributes, Some(Attributes::WorkflowTaskCompletedEventAttributes(_)))
    };
    history.iter().skip_while(|event| !fired(event)).any(done)
}

async fn replays(history: Vec<HistoryEvent>) {
    let history = serde_json::to_value(json!({"events": history})).unwrap();
    replay(&history).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_queue_leaves_places_empty_and_a_free_one_fills_them_again() {
    let (gate, queue) = (Gate::default(), Arc::new(Mutex::new(LONG)));
    with_worker(server(), behind(80, 80, &gate, &queue), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
        rig.fake.until("the window is full", started(20)).await;
        *queue.lock().unwrap() = SHORT;
        gate.pass(17);
        // Three fortieths of 20 are fewer than the least, four: only the last is followed by another.
        rig.fake.until("one more", started(21)).await;
        assert_eq!(rig.fake.calls().ended.len(), 17);
        // The remaining documents began before the decrease, and cause no further one.
        gate.pass(3);
        rig.fake.until("each of them has one", started(24)).await;
        *queue.lock().unwrap() = FREE;
        gate.pass(4);
        rig.fake.until("short: a round lets one more go", started(29)).await;
        gate.pass(5);
        rig.fake.until("free: each lets two go", started(39)).await;
        gate.open();
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (80, 0), "{result:?}");
        let calls = rig.fake.calls();
        assert_each_once(&calls, 1, 80);
        assert!(calls.most_at_once <= 20, "{} at once", calls.most_at_once);
        replays(batch.history().await).await;
    })
    .await;
}

/// The next shard begins with the pace that the last one had reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_shard_does_not_begin_with_the_whole_window() {
    let (gate, queue) = (Gate::default(), Arc::new(Mutex::new(LONG)));
    with_worker(server(), behind(60, 30, &gate, &queue), async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
        rig.fake.until("the window is full", started(20)).await;
        *queue.lock().unwrap() = SHORT;
        // Four or five places stay in use.
        gate.pass(20 + 6);
        rig.fake.until("the first shard hands out its last", started(30)).await;
        rig.fake
            .until("the second begins", |calls| calls.started.iter().any(|(shard, _)| *shard == 1))
            .await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let second = rig.fake.calls().started.iter().filter(|(shard, _)| *shard == 1).count();
        assert!((1..=5).contains(&second), "{second} of its documents at once");
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 60);
        for shard in 0..2 {
            replays(batch.shard_history(shard).await).await;
        }
    })
    .await;
}

/// At its end, a shard has few documents in flight because it has no more, not because the quota
/// admits no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_at_its_end_tells_the_next_one_what_the_quota_admits() {
    let (gate, others) = (Gate::default(), Gate::default());
    let fake = Fake::new(90, 30, {
        let (first, others) = (gate.clone(), others.clone());
        move |task| {
            let is_first = task.shard == 0;
            let queued_seconds = if is_first && task.index >= 20 { LONG } else { SHORT };
            let gate = if is_first { &first } else { &others };
            Act::WaitFor(gate.clone(), DocumentOutcome { queued_seconds, ..outcome() })
        }
    });
    with_worker(server(), fake, async |rig| {
        let of_shard = |number| {
            move |calls: &Calls| calls.started.iter().filter(|(shard, _)| *shard == number).count()
        };
        let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
        rig.fake.until("the window is full", started(20)).await;
        gate.pass(10);
        rig.fake.until("the first shard hands out its last", started(30)).await;
        gate.pass(10);
        let second = of_shard(1);
        rig.fake.until("half of its places go on", move |calls| second(calls) == 10).await;
        // The first of these keeps four places in use; the others of its shard cause no further
        // decrease.
        gate.pass(9);
        let third = of_shard(2);
        rig.fake.until("and then as many as are open", move |calls| third(calls) == 4).await;
        gate.open();
        others.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 90);
        for shard in 0..3 {
            replays(batch.shard_history(shard).await).await;
        }
    })
    .await;
}

/// While the length of calls is unknown, the window has room for long calls, and opens round by
/// round while the queue is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_for_calls_of_unknown_length_opens_while_the_queue_is_free() {
    let (gate, queue) = (Gate::default(), Arc::new(Mutex::new(FREE)));
    let fake = behind(60, 60, &gate, &queue).opening(40, 10);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("what is open at first", started(10)).await;
        gate.pass(10);
        rig.fake.until("each lets two go", started(30)).await;
        gate.open();
        let result = batch.result().await.unwrap();
        assert_eq!((result.totals.succeeded, result.totals.in_flight), (60, 0), "{result:?}");
        assert!(rig.fake.calls().most_at_once <= 40);
        replays(batch.history().await).await;
    })
    .await;
    let gate = Gate::default();
    let fake = behind(60, 60, &gate, &queue).opening(40, 10);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({"max_in_flight": 20}))).await;
        rig.fake.until("a window that is stated is used at once", started(20)).await;
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 60);
    })
    .await;
}

/// Calls take longer than expected: documents that the quota admits meanwhile need not wait for the
/// end of the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_opens_while_no_call_has_ended() {
    // Ten more each time of 40, or five of 30.
    for (documents, shard, most) in [(60, 60, 3), (60, 30, 5)] {
        let (gate, queue) = (Gate::default(), Arc::new(Mutex::new(FREE)));
        let fake = behind(documents, shard, &gate, &queue).opening(40, 10).expecting(1);
        with_worker(server(), fake, async |rig| {
            let batch = rig.start(&input(&json!({}))).await;
            rig.fake.until("the whole window, and no call has ended", started(40)).await;
            assert_eq!(rig.fake.calls().ended.len(), 0);
            gate.open();
            assert_eq!(batch.result().await.unwrap().totals.succeeded, documents);
            assert!(rig.fake.calls().most_at_once <= 40);
            let alone = documents == u64::from(shard);
            let worked = if alone { batch.history().await } else { batch.shard_history(0).await };
            assert!((1..=most).contains(&timers(&worked)), "{} timers", timers(&worked));
            replays(worked).await;
        })
        .await;
    }
}

/// The next call that ends shows the queue; and a pause may last for days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_opens_no_further_once_a_call_has_ended_or_in_a_pause() {
    let (gate, queue) = (Gate::default(), Arc::new(Mutex::new(LONG)));
    let fake = behind(60, 60, &gate, &queue).opening(40, 10).expecting(10);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("what is open at first", started(10)).await;
        gate.pass(1);
        rig.fake.until("it has ended", |calls| calls.ended.len() == 1).await;
        until("the timer's task", async || has_fired(&batch.history().await)).await;
        assert_eq!((timers(&batch.history().await), rig.fake.calls().started.len()), (1, 10));
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 60);
        replays(batch.history().await).await;
    })
    .await;
    let gate = Gate::default();
    let fake = behind(60, 60, &gate, &queue).opening(40, 10).expecting(10);
    with_worker(server(), fake, async |rig| {
        let batch = rig.start(&input(&json!({}))).await;
        rig.fake.until("what is open at first", started(10)).await;
        batch.pause().await;
        until("the timer's task", async || has_fired(&batch.history().await)).await;
        assert_eq!((timers(&batch.history().await), rig.fake.calls().started.len()), (1, 10));
        batch.resume().await;
        rig.fake.until("the whole window", started(40)).await;
        gate.open();
        assert_eq!(batch.result().await.unwrap().totals.succeeded, 60);
        replays(batch.history().await).await;
    })
    .await;
}
