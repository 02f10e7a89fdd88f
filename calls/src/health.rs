//! Circuit breakers: which models should not be asked for a while.
//!
//! A model's circuit opens when the calls of several documents in a row have failed. Then no call
//! is made for a while, and after that one call probes. It is for providers that are down, not for
//! quota: a 429 closes the gate for the whole fleet, and an overload lowers the calls in flight.
//! Each worker has its own circuits, which save its next documents from failing too.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use tidegate_providers::Error;
use tidegate_types::ModelId;
use tracing::{info, warn};

use crate::{
    failure::{CIRCUIT_FAULTS, CIRCUIT_OPEN, Failure, MAX_CIRCUIT_OPEN},
    metrics,
    recent::{RecentByModel, RecentCalls, is_no_answer},
};

/// Maximum number of remembered refusals; beyond it, all are forgotten at once, and each costs one
/// more call.
const MAX_REMEMBERED: usize = 1_000;

/// Remembers recent refusals, so that the call need not be made again for a while.
#[derive(Debug)]
pub(crate) struct Cooldown<K, V>(Mutex<HashMap<K, (Instant, V)>>);

impl<K, V> Default for Cooldown<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Cooldown<K, V> {
    pub(crate) fn remember(&self, key: K, refusal: V, length: Duration) {
        let mut all = self.0.lock();
        if all.len() >= MAX_REMEMBERED {
            all.clear();
        }
        all.insert(key, (Instant::now() + length, refusal));
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut all = self.0.lock();
        match all.get(key) {
            Some((until, refusal)) if Instant::now() < *until => Some(refusal.clone()),
            Some(_) => {
                all.remove(key);
                None
            }
            None => None,
        }
    }
}

/// The state of the models, from this worker's calls.
#[derive(Debug, Default)]
pub struct Health {
    circuits: Mutex<HashMap<ModelId, Circuit>>,
    recent: RecentByModel,
}

#[derive(Debug, Clone, Default)]
struct Circuit {
    /// Documents whose calls have failed since the last success.
    failing: Vec<String>,
    /// How often it has opened since the last success.
    opened: u32,
    /// No call is made before this time; `None` while the circuit is closed.
    open_until: Option<Instant>,
    /// Half open: one call is probing.
    probing: bool,
}

impl Circuit {
    /// Time for which no call is made; `None` if a call may be made.
    fn open_for(&self, now: Instant) -> Option<Duration> {
        let until = self.open_until?;
        let is_open = now < until || self.probing;
        is_open.then(|| if now < until { until - now } else { CIRCUIT_OPEN })
    }
}

impl Health {
    /// Checks whether the model's circuit lets a call through.
    ///
    /// # Errors
    /// `Overloaded` while it is open.
    pub fn check(&self, model: &ModelId, now: Instant) -> Result<(), Failure> {
        let open = self.circuits.lock().get(model).and_then(|circuit| circuit.open_for(now));
        open.map_or(Ok(()), |open| Err(self.open(model, open)))
    }

    /// Lets a call that is about to leave through the circuit; when a probe is due, only one call
    /// passes.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub fn enter(self: &Arc<Self>, model: &ModelId, now: Instant) -> Result<BreakerGuard, Failure> {
        let mut guard =
            BreakerGuard { health: Arc::clone(self), model: model.clone(), probe: false };
        if let Some(circuit) = self.circuits.lock().get_mut(model) {
            if let Some(open) = circuit.open_for(now) {
                return Err(self.open(model, open));
            }
            guard.probe = circuit.open_until.is_some();
            circuit.probing = guard.probe;
        }
        Ok(guard)
    }

    /// The provider's message in the model's last failure, unless it is too old.
    pub fn words(&self, model: &ModelId) -> Option<String> {
        self.recent.words(model)
    }

    fn open(&self, model: &ModelId, open: Duration) -> Failure {
        Failure::circuit_open(model, open, self.words(model).as_deref())
    }

    /// Outcomes of recent calls, by model.
    pub fn recent(&self) -> BTreeMap<ModelId, RecentCalls> {
        self.recent.seen(SystemTime::now())
    }

    /// Closes the model's circuit, because the provider answered.
    fn close(&self, model: &ModelId) {
        let was = self.circuits.lock().remove(model);
        if was.is_some_and(|circuit| circuit.open_until.is_some()) {
            metrics::circuit_open(model, false);
            info!(%model, "calls to this model are answered again");
        }
    }
}

