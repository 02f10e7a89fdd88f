//! A store in this process: the reference model that the scripts are tested against, and the
//! worker's own share while Redis is away.

mod burst;
mod state;
mod tuning;

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
    model::ModelQuota,
    number::{float, micros},
    snapshot::Snapshot,
    store::{Ask, Decision, Expectation, LimitChanges, Pause, Settled, Settlement},
};
use state::State;

pub(crate) use state::Spent;

/// Quota in memory.
#[derive(Clone)]
pub struct Store {
    models: Arc<Mutex<HashMap<String, State>>>,
    clock: Clock,
    pause_ttl: Duration,
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

impl Store {
    /// An empty store on the process's monotonic clock.
    #[must_use]
    pub fn new(pause_ttl: Duration) -> Self {
        Self { models: Arc::default(), clock: Clock::Process(Instant::now()), pause_ttl }
    }

    /// An empty store whose time, in microseconds, the caller sets.
    #[must_use]
    pub fn with_clock(pause_ttl: Duration, clock: Arc<AtomicU64>) -> Self {
        Self { models: Arc::default(), clock: Clock::Test(clock), pause_ttl }
    }

    /// [`crate::Store::reserve`], which in memory neither waits nor fails.
    #[must_use]
    pub fn reserve_now(&self, model: &ModelQuota, ask: &Ask) -> (Decision, Option<Expectation>) {
        self.with(model, |state, now| {
            state.open_burst(model, now);
            // As the script answers: what was known before the call.
            let template = model.learns_as(ask.template);
            let known = ask.curious.then(|| state.expectation(template, now)).flatten();
            (state.reserve(model, ask, now), known)
        })
    }

    /// What was used here and has not been handed over to the fleet, by lane.
    pub(crate) fn spent(&self, model: &ModelQuota) -> Vec<Spent> {
        self.with(model, |state, _| state.spent())
    }

    /// The fleet has been told of these calls.
    pub(crate) fn handed_over(&self, model: &ModelQuota, calls: &[String]) {
        self.with(model, |state, _| state.handed_over(calls));
    }

    fn now(&self) -> f64 {
        match &self.clock {
            // As far from 0 as the server's clock is: 0 stands for "never" and "no ticket".
            Clock::Process(start) => micros(start.elapsed()).floor() + 1e12,
            Clock::Test(micros) => float(micros.load(Ordering::SeqCst)),
        }
    }

    fn with<T>(&self, model: &ModelQuota, work: impl FnOnce(&mut State, f64) -> T) -> T {
        let clock = self.now();
        let mut models = self.models.lock();
        let state =
            models.entry(model.quota_name().into_owned()).or_insert_with(|| State::new(clock));
        let now = state.advance(model, clock);
        state.expire_with_credit(model, now);
        work(state, now)
    }
}

impl crate::store::Store for Store {
    async fn reserve_all(
        &self,
        model: &ModelQuota,
        asks: &[Ask],
    ) -> Result<Vec<(Decision, Option<Expectation>)>, Error> {
        Ok(asks.iter().map(|ask| self.reserve_now(model, ask)).collect())
    }

    async fn settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> Result<(Settled, Option<Expectation>, Duration), Error> {
        Ok(self.with(model, |state, now| {
            state.open_burst(model, now);
            let settled = state.settle(model, settlement, self.pause_ttl, now);
            let expectation = state.expectation(model.learns_as(settlement.template), now);
            (settled, expectation, state.room_now(model, now))
        }))
    }

    async fn charge(
        &self,
        model: &ModelQuota,
        name: &str,
        lane: usize,
        used: Amounts,
    ) -> Result<(), Error> {
        self.with(model, |state, now| {
            state.open_burst(model, now);
            state.charge(model, name, lane, used, now);
        });
        Ok(())
    }

    async fn set_limits(&self, model: &ModelQuota, changes: &LimitChanges) -> Result<(), Error> {
        self.with(model, |state, now| state.set_limits(model, changes, now));
        Ok(())
    }

    async fn renew(&self, model: &ModelQuota, reservation: &str) -> Result<(), Error> {
        self.with(model, |state, now| state.renew(model, reservation, now));
        Ok(())
    }

    async fn pause(&self, model: &ModelQuota, pause: &Pause) -> Result<Duration, Error> {
        Ok(self.with(model, |state, now| state.pause(pause, self.pause_ttl, now)))
    }

    async fn resume(&self, model: &ModelQuota) -> Result<(), Error> {
        self.with(model, |state, now| state.resume(now));
        Ok(())
    }

    async fn leave(&self, model: &ModelQuota, lane: usize, tenant: &Tenant) -> Result<(), Error> {
        self.with(model, |state, now| state.leave(lane, tenant, now));
        Ok(())
    }

    async fn inspect(&self, model: &ModelQuota) -> Result<Snapshot, Error> {
        Ok(self.with(model, |state, now| {
            state.open_burst(model, now);
            state.end_leases(now);
            state.snapshot(model, now)
        }))
    }
}
