//! Each answer is paid for once, and a cancelled call holds nothing.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{Activity, asked, door, prompt};
use crate::fleet::Fleet;

/// A relay between a worker and Temporal that can be stalled: then no data passes.
struct Relay {
    address: String,
    stalled: Arc<AtomicBool>,
    /// Dropping it ends all connections.
    _connections: JoinSet<()>,
}

impl Relay {
    async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stalled = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stalled);
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut pipes = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                let ((from, to), (back, home)) = (client.into_split(), server.into_split());
                pipes.spawn(pipe(from, home, Arc::clone(&flag)));
                pipes.spawn(pipe(back, to, Arc::clone(&flag)));
            }
        });
        Self { address, stalled, _connections: connections }
    }

    fn stall(&self) {
        self.stalled.store(true, Ordering::SeqCst);
    }
}

async fn pipe(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    stalled: Arc<AtomicBool>,
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
        while stalled.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let began = Instant::now();
    while !ready() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The complete stored answers.
fn stored_answers(fleet: &Fleet) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(fleet.path("calls")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
    let files = files.flatten().map(|file| file.path());
    files.filter(|file| file.extension().is_some_and(|kind| kind == "json")).collect()
}

async fn behind_a_relay(fleet: &mut Fleet) -> Relay {
    let relay = Relay::to(fleet.temporal.address()).await;
    fleet.worker_with(&[("TIDEGATE_TEMPORAL__ADDRESS", &relay.address)]);
    fleet.working().await;
    relay
}

/// `kill -9` of a worker that has stored its answer but not returned it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_between_answer_and_return_has_bought_it_for_the_next() {
    let slow = "[latency]\nbase = \"2s\"\n";
    let Some(mut fleet) = door(slow, "rpm = 6_000", "").await else { return };
    let relay = behind_a_relay(&mut fleet).await;
    let activity = Activity::new(&fleet, "killed").with("--heartbeat-timeout", "5s");
    let (id, options) = (activity.id.clone(), activity.options.clone());
    activity.start("tidegate.call", &prompt("Why is the sea salty?")).await;
    until("the call leaves", || asked(&fleet) == 1).await;
    relay.stall();
    until("the answer is kept", || stored_answers(&fleet).len() == 1).await;
    let answer: Value =
        serde_json::from_slice(&std::fs::read(&stored_answers(&fleet)[0]).unwrap()).unwrap();
    fleet.kill_worker(0).await;
    drop(relay);
    fleet.worker();
    let activity = Activity { fleet: &fleet, id, options };
    assert_eq!(activity.result().await.unwrap(), answer);
    assert_eq!(activity.attempts().await, 2);
    assert_eq!(asked(&fleet), 1, "it was bought once");

    // Another activity with the same question buys its own.
    Activity::new(&fleet, "another").call(&prompt("Why is the sea salty?")).await.unwrap();
    assert_eq!(asked(&fleet), 2);
    fleet.stop().await;
}

/// The first attempt counts as dead but is only slow: both attempts return the answer that was stored
/// first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_attempts_that_live_at_once_return_the_first_answer() {
    let slow =
        "[latency]\nbase = \"100ms\"\n[[faults]]\nkind = \"slow\"\ndelay = \"14s\"\ntimes = 1\n";
    let Some(mut fleet) = door(slow, "rpm = 6_000", "").await else { return };
    let relay = behind_a_relay(&mut fleet).await;
    let activity = Activity::new(&fleet, "both").with("--heartbeat-timeout", "5s");
    let (id, options) = (activity.id.clone(), activity.options.clone());
    activity.start("tidegate.call", &prompt("Why is the sea salty?")).await;
    until("the call leaves", || asked(&fleet) == 1).await;
    relay.stall();
    fleet.worker();
    let activity = Activity { fleet: &fleet, id, options };
    let answer = activity.result().await.unwrap();
    let first: Value =
        serde_json::from_slice(&std::fs::read(&stored_answers(&fleet)[0]).unwrap()).unwrap();
    assert_eq!(answer, first);
    tokio::time::sleep(Duration::from_secs(12)).await;
    let files = stored_answers(&fleet);
    let last: Value = serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap();
    assert_eq!((files.len(), last, asked(&fleet)), (1, first, 2), "the second stays out");
    fleet.stop().await;
}

/// One call at a time: the second call is sent as soon as the first is cancelled, and a third that is
/// cancelled while it waits delays no other call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cancelled_frees_its_turn_and_its_place() {
    let slow = "[latency]\nbase = \"100ms\"\n[[faults]]\nkind = \"slow\"\ndelay = \"50s\"\nmatching = \"slowly\"\n";
    let Some(mut fleet) = door(slow, "rpm = 6_000\nconcurrent = 1", "").await else { return };
    fleet.worker();
    let activity = |id: &str| Activity::new(&fleet, id).with("--heartbeat-timeout", "3s");
    let cancel = async |id: &str| {
        let cancelled = fleet.cli(&["activity", "cancel", "--activity-id", id]).await;
        assert!(cancelled.status.success(), "{}", String::from_utf8_lossy(&cancelled.stderr));
    };
    let (first, waits, next) = (activity("first"), activity("waits"), activity("next"));
    first.start("tidegate.call", &prompt("Answer slowly.")).await;
    until("the first call leaves", || asked(&fleet) == 1).await;
    waits.start("tidegate.call", &prompt("Answer.")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    next.start("tidegate.call", &prompt("Answer.")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel("waits").await;
    // A heartbeat is sent after 1.4 s, and brings the cancellation back.
    assert!(waits.result().await.is_err());
    cancel("first").await;
    let began = Instant::now();
    next.result().await.unwrap();
    let took = began.elapsed();
    println!(
        "the next call was answered {:.1} s after the first was cancelled",
        took.as_secs_f64()
    );
    assert!(took < Duration::from_millis(3_900), "{took:?}");
    assert_eq!(asked(&fleet), 2, "what was cancelled while it waited was not asked");
    assert!(first.result().await.is_err());
    fleet.stop().await;
}
