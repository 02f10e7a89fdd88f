//! `ProcessDocuments`: a batch: plan, shards, finish.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the macros drop doc comments on what they generate"
)]

use std::{collections::BTreeMap, time::SystemTime};

use serde::{Deserialize, Serialize};
use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ChildWorkflowOptions, ContinueAsNewOptions, ParentClosePolicy, SignalWorkflowOptions,
    SyncWorkflowContext, WorkflowCancellationToken, WorkflowContext, WorkflowContextView,
    WorkflowResult, WorkflowTermination, workflows,
};

use crate::{
    contract::{
        self, Activities, FailureType, Finish, Finished, Job, Plan, Progress, SHARDS_AT_ONCE,
        SLEEPING_SHARDS_AT_ONCE, ShardInput, ShardReport, Totals,
    },
    failure::{self, failed, termination},
    input::{self, Batch},
    payload, policy,
    process_shard::ProcessShard,
};

/// One batch of documents.
#[workflow]
pub struct ProcessDocuments {
    /// The checked input, or the sentence that says what is wrong with it.
    input: Result<State, String>,
    /// The shards that have been handed out and have not ended.
    running: BTreeMap<u32, Running>,
    /// Start no more shards in this run: its history is long enough, or one has failed.
    draining: bool,
    /// Why a shard, and so the batch, has failed.
    broken: Option<String>,
    /// Every lane of shards has ended.
    over: bool,
    /// The report is written, and nothing is missing from it.
    done: bool,
    /// What the report counts, once it is written.
    finished: Option<Finished>,
    /// When the batch last heard of its shards: a query has no clock of its own.
    latest: Option<SystemTime>,
}

/// A shard that has been handed out.
struct Running {
    /// What it last reported.
    totals: Totals,
    /// It exists. A signal that comes earlier finds no workflow and is lost.
    started: bool,
    /// The paused flag that it was started with, or sent since.
    sent_paused: bool,
}

/// What a continued run begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    job: Job,
    max_in_flight: u32,
    plan: Option<Plan>,
    next_shard: u32,
    #[serde(default)]
    totals: Totals,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    started_at: Option<SystemTime>,
}

impl State {
    fn new(batch: Batch) -> Self {
        let Batch { job, max_in_flight } = batch;
        Self {
            job,
            max_in_flight,
            plan: None,
            next_shard: 0,
            totals: Totals::default(),
            paused: false,
            started_at: None,
        }
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
            // Started by a user, or run again by a retry policy or a schedule, which pass the first
            // input on.
            None => input::parse(&input).map(State::new),
        };
        let input = input.map(|state: State| State {
            started_at: state.started_at.or_else(|| ctx.start_time()),
            ..state
        });
        Self {
            input,
            running: BTreeMap::new(),
            draining: false,
            broken: None,
            over: false,
            done: false,
            finished: None,
            latest: None,
        }
    }

    #[run(name = "ProcessDocuments")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Progress> {
        let job = match ctx.state(|batch| {
            batch.input.as_ref().map(|state| state.job.clone()).map_err(Clone::clone)
        }) {
            Ok(job) => job,
            Err(message) => return Err(failed(FailureType::InvalidInput.as_str(), &message)),
        };
        let plan = Self::plan(ctx, job).await?;
        let lanes = async {
            let lanes: Vec<_> = (0..ctx.state(|batch| batch.at_once(&plan)))
                .map(|place| Self::shards(ctx.clone(), &plan, place))
                .collect();
            workflows::join_all(lanes).await;
            ctx.state_mut(|batch| batch.over = true);
        };
        workflows::join!(lanes, Self::send_pause(ctx.clone()));

        let cancelled = ctx.cancellation_token().is_cancelled();
        let more =
            ctx.state(|batch| batch.state().is_some_and(|state| state.next_shard < plan.shards()));
        let broken = ctx.state(|batch| batch.broken.clone());
        if more && !cancelled && broken.is_none() {
            let state = ctx.state(|batch| batch.state().cloned());
            ctx.continue_as_new(payload::continue_with(&state)?, ContinueAsNewOptions::default())?;
        }
        let progress = Self::finish(ctx, plan, !cancelled && broken.is_none()).await?;
        match (broken, ctx.state(Self::missing)) {
            _ if cancelled => Err(WorkflowTermination::cancelled_with_details(progress)),
            (Some(message), _) => Err(failed("ShardFailed", &message)),
            (None, Some(message)) => Err(failed("DocumentsMissing", &message)),
            (None, None) => Ok(progress),
        }
    }

    /// Hand out no more documents. Those in flight go on. Takes whatever is sent along, such as a
    /// reason: a signal that does not decode would fail the workflow task for ever, as the
    /// input would.
    #[signal(name = "pause")]
    pub fn pause(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.set_paused(true);
    }

    /// Hand out documents again.
    #[signal(name = "resume")]
    pub fn resume(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _ignored: RawValue) {
        self.set_paused(false);
    }

    /// A shard tells how far it is. A report that comes after the shard's end is not counted.
    #[signal(name = "shard_progress")]
    pub fn shard_progress(&mut self, ctx: &mut SyncWorkflowContext<Self>, report: RawValue) {
        let Some(report) = payload::decode::<ShardReport>(&report) else { return };
        if let Some(running) = self.running.get_mut(&report.shard) {
            running.totals = report.totals;
        }
        self.latest = ctx.workflow_time();
    }

    #[query(name = "progress")]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Progress {
        self.progress_at(self.latest)
    }
}

