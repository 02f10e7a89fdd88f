//! The Temporal server: how it is reached, and what commands ask of it.
//!
//! Every call is boxed here, so that no other file instantiates the SDK's large futures.

mod waits;

pub use waits::Pending;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use anyhow::{Context, anyhow, bail};
use futures::{FutureExt, TryStreamExt, future::BoxFuture};
use serde::{Serialize, de::DeserializeOwned};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, UntypedQuery, UntypedSignal,
    UntypedWorkflow, UntypedWorkflowHandle, WorkflowCancelOptions, WorkflowDescribeOptions,
    WorkflowExecutionStatus, WorkflowGetResultOptions, WorkflowListOptions, WorkflowQueryOptions,
    WorkflowSignalOptions, WorkflowStartOptions,
    envconfig::LoadClientConfigProfileOptions,
    errors::{
        WorkflowGetResultError, WorkflowInteractionError, WorkflowQueryError, WorkflowStartError,
    },
};
use temporalio_common::{
    data_converters::{PayloadConverter, RawValue},
    telemetry::metrics::TemporalMeter,
};
use tidegate_workflows::contract::{PROCESS_DOCUMENTS, Progress};

use crate::config::Config;

/// Connecting takes milliseconds; a server that takes longer than this is not there.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A worker answers a query in milliseconds; after this there is none.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// A connection to a Temporal server. Cheap to clone.
#[derive(Clone)]
pub struct Temporal {
    client: Client,
    address: String,
    task_queue: String,
}

impl fmt::Debug for Temporal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Temporal")
            .field("address", &self.address)
            .field("task_queue", &self.task_queue)
            .finish_non_exhaustive()
    }
}

/// One batch, as the server's list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The workflow's id.
    pub id: String,
    /// `running`, `completed`, `failed`, `canceled`, `terminated`, `timed out`.
    pub status: &'static str,
    /// When it was started.
    pub started: Option<SystemTime>,
    /// When it ended.
    pub closed: Option<SystemTime>,
    /// Where its workers poll.
    pub task_queue: String,
}

impl Batch {
    /// Whether it goes on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status == RUNNING
    }
}

/// The status of a batch that goes on.
const RUNNING: &str = "running";

/// How a batch ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// With a report.
    Completed(Box<Progress>),
    /// Without one; the sentence says why.
    Broken(String),
}

/// Why a batch does not tell its progress.
#[derive(Debug)]
pub enum Silent {
    /// No worker polls its task queue.
    NoWorker,
    /// There is no such batch.
    Unknown,
    /// Something else.
    Failed(anyhow::Error),
}

/// Connects: `[temporal]`, else `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, TLS and API key from the
/// environment, else `temporal.toml`, as in every Temporal SDK. With a meter, the connection's own
/// calls are counted.
///
/// # Errors
/// Names the address and says what to start or set.
#[must_use]
pub fn connect(
    config: &Config,
    meter: Option<TemporalMeter>,
) -> BoxFuture<'static, anyhow::Result<Temporal>> {
    let task_queue = config.temporal.task_queue.clone();
    let options = options(config);
    async move {
        let (mut connection, client) = options?;
        connection.metrics_meter = meter;
        let address = connection.target.to_string();
        let away = || {
            format!(
                "no Temporal server answers at {address}; start one with `temporal server start-dev`, or name another in temporal.address or TEMPORAL_ADDRESS"
            )
        };
        let connection = match tokio::time::timeout(CONNECT_WITHIN, Connection::connect(connection)).await {
            Ok(connection) => connection.map_err(|error| innermost(&error)).with_context(away)?,
            Err(_) => return Err(anyhow!("no answer within {CONNECT_WITHIN:?}").context(away())),
        };
        let client = Client::new(connection, client).context("the Temporal client cannot be made")?;
        Ok(Temporal { client, address, task_queue })
    }
    .boxed()
}

/// What the environment says, and over it what our own configuration says.
fn options(config: &Config) -> anyhow::Result<(ConnectionOptions, ClientOptions)> {
    // The SDK's error is neither Send nor Sync, so only its text goes on.
    let (mut connection, mut client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default()).map_err(|error| {
            anyhow!("the Temporal client configuration cannot be used: {error}; check temporal.toml and TEMPORAL_…")
        })?;
    if let Some(address) = &config.temporal.address {
        if address.starts_with("http://") {
            // Named as plain: an API key or certificates in the environment are for another server.
            (connection.tls_options, connection.api_key) = (None, None);
        }
        let secure = connection.tls_options.is_some() || connection.api_key.is_some();
        connection.target = target(address, secure)?;
    }
    if let Some(namespace) = &config.temporal.namespace {
        client.namespace.clone_from(namespace);
    }
    connection.identity = format!("tidegate-{}@{}", std::process::id(), hostname());
    Ok((connection, client))
}

