//! A private Temporal dev server, a worker in the test's process, and scripted activities that
//! record their calls.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    missing_docs,
    missing_debug_implementations,
    reason = "each test binary uses its part of this module"
)]

mod fake;
mod scripted;

use std::{future::Future, pin::Pin, sync::OnceLock, time::Duration};

pub use fake::{Act, Calls, Fake, Gate, NOTHING_FOUND, outcome};
use serde_json::{Value, json};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowCancelOptions,
    WorkflowDescribeOptions, WorkflowExecutionInfo, WorkflowExecutionStatus,
    WorkflowFetchHistoryOptions, WorkflowGetResultOptions, WorkflowHandle, WorkflowQueryOptions,
    WorkflowSignalOptions, WorkflowStartOptions, WorkflowTerminateOptions,
    errors::WorkflowGetResultError,
};
use temporalio_common::{data_converters::RawValue, error::IncomingError};
use temporalio_protos::temporal::api::{
    common::v1::Payload,
    enums::v1::TaskQueueKind,
    history::v1::{HistoryEvent, history_event::Attributes},
};
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
};
use tidegate_testkit::{Temporal, unique};
use tidegate_types::Lane;
use tidegate_workflows::{
    ProcessCall, ProcessDocuments, ProcessGroup, ProcessParts, ProcessShard, ProcessWebhook,
    contract::{Live, Notify, Progress, SubmittedCall, Totals},
    policy,
};
use url::Url;

/// Longest wait for anything that a test expects, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Whether tests run at full scale, which takes minutes.
pub fn full_scale() -> bool {
    std::env::var_os("TIDEGATE_FULL_SCALE").is_some_and(|value| value == "1")
}

fn patience() -> Duration {
    if full_scale() { 40 * PATIENCE } else { PATIENCE }
}

/// How a workflow without a result ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    Failed { kind: String, message: String },
    Cancelled,
    Terminated,
}

/// One server for all tests of a binary without special needs; each test has its own task queue.
pub fn server() -> Option<&'static Temporal> {
    static SERVER: OnceLock<Option<Temporal>> = OnceLock::new();
    SERVER.get_or_init(|| Temporal::start(&[])).as_ref()
}

/// A client of the default namespace.
pub async fn client(server: &Temporal) -> Client {
    let url: Url = format!("http://{}", server.address()).parse().unwrap();
    let connection = Connection::connect(ConnectionOptions::new(url).build()).await.unwrap();
    Client::new(connection, ClientOptions::new("default").build()).unwrap()
}

/// One worker with scripted activities and its own task queue.
#[derive(Clone)]
pub struct Rig {
    pub client: Client,
    pub fake: Fake,
    queue: String,
    batch_slots: usize,
    /// Workflows that a worker remembers between two tasks.
    cached_workflows: usize,
    /// The shards are [`scripted::Scripted`].
    scripted_shards: bool,
}

/// Runs `test` beside a worker, which shuts down after it. Does nothing if no server can be
/// started.
pub async fn with_worker<T>(
    server: Option<&Temporal>,
    fake: Fake,
    test: impl AsyncFnOnce(Rig) -> T,
) -> Option<T> {
    let client = client(server?).await;
    Rig::new(client, fake).with_worker(test).await
}

/// Like [`with_worker`], with shards that have no documents.
pub async fn with_scripted_shards<T>(
    server: Option<&Temporal>,
    fake: Fake,
    test: impl AsyncFnOnce(Rig) -> T,
) -> Option<T> {
    let client = client(server?).await;
    let rig = Rig { scripted_shards: true, ..Rig::new(client, fake) };
    rig.with_worker(test).await
}

/// Like [`with_worker`], with few slots for activities that concern a whole batch or shard.
pub async fn with_few_slots<T>(
    server: Option<&Temporal>,
    fake: Fake,
    batch_slots: usize,
    test: impl AsyncFnOnce(Rig) -> T,
) -> Option<T> {
    let client = client(server?).await;
    let rig = Rig { batch_slots, ..Rig::new(client, fake) };
    rig.with_worker(test).await
}

/// Like [`with_worker`], with a worker that remembers no workflow: each task replays the whole history.
pub async fn with_no_cache<T>(
    server: Option<&Temporal>,
    fake: Fake,
    test: impl AsyncFnOnce(Rig) -> T,
) -> Option<T> {
    let client = client(server?).await;
    let rig = Rig { cached_workflows: 0, ..Rig::new(client, fake) };
    rig.with_worker(test).await
}

