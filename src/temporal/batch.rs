//! Batches: start, query, signal, and their end.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use anyhow::{Context, anyhow};
use futures::{FutureExt, TryStreamExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use temporalio_client::{
    Client, UntypedQuery, UntypedSignal, UntypedWorkflow, UntypedWorkflowHandle,
    WorkflowCancelOptions, WorkflowCountAggregationGroup, WorkflowCountOptions,
    WorkflowDescribeOptions, WorkflowExecutionDescription, WorkflowExecutionStatus as Status,
    WorkflowListOptions, WorkflowQueryOptions, WorkflowSignalOptions, WorkflowStartOptions,
    errors::{WorkflowInteractionError, WorkflowQueryError, WorkflowStartError},
    tonic::Code,
};
use temporalio_common::data_converters::{PayloadConverter, RawValue};
use tidegate_workflows::{
    contract::{PROCESS_DOCUMENTS, Progress},
    input::BatchInput,
};

use super::{
    connection::Temporal,
    run_end::{NoResult, no_such_batch},
};

/// Most bytes of a batch's input: the limit of Temporal's servers for a payload.
const MAX_INPUT_BYTES: usize = 2 << 20;

/// Time limit for a query. A worker answers in milliseconds; silence means that there is no worker.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// One batch, as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The workflow's id.
    pub id: String,
    /// The id of this run.
    pub run: String,
    /// The task queue that it was started on.
    pub task_queue: String,
    /// Its status.
    pub status: Status,
    /// When it was started.
    pub started: Option<SystemTime>,
    /// When it ended.
    pub closed: Option<SystemTime>,
    /// Whether it was asked to stop; lists never say so.
    pub cancel_requested: bool,
}

impl Batch {
    /// Whether it is running.
    pub fn is_running(&self) -> bool {
        matches!(self.status, Status::Running | Status::Paused)
    }
}

/// The status of a batch as shown to people.
pub const fn status_name(status: Status) -> &'static str {
    match status {
        Status::Running | Status::Paused => "running",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Canceled => "cancelled",
        Status::Terminated => "terminated",
        Status::TimedOut => "timed out",
        // Another run of the same batch continues this one.
        Status::ContinuedAsNew => "continued",
        _ => "unknown",
    }
}

/// Reads the status from Temporal's name for it in lists.
fn status_from_name(name: &str) -> Status {
    match name {
        "Running" | "Paused" => Status::Running,
        "Completed" => Status::Completed,
        "Failed" => Status::Failed,
        "Canceled" => Status::Canceled,
        "Terminated" => Status::Terminated,
        "TimedOut" => Status::TimedOut,
        "ContinuedAsNew" => Status::ContinuedAsNew,
        _ => Status::Unknown,
    }
}

/// The end of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It completed, with a report.
    Completed(Box<Progress>),
    /// It was cancelled, with the progress until then.
    Cancelled(Box<Progress>),
    /// It ended without a report, for this reason.
    Broken(String),
}

/// The reason why a batch's progress is not known.
#[derive(Debug)]
pub enum NoProgress {
    /// No worker polls its task queue.
    NoWorker,
    /// There is no such batch.
    Unknown,
    /// Another failure.
    Failed(anyhow::Error),
}

impl Temporal {
    /// Starts a batch. Returns whether it is new: a running batch of this id continues unchanged.
    ///
    /// # Errors
    /// The server refuses or does not answer.
    pub async fn start(&self, id: &str, input: &BatchInput) -> anyhow::Result<bool> {
        let input = input.to_json()?;
        // A codec may make it smaller.
        if self.codec.is_none()
            && let Some(fault) = describe_oversize(&input)
        {
            anyhow::bail!("the batch {id} could not be started: {fault}");
        }
        let options =
            WorkflowStartOptions::new(self.task_queue().to_owned(), id.to_owned()).build();
        let workflow = UntypedWorkflow::new(PROCESS_DOCUMENTS);
        match self.client().start_workflow(workflow, json(&input), options).boxed().await {
            Ok(_) => Ok(true),
            Err(WorkflowStartError::AlreadyStarted { .. }) => Ok(false),
            Err(error) => Err(self
                .server_error(&error.to_string())
                .context(format!("the batch {id} could not be started"))),
        }
    }

