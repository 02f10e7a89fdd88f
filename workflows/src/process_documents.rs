//! `ProcessDocuments`: a batch: plan, shards, finish.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ActivityExecutionError, ChildWorkflowOptions, ContinueAsNewOptions, ParentClosePolicy,
    SyncWorkflowContext, WorkflowCancellationToken, WorkflowContext, WorkflowContextView,
    WorkflowResult, WorkflowTermination, workflows,
};

use crate::{
    contract::{
        self, Activities, Ended, FailureType, Finish, Finished, Job, LONGEST_BATCH_ID, Live,
        Notify, Plan, Progress, SHARD_WINDOW, ShardInput, Totals,
    },
    failure::{self, failed, termination},
    input::{self, Batch},
    labels, pause_flag, payload, policy,
    process_webhook::ProcessWebhook,
    shard::{self, Shard},
    shard_scheduler::{Children, OWN_SHARDS, run},
    state_access::{HasPart, StateAccess},
};

/// One batch of documents.
#[workflow]
pub struct ProcessDocuments {
    /// The checked input, or a sentence that states its fault.
    input: Result<State, String>,
    /// Its shards, and groups of shards.
    children: Children,
    /// The only shard of a small batch, which is processed in the batch's workflow; otherwise
    /// empty.
    shard: Shard,
    /// Whether no document is processed any more.
    over: bool,
    /// The reason why the rest of the plan failed.
    unplanned: Option<WorkflowTermination>,
    /// Whether the report is written and no document is missing from it.
    done: bool,
    /// The report's counts, once it is written.
    finished: Option<Finished>,
}

impl HasPart<Children> for ProcessDocuments {
    fn part(&self) -> &Children {
        &self.children
    }

    fn part_mut(&mut self) -> &mut Children {
        &mut self.children
    }
}

impl HasPart<Shard> for ProcessDocuments {
    fn part(&self) -> &Shard {
        &self.shard
    }

    fn part_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

/// The state that a continued run begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    job: Job,
    /// The window that the input states.
    max_in_flight: Option<u32>,
    /// The plan so far: more documents may follow.
    plan: Option<Plan>,
    next_shard: u32,
    next_group: u32,
    /// The only shard of a small batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<Box<ShardInput>>,
    totals: Totals,
    paused: bool,
    started_at: Option<SystemTime>,
    /// The part of its window that a shard used in the end; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<u32>,
}

impl State {
    fn new(batch: Batch) -> Self {
        let Batch { job, max_in_flight } = batch;
        Self {
            job,
            max_in_flight,
            plan: None,
            next_shard: 0,
            next_group: 0,
            shard: None,
            totals: Totals::default(),
            paused: false,
            started_at: None,
            open: None,
        }
    }

    /// Places of the batch's window.
    fn window(&self) -> u32 {
        let planned = self.plan.as_ref().map_or(0, |plan| plan.in_flight);
        self.max_in_flight.unwrap_or(planned).max(1)
    }
}

#[workflow_methods]
impl ProcessDocuments {
    /// Takes the raw input: a type that does not decode would fail the workflow task again and
    /// again, never the workflow.
    #[init]
    pub fn new(ctx: &WorkflowContextView, input: RawValue) -> Self {
        let input = match ctx.continued_from_run_id().and_then(|_| payload::continued(&input)) {
            Some(state) => Ok(state),
            // Started by a user, or again by a retry policy or a schedule, which pass the first
            // input.
            None => input::parse(&input).map(State::new),
        };
        let input = input.map(|state: State| State {
            started_at: state.started_at.or_else(|| ctx.start_time()),
            ..state
        });
        let children = Self::children(ctx.workflow_id(), input.as_ref().ok());
        Self {
            input,
            children,
            shard: Shard::default(),
            over: false,
            unplanned: None,
            done: false,
            finished: None,
        }
    }

    #[run(name = "ProcessDocuments")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Progress> {
        if ctx.workflow_id().len() > LONGEST_BATCH_ID {
            let message = format!("the workflow id is longer than {LONGEST_BATCH_ID} bytes");
            return Err(failed(FailureType::InvalidInput.as_str(), &message));
        }
        let job = match ctx.state(|batch| {
            batch.input.as_ref().map(|state| state.job.clone()).map_err(Clone::clone)
        }) {
            Ok(job) => job,
            Err(message) => return Err(failed(FailureType::InvalidInput.as_str(), &message)),
        };
        Self::plan(ctx, job).await?;
        let work = async {
            let single_shard = if ctx.state_mut(Self::take_single_shard) {
                Some(Box::pin(shard::run::work(ctx)).await)
            } else {
                workflows::join!(run::run(ctx), Self::plan_more(ctx));
                None
            };
            ctx.state_mut(|batch| batch.over = true);
            single_shard
        };
        let flag = pause_flag::keep(
            ctx.clone(),
            |batch| (batch.children.paused, batch.children.shard.job.clone()),
            |batch| batch.over,
        );
        // The next run gets the state after the flag's end: a signal may come until then.
        let (single_shard, ()) = workflows::join!(work, flag);
        let is_over = match single_shard {
            Some(worked) => Self::end_single_shard(ctx, worked).await,
            None => true,
        };

