//! The activities that Temporal calls.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macro drops both; `tidegate_workflows::contract` documents the activities"
)]

use std::{sync::Arc, time::Duration};

use serde_json::value::RawValue;
use temporalio_macros::activities;
use temporalio_sdk::{
    ApplicationFailure,
    activities::{ActivityContext, ActivityError},
};
use tidegate_workflows::contract::{
    self, BatchState, CallOutcome, CollectedBatch, DocumentOutcome, DocumentTask, EmbedOutcome,
    Finish, Finished, Job, MarkPaused, Notify, OpenBatches, PackOutcome, PackTask, PartTask, Plan,
    Progress, ProviderBatch, SealShard, SubmitBatch, SubmittedBatch,
};

use tracing::{info, warn};

use crate::{
    attempt::Attempt,
    batch::{plan, run_status, source::PageBudget, turn_release},
    document::{long, pack, process},
    door,
    failure::{self, Failure, PLAN_DEADLINE, STORE_DEADLINE, count_store_fault, unless_deadly},
    heartbeat, metrics,
    output::{finish, lease::Holder, seal},
    provider_batch,
    services::Services,
};

/// Grace period of an activity of a whole batch or shard when its worker stops. Another worker then
/// starts it anew.
const STEP: Duration = Duration::from_secs(20);

/// A batch that has started its webhook's workflow has ended within this time.
const ENDING: Duration = Duration::from_secs(1);

/// The webhook is sent only after its batch has ended.
#[derive(Debug, thiserror::Error)]
#[error("the batch is about to end")]
struct StillEnding;

/// The activities, all on one set of services.
#[derive(Debug)]
pub struct DocumentActivities {
    services: Arc<Services>,
}

impl DocumentActivities {
    /// Creates the activities on these services.
    pub fn new(services: Arc<Services>) -> Self {
        Self { services }
    }

