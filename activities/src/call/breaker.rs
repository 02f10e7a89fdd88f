//! A circuit breaker for each model: after faults of some documents in a row nobody asks for a
//! while, then one call finds out.
//!
//! It is about providers that are down, not about quota: a 429 closes the gate for the whole fleet,
//! an overload lowers the calls in flight; this spares the documents behind them the same fault,
//! each in its own worker.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tidegate_providers::Kind;
use tidegate_types::ModelId;

use crate::batch::job;

/// Different documents in a row whose calls fail, until the circuit opens. A single one may itself
/// be what the provider fails at.
const FAULTS: usize = 5;

/// How long it stays open: this long, then twice as long each time that the probe fails, up to the
/// longest.
const OPEN: Duration = Duration::from_secs(5);
const MAX_OPEN: Duration = Duration::from_secs(60);

/// The breakers of this worker.
#[derive(Debug, Default)]
pub struct Breakers(Mutex<HashMap<ModelId, Breaker>>);

#[derive(Debug, Clone, Default)]
struct Breaker {
    /// Documents, as hashes, whose calls have failed since one last succeeded.
    failing: Vec<u64>,
    /// How often it has been opened since a call last succeeded.
    opened: u32,
    /// Nobody calls before; without it the circuit is closed.
    open_until: Option<Instant>,
    /// Half open: a call is finding out.
    probing: bool,
}

impl Breakers {
    /// A way through, or how long the circuit stays open.
    ///
    /// # Errors
    /// The time after which one call may find out anew.
    pub fn enter(
        self: &Arc<Self>,
        model: &ModelId,
        now: Instant,
    ) -> Result<BreakerGuard, Duration> {
        let mut breakers = self.lock();
        let mut guard =
            BreakerGuard { breakers: Arc::clone(self), model: model.clone(), probe: false };
        if let Some(breaker) = breakers.get_mut(model)
            && let Some(until) = breaker.open_until
        {
            if now < until {
                return Err(until - now);
            }
            if breaker.probing {
                return Err(OPEN);
            }
            breaker.probing = true;
            guard.probe = true;
        }
        Ok(guard)
    }

    /// Whether the circuit is open or half open: another model should be asked, if there is one.
    #[must_use]
    pub fn is_open(&self, model: &ModelId, now: Instant) -> bool {
        self.lock().get(model).is_some_and(|breaker| {
            breaker.open_until.is_some_and(|until| now < until || breaker.probing)
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ModelId, Breaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call's way through. Dropped without a word (no quota, cancelled), it leaves the circuit as
/// it was.
#[derive(Debug)]
#[must_use = "a probe that is dropped lets the next one in"]
pub struct BreakerGuard {
    breakers: Arc<Breakers>,
    model: ModelId,
    probe: bool,
}

impl BreakerGuard {
    /// The provider answered, if only to refuse: the circuit is closed.
    pub fn succeeded(self) {
        self.breakers.lock().remove(&self.model);
    }

    /// The call failed, for this document.
    pub fn failed(self, kind: Kind, document: &str, now: Instant) {
        if !matches!(kind, Kind::Overloaded | Kind::Transient | Kind::Timeout) {
            return self.succeeded();
        }
        let mut breakers = self.breakers.lock();
        let breaker = breakers.entry(self.model.clone()).or_default();
        let document = job::hash([document.as_bytes()]);
        if breaker.failing.len() < FAULTS && !breaker.failing.contains(&document) {
            breaker.failing.push(document);
        }
        if self.probe || breaker.failing.len() >= FAULTS {
            let length =
                OPEN.saturating_mul(2_u32.saturating_pow(breaker.opened.min(8))).min(MAX_OPEN);
            // Calls that were under way when it opened fail too, and do not prolong it.
            if self.probe || breaker.open_until.is_none() {
                breaker.open_until = Some(now + length);
                breaker.opened += 1;
            }
        }
    }
}

impl Drop for BreakerGuard {
    fn drop(&mut self) {
        if self.probe
            && let Some(breaker) = self.breakers.lock().get_mut(&self.model)
        {
            breaker.probing = false;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn closed_open_half_open_and_closed_again() {
        let (breakers, model) = (Arc::new(Breakers::default()), "a:b".parse().unwrap());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for document in ["1", "2", "3", "4", "4", "5"] {
            breakers.enter(&model, at(0)).unwrap().failed(Kind::Overloaded, document, at(0));
        }
        assert_eq!(breakers.enter(&model, at(2)).unwrap_err(), Duration::from_secs(3));
        assert!(breakers.is_open(&model, at(2)) && !breakers.is_open(&model, at(5)));
        // One probe, and nobody beside it.
        let probe = breakers.enter(&model, at(5)).unwrap();
        assert!(breakers.enter(&model, at(5)).is_err() && breakers.is_open(&model, at(5)));
        probe.failed(Kind::Timeout, "1", at(6));
        assert_eq!(
            breakers.enter(&model, at(6)).unwrap_err(),
            Duration::from_secs(10),
            "twice as long"
        );
        // A probe that found no quota tells nothing, and the next may try.
        drop(breakers.enter(&model, at(16)).unwrap());
        breakers.enter(&model, at(16)).unwrap().succeeded();
        for _ in 0..3 {
            drop(breakers.enter(&model, at(16)).unwrap());
        }
    }

    #[test]
    fn only_faults_of_several_documents_in_a_row_count_and_refusals_are_none() {
        let (breakers, model) = (Arc::new(Breakers::default()), "a:b".parse().unwrap());
        let now = Instant::now();
        for (number, kind) in
            [Kind::Overloaded, Kind::RateLimited].repeat(20).into_iter().enumerate()
        {
            breakers.enter(&model, now).unwrap().failed(kind, &number.to_string(), now);
        }
        for poison in ["a", "b"].repeat(20) {
            breakers.enter(&model, now).unwrap().failed(Kind::Transient, poison, now);
        }
        assert!(
            !breakers.is_open(&model, now),
            "two documents that the provider fails at stop nobody"
        );
        assert!(breakers.enter(&"c:d".parse().unwrap(), now).is_ok(), "another model has its own");
    }
}
