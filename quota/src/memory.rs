//! A store in this process: the model that the scripts are tested against, and the worker's own
//! share while Redis is away.

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
    dimension::Amounts,
    error::Error,
    mechanism::{Closed, Mechanism, Terms},
    model::ModelQuota,
    number::{duration, float, micros, whole},
    numbers::Numbers,
    plan::Units,
    policy::{self, Configured, Known, Outcome},
    snapshot::Snapshot,
    store::{Ask, Decision, Expectation, LimitChanges, Pause, Settled, Settlement},
    tasks::Tasks,
    wire_read::Read,
};

pub(crate) use crate::mechanism::Spent;
#[doc(hidden)]
pub use crate::remembered::Remembered;

/// Quota in memory.
#[derive(Clone)]
pub struct Store {
    models: Arc<Mutex<HashMap<String, Kept>>>,
    clock: Clock,
    pause_ttl: Duration,
    numbers: Numbers,
    tasks: Tasks,
}

/// A quota, and what is known of its provider.
struct Kept {
    mechanism: Mechanism,
    known: Known,
    configured: Option<Configured>,
    /// When it went on from a quota in Redis, and what was drawn then.
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

impl Kept {
    fn new(now: f64) -> Self {
        Self {
            mechanism: Mechanism::new(now),
            known: Known::default(),
            configured: None,
            began: None,
        }
    }

    /// Runs the policy: false where another plan was written since the reading.
    fn plan(
        &mut self,
        reading: &crate::mechanism::log::Reading,
        configured: Configured,
        numbers: &Numbers,
    ) -> bool {
        let Outcome { known, plan, change } =
            policy::run(self.known, reading, &configured, numbers);
        let written = self.mechanism.write(reading.version, reading.end, plan, &change);
        if written {
            (self.known, self.configured) = (known, Some(configured));
        }
        written
    }

    /// Does the policy's task, where it is free.
    fn work(&mut self, tasks: &Tasks, configured: Configured, numbers: &Numbers) {
        let task = self.mechanism.hand(numbers).map(|reading| Read { reading, known: self.known });
        if let Some(task) = task.and_then(|task| tasks.now(task)) {
            self.plan(&task.reading, configured, numbers);
        }
    }
}

impl Store {
    /// An empty store on the process's monotonic clock.
    pub fn new(pause_ttl: Duration) -> Self {
        Self::on(Clock::Process(Instant::now()), pause_ttl)
    }

    /// An empty store whose time, in microseconds, the caller sets.
    pub fn with_clock(pause_ttl: Duration, clock: Arc<AtomicU64>) -> Self {
        Self::on(Clock::Test(clock), pause_ttl)
    }

    fn on(clock: Clock, pause_ttl: Duration) -> Self {
        Self {
            models: Arc::default(),
            clock,
            pause_ttl,
            numbers: Numbers::DEFAULT,
            tasks: Tasks::default(),
        }
    }

    /// With other numbers: for simulations.
    #[doc(hidden)]
    pub fn with_numbers(self, numbers: Numbers) -> Self {
        Self { numbers, ..self }
    }

    /// For tests: whether tasks of the policy are kept, and not done at once.
    #[doc(hidden)]
    pub fn keep_tasks(&self, keep: bool) {
        self.tasks.keep(keep);
    }

    /// Does the tasks that were kept, or forgets them: whether each plan was written.
    #[doc(hidden)]
    pub fn end_tasks(&self, model: &ModelQuota, forget: bool) -> Vec<bool> {
        let tasks = self.tasks.take().into_iter().filter(|_| !forget);
        let configured = Configured::of(model);
        self.with(model, |kept, terms| {
            tasks.map(|it| kept.plan(&it.reading, configured, terms.numbers)).collect()
        })
    }

    /// [`crate::Store::reserve`], which in memory neither waits nor fails.
    pub fn reserve_now(&self, model: &ModelQuota, ask: &Ask) -> (Decision, Option<Expectation>) {
        let decision = self.decide(model, std::slice::from_ref(ask)).pop();
        // One ask has one answer.
        decision.unwrap_or((Decision::Granted, None))
    }

    fn decide(&self, model: &ModelQuota, asks: &[Ask]) -> Vec<(Decision, Option<Expectation>)> {
        self.with(model, |kept, terms| {
            let known = |ask: &Ask| {
                let template = model.learns_as(ask.template);
                kept.mechanism.expectation(template).filter(|_| ask.curious)
            };
            let known: Vec<_> = asks.iter().map(known).collect();
            kept.mechanism.reserve_all(terms, asks).into_iter().zip(known).collect()
        })
    }

    /// Goes on from what was known of the whole quota, with `1 / parts` of it, which `share` is.
    #[doc(hidden)]
    pub fn begin(&self, share: &ModelQuota, remembered: &Remembered, parts: u64) {
        let configured = Configured::of(share);
        let part = 1.0 / float(parts.max(1));
        self.with(share, |kept, terms| {
            let now = kept.mechanism.now();
            kept.known = remembered.known.part(parts, &configured, terms.numbers, now);
            let levels = remembered.drawn.map(|drawn| drawn * part);
            let total = remembered.total.map(|total| total * part);
            let reading = kept.mechanism.reading();
            kept.plan(&reading, configured, terms.numbers);
            kept.mechanism.begin_with(terms, &levels, &total);
            kept.began = Some((kept.mechanism.now(), levels));
        });
    }

