//! What Temporal says of a batch: whether it has ended, and how it can be labelled in lists.

use temporalio_client::{
    Client, ClientOptions, NamespacedClient, UntypedWorkflow, WorkflowDescribeOptions,
    WorkflowExecutionInfo, WorkflowExecutionStatus, WorkflowHandle,
    errors::WorkflowInteractionError,
    tonic::{Code, IntoRequest},
};
use temporalio_common::protos::temporal::api::{
    enums::v1::IndexedValueType, operatorservice::v1::ListSearchAttributesRequest,
    workflowservice::v1::DescribeNamespaceRequest,
};
use tidegate_workflows::{contract::Labels, labels::NAMES};

use crate::{failure::Failure, output::lease::Holder};

/// A run of a workflow, as the server describes it.
struct Described {
    run: String,
    /// The first run of its chain of continued runs.
    first_run: String,
    is_open: bool,
}

/// Whether the run of a batch has ended, and all runs that it continued as. A namespace that the
/// server does not show may be another server's: nothing is known of its batches.
///
/// # Errors
/// `Transient` while the server cannot answer.
pub async fn has_ended(client: Client, batch: Holder) -> Result<bool, Failure> {
    let Some(client) = in_namespace(client, &batch).await? else { return Ok(false) };
    let Some(latest) = describe(&client, &batch, None).await? else { return Ok(true) };
    if !latest.is_open {
        return Ok(true);
    }
    if [&latest.run, &latest.first_run].contains(&&batch.run) {
        return Ok(false);
    }
    // Another batch with this id runs now, unless both have the same first run: then this one was
    // reset.
    let own = describe(&client, &batch, Some(batch.run.clone())).await?;
    Ok(own.is_none_or(|own| own.first_run != latest.first_run))
}

/// The client for the namespace of a batch; `None` if the server does not show that namespace.
async fn in_namespace(client: Client, batch: &Holder) -> Result<Option<Client>, Failure> {
    let namespace = &batch.namespace;
    if client.namespace() == *namespace {
        return Ok(Some(client));
    }
    let request = DescribeNamespaceRequest { namespace: namespace.clone(), ..Default::default() };
    let mut service = client.connection().workflow_service();
    match service.describe_namespace(request.into_request()).await {
        Ok(_) => {
            let options = ClientOptions::new(namespace.as_str()).build();
            let client = Client::new(client.connection().clone(), options);
            client.map(Some).map_err(|error| not_told(batch, error))
        }
        Err(status) => match status.code() {
            Code::NotFound | Code::PermissionDenied | Code::Unauthenticated => Ok(None),
            _ => Err(not_told(batch, status)),
        },
    }
}

fn not_told(batch: &Holder, error: impl std::fmt::Display) -> Failure {
    Failure::transient(format!(
        "Temporal does not say whether the batch \"{}\" still runs: {error}",
        batch.workflow
    ))
}

/// Describes a run; returns `None` if the workflow no longer exists.
async fn describe(
    client: &Client,
    batch: &Holder,
    run: Option<String>,
) -> Result<Option<Described>, Failure> {
    let info = WorkflowExecutionInfo::builder()
        .namespace(batch.namespace.clone())
        .workflow_id(batch.workflow.clone())
        .maybe_run_id(run)
        .build();
    let handle = WorkflowHandle::<_, UntypedWorkflow>::new(client.clone(), info);
    match handle.describe(WorkflowDescribeOptions::builder().build()).await {
        Ok(seen) => {
            use WorkflowExecutionStatus as Status;
            let first_run = seen.raw().workflow_execution_info.as_ref();
            Ok(Some(Described {
                run: seen.run_id().to_owned(),
                first_run: first_run.map(|info| info.first_run_id.clone()).unwrap_or_default(),
                // A status that only a newer server knows counts as open.
                is_open: matches!(
                    seen.status(),
                    Status::Running | Status::Paused | Status::Unspecified | Status::Unknown
                ),
            }))
        }
        Err(WorkflowInteractionError::NotFound(_)) => Ok(None),
        Err(error) => Err(not_told(batch, error)),
    }
}

/// Asks the server for the search attributes of its namespace. If it does not answer, batches get a
/// memo.
pub(crate) async fn find_labels(client: &Client) -> Labels {
    let request = ListSearchAttributesRequest { namespace: client.namespace() };
    let mut service = client.connection().operator_service();
    match service.list_search_attributes(request.into_request()).await {
        Ok(known) => {
            let known = known.into_inner().custom_attributes;
            let keyword = IndexedValueType::Keyword as i32;
            let has_all = NAMES.iter().all(|name| known.get(*name) == Some(&keyword));
            if has_all { Labels::SearchAttributes } else { Labels::Memo }
        }
        Err(error) => {
            tracing::debug!(%error, "which search attributes there are is not known");
            Labels::Memo
        }
    }
}
