//! The store in memory: the scripts are tested against it, and it is a worker's own share while
//! Redis is away.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::Tenant;

use crate::{
    conversions::{duration, float, micros, whole},
    dimension::Amounts,
    error::Error,
    kept_tasks::KeptTasks,
    mechanism::{CloseReason, Mechanism, Terms},
    model::ModelQuota,
    numbers::Numbers,
    plan::Units,
    policy::{self, Configured, Known, Outcome},
    snapshot::Snapshot,
    store::{Ask, Decision, Expectation, LimitChanges, Pause, Settled, Settlement},
    wire_read::PolicyTask,
};

pub(crate) use crate::mechanism::Spent;
#[doc(hidden)]
pub use crate::remembered::Remembered;

/// Quota in memory.
#[derive(Clone)]
pub struct Store {
    models: Arc<Mutex<HashMap<String, QuotaState>>>,
    clock: Clock,
    pause_ttl: Duration,
    numbers: Numbers,
    tasks: KeptTasks,
}

/// A quota's mechanism and its policy's knowledge.
struct QuotaState {
    mechanism: Mechanism,
    known: Known,
    configured: Option<Configured>,
    /// Time when it took over from Redis, and the amounts drawn then.
    began: Option<(f64, Units)>,
}

#[derive(Clone)]
enum Clock {
    Process(Instant),
    Test(Arc<AtomicU64>),
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl QuotaState {
    fn new(now: f64) -> Self {
        Self {
            mechanism: Mechanism::new(now),
            known: Known::default(),
            configured: None,
            began: None,
        }
    }

    /// Runs the policy. Returns false if another plan was written since the reading.
    fn run_policy(
        &mut self,
        reading: &crate::mechanism::log::Reading,
        configured: Configured,
        numbers: &Numbers,
    ) -> bool {
        let Outcome { known, plan, change } =
            policy::run(self.known, reading, &configured, numbers);
        let written = self.mechanism.write_plan(reading.version, reading.end, plan, &change);
        if written {
            (self.known, self.configured) = (known, Some(configured));
        }
        written
    }

    /// Runs the policy if its task is free.
    fn run_task(&mut self, tasks: &KeptTasks, configured: Configured, numbers: &Numbers) {
        let task = self
            .mechanism
            .hand_out_task(numbers)
            .map(|reading| PolicyTask { reading, known: self.known });
        if let Some(task) = task.and_then(|task| tasks.take_unless_kept(task)) {
            self.run_policy(&task.reading, configured, numbers);
        }
    }
}

impl Store {
    /// An empty store on the process's monotonic clock.
    pub fn new(pause_ttl: Duration) -> Self {
        Self::with_clock_source(Clock::Process(Instant::now()), pause_ttl)
    }

    /// An empty store whose time, in microseconds, the caller sets.
    pub fn with_clock(pause_ttl: Duration, clock: Arc<AtomicU64>) -> Self {
        Self::with_clock_source(Clock::Test(clock), pause_ttl)
    }

    fn with_clock_source(clock: Clock, pause_ttl: Duration) -> Self {
        Self {
            models: Arc::default(),
            clock,
            pause_ttl,
            numbers: Numbers::DEFAULT,
            tasks: KeptTasks::default(),
        }
    }

    /// Sets other numbers, for simulations.
    #[doc(hidden)]
    pub fn with_numbers(self, numbers: Numbers) -> Self {
        Self { numbers, ..self }
    }

    /// Sets, for tests, whether tasks of the policy are kept instead of run at once.
    #[doc(hidden)]
    pub fn keep_tasks(&self, keep: bool) {
        self.tasks.set_keep(keep);
    }

    /// Runs the kept tasks, or drops them if `forget`. Returns whether each plan was written.
    #[doc(hidden)]
    pub fn end_tasks(&self, model: &ModelQuota, forget: bool) -> Vec<bool> {
        let tasks = self.tasks.take_kept().into_iter().filter(|_| !forget);
        let configured = Configured::from_model(model);
        self.with_state(model, |state, terms| {
            tasks.map(|it| state.run_policy(&it.reading, configured, terms.numbers)).collect()
        })
    }

    /// [`crate::Store::reserve`], which neither waits nor fails in memory.
    pub fn reserve_now(&self, model: &ModelQuota, ask: &Ask) -> (Decision, Option<Expectation>) {
        let decision = self.decide(model, std::slice::from_ref(ask)).pop();
        // One ask has one answer.
        decision.unwrap_or((Decision::Granted, None))
    }

    fn decide(&self, model: &ModelQuota, asks: &[Ask]) -> Vec<(Decision, Option<Expectation>)> {
        self.with_state(model, |state, terms| {
            let known = |ask: &Ask| {
                let template = model.learns_as(ask.template);
                state.mechanism.expectation(template).filter(|_| ask.curious)
            };
            let known: Vec<_> = asks.iter().map(known).collect();
            state.mechanism.reserve_all(terms, asks).into_iter().zip(known).collect()
        })
    }

    /// Takes over from the known state of the whole quota. `share` is `1 / parts` of it.
    #[doc(hidden)]
    pub fn begin(&self, share: &ModelQuota, remembered: &Remembered, parts: u64) {
        let configured = Configured::from_model(share);
        let part = 1.0 / float(parts.max(1));
        self.with_state(share, |state, terms| {
            let now = state.mechanism.now();
            state.known = remembered.known.share(parts, &configured, terms.numbers, now);
            let levels = remembered.drawn.map(|drawn| drawn * part);
            let total = remembered.total.map(|total| total * part);
            let reading = state.mechanism.reading();
            state.run_policy(&reading, configured, terms.numbers);
            state.mechanism.begin_with(terms, &levels, &total);
            state.began = Some((state.mechanism.now(), levels));
        });
    }