impl Temporal {
    /// Connects as [`connect`] does; nobody counts the calls.
    ///
    /// # Errors
    /// As [`connect`].
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        connect(config, None).await
    }

    /// The SDK's client, for a worker.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where the server is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The namespace in use.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.client.options().namespace
    }

    /// The task queue that batches are started on.
    #[must_use]
    pub fn task_queue(&self) -> &str {
        &self.task_queue
    }

    /// Starts a batch.
    ///
    /// # Errors
    /// A batch of this id runs already, or the server refuses.
    pub fn start<'a>(
        &'a self,
        id: &'a str,
        input: &'a serde_json::Value,
    ) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            let options = WorkflowStartOptions::new(self.task_queue.clone(), id.to_owned()).build();
            let started = self.client.start_workflow(UntypedWorkflow::new(PROCESS_DOCUMENTS), json(input), options).await;
            match started {
                Ok(_) => Ok(()),
                Err(WorkflowStartError::AlreadyStarted { .. }) => {
                    bail!(
                        "a batch called {id} runs already; follow it with `tidegate status {id}`, or choose another --workflow-id"
                    )
                }
                Err(error) => Err(self.refused(&error.to_string()).context(format!("the batch {id} could not be started"))),
            }
        }
        .boxed()
    }

    /// Asks a batch for its progress.
    pub fn progress<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Progress, Silent>> {
        async move {
            let handle = self.handle(id);
            let query = handle.query(
                UntypedQuery::new("progress"),
                RawValue::default(),
                WorkflowQueryOptions::builder().build(),
            );
            match tokio::time::timeout(ANSWER_WITHIN, query).await {
                Ok(Ok(value)) => parse(value).map_err(Silent::Failed),
                Ok(Err(WorkflowQueryError::NotFound(_))) => Err(Silent::Unknown),
                Ok(Err(error)) => Err(silence(&error)),
                Err(_) => Err(Silent::NoWorker),
            }
        }
        .boxed()
    }

    /// Waits for a batch's end.
    ///
    /// # Errors
    /// There is no such batch, or the server is away.
    pub fn ending<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Ending>> {
        async move {
            match self.handle(id).get_result(WorkflowGetResultOptions::builder().build()).await {
                Ok(value) => Ok(Ending::Completed(Box::new(parse(value)?))),
                Err(WorkflowGetResultError::Failed(error)) => Ok(Ending::Broken(causes(&error))),
                Err(WorkflowGetResultError::Cancelled { .. }) => {
                    Ok(Ending::Broken("it was cancelled".to_owned()))
                }
                Err(WorkflowGetResultError::Terminated { .. }) => {
                    Ok(Ending::Broken("it was terminated".to_owned()))
                }
                Err(WorkflowGetResultError::TimedOut) => {
                    Ok(Ending::Broken("it timed out".to_owned()))
                }
                Err(WorkflowGetResultError::NotFound(_)) => Err(unknown(id)),
                Err(error) => Err(self.refused(&error.to_string())),
            }
        }
        .boxed()
    }

    /// One batch as the server sees it.
    ///
    /// # Errors
    /// There is no such batch, or the server is away.
    pub fn describe<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Batch>> {
        async move {
            match self.handle(id).describe(WorkflowDescribeOptions::builder().build()).await {
                Ok(seen) => Ok(Batch {
                    id: seen.id().to_owned(),
                    status: status(seen.status()),
                    started: seen.start_time(),
                    closed: seen.close_time(),
                    task_queue: seen.task_queue().to_owned(),
                }),
                Err(WorkflowInteractionError::NotFound(_)) => Err(unknown(id)),
                Err(error) => Err(self.refused(&error.to_string())),
            }
        }
        .boxed()
    }

    /// The newest batches, newest first.
    ///
    /// # Errors
    /// The server is away or refuses.
    pub fn list(&self, limit: usize) -> BoxFuture<'_, anyhow::Result<Vec<Batch>>> {
        async move {
            let options = WorkflowListOptions::builder().limit(limit).build();
            let listed = self
                .client
                .list_workflows(format!("WorkflowType = '{PROCESS_DOCUMENTS}'"), options);
            let mut batches: Vec<Batch> = listed
                .map_ok(|seen| Batch {
                    id: seen.id().to_owned(),
                    status: status(seen.status()),
                    started: seen.start_time(),
                    closed: seen.close_time(),
                    task_queue: seen.task_queue().to_owned(),
                })
                .try_collect()
                .await
                .map_err(|error| self.refused(&error.to_string()))?;
            // A batch that continued as new shows once, as the run that goes on.
            batches.retain(|batch| batch.status != CONTINUED);
            batches.sort_by_key(|batch| std::cmp::Reverse(batch.started));
            Ok(batches)
        }
        .boxed()
    }

    /// Sends a batch the signal `pause` or `resume`.
    ///
    /// # Errors
    /// There is no such running batch, or the server is away.
    pub fn signal<'a>(&'a self, id: &'a str, name: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            let handle = self.handle(id);
            let sent = handle
                .signal(
                    UntypedSignal::new(name),
                    RawValue::default(),
                    WorkflowSignalOptions::builder().build(),
                )
                .await;
            self.interacted(id, sent)
        }
        .boxed()
    }

    /// Asks a batch to stop.
    ///
    /// # Errors
    /// There is no such running batch, or the server is away.
    pub fn cancel<'a>(&'a self, id: &'a str, reason: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            let options = WorkflowCancelOptions::builder().reason(reason.to_owned()).build();
            self.interacted(id, self.handle(id).cancel(options).await)
        }
        .boxed()
    }

    fn handle(&self, id: &str) -> UntypedWorkflowHandle<Client> {
        self.client.get_workflow_handle::<UntypedWorkflow>(id)
    }

    fn interacted(
        &self,
        id: &str,
        result: Result<(), WorkflowInteractionError>,
    ) -> anyhow::Result<()> {
        match result {
            Ok(()) => Ok(()),
            Err(WorkflowInteractionError::NotFound(_)) => Err(unknown(id)),
            Err(error) => Err(self.refused(&error.to_string())),
        }
    }

    fn refused(&self, error: &str) -> anyhow::Error {
        anyhow!(plain(error)).context(format!(
            "the Temporal server at {} refused (namespace {})",
            self.address,
            self.namespace()
        ))
    }
}