        let cancelled = ctx.cancellation_token().is_cancelled();
        let (more, broken) =
            ctx.read(|children: &Children| (!children.has_handed_out(), children.broken.clone()));
        if !is_over || more && !cancelled && broken.is_none() {
            let state = ctx.state(Self::continued);
            ctx.continue_as_new(payload::continue_with(&state)?, ContinueAsNewOptions::default())?;
        }
        let finished = Self::finish(ctx, !cancelled && broken.is_none()).await;
        Self::notify(ctx, &finished, cancelled, broken.clone()).await;
        let progress = finished?;
        if let Some(why) = ctx.state_mut(|batch| batch.unplanned.take())
            && !cancelled
        {
            return Err(why);
        }
        match (broken, ctx.state(Self::missing)) {
            _ if cancelled => Err(WorkflowTermination::cancelled_with_details(progress)),
            (Some(message), _) => Err(failed("ShardFailed", &message)),
            (None, Some(message)) => Err(failed("DocumentsMissing", &message)),
            (None, None) => Ok(progress),
        }
    }

    /// Hands out no more documents and begins no more calls; calls under way continue to their end.
    /// Accepts any argument, such as a reason: a signal that does not decode would fail the
    /// workflow task for ever.
    #[signal(name = "pause")]
    pub fn pause(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.set_paused(true);
    }

    /// Hands out documents again.
    #[signal(name = "resume")]
    pub fn resume(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.set_paused(false);
    }

    /// Takes a report of a shard or a group.
    #[signal(name = "shard_progress")]
    pub fn shard_progress(&mut self, ctx: &mut SyncWorkflowContext<Self>, report: RawValue) {
        self.children.take_report(&report, ctx.workflow_time());
    }

    #[query(name = "progress")]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Progress {
        self.progress_at(self.latest())
    }

    /// Returns the progress, and the children to query for newer numbers.
    #[query(name = "live")]
    pub fn live(&self, _ctx: &WorkflowContextView) -> Live {
        let progress = self.progress_at(self.latest());
        Live { progress, ended: self.ended(), running: self.children.live() }
    }
}

impl ProcessDocuments {
    /// The children of a batch, before their plan is known.
    fn children(id: &str, state: Option<&State>) -> Children {
        let Some(state) = state else { return Children::default() };
        Children {
            batch: id.to_owned(),
            shard: ShardInput {
                lane: state.job.lane.clone(),
                tenant: state.job.tenant.clone(),
                workflow: id.to_owned(),
                parent: id.to_owned(),
                ..ShardInput::default()
            },
            next: state.next_shard,
            groups_from: Some(OWN_SHARDS),
            next_group: state.next_group,
            totals: state.totals,
            paused: state.paused,
            began: state.started_at,
            ..Children::default()
        }
    }

    async fn plan(ctx: &WorkflowContext<Self>, job: Job) -> WorkflowResult<()> {
        let known = ctx.state(|batch| batch.state().and_then(|state| state.plan.clone()));
        let plan = match known {
            Some(plan) => plan,
            None => {
                let planned =
                    ctx.execute_activity(Activities::plan, job.clone(), policy::batch(None)).await;
                let plan = planned.map_err(termination)?;
                labels::set(ctx, &job, plan.labels);
                plan
            }
        };
        ctx.state_mut(|batch| {
            batch.extend_plan(plan);
            batch.open_window();
        });
        Ok(())
    }

