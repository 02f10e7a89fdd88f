//! The activities as Temporal sees them.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macro drops both; `tidegate_workflows::contract` documents the activities"
)]

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use temporalio_macros::activities;
use temporalio_sdk::{
    ApplicationFailure,
    activities::{ActivityContext, ActivityError, ActivityInfo},
};
use tidegate_workflows::contract::{
    self, BatchState, CallCounts, CollectedBatch, DocumentOutcome, DocumentTask, Finish, Job,
    OpenBatches, PackOutcome, PackTask, PartTask, Plan, ProviderBatch, SealShard, SubmitBatch,
    SubmittedBatch,
};

use crate::{
    batch::finish,
    batch::plan,
    batch::seal,
    call::attempt::{Attempt, AttemptState},
    document::long,
    document::pack,
    document::process,
    failure::Failure,
    metrics, provider_batch,
    services::Services,
};

/// A third of the heartbeat time-out that the workflows set: cancellation arrives with a beat, and
/// two may be lost.
const BEAT: Duration = Duration::from_secs(3);

/// The activities, all on the same services.
#[derive(Debug)]
pub struct DocumentActivities {
    services: Arc<Services>,
}

impl DocumentActivities {
    /// Activities on these services.
    #[must_use]
    pub fn new(services: Services) -> Self {
        Self::shared(&Arc::new(services))
    }

    /// Activities on services that others use too.
    #[must_use]
    pub fn shared(services: &Arc<Services>) -> Self {
        Self { services: Arc::clone(services) }
    }
}

#[activities]
impl DocumentActivities {
    #[activity(definition = contract::markers::Plan)]
    pub async fn plan(
        self: Arc<Self>,
        ctx: ActivityContext,
        job: Job,
    ) -> Result<Plan, ActivityError> {
        let info = ctx.info();
        let (workflow, run) = (
            info.workflow_id.clone().unwrap_or_default(),
            info.workflow_run_id.clone().unwrap_or_default(),
        );
        beating(&ctx, None, plan::plan(&self.services, &job, &workflow, &run)).await
    }

    #[activity(definition = contract::markers::ProcessDocument)]
    pub async fn process_document(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: DocumentTask,
    ) -> Result<DocumentOutcome, ActivityError> {
        let attempt = attempt(&ctx, &task, "");
        beating(&ctx, Some(&attempt), process::process(&self.services, &attempt, &task)).await
    }

    #[activity(definition = contract::markers::ProcessPart)]
    pub async fn process_part(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: PartTask,
    ) -> Result<DocumentOutcome, ActivityError> {
        let attempt = attempt(&ctx, &task.document, &format!("{:?}", task.step));
        beating(&ctx, Some(&attempt), long::process(&self.services, &attempt, &task)).await
    }

    #[activity(definition = contract::markers::ProcessPack)]
    pub async fn process_pack(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: PackTask,
    ) -> Result<PackOutcome, ActivityError> {
        let first = DocumentTask { job: task.job.clone(), shard: task.shard, index: task.from };
        let attempt = attempt(&ctx, &first, "pack");
        beating(&ctx, Some(&attempt), pack::process(&self.services, &attempt, &task)).await
    }

    #[activity(definition = contract::markers::SubmitBatch)]
    pub async fn submit_batch(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: SubmitBatch,
    ) -> Result<SubmittedBatch, ActivityError> {
        beating(
            &ctx,
            None,
            provider_batch::submit(&self.services, &batch(&ctx), &task, ctx.info().attempt),
        )
        .await
    }

    #[activity(definition = contract::markers::CheckBatches)]
    pub async fn check_batches(
        self: Arc<Self>,
        ctx: ActivityContext,
        open: OpenBatches,
    ) -> Result<Vec<BatchState>, ActivityError> {
        beating(&ctx, None, provider_batch::check(&self.services, &batch(&ctx), &open)).await
    }