impl ProcessDocuments {
    async fn plan(ctx: &WorkflowContext<Self>, job: Job) -> WorkflowResult<Plan> {
        if let Some(plan) = ctx.state(|batch| batch.state().and_then(|state| state.plan.clone())) {
            return Ok(plan);
        }
        let plan = ctx
            .execute_activity(Activities::plan, job, policy::batch(None))
            .await
            .map_err(termination)?;
        ctx.state_mut(|batch| {
            if let Ok(state) = &mut batch.input {
                state.plan = Some(plan.clone());
            }
        });
        Ok(plan)
    }

    /// One lane of shards: starts one, waits for its end, starts the next.
    async fn shards(ctx: WorkflowContext<Self>, plan: &Plan, place: u32) {
        loop {
            if ctx.continue_as_new_suggested() {
                ctx.state_mut(|batch| batch.draining = true);
            }
            if ctx.cancellation_token().is_cancelled() {
                return;
            }
            let Some(input) = ctx.state_mut(|batch| batch.take(plan, place, ctx.workflow_id()))
            else {
                return;
            };
            let shard = input.shard;
            let ended = Self::shard(&ctx, input).await;
            ctx.state_mut(|batch| batch.record(shard, ended));
        }
    }

    /// The shard's totals, or why there are none.
    async fn shard(ctx: &WorkflowContext<Self>, input: ShardInput) -> Result<Totals, String> {
        let shard = input.shard;
        let options = ChildWorkflowOptions::builder()
            .workflow_id(shard_id(ctx.workflow_id(), shard))
            .parent_close_policy(ParentClosePolicy::Terminate)
            .build();
        let started = ctx
            .start_child_workflow(ProcessShard::run, input, options)
            .await
            .map_err(|error| error.to_string())?;
        ctx.state_mut(|batch| {
            if let Some(running) = batch.running.get_mut(&shard) {
                running.started = true;
            }
        });
        started.result().await.map_err(|error| {
            error.reason().map_or_else(|| error.to_string(), failure::root_message)
        })
    }

    /// Never more shards than documents may be in flight: each hands out one at least.
    fn at_once(&self, plan: &Plan) -> u32 {
        let in_flight = self.state().map_or(1, |state| state.max_in_flight);
        let most =
            if plan.provider_batching.is_some() { SLEEPING_SHARDS_AT_ONCE } else { SHARDS_AT_ONCE };
        most.min(plan.shards()).min(in_flight).max(1)
    }

    /// The next shard for this lane of shards, with its part of the window: over all lanes they add
    /// up to it.
    fn take(&mut self, plan: &Plan, place: u32, parent: &str) -> Option<ShardInput> {
        if self.draining || self.broken.is_some() {
            return None;
        }
        let at_once = self.at_once(plan);
        let Ok(state) = &mut self.input else { return None };
        let window = (state.max_in_flight / at_once
            + u32::from(place < state.max_in_flight % at_once))
        .max(1);
        if state.next_shard >= plan.shards() {
            return None;
        }
        let shard = state.next_shard;
        state.next_shard += 1;
        self.running.insert(
            shard,
            Running { totals: Totals::default(), started: false, sent_paused: state.paused },
        );
        Some(ShardInput {
            job: plan.job.clone(),
            shard,
            documents: plan.shard_documents(shard),
            window,
            lane: state.job.lane.clone(),
            tenant: state.job.tenant.clone(),
            parent: parent.to_owned(),
            paused: state.paused,
            provider_batching: plan.provider_batching,
            pack: plan.pack,
            ..ShardInput::default()
        })
    }

