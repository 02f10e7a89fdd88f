//! Circuit breakers: which models should not be asked for a while. Outcomes of this worker's recent calls to
//! each model explain why a batch does not progress; they are sent with the worker's status, so they cost no
//! request of their own.
//!
//! A model's circuit opens when the calls of several documents in a row have failed. Then no call
//! is made for a while, and after that one call probes. It is for providers that are down, not for
//! quota: a 429 closes the gate for the whole fleet, and an overload lowers the calls in flight.
//! Each worker has its own circuits, which save its next documents from failing too.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_providers::{Error, Kind};
use tidegate_types::{ModelId, seconds_since_1970};
use tracing::{info, warn};

use crate::{
    failure::{
        CIRCUIT_FAULTS, CIRCUIT_OPEN, Failure, MAX_CIRCUIT_OPEN, provider::provider_failure,
    },
    metrics,
};

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

    /// The provider's message in the model's last failure within [`MINUTES`].
    pub fn words(&self, model: &ModelId) -> Option<String> {
        self.recent.words(model, SystemTime::now())
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

/// Period in minutes over which calls are counted and a fault is remembered.
pub const MINUTES: u64 = 10;

/// Longest message of a fault, in characters.
const MAX_WORDS: usize = 300;

/// Outcomes of the calls to one model in the last [`MINUTES`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentCalls {
    /// The last fault, by its failure type; empty if there was none.
    pub kind: String,
    /// The provider's message without key and document; empty for a refused key, whose message is
    /// not reported.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Its HTTP status, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When the last fault was, in seconds since 1970.
    pub at: u64,
    /// Calls in a row that failed, up to now, without an answer of any kind. If the model answered
    /// lately, unreadable answers to one document count once.
    pub row: u64,
    /// When that row began, in seconds since 1970; meaningless without one.
    pub since: u64,
    /// Calls that failed, by failure type.
    pub failed: BTreeMap<String, u64>,
    /// Calls that were answered.
    pub answered: u64,
    /// When the last call was answered, in seconds since 1970; 0 for never.
    pub answered_at: u64,
}

impl RecentCalls {
    /// Whether the last fault is older than [`MINUTES`]. `now` is in seconds since 1970.
    fn is_past(&self, now: u64) -> bool {
        self.at + MINUTES * 60 <= now
    }
}

/// The outcomes of every model.
#[derive(Debug, Default)]
pub(crate) struct RecentByModel(Mutex<HashMap<ModelId, Recent>>);

#[derive(Debug, Default)]
struct Recent {
    /// The last fault and its row. Its counts are empty.
    last: RecentCalls,
    /// The document of the last call in the row.
    document: String,
    /// Calls by the minute in which they ended (minutes since 1970), the latest last.
    minutes: VecDeque<Minute>,
}

#[derive(Debug, Default)]
struct Minute {
    number: u64,
    failed: BTreeMap<&'static str, u64>,
    answered: u64,
}

impl RecentByModel {
    /// Records an answered call.
    pub(crate) fn answered(&self, model: &ModelId, now: SystemTime) {
        let mut models = self.0.lock();
        let recent = models.entry(model.clone()).or_default();
        (recent.last.row, recent.last.answered_at) = (0, seconds_since_1970(now));
        recent.minute(seconds_since_1970(now)).answered += 1;
    }

    /// Records a failed call for this document.
    pub(crate) fn failed(&self, model: &ModelId, error: &Error, document: &str, now: SystemTime) {
        let now = seconds_since_1970(now);
        let kind = provider_failure(error.kind).as_str();
        let mut models = self.0.lock();
        let recent = models.entry(model.clone()).or_default();
        *recent.minute(now).failed.entry(kind).or_default() += 1;
        // A fault of one document does not concern the model.
        if is_of_document(error.kind) {
            recent.last.row = 0;
            return;
        }
        let is_there = error.status.is_some_and(|status| (200..300).contains(&status))
            && recent.minutes.iter().any(|minute| minute.answered > 0);
        let is_again = is_there && recent.document == document;
        document.clone_into(&mut recent.document);
        let (row, since) = match (recent.last.row, is_no_answer(error.kind)) {
            (_, false) => (0, now),
            (0, true) => (1, now),
            (row, true) => (row + u64::from(!is_again), recent.last.since),
        };
        let words = if error.kind == Kind::Unauthorized { "" } else { error.message.as_str() };
        recent.last = RecentCalls {
            kind: kind.to_owned(),
            words: words.chars().take(MAX_WORDS).collect(),
            status: error.status,
            at: now,
            row,
            since,
            answered_at: recent.last.answered_at,
            ..RecentCalls::default()
        };
    }

    /// The message of the last fault within [`MINUTES`].
    pub(crate) fn words(&self, model: &ModelId, now: SystemTime) -> Option<String> {
        let models = self.0.lock();
        let last = &models.get(model)?.last;
        (!last.is_past(seconds_since_1970(now)) && !last.words.is_empty())
            .then(|| last.words.clone())
    }

    /// Every model that was asked within [`MINUTES`].
    pub(crate) fn seen(&self, now: SystemTime) -> BTreeMap<ModelId, RecentCalls> {
        let now = seconds_since_1970(now);
        let mut models = self.0.lock();
        let seen = models.iter_mut().filter_map(|(model, recent)| {
            recent.forget(now);
            (!recent.minutes.is_empty()).then(|| (model.clone(), recent.summed(now)))
        });
        seen.collect()
    }
}