type Run = Pin<Box<dyn Future<Output = ()>>>;

/// One worker for the workflows and one for the documents of each lane that a test uses, like the
/// real worker process.
fn worker(rig: &Rig) -> (Run, Box<dyn Fn()>) {
    let Rig { client, fake, queue, batch_slots, cached_workflows, scripted_shards } = rig;
    let runtime =
        Runtime::from_current_tokio(temporalio_sdk::runtime::RuntimeOptions::default()).unwrap();
    let slots = FixedSizeSlotSupplier::new;
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(slots(100))
        .activity_task_slot_supplier(slots(*batch_slots))
        .local_activity_task_slot_supplier(slots(1))
        .nexus_task_slot_supplier(slots(1))
        .build();
    let workflows = WorkerOptions::new(queue)
        .tuner(tuner)
        .max_cached_workflows(*cached_workflows)
        .register_workflow::<ProcessDocuments>()
        .unwrap()
        .register_workflow::<ProcessGroup>()
        .unwrap()
        .register_workflow::<ProcessParts>()
        .unwrap()
        .register_workflow::<ProcessWebhook>()
        .unwrap()
        .register_workflow::<ProcessCall>()
        .unwrap();
    let workflows = if *scripted_shards {
        workflows.register_workflow::<scripted::Scripted>()
    } else {
        workflows.register_workflow::<ProcessShard>()
    };
    let workflows = workflows.unwrap().register_activities(fake.clone());
    let mut options = vec![workflows.max_heartbeat_throttle_interval(fake::BEAT).build()];
    let lanes = ["interactive", "batch", "backfill"].map(|lane| Lane::new(lane).unwrap());
    let lanes = lanes.iter().map(|lane| policy::lane_queue(queue, lane));
    options.extend(lanes.chain([policy::submission_queue(queue)]).map(|queue| {
        WorkerOptions::new(queue)
            .register_activities(fake.clone())
            .max_heartbeat_throttle_interval(fake::BEAT)
            .build()
    }));
    let mut workers: Vec<_> = options
        .into_iter()
        .map(|options| Worker::new(&runtime, client.clone(), options).unwrap())
        .collect();
    let stops: Vec<_> = workers.iter().map(Worker::shutdown_handle).collect();
    let run = Box::pin(async move {
        let ended = futures::future::join_all(workers.iter_mut().map(Worker::run)).await;
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        drop(runtime);
    });
    (run, Box::new(move || stops.iter().for_each(|stop| stop())))
}

impl Rig {
    fn new(client: Client, fake: Fake) -> Self {
        Self {
            client,
            fake,
            queue: unique("queue"),
            batch_slots: 100,
            cached_workflows: 1_000,
            scripted_shards: false,
        }
    }

    /// Runs `test` beside a worker, which shuts down after it. It may be called again for a second
    /// worker.
    pub async fn with_worker<T>(self, test: impl AsyncFnOnce(Self) -> T) -> Option<T> {
        let (mut run, stop) = worker(&self);
        // The future holds a whole batch; on the heap it is not copied through the frames above.
        let test = Box::pin(test(self));
        let ended = async {
            let ended = test.await;
            stop();
            ended
        };
        tokio::select! {
            result = async { tokio::join!(&mut run, ended) } => Some(result.1),
            () = tokio::time::sleep(2 * patience()) => panic!("the test takes too long"),
        }
    }

    /// Starts a batch with this input.
    pub async fn start(&self, input: &Value) -> Batch {
        self.start_raw(vec![json_payload(input)]).await
    }

    pub async fn start_raw(&self, payloads: Vec<Payload>) -> Batch {
        let id = unique("batch");
        let options = WorkflowStartOptions::new(self.queue.clone(), id.clone()).build();
        self.client
            .start_workflow(ProcessDocuments::run, RawValue::new(payloads), options)
            .await
            .unwrap();
        let (client, is_small) = (self.client.clone(), self.fake.is_small());
        Batch { handle: self.client.get_workflow_handle(&id), client, id, is_small }
    }

