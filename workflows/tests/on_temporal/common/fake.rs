//! Scripted activities: a function decides what each document does, and every call is recorded.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::value::RawValue;
use temporalio_macros::activities;
use temporalio_sdk::{
    ApplicationFailure,
    activities::{ActivityContext, ActivityError},
};
use tidegate_types::Spend;
use tidegate_workflows::contract::{
    BatchState, CallCounts, CallOutcome, CollectedBatch, CutAnswers, DocumentOutcome, DocumentTask,
    FailureDetails, FailureType, Finish, Finished, Job, Labels, MarkPaused, Notify, OpenBatches,
    PackOutcome, PackTask, PartTask, Parts, Plan, ProviderBatch, ProviderBatching, SHARD_WINDOW,
    SealShard, Step, SubmitBatch, SubmittedBatch, Totals, markers,
};
use tokio::sync::{Semaphore, watch};

use super::PATIENCE;

/// The message of a plan that refuses the input.
pub const NOTHING_FOUND: &str = "there are no documents under file:///data/in/";

/// What a document's activity does.
pub enum Act {
    /// Answers at once.
    Succeed(DocumentOutcome),
    /// Fails for good with this type, after these calls.
    Fail(FailureType, CallCounts),
    /// Fails for good with this type and these details.
    FailWith(FailureType, FailureDetails),
    /// Takes one pass through the gate, then answers. Stops if cancelled.
    Wait(Gate),
    /// Takes one pass through the gate, then gives this answer. Stops if cancelled.
    WaitFor(Gate, DocumentOutcome),
    /// Works until the batch is cancelled, then fails after one call: for good, or with a retry.
    FailLate { for_good: bool },
    /// Comes back in an hour, without a call.
    Defer,
}

/// Holds documents back until it is opened.
#[derive(Clone)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// Lets this many documents through.
    pub fn pass(&self, documents: usize) {
        self.0.add_permits(documents);
    }

    /// Lets all documents through from now on.
    pub fn open(&self) {
        self.0.close();
    }
}

/// The recorded calls of the activities.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// Pages of the plan after the first.
    pub pages: Vec<u32>,
    pub plans: Vec<Job>,
    /// Attempts that began: shard and index.
    pub started: Vec<(u32, u32)>,
    /// Of these, the indices that begin with more room.
    pub raised: Vec<u32>,
    /// Of these, the indices that were asked before, with others.
    pub asked: Vec<u32>,
    /// Attempts that ended, in any way.
    pub ended: Vec<(u32, u32)>,
    /// Most attempts under way at once.
    pub most_at_once: usize,
    /// Steps of documents that are read in parts.
    pub parts: Vec<Step>,
    pub packs: Vec<PackTask>,
    pub submitted: Vec<SubmitBatch>,
    pub checked: Vec<ProviderBatch>,
    pub cancelled: Vec<ProviderBatch>,
    pub collected: Vec<ProviderBatch>,
    pub seals: Vec<SealShard>,
    pub marks: Vec<bool>,
    pub finishes: Vec<Finish>,
    pub notified: Vec<Notify>,
}

/// The state of a provider batch at its nth check, counted from 1.
type Provider = dyn Fn(&ProviderBatch, usize) -> BatchState + Send + Sync;

type Script = dyn Fn(&DocumentTask) -> Act + Send + Sync;

type PartScript = dyn Fn(&PartTask) -> Act + Send + Sync;

/// The activities. Clones share the recorded calls.
#[derive(Clone)]
pub struct Fake {
    plan: Option<Plan>,
    plan_gate: Option<Gate>,
    /// Further pages of the plan, and the gate at which they wait; `None` is a page that fails.
    pages: Vec<Option<u64>>,
    page_gate: Gate,
    cannot_seal: Option<u32>,
    cannot_submit: Option<u32>,
    never_sure: bool,
    submission_gate: Option<Gate>,
    flag_gate: Option<Gate>,
    clear_gate: Option<Gate>,
    finished: Option<Finished>,
    script: Arc<Script>,
    part_script: Arc<PartScript>,
    provider: Arc<Provider>,
    calls: Arc<watch::Sender<Calls>>,
}

/// Counts of a document that fails at its first call.
pub fn one_call() -> CallCounts {
    CallCounts { provider_calls: 1, ..CallCounts::default() }
}