/// The status of a run that another run continues.
const CONTINUED: &str = "continued";

fn status(status: WorkflowExecutionStatus) -> &'static str {
    match status {
        WorkflowExecutionStatus::Running | WorkflowExecutionStatus::Paused => RUNNING,
        WorkflowExecutionStatus::Completed => "completed",
        WorkflowExecutionStatus::Failed => "failed",
        WorkflowExecutionStatus::Canceled => "canceled",
        WorkflowExecutionStatus::Terminated => "terminated",
        WorkflowExecutionStatus::TimedOut => "timed out",
        WorkflowExecutionStatus::ContinuedAsNew => CONTINUED,
        _ => "unknown",
    }
}

fn unknown(id: &str) -> anyhow::Error {
    anyhow!("there is no batch called {id}; `tidegate status` lists them")
}

/// The server says that no poller was seen, or gives up waiting for one.
fn silence(error: &WorkflowQueryError) -> Silent {
    let text = error.to_string();
    let none = [
        "no poller seen",
        "worker may be down",
        "deadline",
        "Deadline",
        "timed out",
        "Timeout expired",
    ];
    if none.iter().any(|sign| text.contains(sign)) {
        Silent::NoWorker
    } else {
        Silent::Failed(anyhow!(plain(&text)))
    }
}

/// A failure and what caused it, each once.
fn causes(error: &temporalio_common::error::IncomingError) -> String {
    let mut texts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let failure = error.failure();
        if !failure.message.is_empty() && texts.last() != Some(&failure.message) {
            texts.push(failure.message.clone());
        }
        next = error.cause();
    }
    texts.join(": ")
}

pub(crate) fn json<T: Serialize + 'static>(value: &T) -> RawValue {
    RawValue::from_value(value, &PayloadConverter::default())
}

fn parse<T: DeserializeOwned>(value: RawValue) -> anyhow::Result<T> {
    let payload = value.payloads.into_iter().next().context("the batch answered nothing")?;
    serde_json::from_slice(&payload.data)
        .context("the batch answered what this version does not understand")
}

/// `host:port` or a URL.
fn target(address: &str, secure: bool) -> anyhow::Result<url::Url> {
    let scheme = if secure { "https" } else { "http" };
    let text =
        if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    text.parse().with_context(|| {
        format!("temporal.address is \"{address}\"; write host:port, such as 127.0.0.1:7233")
    })
}

/// What people want of a gRPC error: its message.
fn plain(text: &str) -> String {
    let message = text
        .split_once("message: \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(message, _)| message);
    message.unwrap_or(text).to_owned()
}

/// The cause that has no further cause: the errors around it only name the layers that they went
/// through.
fn innermost(error: &(dyn std::error::Error + 'static)) -> anyhow::Error {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    anyhow!(plain(&error.to_string()))
}

fn hostname() -> String {
    std::fs::read_to_string("/etc/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        assert_eq!(target("127.0.0.1:7233", false).unwrap().as_str(), "http://127.0.0.1:7233/");
        assert_eq!(target("cloud:7233", true).unwrap().as_str(), "https://cloud:7233/");
        assert!(target("a b", false).unwrap_err().to_string().contains("host:port"));
    }

    #[test]
    fn grpc_noise_is_dropped() {
        assert_eq!(
            plain("Server error: code: 'x', message: \"Namespace n is not found.\", details: []"),
            "Namespace n is not found."
        );
        assert_eq!(plain("refused"), "refused");
    }
}
