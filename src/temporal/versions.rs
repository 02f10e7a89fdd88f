//! Versions of a deployment of workers: the polling ones, and the one that gets new batches.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use futures::FutureExt;
use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::{
    deployment::v1::WorkerDeploymentVersion,
    enums::v1::{TaskQueueType, VersioningBehavior, WorkerVersioningMode},
    taskqueue::v1::{PollerInfo, TaskQueue},
    workflow::v1::{WorkflowExecutionVersioningInfo, versioning_override},
    workflowservice::v1::DescribeTaskQueueRequest,
};

use super::{connection::Temporal, run_end::no_such_batch};
use crate::config::Version;

/// Time since its last poll after which a worker is gone; a poll lasts a minute.
const GONE: Duration = Duration::from_secs(90);

/// The versions of one task queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    /// The version that gets new batches, and batches that are not pinned; `None`: workers without a
    /// version.
    pub current: Option<Version>,
    /// The versions that poll; `None`: workers without a version.
    pub polling: BTreeSet<Option<Version>>,
}

impl Versions {
    /// The reason why the polling workers get no work of a batch, and the remedy; `None` if they
    /// get it.
    pub fn idle(&self, task_queue: &str, batch: &str, pinned: Option<&Version>) -> Option<String> {
        if let Some(pinned) = pinned {
            return (!self.polling.contains(&Some(pinned.clone()))).then(|| format!(
                "it is pinned to version {pinned}, which no worker polls; start a worker of that version, or let the batch go on with the current one: `temporal workflow update-options --query 'WorkflowId STARTS_WITH \"{batch}\" AND ExecutionStatus = \"Running\"' --versioning-override-behavior auto_upgrade`"
            ));
        }
        if self.polling.contains(&self.current) {
            return None;
        }
        let version = self.polling.iter().flatten().next_back()?;
        Some(format!(
            "the workers on the task queue \"{task_queue}\" are of version {version}, and this version is not current: `{}`",
            version.make_current()
        ))
    }
}

impl Temporal {
    /// The versions of the workers on a task queue.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn versions(&self, task_queue: &str) -> anyhow::Result<Versions> {
        let queue = TaskQueue { name: task_queue.to_owned(), ..TaskQueue::default() };
        let request = DescribeTaskQueueRequest {
            namespace: self.namespace().to_owned(),
            task_queue: Some(queue),
            task_queue_type: TaskQueueType::Workflow.into(),
            ..DescribeTaskQueueRequest::default()
        };
        let mut service = self.client().connection().workflow_service();
        let seen = service
            .describe_task_queue(request.into_request())
            .boxed()
            .await
            .map_err(|error| self.server_error(error.message()))?
            .into_inner();
        let current = seen.versioning_info.and_then(|info| info.current_deployment_version);
        Ok(Versions {
            current: current.map(from_deployment),
            polling: seen.pollers.into_iter().filter(is_polling).map(poller_version).collect(),
        })
    }

    /// The version that a batch is pinned to, if any.
    ///
    /// # Errors
    /// There is no such batch, or the server does not answer.
    pub async fn pinned(&self, id: &str) -> anyhow::Result<Option<Version>> {
        let seen = self.description(id).await?.ok_or_else(|| no_such_batch(id))?;
        let info = seen.into_raw().workflow_execution_info;
        Ok(info.and_then(|info| info.versioning_info).and_then(pinned_version))
    }
}

fn from_deployment(version: WorkerDeploymentVersion) -> Version {
    Version { deployment: version.deployment_name, build_id: version.build_id }
}

/// Whether a worker still polls: the server lists lost workers for some minutes.
fn is_polling(poller: &PollerInfo) -> bool {
    let seen = poller.last_access_time.and_then(|time| {
        let since = Duration::from_secs(u64::try_from(time.seconds).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(since)
    });
    seen.is_none_or(|seen| seen + GONE > SystemTime::now())
}

fn poller_version(poller: PollerInfo) -> Option<Version> {
    let options = poller.deployment_options?;
    let versioned = options.worker_versioning_mode() == WorkerVersioningMode::Versioned;
    versioned.then_some(Version { deployment: options.deployment_name, build_id: options.build_id })
}

/// An operator's override takes precedence over the workflow's own setting.
fn pinned_version(info: WorkflowExecutionVersioningInfo) -> Option<Version> {
    match info.versioning_override.as_ref().and_then(|by_hand| by_hand.r#override.clone()) {
        Some(versioning_override::Override::Pinned(pinned)) => pinned.version.map(from_deployment),
        Some(_) => None,
        None if info.behavior() == VersioningBehavior::Pinned => {
            info.deployment_version.map(from_deployment)
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(build_id: &str) -> Version {
        Version { deployment: "tide".to_owned(), build_id: build_id.to_owned() }
    }

    fn idle(
        current: Option<&str>,
        polling: &[Option<&str>],
        pinned: Option<&str>,
    ) -> Option<String> {
        let versions = Versions {
            current: current.map(version),
            polling: polling.iter().map(|build| build.map(version)).collect(),
        };
        versions.idle("tidegate", "night", pinned.map(version).as_ref())
    }

    #[test]
    fn workers_that_get_no_work_are_told_apart() {
        assert_eq!(idle(None, &[None], None), None, "nobody has versions");
        assert_eq!(idle(Some("v1"), &[Some("v1"), Some("v2")], None), None);
        assert_eq!(idle(Some("v1"), &[], None), None, "there are no workers at all");
        assert_eq!(idle(Some("v2"), &[Some("v1"), Some("v2")], Some("v1")), None);
        for (current, polling) in [(None, "v1"), (Some("v0"), "v1")] {
            let why = idle(current, &[Some(polling)], None).unwrap();
            assert!(why.contains("version tide:v1, and this version is not current"), "{why}");
            assert!(why.contains("set-current-version --deployment-name tide --build-id v1"));
        }
        let why = idle(Some("v2"), &[Some("v2")], Some("v1")).unwrap();
        assert!(why.contains("pinned to version tide:v1, which no worker polls"), "{why}");
        assert!(why.contains(
            "temporal workflow update-options --query 'WorkflowId STARTS_WITH \"night\""
        ));
    }
}