/// The outcome of a document that succeeds.
pub fn outcome() -> DocumentOutcome {
    DocumentOutcome {
        spend: Spend {
            provider_calls: 1,
            input_tokens: 100,
            output_tokens: 10,
            cost_usd: 0.25,
            ..Spend::default()
        },
        ..DocumentOutcome::default()
    }
}

impl Fake {
    /// Plans a window of its own, of which `open` places are used at first.
    pub fn opening(mut self, in_flight: u32, open: u32) -> Self {
        self.plan = self.plan.map(|plan| Plan { in_flight, open: Some(open), ..plan });
        self
    }

    /// Plans with an expected call time of `call_seconds`.
    pub fn expecting(mut self, call_seconds: u32) -> Self {
        self.plan = self.plan.map(|plan| Plan { call_seconds, ..plan });
        self
    }

    pub fn new(
        documents: u64,
        shard_size: u32,
        script: impl Fn(&DocumentTask) -> Act + Send + Sync + 'static,
    ) -> Self {
        let plan = Plan {
            job: "file:///data/out/.tidegate/job-1/".to_owned(),
            documents,
            shard_size,
            in_flight: SHARD_WINDOW,
            ..Plan::default()
        };
        Self {
            plan: Some(plan),
            plan_gate: None,
            pages: Vec::new(),
            page_gate: Gate::default(),
            cannot_seal: None,
            cannot_submit: None,
            never_sure: false,
            submission_gate: None,
            flag_gate: None,
            clear_gate: None,
            finished: None,
            script: Arc::new(script),
            part_script: Arc::new(|task| {
                let joins = task.step == Step::Join;
                Act::Succeed(if joins { DocumentOutcome::default() } else { outcome() })
            }),
            provider: Arc::new(|_, _| BatchState::Ended),
            calls: Arc::default(),
        }
    }

    /// Uses a provider's batch API with these states, except for the tenant `direct`. A provider
    /// batch holds ten documents and answers the even ones; answers to indices that end in 7 are
    /// cut, and to those in 9 broken.
    pub fn in_provider_batches(
        mut self,
        batching: ProviderBatching,
        provider: impl Fn(&ProviderBatch, usize) -> BatchState + Send + Sync + 'static,
    ) -> Self {
        self.plan = self.plan.map(|plan| Plan { provider_batching: Some(batching), ..plan });
        Self { provider: Arc::new(provider), ..self }
    }

    /// Plans with these labels.
    pub fn labelled(mut self, labels: Labels) -> Self {
        self.plan = self.plan.map(|plan| Plan { labels: Some(labels), ..plan });
        self
    }

    /// Puts `pack` documents into a call; indices that end in 3 are left out of its answer.
    pub fn packed(mut self, pack: u32) -> Self {
        self.plan = self.plan.map(|plan| Plan { pack, ..plan });
        self
    }

    /// All documents succeed at once.
    pub fn willing(documents: u64, shard_size: u32) -> Self {
        Self::new(documents, shard_size, |_| Act::Succeed(outcome()))
    }

    /// All documents are read in parts.
    pub fn long(documents: u64, shard_size: u32, parts: Parts) -> Self {
        Self::new(documents, shard_size, move |_| {
            Act::Succeed(DocumentOutcome { parts: Some(parts), ..DocumentOutcome::default() })
        })
    }

    /// Sets what the steps of documents in parts do.
    pub fn with_steps(self, script: impl Fn(&PartTask) -> Act + Send + Sync + 'static) -> Self {
        Self { part_script: Arc::new(script), ..self }
    }

    /// All documents wait at this gate.
    pub fn waiting(documents: u64, shard_size: u32, gate: &Gate) -> Self {
        let gate = gate.clone();
        Self::new(documents, shard_size, move |_| Act::Wait(gate.clone()))
    }

    /// Writes the paused flag only when the gate lets it through; clears it at once.
    pub fn with_a_flag_that_waits(self, gate: &Gate) -> Self {
        Self { flag_gate: Some(gate.clone()), ..self }
    }

    /// Clears the paused flag only when the gate lets it through; writes it at once.
    pub fn with_a_flag_that_is_cleared_at(self, gate: &Gate) -> Self {
        Self { clear_gate: Some(gate.clone()), ..self }
    }

    /// Adds pages of the plan, with their documents, which wait at this gate; `None` is a page that
    /// fails.
    pub fn in_pages(self, pages: &[Option<u64>], gate: &Gate) -> Self {
        Self { pages: pages.to_vec(), page_gate: gate.clone(), ..self }
    }