impl Recent {
    fn minute(&mut self, now: u64) -> &mut Minute {
        self.forget(now);
        let number = now / 60;
        if self.minutes.back().is_none_or(|last| last.number != number) {
            self.minutes.push_back(Minute { number, ..Minute::default() });
        }
        let last = self.minutes.len() - 1;
        &mut self.minutes[last]
    }

    fn forget(&mut self, now: u64) {
        while self.minutes.front().is_some_and(|first| first.number + MINUTES <= now / 60) {
            self.minutes.pop_front();
        }
    }

    fn summed(&self, now: u64) -> RecentCalls {
        let mut sum =
            if self.last.is_past(now) { RecentCalls::default() } else { self.last.clone() };
        sum.answered_at = self.last.answered_at;
        for minute in &self.minutes {
            sum.answered += minute.answered;
            for (kind, count) in &minute.failed {
                *sum.failed.entry((*kind).to_owned()).or_default() += count;
            }
        }
        sum
    }
}

/// Whether the provider gave no useful reply: it is down, short of capacity, or unreachable.
pub(crate) fn is_no_answer(kind: Kind) -> bool {
    matches!(kind, Kind::Overloaded | Kind::Transient | Kind::Timeout | Kind::Unreachable)
}

fn is_of_document(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::InvalidRequest | Kind::TooLarge | Kind::ContentRefused | Kind::InvalidOutput
    )
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod recent_tests {
    use std::time::Duration;

    use tidegate_providers::Charged;

    use super::*;

    fn error(kind: Kind, message: &str) -> Error {
        Error {
            kind,
            message: message.to_owned(),
            retry_after: None,
            charged: Charged::No,
            status: Some(529),
            timed_out: false,
            span: None,
            observed: Box::default(),
        }
    }

    #[test]
    fn the_last_fault_keeps_its_message_and_is_counted() {
        let (faults, model): (_, ModelId) = (RecentByModel::default(), "a:b".parse().unwrap());
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(6_000 + seconds);
        let seen = |seconds| faults.seen(at(seconds)).remove(&model);
        faults.answered(&model, at(0));
        let well = seen(1).unwrap();
        assert_eq!((well.kind.as_str(), well.answered, well.answered_at), ("", 1, 6_000));
        faults.failed(&model, &error(Kind::RateLimited, "slow down"), "a", at(2));
        faults.failed(&model, &error(Kind::Overloaded, "Overloaded"), "a", at(10));
        faults.failed(&model, &error(Kind::Timeout, "connection reset"), "a", at(70));
        let both = seen(80).unwrap();
        assert_eq!((both.kind.as_str(), both.words.as_str()), ("Transient", "connection reset"));
        assert_eq!((both.row, both.since, both.at, both.answered), (2, 6_010, 6_070, 1));
        assert_eq!(both.answered_at, 6_000, "a fault does not undo an answer");
        assert_eq!(both.failed["Overloaded"] + both.failed["RateLimited"], 2);
        faults.failed(&model, &error(Kind::TooLarge, "one document"), "a", at(75));
        let after = seen(80).unwrap();
        assert_eq!((after.words.as_str(), after.row), ("connection reset", 0));
        faults.answered(&model, at(80));
        assert_eq!(seen(80).unwrap().answered, 2);
        assert_eq!(seen(640).unwrap().failed.len(), 2, "those of the first minute are forgotten");
        assert_eq!(seen(700), None);
        let words = |seconds| faults.words(&model, at(seconds));
        assert_eq!((words(669).as_deref(), words(670)), (Some("connection reset"), None));
    }

    /// A provider that answers other documents is up.
    #[test]
    fn one_document_whose_answers_cannot_be_read_is_no_row() {
        let (faults, model): (_, ModelId) = (RecentByModel::default(), "a:b".parse().unwrap());
        let now = SystemTime::now();
        let row = || faults.seen(now).remove(&model).unwrap().row;
        let unread = Error { status: Some(200), ..error(Kind::Transient, "no text") };
        for _ in 0..3 {
            faults.failed(&model, &unread, "first", now);
        }
        assert_eq!(row(), 3, "no call was answered yet");
        faults.answered(&model, now);
        for _ in 0..5 {
            faults.failed(&model, &unread, "poison", now);
        }
        assert_eq!(row(), 1);
        faults.failed(&model, &unread, "another", now);
        assert_eq!(row(), 2);
        for _ in 0..2 {
            faults.failed(&model, &error(Kind::Transient, "bad gateway"), "another", now);
        }
        assert_eq!(row(), 4, "it does not answer");
    }

    #[test]
    fn a_refused_keys_message_is_not_kept() {
        let (faults, model): (_, ModelId) = (RecentByModel::default(), "a:b".parse().unwrap());
        let now = SystemTime::now();
        faults.failed(&model, &error(Kind::Unauthorized, "your key sk-123 is bad"), "a", now);
        let seen = faults.seen(now).remove(&model).unwrap();
        assert_eq!((seen.kind.as_str(), seen.words.as_str()), ("Unauthorized", ""));
        assert_eq!(faults.words(&model, now), None);
    }
}