    #[activity(definition = contract::markers::CancelBatch)]
    pub async fn cancel_batch(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: ProviderBatch,
    ) -> Result<(), ActivityError> {
        beating(&ctx, None, provider_batch::cancel(&self.services, &task, ctx.info().attempt)).await
    }

    #[activity(definition = contract::markers::CollectBatch)]
    pub async fn collect_batch(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: ProviderBatch,
    ) -> Result<CollectedBatch, ActivityError> {
        beating(
            &ctx,
            None,
            provider_batch::collect(&self.services, &batch(&ctx), &task, ctx.info().attempt),
        )
        .await
    }

    #[activity(definition = contract::markers::SealShard)]
    pub async fn seal_shard(
        self: Arc<Self>,
        ctx: ActivityContext,
        shard: SealShard,
    ) -> Result<(), ActivityError> {
        beating(&ctx, None, seal::seal(&self.services, &shard)).await
    }

    #[activity(definition = contract::markers::Finish)]
    pub async fn finish(
        self: Arc<Self>,
        ctx: ActivityContext,
        finish: Finish,
    ) -> Result<(), ActivityError> {
        beating(&ctx, None, finish::finish(&self.services, &finish)).await
    }
}

fn attempt(ctx: &ActivityContext, task: &DocumentTask, step: &str) -> Attempt {
    let info = ctx.info();
    let notes =
        ctx.heartbeat_details().deserialize::<AttemptState>().ok().flatten().unwrap_or_default();
    Attempt::new(reservation(info, task, step), batch(ctx), millis(info.scheduled_time), notes)
}

/// The workflow id of the batch that an activity's shard belongs to.
fn batch(ctx: &ActivityContext) -> String {
    let workflow = ctx.info().workflow_id.as_deref().unwrap_or_default();
    workflow.rsplit_once("/shard-").map_or(workflow, |(batch, _)| batch).to_owned()
}

/// Unique to one attempt at one step of one document of one run; names no document.
fn reservation(info: &ActivityInfo, task: &DocumentTask, step: &str) -> String {
    let run = info.workflow_run_id.as_deref().unwrap_or_default();
    let step: String = step.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{}#{}.{}{step}.{}", run, task.shard, task.index, info.attempt)
}

fn millis(time: Option<SystemTime>) -> i64 {
    let since =
        time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Does the work under a steady heartbeat, and drops it when the activity is cancelled or the
/// worker stops. The last beat carries the notes to the next attempt.
async fn beating<T>(
    ctx: &ActivityContext,
    attempt: Option<&Attempt>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, ActivityError> {
    let mut beat = tokio::time::interval(BEAT);
    let mut work = Box::pin(work);
    loop {
        tokio::select! {
            result = &mut work => return end(ctx, attempt, result).await,
            () = ctx.cancelled() => {
                record(ctx, attempt).await;
                return Err(ActivityError::cancelled());
            }
            _ = beat.tick() => record(ctx, attempt).await,
        }
    }
}

async fn end<T>(
    ctx: &ActivityContext,
    attempt: Option<&Attempt>,
    result: Result<T, Failure>,
) -> Result<T, ActivityError> {
    let effort = attempt.map_or_else(CallCounts::default, Attempt::effort);
    match result {
        Ok(value) => {
            if attempt.is_some() {
                metrics::attempt_ended("succeeded");
            }
            Ok(value)
        }
        Err(failure) => {
            if attempt.is_some() {
                metrics::attempt_ended(failure.kind.as_str());
                record(ctx, attempt).await;
            }
            let failure: ApplicationFailure = failure.into_application_failure(effort);
            Err(failure.into())
        }
    }
}

/// A beat that does not arrive is made good by the next.
async fn record(ctx: &ActivityContext, attempt: Option<&Attempt>) {
    let recorded = match attempt {
        Some(attempt) => ctx.record_heartbeat(attempt.notes()).await,
        None => ctx.record_heartbeat(()).await,
    };
    if let Err(error) = recorded {
        tracing::warn!(%error, "a heartbeat could not be recorded");
    }
}