    /// Plans the rest page by page while shards of the first pages run. A file of requests is
    /// planned to its end even if the batch is cancelled, because its results name each request.
    async fn plan_more(ctx: &WorkflowContext<Self>) {
        let to_the_end = ctx.state(|batch| batch.state().is_some_and(|it| it.job.lines.is_some()));
        let is_cancelled = || ctx.cancellation_token().is_cancelled();
        while let Some(plan) =
            ctx.state(|batch| batch.unfinished_plan(to_the_end && is_cancelled()))
        {
            let own_token = to_the_end.then(WorkflowCancellationToken::new);
            let planned =
                ctx.execute_activity(Activities::plan_more, plan, policy::batch(own_token)).await;
            match planned {
                Ok(plan) => {
                    ctx.state_mut(|batch| batch.extend_plan(plan));
                    if ctx.continue_as_new_suggested() {
                        ctx.change(|children: &mut Children| children.draining = true);
                    }
                }
                Err(_) if is_cancelled() => return,
                Err(error) => {
                    let message = failure::message(error.reason(), &error);
                    ctx.state_mut(|batch| batch.unplanned = Some(termination(error)));
                    ctx.change(|children: &mut Children| {
                        children.broken.get_or_insert(message);
                    });
                    return;
                }
            }
        }
    }

    /// The plan, if more of it follows in this run. While the run drains, no more follows unless
    /// `despite_draining` is set.
    fn unfinished_plan(&self, despite_draining: bool) -> Option<Plan> {
        let drains = self.children.draining && !despite_draining;
        let ends = drains || self.children.broken.is_some();
        let plan = self.state().and_then(|state| state.plan.as_ref());
        plan.filter(|plan| plan.more && !ends).cloned()
    }

    /// Takes over the plan so far. Children start while it grows.
    fn extend_plan(&mut self, plan: Plan) {
        self.children.take_plan(&plan);
        if let Ok(state) = &mut self.input {
            state.plan = Some(plan);
            self.children.most = state.window();
        }
    }

    /// Sets the window, which is small at first if the author states none, and the part of their
    /// windows that the first shards use: in a continued run, what the last shards used.
    fn open_window(&mut self) {
        let children = &mut self.children;
        children.window = children.most;
        let Ok(state) = &self.input else { return };
        let plan = state.plan.as_ref().filter(|plan| plan.provider_batching.is_none());
        if let Some((plan, open)) = plan.and_then(|plan| Some((plan, plan.open?)))
            && state.max_in_flight.is_none()
        {
            if plan.ready > 0 {
                children.limit_window(plan.ready);
            }
            children.limit_opening(open, plan.call_seconds);
        }
        if state.totals.ended() > 0 {
            children.shard.open = state.open;
            children.shard.call_seconds = 0;
        }
    }

    /// Decides whether the batch's workflow processes its only shard itself, which saves a
    /// workflow, its messages and some time. Returns whether it does.
    fn take_single_shard(&mut self) -> bool {
        let Ok(state) = &mut self.input else { return false };
        let begun = state.shard.take();
        let children = &mut self.children;
        if begun.is_none() && (!children.complete || children.planned != 1 || children.next > 0) {
            return false;
        }
        children.next = 1;
        let first = || ShardInput {
            documents: children.shard_documents(0),
            window: children.window.min(SHARD_WINDOW),
            ..children.shard.clone()
        };
        let input = begun.map_or_else(first, |input| *input);
        let paused = children.paused;
        self.shard = Shard { input: ShardInput { paused, ..input }, ..Shard::default() };
        true
    }

    /// Finishes the only shard, on which no more work starts. Returns whether it is over; otherwise
    /// the next run continues it.
    async fn end_single_shard(
        ctx: &WorkflowContext<Self>,
        worked: Result<(), ActivityExecutionError>,
    ) -> bool {
        let (is_over, worked) = shard::run::wind_up(ctx, worked).await;
        if !is_over {
            return false;
        }
        let sealed = shard::run::seal(ctx).await;
        if let Err(error) = worked.and(sealed) {
            let message = failure::message(error.reason(), &error);
            ctx.change(|children: &mut Children| {
                children.broken = Some(format!("shard 0: {message}"));
            });
        }
        true
    }

    /// The state for the next run.
    fn continued(&self) -> Option<State> {
        let (state, children) = (self.state()?, &self.children);
        let own = self.shard.input.documents > 0;
        Some(State {
            next_shard: if own { 0 } else { children.next },
            next_group: children.next_group,
            shard: own.then(|| Box::new(self.shard.input.clone())),
            totals: children.totals,
            paused: children.paused,
            open: children.shard.open,
            ..state.clone()
        })
    }

    /// Writes the report, even for a cancelled batch, so that its results can be used.
    async fn finish(ctx: &WorkflowContext<Self>, done: bool) -> WorkflowResult<Progress> {
        let now = ctx.workflow_time();
        let plan = ctx.state(|batch| batch.state().and_then(|state| state.plan.clone()));
        let Some(plan) = plan else { return Err(failed("Unknown", "there is no plan")) };
        let mut progress =
            Progress { done, eta: None, ..ctx.state(|batch| batch.progress_at(now)) };
        if !done {
            progress.totals.cancelled = progress.documents.saturating_sub(progress.totals.ended());
        }
        let finish = Finish { plan, output: progress.output.clone(), progress: progress.clone() };
        let finished = ctx
            .execute_activity(
                Activities::finish,
                finish,
                policy::batch(Some(WorkflowCancellationToken::new())),
            )
            .await
            .map_err(termination)?;
        progress.totals = finished.correct(progress.totals);
        progress.done = done && finished.missing == 0;
        ctx.state_mut(|batch| {
            batch.done = progress.done;
            batch.finished = Some(finished);
        });
        Ok(progress)
    }