    /// Runs an activity of a whole batch or shard.
    async fn step<T>(
        &self,
        ctx: &ActivityContext,
        deadline: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, ActivityError> {
        self.step_in(ctx, &Attempt::from_context(ctx, "step"), deadline, work).await
    }

    /// Like `step`, with an explicit attempt for work that needs it.
    async fn step_in<T>(
        &self,
        ctx: &ActivityContext,
        attempt: &Attempt,
        deadline: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, ActivityError> {
        let work = Box::pin(work);
        let counted = async {
            let work = unless_deadly(attempt, failure::kills_its_worker, work).await;
            let failure = |failure: Failure| count_store_fault(failure, attempt, deadline);
            work.map_err(failure).inspect_err(|failure| log_failure(ctx, failure))
        };
        heartbeat::run(ctx, attempt, &self.services.guard, STEP, counted).await
    }

    /// Runs an activity that asks a provider about documents. `outcome` names the document's outcome
    /// for the metrics if the document ends with this success. An attempt that will be retried has no
    /// outcome.
    async fn document<T>(
        &self,
        ctx: &ActivityContext,
        attempt: &Attempt,
        work: impl Future<Output = Result<T, Failure>>,
        outcome: impl FnOnce(&T) -> Option<&'static str>,
    ) -> Result<T, ActivityError> {
        let work = Box::pin(work);
        let counted = async {
            let work = unless_deadly(attempt, failure::document_kills_its_worker, work).await;
            let result =
                work.map_err(|failure| count_store_fault(failure, attempt, STORE_DEADLINE));
            let outcome = match &result {
                Ok(value) => outcome(value),
                Err(failure) => (!failure.is_retried()).then_some(failure.kind.as_str()),
            };
            if let Some(outcome) = outcome {
                metrics::count_document(outcome);
            }
            result
        };
        heartbeat::run(ctx, attempt, &self.services.guard, heartbeat::UNSENT, counted).await
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
        let batch = Holder {
            namespace: info.namespace.clone(),
            workflow: info.workflow_id.clone().unwrap_or_default(),
            run: info.workflow_run_id.clone().unwrap_or_default(),
        };
        let has_ended = |other| run_status::has_ended(ctx.client(), other);
        let attempt = Attempt::from_context(&ctx, "step");
        let work = plan::plan_in(
            &self.services,
            Some(&attempt),
            &job,
            &batch,
            PageBudget::page(),
            has_ended,
        );
        let work = Box::pin(work);
        let plan = self.step_in(&ctx, &attempt, PLAN_DEADLINE, work).await?;
        let plan = Plan { labels: Some(run_status::find_labels(&ctx.client()).await), ..plan };
        metrics::count_documents(plan.settled, "skipped");
        info!(batch = batch.workflow, documents = plan.documents, asked = %job.target, lane = %job.lane, "the batch has begun");
        Ok(plan)
    }

    #[activity(definition = contract::markers::PlanMore)]
    pub async fn plan_more(
        self: Arc<Self>,
        ctx: ActivityContext,
        plan: Plan,
    ) -> Result<Plan, ActivityError> {
        let work = Box::pin(plan::plan_more(&self.services, &plan, PageBudget::page()));
        let more = self.step(&ctx, PLAN_DEADLINE, work).await?;
        metrics::count_documents(more.settled.saturating_sub(plan.settled), "skipped");
        Ok(more)
    }

    #[activity(definition = contract::markers::ProcessDocument)]
    pub async fn process_document(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: DocumentTask,
    ) -> Result<DocumentOutcome, ActivityError> {
        let attempt = attempt(&ctx, &task, "").with_asked_before(task.asked);
        let work = process::process(&self.services, &attempt, &task);
        let outcome = self.document(&ctx, &attempt, work, outcome_label).await?;
        Ok(DocumentOutcome { queued_seconds: queued_seconds(&ctx), ..outcome })
    }

    #[activity(definition = contract::markers::ProcessPart)]
    pub async fn process_part(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: PartTask,
    ) -> Result<DocumentOutcome, ActivityError> {
        let step = format!("{:?}", task.step);
        let attempt = attempt(&ctx, &task.document, &step).for_part(&task);
        let work = Box::pin(long::process(&self.services, &attempt, &task));
        // Only the workflow knows which step is a document's last.
        Box::pin(self.document(&ctx, &attempt, work, |_| None)).await
    }

    #[activity(definition = contract::markers::ProcessPack)]
    pub async fn process_pack(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: PackTask,
    ) -> Result<PackOutcome, ActivityError> {
        let first = DocumentTask {
            job: task.job.clone(),
            workflow: task.workflow.clone(),
            shard: task.shard,
            index: task.from,
            raised: false,
            asked: false,
            escalated: None,
        };
        let attempt = attempt(&ctx, &first, "pack");
        let work = pack::process(&self.services, &attempt, &task);
        // A pack counts its documents itself.
        let outcome = self.document(&ctx, &attempt, work, |_| None).await?;
        Ok(PackOutcome { queued_seconds: queued_seconds(&ctx), ..outcome })
    }

    #[activity(definition = contract::markers::SubmitBatch)]
    pub async fn submit_batch(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: SubmitBatch,
    ) -> Result<SubmittedBatch, ActivityError> {
        let (attempt, number) = (Attempt::from_context(&ctx, "step"), ctx.info().attempt);
        let work = provider_batch::submit(&self.services, Some(&attempt), &task, number);
        self.step_in(&ctx, &attempt, STORE_DEADLINE, work).await
    }

    #[activity(definition = contract::markers::CheckBatches)]
    pub async fn check_batches(
        self: Arc<Self>,
        ctx: ActivityContext,
        open: OpenBatches,
    ) -> Result<Vec<BatchState>, ActivityError> {
        self.step(&ctx, STORE_DEADLINE, provider_batch::check(&self.services, &open)).await
    }

    #[activity(definition = contract::markers::CancelBatch)]
    pub async fn cancel_batch(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: ProviderBatch,
    ) -> Result<(), ActivityError> {
        self.step(
            &ctx,
            STORE_DEADLINE,
            provider_batch::cancel(&self.services, &task, ctx.info().attempt),
        )
        .await
    }

    #[activity(definition = contract::markers::CollectBatch)]
    pub async fn collect_batch(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: ProviderBatch,
    ) -> Result<CollectedBatch, ActivityError> {
        self.step(
            &ctx,
            STORE_DEADLINE,
            Box::pin(provider_batch::collect(&self.services, &task, ctx.info().attempt)),
        )
        .await
    }

    #[activity(definition = contract::markers::MarkPaused)]
    pub async fn mark_paused(
        self: Arc<Self>,
        ctx: ActivityContext,
        MarkPaused { job, paused }: MarkPaused,
    ) -> Result<(), ActivityError> {
        let mark = async {
            let marked = self.services.guard.quota.hold_batch(&job, workflow(&ctx), paused).await;
            marked.map_err(|error| Failure::transient(format!("a pause is not told yet: {error}")))
        };
        self.step(&ctx, STORE_DEADLINE, mark).await?;
        info!(batch = workflow(&ctx), paused, "a batch was paused, or goes on");
        Ok(())
    }

    #[activity(definition = contract::markers::SealShard)]
    pub async fn seal_shard(
        self: Arc<Self>,
        ctx: ActivityContext,
        shard: SealShard,
    ) -> Result<(), ActivityError> {
        let Services { storage, shards, .. } = &*self.services;
        self.step(&ctx, STORE_DEADLINE, seal::seal(storage, shards, &shard)).await
    }

    #[activity(definition = contract::markers::Finish)]
    pub async fn finish(
        self: Arc<Self>,
        ctx: ActivityContext,
        finish: Finish,
    ) -> Result<Finished, ActivityError> {
        let work = Box::pin(finish::finish(&self.services.storage, &finish));
        let finished = self.step(&ctx, STORE_DEADLINE, work).await?;
        log_ended(workflow(&ctx), &finish.progress, &finished);
        if finished.cancelled > 0 {
            turn_release::release_turns(
                &self.services.storage,
                &self.services.guard.quota,
                &finish.plan.job,
            )
            .await;
        }
        Ok(finished)
    }

    #[activity(definition = contract::markers::Notify)]
    pub async fn notify(
        self: Arc<Self>,
        ctx: ActivityContext,
        notify: Notify,
    ) -> Result<(), ActivityError> {
        let batch = Holder {
            namespace: ctx.info().namespace.clone(),
            workflow: notify.batch.clone(),
            run: notify.run.clone(),
        };
        let has_ended = Box::pin(run_status::has_ended(ctx.client(), batch)).await;
        if !has_ended.unwrap_or(true) {
            // A receiver may look at the batch, or start the next one, as soon as it is notified.
            let failure = ApplicationFailure::builder(StillEnding)
                .type_name("Transient".to_owned())
                .next_retry_delay(ENDING)
                .build();
            return Err(failure.into());
        }
        let told = self.services.webhooks.send(&notify).await;
        told.inspect_err(|error| {
            let (batch, webhook, tries) = (&notify.batch, &notify.webhook, ctx.info().attempt);
            if error.is_final || tries.is_power_of_two() {
                warn!(batch, webhook, tries, %error, "a webhook is not told of a batch's end");
            }
        })
        .map_err(|error| {
            let is_final = error.is_final;
            let failure = ApplicationFailure::builder(error)
                .type_name("Undelivered".to_owned())
                .non_retryable(is_final)
                .build();
            failure.into()
        })
    }

    #[activity(definition = contract::markers::Call)]
    pub async fn call(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: Box<RawValue>,
    ) -> Result<CallOutcome, ActivityError> {
        door::call(&self.services, &ctx, &input).await
    }

    #[activity(definition = contract::markers::Embed)]
    pub async fn embed(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: Box<RawValue>,
    ) -> Result<EmbedOutcome, ActivityError> {
        door::embed(&self.services, &ctx, &input).await
    }
}

/// Logs why a batch cannot go on; repeated failures that may pass are logged ever less often.
fn log_failure(ctx: &ActivityContext, failure: &Failure) {
    let (batch, info) = (workflow(ctx), ctx.info());
    let (step, tries) = (info.activity_type.as_str(), info.attempt);
    if !failure.is_retried() {
        warn!(batch, step, %failure, "the batch cannot go on");
    } else if !failure.benign && tries.is_power_of_two() {
        warn!(batch, step, tries, %failure, "a step of the batch failed, and is tried again");
    }
}

/// Logs the end of a batch in one line, with its totals.
fn log_ended(batch: &str, progress: &Progress, finished: &Finished) {
    let totals = finished.correct(progress.totals);
    let spend = totals.spend;
    // Omitted where no price is known.
    let cost_usd = (spend.cost_usd > 0.0).then(|| (spend.cost_usd * 1e6).round() / 1e6);
    info!(
        batch,
        succeeded = totals.succeeded,
        failed = totals.failed,
        failures = %totals.failures,
        skipped = totals.skipped,
        cancelled = totals.cancelled,
        calls = spend.provider_calls,
        refused_429 = spend.rate_limited,
        input_tokens = spend.input_tokens,
        output_tokens = spend.output_tokens,
        cost_usd,
        "the batch has ended"
    );
}

/// Returns the label of a successful document's outcome for the metrics. `None` for a document that
/// is read in parts and has only begun, and for one that goes to its route's next model.
fn outcome_label(outcome: &DocumentOutcome) -> Option<&'static str> {
    let ended = if outcome.skipped { "skipped" } else { "succeeded" };
    (outcome.parts.is_none() && !outcome.escalates).then_some(ended)
}

/// The workflow that called the activity.
fn workflow(ctx: &ActivityContext) -> &str {
    ctx.info().workflow_id.as_deref().unwrap_or_default()
}

/// The attempt at a step of a document.
fn attempt(ctx: &ActivityContext, task: &DocumentTask, step: &str) -> Attempt {
    let step: String = step.chars().filter(char::is_ascii_alphanumeric).collect();
    let work = format!("{}.{}{step}", task.shard, task.index);
    Attempt::from_context(ctx, &work).for_batch(&task.workflow, &task.job)
}

/// Seconds that the attempt waited in its task queue, by the server's clock.
fn queued_seconds(ctx: &ActivityContext) -> u32 {
    let info = ctx.info();
    let queued = info.started_time.zip(info.current_attempt_scheduled_time);
    let queued = queued.and_then(|(started, scheduled)| started.duration_since(scheduled).ok());
    queued.unwrap_or_default().as_secs().try_into().unwrap_or(u32::MAX)
}