    /// Submits a call. Returns its history.
    pub async fn call(&self) -> Vec<HistoryEvent> {
        let call = SubmittedCall {
            activity: "tidegate.call".to_owned(),
            lane: Lane::new("batch").unwrap(),
            input: json!({"model": "openai:gpt-4.1-mini", "prompt": "Say hello."}),
        };
        let options = WorkflowStartOptions::new(self.queue.clone(), unique("call")).build();
        let handle = self.client.start_workflow(ProcessCall::run, call, options).await.unwrap();
        handle.get_result(WorkflowGetResultOptions::default()).await.unwrap();
        let history = handle.fetch_history(WorkflowFetchHistoryOptions::default());
        history.into_events().await.unwrap()
    }

    /// The history of a message to a webhook, once it is sent.
    pub async fn webhook_history(&self, notify: &Notify) -> Vec<HistoryEvent> {
        let id = Notify::workflow_id(&notify.batch, &notify.run);
        let handle: WorkflowHandle<Client, ProcessWebhook> = self.client.get_workflow_handle(&id);
        handle.get_result(WorkflowGetResultOptions::default()).await.unwrap();
        let history = handle.fetch_history(WorkflowFetchHistoryOptions::default());
        history.into_events().await.unwrap()
    }
}

/// Tasks of a workflow that were kept for the worker that remembers it.
pub fn sticky_tasks(history: &[HistoryEvent]) -> usize {
    let is_sticky = |event: &&HistoryEvent| match &event.attributes {
        Some(Attributes::WorkflowTaskScheduledEventAttributes(task)) => {
            task.task_queue.as_ref().is_some_and(|queue| queue.kind() == TaskQueueKind::Sticky)
        }
        _ => false,
    };
    history.iter().filter(is_sticky).count()
}

/// A started batch.
pub struct Batch {
    pub id: String,
    pub handle: WorkflowHandle<Client, ProcessDocuments>,
    client: Client,
    is_small: bool,
}

impl Batch {
    pub async fn result(&self) -> Result<Progress, Ended> {
        let result = tokio::time::timeout(
            patience(),
            self.handle.get_result(WorkflowGetResultOptions::default()),
        );
        match result.await.expect("the batch does not end") {
            Ok(progress) => Ok(progress),
            Err(WorkflowGetResultError::Failed(error)) => match *error {
                IncomingError::Application(failure) => Err(Ended::Failed {
                    kind: failure.type_name().unwrap_or_default().to_owned(),
                    message: failure.failure().unwrap().message.clone(),
                }),
                other => panic!("not an application failure: {other:?}"),
            },
            Err(WorkflowGetResultError::Cancelled { .. }) => Err(Ended::Cancelled),
            Err(WorkflowGetResultError::Terminated { .. }) => Err(Ended::Terminated),
            Err(other) => panic!("{other}"),
        }
    }

    pub async fn pause(&self) {
        self.handle
            .signal(ProcessDocuments::pause, RawValue::default(), WorkflowSignalOptions::default())
            .await
            .unwrap();
    }

    pub async fn resume(&self) {
        self.handle
            .signal(ProcessDocuments::resume, RawValue::default(), WorkflowSignalOptions::default())
            .await
            .unwrap();
    }

    pub async fn cancel(&self) {
        self.handle.cancel(WorkflowCancelOptions::default()).await.unwrap();
    }

    pub async fn progress(&self) -> Progress {
        self.handle
            .query(ProcessDocuments::progress, (), WorkflowQueryOptions::default())
            .await
            .unwrap()
    }

    pub async fn live(&self) -> Live {
        self.handle
            .query(ProcessDocuments::live, (), WorkflowQueryOptions::default())
            .await
            .unwrap()
    }

    /// The workflow that works on a shard; the batch itself if it has only one.
    pub fn shard_id(&self, shard: u32) -> String {
        if self.is_small { self.id.clone() } else { format!("{}/shard-{shard:05}", self.id) }
    }

    pub fn shard(&self, shard: u32) -> WorkflowHandle<Client, ProcessShard> {
        self.client.get_workflow_handle(self.shard_id(shard))
    }

    pub async fn shard_totals(&self, shard: u32) -> Totals {
        self.shard(shard)
            .query(ProcessShard::progress, (), WorkflowQueryOptions::default())
            .await
            .unwrap()
    }

    pub async fn cancel_shard(&self, shard: u32) {
        self.shard(shard).cancel(WorkflowCancelOptions::default()).await.unwrap();
    }

    pub async fn terminate_shard(&self, shard: u32) {
        self.shard(shard)
            .terminate(WorkflowTerminateOptions::builder().reason("by hand").build())
            .await
            .unwrap();
    }