    /// This store's knowledge of a quota.
    #[doc(hidden)]
    pub fn remembered(&self, model: &ModelQuota) -> Remembered {
        self.with_state(model, |state, _| {
            let (known, plan) = (state.known, state.mechanism.plan);
            let (drawn, total) = (state.mechanism.drawn(), state.mechanism.total());
            Remembered { known, plan, drawn, total }
        })
    }

    /// Amounts drawn here since this store took over from Redis. Redis knows the earlier ones and
    /// has refilled them since.
    #[doc(hidden)]
    pub fn drawn_alone(&self, share: &ModelQuota) -> Amounts {
        self.with_state(share, |state, _| {
            let (began, levels) = state.began.unwrap_or_default();
            let (plan, passed) = (state.mechanism.plan, state.mechanism.now() - began);
            let drawn = state.mechanism.drawn();
            Amounts::from_fn(|it| {
                let refilled = plan.limits[it].map_or(0.0, |limit| limit.rate.value * passed);
                whole((drawn[it] - (levels[it] - refilled).max(0.0)).max(0.0).ceil())
            })
        })
    }

    /// Amounts used here alone and still in the window.
    #[doc(hidden)]
    pub fn used_alone(&self, share: &ModelQuota) -> Amounts {
        let spent = self.spent(share);
        Amounts::from_fn(|it| spent.iter().map(|spent| spent.used[it]).sum())
    }

    /// Use that has not been reported to the fleet yet, by lane.
    pub(crate) fn spent(&self, model: &ModelQuota) -> Vec<Spent> {
        self.with_state(model, |state, _| state.mechanism.unreported())
    }

    /// Marks these calls as reported to the fleet.
    pub(crate) fn handed_over(&self, model: &ModelQuota, calls: &[String]) {
        self.with_state(model, |state, _| state.mechanism.handed_over(calls));
    }

    fn now(&self) -> f64 {
        match &self.clock {
            // Far from 0, like the server's clock: 0 stands for "never" and "no ticket".
            Clock::Process(start) => micros(start.elapsed()).floor() + 1e12,
            Clock::Test(micros) => float(micros.load(Ordering::SeqCst)),
        }
    }

    fn with_state<T>(
        &self,
        model: &ModelQuota,
        work: impl FnOnce(&mut QuotaState, &Terms<'_>) -> T,
    ) -> T {
        let (now, terms, configured) =
            (self.now(), Terms::from_model(model, &self.numbers), Configured::from_model(model));
        let mut models = self.models.lock();
        let state =
            models.entry(model.quota_name().into_owned()).or_insert_with(|| QuotaState::new(now));
        state.mechanism.advance(&terms, now);
        if state.configured != Some(configured) {
            let reading = state.mechanism.reading();
            state.run_policy(&reading, configured, &self.numbers);
        }
        work(state, &terms)
    }
}

impl crate::store::Store for Store {
    async fn reserve_all(
        &self,
        model: &ModelQuota,
        asks: &[Ask],
    ) -> Result<Vec<(Decision, Option<Expectation>)>, Error> {
        Ok(self.decide(model, asks))
    }

    async fn settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> Result<(Settled, Option<Expectation>, Duration), Error> {
        let longest = micros(settlement.longest_pause(self.pause_ttl));
        Ok(self.with_state(model, |state, terms| {
            let settled = state.mechanism.settle(model, terms, settlement, longest);
            state.run_task(&self.tasks, Configured::from_model(model), terms.numbers);
            let template = model.learns_as(settlement.template);
            let known = state.mechanism.expectation(template);
            (settled, known, duration(state.mechanism.room(terms.numbers)))
        }))
    }

    async fn charge(
        &self,
        model: &ModelQuota,
        name: &str,
        lane: usize,
        used: Amounts,
        drawn: Amounts,
    ) -> Result<(), Error> {
        self.with_state(model, |state, terms| {
            state.mechanism.charge(terms, name, lane, &used, &drawn);
            state.run_task(&self.tasks, Configured::from_model(model), terms.numbers);
        });
        Ok(())
    }

    async fn set_limits(&self, model: &ModelQuota, changes: &LimitChanges) -> Result<(), Error> {
        self.with_state(model, |state, terms| {
            state.known.set_limits(changes);
            let reading = state.mechanism.reading();
            state.run_policy(&reading, Configured::from_model(model), terms.numbers);
        });
        Ok(())
    }

    async fn renew(&self, model: &ModelQuota, reservation: &str) -> Result<(), Error> {
        self.with_state(model, |state, _| state.mechanism.renew(model.limits.lease(), reservation));
        Ok(())
    }

    async fn pause(&self, model: &ModelQuota, pause: &Pause) -> Result<Duration, Error> {
        let longest = micros(self.pause_ttl);
        Ok(self.with_state(model, |state, _| {
            duration(state.mechanism.close_gate(pause, longest, CloseReason::Pause))
        }))
    }

    async fn resume(&self, model: &ModelQuota) -> Result<(), Error> {
        self.with_state(model, |state, _| state.mechanism.open_gate());
        Ok(())
    }

    async fn leave(&self, model: &ModelQuota, lane: usize, tenant: &Tenant) -> Result<(), Error> {
        self.with_state(model, |state, _| state.mechanism.leave(lane, tenant));
        Ok(())
    }

    async fn give_up(&self, model: &ModelQuota, ask: &Ask) -> Result<(), Error> {
        self.with_state(model, |state, _| state.mechanism.give_up(ask));
        Ok(())
    }

    async fn inspect(&self, model: &ModelQuota) -> Result<Snapshot, Error> {
        Ok(self.with_state(model, |state, terms| {
            state.known.explain(state.mechanism.snapshot(terms), &state.mechanism.plan)
        }))
    }
}