    /// A shard that was cancelled with the batch has reported its last numbers; any other end
    /// without a result breaks the batch.
    fn record(&mut self, shard: u32, ended: Result<Totals, String>) {
        let reported =
            self.running.remove(&shard).map(|running| running.totals).unwrap_or_default();
        let totals = match ended {
            Ok(totals) => totals,
            Err(message) => {
                self.broken.get_or_insert_with(|| format!("shard {shard}: {message}"));
                reported
            }
        };
        if let Ok(state) = &mut self.input {
            state.totals += Totals { in_flight: 0, ..totals };
        }
    }

    /// Signals a pause and its end to running shards; those that start later begin with it.
    async fn send_pause(ctx: WorkflowContext<Self>) {
        loop {
            if ctx.wait_condition(|batch| batch.over || batch.unsent().is_some()).await.is_err()
                || ctx.state(|batch| batch.over)
            {
                return;
            }
            let Some((shard, paused)) = ctx.state_mut(Self::next_signal) else { continue };
            let child = ctx.external_workflow(shard_id(ctx.workflow_id(), shard), None);
            let options = SignalWorkflowOptions::default();
            // A shard that has ended meanwhile needs no signal.
            let _ = if paused {
                child.signal(ProcessShard::pause, RawValue::default(), options).await
            } else {
                child.signal(ProcessShard::resume, RawValue::default(), options).await
            };
        }
    }

    /// A shard that can be sent the paused flag, and has not been.
    fn unsent(&self) -> Option<u32> {
        let paused = self.paused();
        self.running
            .iter()
            .find(|(_, running)| running.started && running.sent_paused != paused)
            .map(|(shard, _)| *shard)
    }

    /// The shard that is signalled next, and the paused flag that it is sent.
    fn next_signal(&mut self) -> Option<(u32, bool)> {
        let (shard, paused) = (self.unsent()?, self.paused());
        self.running.get_mut(&shard)?.sent_paused = paused;
        Some((shard, paused))
    }

    /// Writes the report; also for a batch that was cancelled, so that what was done can be used.
    async fn finish(
        ctx: &WorkflowContext<Self>,
        plan: Plan,
        done: bool,
    ) -> WorkflowResult<Progress> {
        let now = ctx.workflow_time();
        let mut progress =
            Progress { done, eta: None, ..ctx.state(|batch| batch.progress_at(now)) };
        if !done {
            progress.totals.cancelled = progress.documents.saturating_sub(progress.totals.ended());
        }
        let finish = Finish {
            plan,
            output: progress.output.clone(),
            progress: progress.clone(),
            counts: true,
        };
        let finished = ctx
            .execute_activity(
                Activities::finish,
                finish,
                policy::batch(Some(WorkflowCancellationToken::new())),
            )
            .await
            .map_err(termination)?;
        // A worker of an earlier version counts nothing.
        if let Some(finished) = &finished {
            progress.totals = finished.correct(progress.totals);
            progress.done = done && finished.missing == 0;
        }
        ctx.state_mut(|batch| {
            batch.done = progress.done;
            batch.finished = finished;
        });
        Ok(progress)
    }

    /// Which documents a batch that has worked on all of them has lost.
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

    fn paused(&self) -> bool {
        self.state().is_some_and(|state| state.paused)
    }

    fn set_paused(&mut self, paused: bool) {
        if let Ok(state) = &mut self.input {
            state.paused = paused;
        }
    }

    fn progress_at(&self, now: Option<SystemTime>) -> Progress {
        let Some(state) = self.state() else { return Progress::default() };
        let mut totals = state.totals;
        for running in self.running.values() {
            totals += running.totals;
        }
        // In no shard, and done.
        totals.skipped += state.plan.as_ref().map_or(0, |plan| plan.settled);
        if let Some(finished) = &self.finished {
            totals = finished.correct(totals);
        }
        let (documents, renamed) =
            state.plan.as_ref().map_or((0, 0), |plan| (plan.documents, plan.renamed));
        let eta = state.started_at.zip(now).and_then(|(started, now)| {
            let left = documents.saturating_sub(totals.ended());
            contract::eta(started, now, totals.worked(), left)
        });
        Progress {
            documents,
            totals,
            started_at: state.started_at.map(contract::rfc3339),
            eta: eta.map(contract::rfc3339),
            output: state.job.output.clone(),
            done: self.done,
            paused: state.paused,
            renamed,
        }
    }
}

/// The workflow id of a shard.
fn shard_id(batch: &str, shard: u32) -> String {
    format!("{batch}/shard-{shard:05}")
}