/// One call's passage through a circuit. If it is dropped before the call has ended (no quota,
/// cancelled), the circuit is unchanged.
#[derive(Debug)]
#[must_use = "a probe that is dropped lets the next one in"]
pub struct BreakerGuard {
    health: Arc<Health>,
    model: ModelId,
    probe: bool,
}

impl BreakerGuard {
    /// Records an answer.
    pub fn succeeded(self) {
        self.health.recent.answered(&self.model, SystemTime::now());
        self.health.close(&self.model);
    }

    /// Records a failed call for this document. A provider that refuses is reachable, so the
    /// circuit closes.
    pub fn failed(self, error: &Error, document: &str, now: Instant) {
        self.health.recent.failed(&self.model, error, document, SystemTime::now());
        if !is_no_answer(error.kind) {
            return self.health.close(&self.model);
        }
        let mut circuits = self.health.circuits.lock();
        let circuit = circuits.entry(self.model.clone()).or_default();
        if circuit.failing.len() < CIRCUIT_FAULTS
            && !circuit.failing.iter().any(|failing| failing == document)
        {
            circuit.failing.push(document.to_owned());
        }
        let trips = self.probe || circuit.failing.len() >= CIRCUIT_FAULTS;
        // Calls that were under way when it opened fail too, and do not prolong it.
        if trips && (self.probe || circuit.open_until.is_none()) {
            let length = CIRCUIT_OPEN.saturating_mul(2_u32.saturating_pow(circuit.opened.min(8)));
            circuit.open_until = Some(now + length.min(MAX_CIRCUIT_OPEN));
            circuit.opened += 1;
            if circuit.opened == 1 {
                metrics::circuit_open(&self.model, true);
                warn!(
                    model = %self.model, failure = error.kind.label(), words = error.message,
                    "calls to this model fail; this worker makes one test call at a time until one succeeds, and other documents wait"
                );
            }
        }
    }
}

impl Drop for BreakerGuard {
    fn drop(&mut self) {
        if self.probe
            && let Some(circuit) = self.health.circuits.lock().get_mut(&self.model)
        {
            circuit.probing = false;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use tidegate_providers::{Charged, Kind};

    use super::*;
    use crate::failure::Retry;

    fn error(kind: Kind) -> Error {
        Error {
            kind,
            message: "the tide is out".to_owned(),
            retry_after: None,
            charged: Charged::No,
            status: None,
            timed_out: false,
            span: None,
            observed: Box::default(),
        }
    }

    #[test]
    fn closed_open_half_open_and_closed_again() {
        let (health, model) = (Arc::new(Health::default()), "a:b".parse().unwrap());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let open_for = |seconds| health.enter(&model, at(seconds)).unwrap_err().retry;
        let after = |seconds| Retry::AfterSpread(Duration::from_secs(seconds));
        for document in ["1", "2", "3", "4", "4", "5"] {
            health.enter(&model, at(0)).unwrap().failed(&error(Kind::Overloaded), document, at(0));
        }
        assert_eq!(open_for(2), after(3));
        let behind = health.enter(&model, at(2)).unwrap_err().message;
        assert!(behind.ends_with(": the tide is out"), "{behind}");
        assert!(health.check(&model, at(2)).is_err() && health.check(&model, at(5)).is_ok());
        // One probe, and no other call.
        let probe = health.enter(&model, at(5)).unwrap();
        assert!(health.enter(&model, at(5)).is_err() && health.check(&model, at(5)).is_err());
        probe.failed(&error(Kind::Timeout), "1", at(6));
        assert_eq!(open_for(6), after(10), "twice as long");
        // A probe that found no quota has no outcome, so another one may try.
        drop(health.enter(&model, at(16)).unwrap());
        health.enter(&model, at(16)).unwrap().succeeded();
        for _ in 0..3 {
            drop(health.enter(&model, at(16)).unwrap());
        }
    }

    #[test]
    fn only_faults_of_several_documents_in_a_row_count_and_refusals_are_none() {
        let (health, model) = (Arc::new(Health::default()), "a:b".parse().unwrap());
        let now = Instant::now();
        for (number, kind) in
            [Kind::Overloaded, Kind::RateLimited].repeat(20).into_iter().enumerate()
        {
            health.enter(&model, now).unwrap().failed(&error(kind), &number.to_string(), now);
        }
        for poison in ["a", "b"].repeat(20) {
            health.enter(&model, now).unwrap().failed(&error(Kind::Transient), poison, now);
        }
        assert!(
            health.check(&model, now).is_ok(),
            "two documents that the provider fails at stop no other"
        );
        assert!(health.enter(&"c:d".parse().unwrap(), now).is_ok(), "another model has its own");
    }
}
