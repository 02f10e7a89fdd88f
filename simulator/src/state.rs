//! The state that all calls share.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use axum::http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::{
    account::Account, batch::store::Store, cache::Cache, config::Config, fault::Fault,
    ledger::Ledger, problem::Problem, rng,
};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: Config,
    started: Instant,
    calls: AtomicU64,
    /// How often each fault has struck.
    struck: Vec<AtomicU64>,
    ledger: Mutex<Ledger>,
    cache: Mutex<Cache>,
    batches: Mutex<Store>,
    stop: watch::Receiver<bool>,
}

impl State {
    pub(crate) fn new(config: Config, stop: watch::Receiver<bool>) -> Self {
        let struck = config.faults.iter().map(|_| AtomicU64::new(0)).collect();
        Self {
            config,
            started: Instant::now(),
            calls: AtomicU64::new(0),
            struck,
            ledger: Mutex::default(),
            cache: Mutex::default(),
            batches: Mutex::default(),
            stop,
        }
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The fault of a call's key, if it has one.
    pub(crate) fn refused(&self, headers: &HeaderMap, model: &str) -> Option<Problem> {
        let now = self.now();
        self.config.refused_keys.iter().find_map(|key| key.refuses(headers, model, now))
    }

    /// The number of a new call.
    pub(crate) fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls that each model has admitted and refused.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// The prompt caches.
    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock()
    }

    /// The batches, as they stand now. Lock order: batches, then ledger.
    pub(crate) fn batches(&self) -> MutexGuard<'_, Store> {
        let mut store = self.batches.lock();
        let answered = store.answered(self.now());
        if !answered.is_empty() {
            let mut ledger = self.ledger();
            answered.into_iter().for_each(|prompt| ledger.answered(prompt));
        }
        store
    }

    pub(crate) fn account(&self) -> Account {
        drop(self.batches());
        self.ledger().account(self.now())
    }

    /// The fault that strikes a call, if any.
    pub(crate) fn fault(&self, number: u64, prompt: &str) -> Option<&Fault> {
        let now = self.now();
        let strikes = |(index, (fault, struck)): (u64, (&Fault, &AtomicU64))| {
            let chance = rng::uniform(rng::draw(&[self.config.seed, number, index]));
            let again = |times| {
                Some(times + 1).filter(|times| fault.times.is_none_or(|most| *times <= most))
            };
            chance < fault.rate
                && fault.concerns(prompt, now)
                && struck.fetch_update(Ordering::Relaxed, Ordering::Relaxed, again).is_ok()
        };
        let mut faults = (0..).zip(self.config.faults.iter().zip(&self.struck));
        faults.find(|fault| strikes(*fault)).map(|(_, (fault, _))| fault)
    }

    /// Sleeps, but not beyond the end of the simulator.
    pub(crate) async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            let mut stop = self.stop.clone();
            tokio::select! {
                () = tokio::time::sleep(duration) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
    }
}