    /// Queries a workflow.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        id: &str,
        query: &'static str,
    ) -> Result<T, NoProgress> {
        self.answer(id, query).await.and_then(|value| parse(value).map_err(NoProgress::Failed))
    }

    async fn answer(&self, id: &str, query: &'static str) -> Result<RawValue, NoProgress> {
        let handle = self.handle(id);
        let query = handle.query(
            UntypedQuery::new(query),
            RawValue::default(),
            WorkflowQueryOptions::builder().build(),
        );
        match tokio::time::timeout(ANSWER_WITHIN, query.boxed()).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(WorkflowQueryError::NotFound(_))) => Err(NoProgress::Unknown),
            Ok(Err(error)) => Err(self.no_progress(&error)),
            Err(_) if self.server_answers(id).await => Err(NoProgress::NoWorker),
            Err(_) => Err(NoProgress::Failed(
                self.unreachable_error(format!("no answer within {ANSWER_WITHIN:?}")),
            )),
        }
    }

    /// Whether the server itself answers, without a worker.
    async fn server_answers(&self, id: &str) -> bool {
        let handle = self.handle(id);
        let seen = handle.describe(WorkflowDescribeOptions::builder().build());
        tokio::time::timeout(ANSWER_WITHIN, seen.boxed())
            .await
            .is_ok_and(|seen| matches!(seen, Ok(_) | Err(WorkflowInteractionError::NotFound(_))))
    }

    /// Finds the reason why a query failed. Without a poller, the server answers
    /// `FailedPrecondition` or gives up waiting. A worker's own answers have other codes.
    fn no_progress(&self, error: &WorkflowQueryError) -> NoProgress {
        let code = match error {
            WorkflowQueryError::Rpc(status) => status.code(),
            _ => Code::Unknown,
        };
        match code {
            Code::FailedPrecondition | Code::DeadlineExceeded | Code::Cancelled => {
                NoProgress::NoWorker
            }
            _ => NoProgress::Failed(self.server_error(&error.to_string())),
        }
    }

    /// Sends a batch a signal: `pause` or `resume`.
    ///
    /// # Errors
    /// No such batch runs, or the server does not answer.
    pub async fn signal(&self, id: &str, name: &'static str) -> anyhow::Result<()> {
        let options = WorkflowSignalOptions::builder().build();
        let signal = UntypedSignal::new(name);
        let told = self.handle(id).signal(signal, RawValue::default(), options).boxed().await;
        told.map_err(|error| self.interaction_error(error, no_running_batch(id)))
    }

    /// Asks a batch to stop: calls under way end, and the report is written.
    ///
    /// # Errors
    /// No such batch runs, or the server does not answer.
    pub async fn cancel(&self, id: &str) -> anyhow::Result<()> {
        let options = WorkflowCancelOptions::builder().build();
        let told = self.handle(id).cancel(options).boxed().await;
        told.map_err(|error| self.interaction_error(error, no_running_batch(id)))
    }

    fn interaction_error(
        &self,
        error: WorkflowInteractionError,
        gone: anyhow::Error,
    ) -> anyhow::Error {
        match error {
            WorkflowInteractionError::NotFound(_) => gone,
            error => self.server_error(&error.to_string()),
        }
    }

    /// The server's description of a workflow, if the workflow exists.
    pub(super) async fn description(
        &self,
        id: &str,
    ) -> anyhow::Result<Option<WorkflowExecutionDescription>> {
        match self.handle(id).describe(WorkflowDescribeOptions::builder().build()).boxed().await {
            Ok(seen) => Ok(Some(seen)),
            Err(WorkflowInteractionError::NotFound(_)) => Ok(None),
            Err(error) => Err(self.server_error(&error.to_string())),
        }
    }

    /// Waits for the end of a batch's newest run.
    ///
    /// # Errors
    /// There is no such batch, or the server does not answer.
    pub async fn ending(&self, id: &str) -> anyhow::Result<Ending> {
        self.wait_for_end(self.handle(id), id).await
    }

    /// The end of this run of a batch, not of later runs with the same id.
    ///
    /// # Errors
    /// See [`Self::ending`].
    pub async fn ending_of(&self, batch: &Batch) -> anyhow::Result<Ending> {
        let mut run = self.handle(&batch.id).info().clone();
        run.run_id = Some(batch.run.clone());
        self.wait_for_end(run.bind_untyped(self.client().clone()), &batch.id).await
    }

    async fn wait_for_end(
        &self,
        run: UntypedWorkflowHandle<Client>,
        id: &str,
    ) -> anyhow::Result<Ending> {
        Ok(match self.result_of(run, id).await? {
            Ok(value) => Ending::Completed(Box::new(parse(value)?)),
            Err(NoResult { why, details }) => details
                .and_then(|details| parse(details).ok())
                .map_or(Ending::Broken(why), |progress| Ending::Cancelled(Box::new(progress))),
        })
    }

    /// One batch, as the server describes it.
    ///
    /// # Errors
    /// There is no such batch, or the server does not answer.
    pub async fn describe(&self, id: &str) -> anyhow::Result<Batch> {
        self.find(id).await?.ok_or_else(|| no_such_batch(id))
    }

    /// Like [`Self::describe`]; `None` if the server knows no such batch.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn find(&self, id: &str) -> anyhow::Result<Option<Batch>> {
        let seen = self.description(id).await?;
        Ok(seen.map(|seen| Batch {
            id: seen.id().to_owned(),
            run: seen.run_id().to_owned(),
            task_queue: seen.task_queue().to_owned(),
            status: seen.status(),
            started: seen.start_time(),
            closed: seen.close_time(),
            cancel_requested: (seen.raw().workflow_extended_info.as_ref())
                .is_some_and(|info| info.cancel_requested),
        }))
    }

    /// Lists the newest batches, newest first.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn list(&self, limit: usize) -> anyhow::Result<Vec<Batch>> {
        let options = WorkflowListOptions::builder().limit(limit).build();
        // A batch that continued as new is listed once, by its last run.
        let newest =
            format!("WorkflowType = '{PROCESS_DOCUMENTS}' AND ExecutionStatus != 'ContinuedAsNew'");
        let listed = self.client().list_workflows(newest, options);
        let mut batches: Vec<Batch> = listed
            .map_ok(|seen| Batch {
                id: seen.id().to_owned(),
                run: seen.run_id().to_owned(),
                task_queue: seen.task_queue().to_owned(),
                status: seen.status(),
                started: seen.start_time(),
                closed: seen.close_time(),
                cancel_requested: false,
            })
            .try_collect()
            .boxed()
            .await
            .map_err(|error| self.server_error(&error.to_string()))?;
        batches.sort_by_key(|batch| std::cmp::Reverse(batch.started));
        Ok(batches)
    }

    /// The batch of a command that names none: the newest running batch, otherwise the newest.
    ///
    /// # Errors
    /// The server does not answer or refuses, or has no batches.
    pub async fn newest(&self) -> anyhow::Result<Batch> {
        let batches = self.list(20).await?;
        let running = batches.iter().find(|batch| batch.is_running());
        let newest = running.or_else(|| batches.first()).cloned();
        newest.with_context(|| {
            format!("no batches in the namespace {} of {}", self.namespace(), self.address())
        })
    }

    /// Counts the batches by status.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn count(&self) -> anyhow::Result<HashMap<Status, usize>> {
        let query = format!("WorkflowType = '{PROCESS_DOCUMENTS}' GROUP BY ExecutionStatus");
        let counted = self.client().count_workflows(query, WorkflowCountOptions::default());
        let counted =
            counted.boxed().await.map_err(|error| self.server_error(&error.to_string()))?;
        let one = |group: &WorkflowCountAggregationGroup| {
            let named = group.get::<String>(0)?;
            Some((status_from_name(&named), group.count()))
        };
        Ok(counted.groups().iter().filter_map(one).collect())
    }

    /// The ids of the newest running batches.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn running(&self, limit: usize) -> anyhow::Result<Vec<String>> {
        let query = format!("WorkflowType = '{PROCESS_DOCUMENTS}' AND ExecutionStatus = 'Running'");
        let options = WorkflowListOptions::builder().limit(limit).build();
        let listed = self.client().list_workflows(query, options);
        let ids: Result<Vec<String>, _> =
            listed.map_ok(|seen| seen.id().to_owned()).try_collect().boxed().await;
        ids.map_err(|error| self.server_error(&error.to_string()))
    }
}