    /// Starts the workflow that calls the batch's webhook, if there is one, and does not wait for
    /// it.
    async fn notify(
        ctx: &WorkflowContext<Self>,
        finished: &WorkflowResult<Progress>,
        cancelled: bool,
        broken: Option<String>,
    ) {
        let webhook = ctx.state(|batch| batch.state().and_then(|state| state.job.webhook.clone()));
        let Some(webhook) = webhook else { return };
        let now = ctx.workflow_time();
        let unreported = finished.is_err().then(|| "the report cannot be written".to_owned());
        let (status, why) = match broken.or(unreported).or_else(|| ctx.state(Self::missing)) {
            _ if cancelled => (Ended::Cancelled, None),
            Some(why) => (Ended::Failed, Some(why)),
            None => (Ended::Completed, None),
        };
        let progress = ctx.state(|batch| batch.progress_at(None));
        let notify = Notify {
            webhook,
            batch: ctx.workflow_id().to_owned(),
            run: ctx.run_id().to_owned(),
            status,
            why,
            finished_at: now.map(contract::rfc3339).unwrap_or_default(),
            progress: finished.as_ref().map_or(progress, Clone::clone),
        };
        let options = ChildWorkflowOptions::builder()
            .workflow_id(Notify::workflow_id(&notify.batch, &notify.run))
            .cancellation_token(WorkflowCancellationToken::new())
            .parent_close_policy(ParentClosePolicy::Abandon)
            .build();
        // That workflow's outcome does not affect the batch.
        let _ = ctx.start_child_workflow(ProcessWebhook::run, notify, options).await;
    }

    /// Describes the documents that a batch has lost although it has processed all of them.
    fn missing(&self) -> Option<String> {
        let finished = self.finished.as_ref().filter(|finished| finished.missing > 0)?;
        let (documents, output) = self.state().map(|state| {
            (state.plan.as_ref().map_or(0, |plan| plan.documents), state.job.output.as_str())
        })?;
        let more =
            if finished.missing > finished.first_missing.len() as u64 { ", …" } else { "" };
        Some(format!(
            "{} of {documents} documents have neither a result nor a failure in {output}: {}{more}; start the batch again: it asks for these alone",
            finished.missing,
            finished.first_missing.join(", ")
        ))
    }

    fn state(&self) -> Option<&State> {
        self.input.as_ref().ok()
    }

    fn set_paused(&mut self, paused: bool) {
        self.children.paused = paused;
        self.shard.input.paused = paused;
    }

    /// The time of the last report on documents; a query has no clock of its own.
    fn latest(&self) -> Option<SystemTime> {
        self.children.latest.max(self.shard.latest)
    }

    /// Totals of all documents except those of running shards.
    fn ended(&self) -> Totals {
        let mut totals = self.children.totals;
        totals += self.shard.input.totals;
        // These documents lie in no shard, and are done.
        let plan = self.state().and_then(|state| state.plan.as_ref());
        totals.skipped += plan.map_or(0, |plan| plan.settled);
        totals
    }

    fn progress_at(&self, now: Option<SystemTime>) -> Progress {
        let Some(state) = self.state() else { return Progress::default() };
        let mut totals = self.ended();
        totals += self.children.reported_totals();
        if let Some(finished) = &self.finished {
            totals = finished.correct(totals);
        }
        let (documents, renamed) =
            state.plan.as_ref().map_or((0, 0), |plan| (plan.documents, plan.renamed));
        // While paused, no end can be estimated; an ended batch has none ahead.
        let now = now.filter(|_| !self.children.paused && self.finished.is_none());
        let eta = state.started_at.zip(now).and_then(|(started, now)| {
            let left = documents.saturating_sub(totals.ended());
            contract::eta(started, now, totals.worked(), left)
        });
        Progress {
            documents,
            totals: totals.rounded(),
            started_at: state.started_at.map(contract::rfc3339),
            eta: eta.map(contract::rfc3339),
            output: state.job.output.clone(),
            done: self.done,
            paused: self.children.paused,
            renamed,
        }
    }
}