    /// The plan refuses the input.
    pub fn without_plan() -> Self {
        Self { plan: None, ..Self::willing(0, 1) }
    }

    /// The plan waits at this gate.
    pub fn planning_at(self, gate: &Gate) -> Self {
        Self { plan_gate: Some(gate.clone()), ..self }
    }

    /// This shard cannot be sealed.
    pub fn without_seal_of(self, shard: u32) -> Self {
        Self { cannot_seal: Some(shard), ..self }
    }

    /// The provider takes no documents from this one on.
    pub fn without_batches_from(self, document: u32) -> Self {
        Self { cannot_submit: Some(document), ..self }
    }

    /// Submissions reach the provider but get no reply.
    pub fn never_sure(self) -> Self {
        Self { never_sure: true, ..self }
    }

    /// Submissions wait at this gate.
    pub fn submitting_at(self, gate: &Gate) -> Self {
        Self { submission_gate: Some(gate.clone()), ..self }
    }

    /// Sets the counts that the finish finds in the output.
    pub fn that_finds(self, finished: Finished) -> Self {
        Self { finished: Some(finished), ..self }
    }

    /// Whether the batch has one shard.
    pub fn is_small(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.shards() == 1)
    }

    pub fn calls(&self) -> Calls {
        self.calls.borrow().clone()
    }

    /// Waits until the recorded calls satisfy `holds`.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Calls) -> bool) -> Calls {
        let mut calls = self.calls.subscribe();
        let reached = tokio::time::timeout(PATIENCE, calls.wait_for(|calls| holds(calls))).await;
        match reached {
            Ok(calls) => calls.unwrap().clone(),
            Err(_) => panic!("never: {what}; {:?}", self.calls()),
        }
    }

    fn note(&self, note: impl FnOnce(&mut Calls)) {
        self.calls.send_modify(note);
    }
}

#[activities]
impl Fake {
    #[activity(definition = markers::Plan)]
    async fn plan(self: Arc<Self>, ctx: ActivityContext, job: Job) -> Result<Plan, ActivityError> {
        let direct = job.tenant.as_str() == "direct";
        self.note(|calls| calls.plans.push(job));
        if let Some(gate) = &self.plan_gate {
            wait(&ctx, gate).await?;
        }
        let batching = |plan: &Plan| plan.provider_batching.filter(|_| !direct);
        let more = !self.pages.is_empty();
        self.plan
            .clone()
            .map(|plan| Plan { provider_batching: batching(&plan), pages: 1, more, ..plan })
            .ok_or_else(|| failure(FailureType::InvalidInput, NOTHING_FOUND, CallCounts::default()))
    }

    #[activity(definition = markers::PlanMore)]
    async fn plan_more(
        self: Arc<Self>,
        ctx: ActivityContext,
        plan: Plan,
    ) -> Result<Plan, ActivityError> {
        wait(&ctx, &self.page_gate).await?;
        let page = usize::try_from(plan.pages).unwrap();
        self.note(|calls| calls.pages.push(plan.pages));
        match self.pages[page - 1] {
            Some(documents) => Ok(Plan {
                documents: plan.documents + documents,
                pages: plan.pages + 1,
                more: page < self.pages.len(),
                ..plan
            }),
            None => Err(failure(FailureType::InvalidInput, NOTHING_FOUND, CallCounts::default())),
        }
    }

    #[activity(definition = markers::ProcessDocument)]
    async fn process_document(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: DocumentTask,
    ) -> Result<DocumentOutcome, ActivityError> {
        let place = (task.shard, task.index);
        // First, because a test that sees the start may change what the script answers.
        let answer = (self.script)(&task);
        self.note(|calls| {
            calls.started.push(place);
            calls.raised.extend(task.raised.then_some(task.index));
            calls.asked.extend(task.asked.then_some(task.index));
            calls.most_at_once = calls.most_at_once.max(calls.started.len() - calls.ended.len());
        });
        let name = format!("document {} of shard {}", task.index, task.shard);
        let result = act(&ctx, answer, &name).await;
        self.note(|calls| calls.ended.push(place));
        result
    }