fn no_running_batch(id: &str) -> anyhow::Error {
    anyhow!("no batch called {id} runs; `tidegate status` lists them")
}

/// Says that a batch's input is larger than Temporal takes, and which field is the largest; `None` if it
/// is not.
fn describe_oversize(input: &Value) -> Option<String> {
    let size = |value: &Value| value.to_string().len();
    let whole = size(input);
    if whole <= MAX_INPUT_BYTES {
        return None;
    }
    let fields = input.as_object()?.iter().map(|(name, value)| (size(value), name));
    let (largest, name) = fields.max()?;
    Some(format!(
        "its input has {whole} bytes, {largest} of them in {name}, and Temporal takes at most {MAX_INPUT_BYTES}; make {name} smaller"
    ))
}

pub(crate) fn json<T: Serialize + 'static>(value: &T) -> RawValue {
    RawValue::from_value(value, &PayloadConverter::default())
}

pub(super) fn parse<T: DeserializeOwned>(value: RawValue) -> anyhow::Result<T> {
    let payload = value.payloads.into_iter().next().context("the batch answered nothing")?;
    let encoding = payload.metadata.get("encoding").map(|name| String::from_utf8_lossy(name));
    if let Some(encoding) = encoding.filter(|name| !name.starts_with("json/")) {
        anyhow::bail!(
            "the batch's payloads are encoded as \"{}\"; set TEMPORAL_CODEC_ENDPOINT to the codec server that its workers use",
            encoding.escape_debug()
        );
    }
    serde_json::from_slice(&payload.data)
        .context("this version cannot read the batch's answer; update tidegate")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_that_is_too_large_names_its_largest_field() {
        assert_eq!(describe_oversize(&json!({"model": "a:b", "schema": {}})), None);
        let schema = json!({"description": "x".repeat(3 << 20)});
        let fault = describe_oversize(&json!({"model": "a:b", "schema": schema})).unwrap();
        assert!(fault.contains("3145746 of them in schema"), "{fault}");
    }
}