    /// What is known here of a quota.
    #[doc(hidden)]
    pub fn remembered(&self, model: &ModelQuota) -> Remembered {
        self.with(model, |kept, _| {
            let (known, plan) = (kept.known, kept.mechanism.plan);
            let (drawn, total) = (kept.mechanism.drawn(), kept.mechanism.total());
            Remembered { known, plan, drawn, total }
        })
    }

    /// What is drawn here beyond what was when this store went on from Redis: that one knows the
    /// rest, and has refilled it meanwhile.
    #[doc(hidden)]
    pub fn drawn_alone(&self, share: &ModelQuota) -> Amounts {
        self.with(share, |kept, _| {
            let (began, levels) = kept.began.unwrap_or_default();
            let (plan, passed) = (kept.mechanism.plan, kept.mechanism.now() - began);
            let drawn = kept.mechanism.drawn();
            Amounts::from_fn(|it| {
                let refilled = plan.limits[it].map_or(0.0, |limit| limit.rate.value * passed);
                whole((drawn[it] - (levels[it] - refilled).max(0.0)).max(0.0).ceil())
            })
        })
    }

    /// What was used here alone, and is still in the window.
    #[doc(hidden)]
    pub fn used_alone(&self, share: &ModelQuota) -> Amounts {
        let spent = self.spent(share);
        Amounts::from_fn(|it| spent.iter().map(|spent| spent.used[it]).sum())
    }

    /// What was used here and has not been handed over to the fleet, by lane.
    pub(crate) fn spent(&self, model: &ModelQuota) -> Vec<Spent> {
        self.with(model, |kept, _| kept.mechanism.unreported())
    }

    /// The fleet has been told of these calls.
    pub(crate) fn handed_over(&self, model: &ModelQuota, calls: &[String]) {
        self.with(model, |kept, _| kept.mechanism.handed_over(calls));
    }

    fn now(&self) -> f64 {
        match &self.clock {
            // As far from 0 as the server's clock is: 0 stands for "never" and "no ticket".
            Clock::Process(start) => micros(start.elapsed()).floor() + 1e12,
            Clock::Test(micros) => float(micros.load(Ordering::SeqCst)),
        }
    }

    fn with<T>(&self, model: &ModelQuota, work: impl FnOnce(&mut Kept, &Terms<'_>) -> T) -> T {
        let (now, terms, configured) =
            (self.now(), Terms::of(model, &self.numbers), Configured::of(model));
        let mut models = self.models.lock();
        let kept = models.entry(model.quota_name().into_owned()).or_insert_with(|| Kept::new(now));
        kept.mechanism.advance(&terms, now);
        if kept.configured != Some(configured) {
            let reading = kept.mechanism.reading();
            kept.plan(&reading, configured, &self.numbers);
        }
        work(kept, &terms)
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
        Ok(self.with(model, |kept, terms| {
            let settled = kept.mechanism.settle(model, terms, settlement, longest);
            kept.work(&self.tasks, Configured::of(model), terms.numbers);
            let template = model.learns_as(settlement.template);
            let known = kept.mechanism.expectation(template);
            (settled, known, duration(kept.mechanism.room()))
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
        self.with(model, |kept, terms| {
            kept.mechanism.charge(terms, name, lane, &used, &drawn);
            kept.work(&self.tasks, Configured::of(model), terms.numbers);
        });
        Ok(())
    }

    async fn set_limits(&self, model: &ModelQuota, changes: &LimitChanges) -> Result<(), Error> {
        self.with(model, |kept, terms| {
            kept.known.set(changes);
            let reading = kept.mechanism.reading();
            kept.plan(&reading, Configured::of(model), terms.numbers);
        });
        Ok(())
    }

    async fn renew(&self, model: &ModelQuota, reservation: &str) -> Result<(), Error> {
        self.with(model, |kept, _| kept.mechanism.renew(model.limits.lease(), reservation));
        Ok(())
    }

    async fn pause(&self, model: &ModelQuota, pause: &Pause) -> Result<Duration, Error> {
        let longest = micros(self.pause_ttl);
        Ok(self
            .with(model, |kept, _| duration(kept.mechanism.close(pause, longest, Closed::Pause))))
    }

    async fn resume(&self, model: &ModelQuota) -> Result<(), Error> {
        self.with(model, |kept, _| kept.mechanism.open());
        Ok(())
    }

    async fn leave(&self, model: &ModelQuota, lane: usize, tenant: &Tenant) -> Result<(), Error> {
        self.with(model, |kept, _| kept.mechanism.leave(lane, tenant));
        Ok(())
    }

    async fn give_up(&self, model: &ModelQuota, ask: &Ask) -> Result<(), Error> {
        self.with(model, |kept, _| kept.mechanism.give_up(ask));
        Ok(())
    }

    async fn inspect(&self, model: &ModelQuota) -> Result<Snapshot, Error> {
        Ok(self.with(model, |kept, terms| {
            kept.known.explain(kept.mechanism.snapshot(terms), &kept.mechanism.plan)
        }))
    }
}