    #[activity(definition = markers::ProcessPart)]
    async fn process_part(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: PartTask,
    ) -> Result<DocumentOutcome, ActivityError> {
        self.note(|calls| calls.parts.push(task.step));
        let name = format!("{:?} of document {}", task.step, task.document.index);
        act(&ctx, (self.part_script)(&task), &name).await
    }

    #[activity(definition = markers::ProcessPack)]
    async fn process_pack(
        self: Arc<Self>,
        _ctx: ActivityContext,
        task: PackTask,
    ) -> Result<PackOutcome, ActivityError> {
        self.note(|calls| calls.packs.push(task.clone()));
        if task.from == 0 {
            return Err(failure(FailureType::InvalidInput, "these do not go together", one_call()));
        }
        let (left, answered): (Vec<u32>, Vec<u32>) =
            (task.from..task.to).partition(|index| index % 10 == 3);
        Ok(PackOutcome {
            succeeded: u32::try_from(answered.len()).unwrap(),
            skipped: 0,
            asked: left.clone(),
            left,
            spent: outcome().spend,
            ..PackOutcome::default()
        })
    }

    #[activity(definition = markers::SubmitBatch)]
    async fn submit_batch(
        self: Arc<Self>,
        ctx: ActivityContext,
        task: SubmitBatch,
    ) -> Result<SubmittedBatch, ActivityError> {
        let next = (task.from + 10).min(task.to);
        if let Some(failing) = self.cannot_submit
            && task.from >= failing
        {
            return Err(failure(
                FailureType::InvalidInput,
                "there is no batch API",
                CallCounts::default(),
            ));
        }
        let (batch, requests) =
            (Some(format!("batch-{}-{}", task.from, task.round)), next - task.from);
        let unsure = self.never_sure && !task.only_find;
        self.note(|calls| calls.submitted.push(task.clone()));
        if let Some(gate) = &self.submission_gate {
            wait(&ctx, gate).await?;
        }
        if unsure {
            return Ok(SubmittedBatch {
                batch: None,
                requests: 0,
                next: task.from,
                later: true,
                unsure,
            });
        }
        Ok(SubmittedBatch { batch, requests, next, later: false, unsure: false })
    }

    #[activity(definition = markers::CheckBatches)]
    async fn check_batches(
        self: Arc<Self>,
        _ctx: ActivityContext,
        open: OpenBatches,
    ) -> Result<Vec<BatchState>, ActivityError> {
        self.note(|calls| calls.checked.extend(open.batches.clone()));
        let times = |batch: &ProviderBatch| {
            self.calls().checked.iter().filter(|checked| checked.batch == batch.batch).count()
        };
        Ok(open.batches.iter().map(|batch| (self.provider)(batch, times(batch))).collect())
    }

    #[activity(definition = markers::CancelBatch)]
    async fn cancel_batch(
        self: Arc<Self>,
        _ctx: ActivityContext,
        batch: ProviderBatch,
    ) -> Result<(), ActivityError> {
        self.note(|calls| calls.cancelled.push(batch));
        Ok(())
    }

    #[activity(definition = markers::CollectBatch)]
    async fn collect_batch(
        self: Arc<Self>,
        _ctx: ActivityContext,
        batch: ProviderBatch,
    ) -> Result<CollectedBatch, ActivityError> {
        let (done, others): (Vec<u32>, Vec<u32>) =
            (batch.submitted.from..batch.submitted.to).partition(|index| index % 2 == 0);
        let asked = others.iter().copied().filter(|index| index % 10 > 5).collect();
        let raise: Vec<u32> = others.into_iter().filter(|index| index % 10 == 7).collect();
        self.note(|calls| calls.collected.push(batch));
        let mut spent = Spend::default();
        done.iter().for_each(|_| spent += outcome().spend);
        let (batch, cuts) = (
            CollectedBatch::default(),
            CutAnswers { raised: raise.len() as u64, ..CutAnswers::default() },
        );
        Ok(CollectedBatch { done, raise, asked, spent, cuts, ..batch })
    }

    #[activity(definition = markers::MarkPaused)]
    async fn mark_paused(
        self: Arc<Self>,
        ctx: ActivityContext,
        mark: MarkPaused,
    ) -> Result<(), ActivityError> {
        self.note(|calls| calls.marks.push(mark.paused));
        let gate = if mark.paused { &self.flag_gate } else { &self.clear_gate };
        match gate {
            Some(gate) => wait(&ctx, gate).await,
            None => Ok(()),
        }
    }