    /// The history of the latest run.
    pub async fn history(&self) -> Vec<HistoryEvent> {
        self.handle
            .fetch_history(WorkflowFetchHistoryOptions::default())
            .into_events()
            .await
            .unwrap()
    }

    /// The history of the latest run of a shard.
    pub async fn shard_history(&self, shard: u32) -> Vec<HistoryEvent> {
        self.shard(shard)
            .fetch_history(WorkflowFetchHistoryOptions::default())
            .into_events()
            .await
            .unwrap()
    }

    /// The history of the first run.
    pub async fn first_history(&self) -> Vec<HistoryEvent> {
        self.histories(&self.id).await.remove(0)
    }

    /// The history of the first run of a shard.
    pub async fn first_shard_history(&self, shard: u32) -> Vec<HistoryEvent> {
        self.histories(&self.shard_id(shard)).await.remove(0)
    }

    /// The histories of all runs of a workflow that continued as new, in order.
    pub async fn histories(&self, id: &str) -> Vec<Vec<HistoryEvent>> {
        let mut histories = vec![self.run_history(id, "").await];
        loop {
            let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) =
                &histories[0][0].attributes
            else {
                panic!("begins with {:?}", histories[0][0])
            };
            let before = started.continued_execution_run_id.clone();
            if before.is_empty() {
                return histories;
            }
            histories.insert(0, self.run_history(id, &before).await);
        }
    }

    async fn run_history(&self, id: &str, run: &str) -> Vec<HistoryEvent> {
        let info = WorkflowExecutionInfo::builder().namespace("default").workflow_id(id);
        let info = info.maybe_run_id((!run.is_empty()).then_some(run));
        let run: WorkflowHandle<Client, ProcessDocuments> =
            WorkflowHandle::new(self.client.clone(), info.build());
        run.fetch_history(WorkflowFetchHistoryOptions::default()).into_events().await.unwrap()
    }

    pub async fn shard_status(&self, shard: u32) -> WorkflowExecutionStatus {
        self.shard(shard).describe(WorkflowDescribeOptions::default()).await.unwrap().status()
    }

    /// Whether a shard has made a decision.
    pub async fn shard_has_begun(&self, shard: u32) -> bool {
        let history = self
            .shard(shard)
            .fetch_history(WorkflowFetchHistoryOptions::default())
            .into_events()
            .await
            .unwrap_or_default();
        history.iter().any(|event| {
            matches!(event.attributes, Some(Attributes::WorkflowTaskCompletedEventAttributes(_)))
        })
    }

    /// Waits until a shard has been sent `signal` this many times: it sees the signal before
    /// anything that ends later.
    pub async fn shard_has_signal(&self, shard: u32, signal: &str, times: usize) {
        until("a shard has its signal", async || {
            signals(&self.shard_history(shard).await, signal) >= times
        })
        .await;
    }
}

/// How often a workflow was sent this signal.
pub fn signals(history: &[HistoryEvent], name: &str) -> usize {
    let of_name = |event: &&HistoryEvent| matches!(&event.attributes, Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) if signal.signal_name == name);
    history.iter().filter(of_name).count()
}

/// Waits until `holds` is true.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asked = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// A valid input, with these fields changed.
pub fn input(changes: &Value) -> Value {
    let mut input = json!({
        "source": "file:///data/in/",
        "output": "file:///data/out/",
        "instructions": "Summarise.",
        "model": "anthropic:claude-sonnet-5",
    });
    for (field, value) in changes.as_object().unwrap() {
        input[field] = value.clone();
    }
    input
}

pub fn json_payload(value: &Value) -> Payload {
    let metadata = [("encoding".to_owned(), b"json/plain".to_vec())].into_iter().collect();
    Payload { metadata, data: value.to_string().into_bytes(), ..Payload::default() }
}

/// Asserts that each document of each shard began once, and each shard was sealed once.
pub fn assert_each_once(calls: &Calls, shards: u32, documents: u32) {
    let mut started = calls.started.clone();
    started.sort_unstable();
    let each: Vec<_> =
        (0..shards).flat_map(|shard| (0..documents).map(move |index| (shard, index))).collect();
    assert_eq!(started, each);
    let mut sealed: Vec<_> = calls.seals.iter().map(|seal| seal.shard).collect();
    sealed.sort_unstable();
    assert_eq!(sealed, (0..shards).collect::<Vec<_>>());
}