    #[activity(definition = markers::SealShard)]
    async fn seal_shard(
        self: Arc<Self>,
        _ctx: ActivityContext,
        shard: SealShard,
    ) -> Result<(), ActivityError> {
        if self.cannot_seal == Some(shard.shard) {
            return Err(failure(
                FailureType::Unauthorized,
                "the store refused the credentials",
                CallCounts::default(),
            ));
        }
        self.note(|calls| calls.seals.push(shard));
        Ok(())
    }

    #[activity(definition = markers::Finish)]
    async fn finish(
        self: Arc<Self>,
        _ctx: ActivityContext,
        finish: Finish,
    ) -> Result<Finished, ActivityError> {
        let Totals { succeeded, failed, skipped, cancelled, .. } = finish.progress.totals;
        let told = Finished { succeeded, failed, skipped, cancelled, ..Finished::default() };
        self.note(|calls| calls.finishes.push(finish));
        Ok(self.finished.clone().unwrap_or(told))
    }

    #[activity(definition = markers::Notify)]
    async fn notify(
        self: Arc<Self>,
        _ctx: ActivityContext,
        notify: Notify,
    ) -> Result<(), ActivityError> {
        self.note(|calls| calls.notified.push(notify));
        Ok(())
    }

    #[activity(definition = markers::Call)]
    async fn call(
        self: Arc<Self>,
        _ctx: ActivityContext,
        _input: Box<RawValue>,
    ) -> Result<CallOutcome, ActivityError> {
        Ok(CallOutcome {
            answer: Some("Hello.".to_owned()),
            value: None,
            reply: None,
            answer_uri: None,
            finish: "complete".to_owned(),
            model: "openai:gpt-4.1-mini".parse().map_err(ApplicationFailure::non_retryable)?,
            input_tokens: 8,
            cached_input_tokens: 0,
            output_tokens: 2,
            usage_unknown: false,
            cost_usd: None,
            provider_calls: 1,
        })
    }
}

/// Runs the act of a document, or of one of its steps.
async fn act(
    ctx: &ActivityContext,
    act: Act,
    name: &str,
) -> Result<DocumentOutcome, ActivityError> {
    match act {
        Act::Succeed(outcome) => Ok(outcome),
        Act::Fail(kind, effort) => Err(failure(kind, name, effort)),
        Act::FailWith(kind, details) => Err(failure(kind, name, details)),
        Act::Wait(gate) => wait(ctx, &gate).await.map(|()| outcome()),
        Act::WaitFor(gate, outcome) => wait(ctx, &gate).await.map(|()| outcome),
        Act::FailLate { for_good } => {
            let _ = wait(ctx, &Gate::default()).await;
            let kind = if for_good { FailureType::InvalidRequest } else { FailureType::Transient };
            let failure = ApplicationFailure::builder("it comes late")
                .type_name(kind.as_str().to_owned())
                .non_retryable(for_good)
                .details(one_call());
            Err(failure.build().into())
        }
        Act::Defer => Err(ApplicationFailure::builder("no quota")
            .type_name(FailureType::QuotaWait.as_str().to_owned())
            .next_retry_delay(Duration::from_secs(3_600))
            .build()
            .into()),
    }
}

fn failure(
    kind: FailureType,
    message: &str,
    details: impl Serialize + Send + Sync + 'static,
) -> ActivityError {
    ApplicationFailure::builder(message)
        .type_name(kind.as_str().to_owned())
        .non_retryable(true)
        .details(details)
        .build()
        .into()
}

/// Interval of heartbeats, which bring the cancellation. More frequent ones would overload the
/// server on a slow machine.
pub(super) const BEAT: Duration = Duration::from_millis(500);

/// Waits at a gate, with heartbeats.
async fn wait(ctx: &ActivityContext, gate: &Gate) -> Result<(), ActivityError> {
    let mut beat = tokio::time::interval(BEAT);
    // The documents pass in the order of their arrival.
    let mut pass = std::pin::pin!(gate.0.acquire());
    loop {
        tokio::select! {
            pass = &mut pass => {
                if let Ok(pass) = pass {
                    pass.forget();
                }
                return Ok(());
            }
            () = ctx.cancelled() => return Err(ActivityError::cancelled()),
            _ = beat.tick() => ctx.record_heartbeat(()).await.unwrap(),
        }
    }
}
