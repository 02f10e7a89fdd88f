//! Models in doubt: their provider refused a call because the account is spent, or the model does
//! not exist. Such a refusal may be a passing fault. One call tests the model after seconds, and
//! later another one; the other calls wait in Temporal for the outcome. The third refusal in a row
//! is a verdict.
//!
//! If a model has answered recently, one refusal concerns only its own document: other calls
//! continue until a second refusal follows without an answer between them.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::failure::Failure;

/// Time after which another call tests, if a test has no outcome.
const PROBE: Duration = Duration::from_secs(10);

/// A model that has answered within this time is known to exist.
const KNOWN: Duration = Duration::from_secs(600);

/// Maximum number of remembered scopes; beyond it, all are forgotten at once.
const MAX_REMEMBERED: usize = 1_000;

/// The calls for which a model is in doubt: those of one run of a batch, or all (`None`).
pub(crate) type Scope<'a> = (&'a ModelId, Option<&'a str>);

type OwnedScope = (ModelId, Option<String>);

fn owned((model, run): Scope<'_>) -> OwnedScope {
    (model.clone(), run.map(str::to_owned))
}

/// The models in doubt, and those that have answered recently.
#[derive(Debug)]
pub struct Doubts {
    /// Makes the failure of a document in doubt from the provider's message and the time to wait.
    comes_back: fn(&str, Duration) -> Failure,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    evidence: Evidence<OwnedScope>,
    /// For each scope, the end of the wait for the test, and the message of the last refusal.
    held: HashMap<OwnedScope, (Instant, String)>,
    /// When each model last answered.
    answered: HashMap<ModelId, Instant>,
}

impl State {
    fn has_answered(&self, model: &ModelId, now: Instant) -> bool {
        let answered = self.answered.get(model);
        answered.is_some_and(|at| now.saturating_duration_since(*at) < KNOWN)
    }
}

impl Doubts {
    /// Creates it without any doubt.
    pub(crate) fn new(comes_back: fn(&str, Duration) -> Failure) -> Self {
        Self { comes_back, state: Mutex::default() }
    }

    /// Records a refusal with this message. Returns the failure of its document; `None` if the
    /// refusal is no passing fault.
    pub(crate) fn refused(&self, scope: Scope<'_>, words: &str, now: Instant) -> Option<Failure> {
        let (mut state, owned) = (self.state.lock(), owned(scope));
        let is_known = state.has_answered(scope.0, now) && !state.evidence.has(&owned);
        let Some(pause) = state.evidence.refused(owned.clone(), now) else {
            state.held.remove(&owned);
            return None;
        };
        if !is_known {
            if state.held.len() >= MAX_REMEMBERED {
                state.held.clear();
            }
            state.held.insert(owned, (now + pause, words.to_owned()));
        }
        Some((self.comes_back)(words, pause))
    }

    /// Whether the model has answered lately.
    pub(crate) fn has_answered(&self, model: &ModelId, now: Instant) -> bool {
        self.state.lock().has_answered(model, now)
    }

    /// Records that the model has answered.
    pub(crate) fn answered(&self, model: &ModelId, now: Instant) {
        let mut state = self.state.lock();
        state.evidence.forget_where(|(of, _)| of == model);
        state.held.retain(|(of, _), _| of != model);
        if state.answered.len() >= MAX_REMEMBERED {
            state.answered.clear();
        }
        state.answered.insert(model.clone(), now);
    }

    /// Checks whether calls wait for a test.
    ///
    /// # Errors
    /// A failure that is retried when the outcome is due.
    pub(crate) fn check(&self, scope: Scope<'_>, now: Instant) -> Result<(), Failure> {
        self.state.lock().held.get(&owned(scope)).map_or(Ok(()), |held| self.check_hold(held, now))
    }

    fn check_hold(&self, (until, words): &(Instant, String), now: Instant) -> Result<(), Failure> {
        match until.checked_duration_since(now).filter(|left| !left.is_zero()) {
            Some(left) => Err(Failure { benign: true, ..(self.comes_back)(words, left) }),
            None => Ok(()),
        }
    }

    /// Checks a call that is about to leave; when a test is due, only one call passes.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub(crate) fn enter(
        self: &Arc<Self>,
        scope: Scope<'_>,
        now: Instant,
    ) -> Result<Probe, Failure> {
        let (mut state, owned) = (self.state.lock(), owned(scope));
        let Some(held) = state.held.get_mut(&owned) else { return Ok(Probe::default()) };
        self.check_hold(held, now)?;
        let mine = now + PROBE;
        let before = std::mem::replace(&mut held.0, mine);
        let doubts = Arc::clone(self);
        Ok(Probe::new(move || {
            if let Some((until, _)) = doubts.state.lock().held.get_mut(&owned)
                && *until == mine
            {
                *until = before;
            }
        }))
    }
}

/// Pauses after the first and the second refusal until the next call. A gateway that restarts, or
/// keys that are replaced, take seconds.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// Older refusals no longer count.
const OUTDATED: Duration = Duration::from_mins(10);

/// Maximum number of scopes; beyond it, all are forgotten at once, and each costs two more calls.
const MAX_SCOPES: usize = 1_000;

/// Refusals of each scope since its last accepted call.
#[derive(Debug)]
pub(crate) struct Evidence<K>(HashMap<K, Refusals>);

#[derive(Debug, Clone, Copy)]
struct Refusals {
    counted: usize,
    last: Instant,
}

impl<K> Default for Evidence<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Evidence<K> {
    /// Counts a refused call. Returns the time until one call should test again, or `None` after
    /// three refusals in a row.
    pub(crate) fn refused(&mut self, scope: K, now: Instant) -> Option<Duration> {
        if self.0.len() >= MAX_SCOPES {
            self.0.clear();
        }
        let known = self.0.entry(scope).or_insert(Refusals { counted: 0, last: now });
        let since = now.saturating_duration_since(known.last);
        if since >= OUTDATED {
            known.counted = 0;
        }
        let pause = known.counted.checked_sub(1).and_then(|before| PAUSES.get(before));
        if let Some(left) = pause.and_then(|pause| pause.checked_sub(since))
            && !left.is_zero()
        {
            return Some(left);
        }
        known.last = now;
        let pause = PAUSES.get(known.counted).copied();
        known.counted = (known.counted + 1).min(PAUSES.len() + 1);
        pause
    }

    /// Whether a call was refused since the scope's last accepted call.
    pub(crate) fn has(&self, scope: &K) -> bool {
        self.0.contains_key(scope)
    }

    /// Forgets the scope's refusals, after an accepted call.
    pub(crate) fn accepted(&mut self, scope: &K) {
        self.0.remove(scope);
    }

    /// Forgets the refusals of every matching scope.
    pub(crate) fn forget_where(&mut self, matches: impl Fn(&K) -> bool) {
        self.0.retain(|scope, _| !matches(scope));
    }
}

/// The right to be the probe. If it is dropped before the call leaves, another call may probe.
#[derive(Default)]
#[must_use = "a probe that is dropped lets the next one in"]
pub struct Probe(Option<Box<dyn FnOnce() + Send + Sync>>);

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.0.is_some()).finish()
    }
}

impl Probe {
    /// Creates a probe with the function that returns the right.
    pub fn new(give_back: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }

    /// Uses the right up, because the call leaves: the others wait for its outcome.
    pub fn use_up(mut self) {
        self.0 = None;
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts() -> (Arc<Doubts>, ModelId, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        let at = move |seconds| start + Duration::from_secs(seconds);
        (Arc::new(Doubts::new(Failure::account_may_pass)), "a:b".parse().unwrap(), at)
    }

    #[test]
    fn one_call_finds_out_and_the_third_refusal_is_a_verdict() {
        let (doubts, model, at) = doubts();
        doubts.enter((&model, None), at(0)).unwrap().use_up();
        assert!(doubts.refused((&model, None), "pay", at(0)).unwrap().is_retried());
        let behind = doubts.enter((&model, None), at(1)).unwrap_err();
        assert!(behind.is_retried() && behind.benign && behind.message.contains("pay"));
        assert!(
            doubts.check((&model, None), at(1)).is_err()
                && doubts.check((&model, None), at(2)).is_ok()
        );
        drop(doubts.enter((&model, None), at(2)).unwrap());
        doubts.enter((&model, None), at(2)).unwrap().use_up();
        doubts.enter((&model, None), at(2)).unwrap_err();
        assert!(doubts.refused((&model, None), "pay", at(3)).is_some());
        doubts.enter((&model, None), at(13)).unwrap().use_up();
        assert!(doubts.refused((&model, None), "pay", at(13)).is_none());
        doubts.enter((&model, None), at(13)).unwrap().use_up();
        doubts.answered(&model, at(13));
        assert!(doubts.refused((&model, None), "pay", at(14)).is_some());
        doubts.answered(&model, at(14));
        doubts.enter((&model, None), at(14)).unwrap().use_up();
    }

    #[test]
    fn a_refusal_among_answers_costs_its_own_document_a_moment() {
        let (doubts, model, at) = doubts();
        for second in 0..9 {
            doubts.answered(&model, at(second));
            assert!(doubts.refused((&model, None), "pay", at(second)).unwrap().is_retried());
            doubts.enter((&model, None), at(second)).unwrap().use_up();
        }
        // A second refusal without an answer in between holds the other calls; so does a single one
        // much later.
        assert!(doubts.refused((&model, None), "pay", at(9)).is_some());
        doubts.enter((&model, None), at(9)).unwrap_err();
        doubts.answered(&model, at(10));
        assert!(doubts.refused((&model, None), "pay", at(10) + KNOWN).is_some());
        doubts.enter((&model, None), at(10) + KNOWN).unwrap_err();
    }

    #[test]
    fn a_doubt_of_one_run_holds_no_other() {
        let (doubts, model, at) = doubts();
        let (one, other) = ((&model, Some("one")), (&model, Some("other")));
        doubts.answered(&model, at(0));
        for second in [0, 2, 12] {
            let _ = doubts.refused(one, "no model", at(second));
            doubts.enter(other, at(second)).unwrap().use_up();
        }
        assert!(doubts.refused(other, "no model", at(13)).is_some());
        doubts.enter(other, at(13)).unwrap().use_up();
        assert!(doubts.refused(other, "no model", at(13)).is_some());
        doubts.enter(other, at(13)).unwrap_err();
        doubts.answered(&model, at(14));
        doubts.enter(other, at(14)).unwrap().use_up();
    }
}

#[cfg(test)]
mod evidence_tests {
    use super::*;

    #[test]
    fn three_calls_in_a_row_are_a_verdict_and_what_was_under_way_together_is_one() {
        let (mut evidence, start) = (Evidence::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(evidence.refused("a", at(0)), Some(PAUSES[0]));
        assert_eq!(evidence.refused("a", at(1)), Some(Duration::from_secs(1)), "was under way");
        assert_eq!(evidence.refused("b", at(1)), Some(PAUSES[0]), "each for itself");
        assert_eq!(evidence.refused("a", at(2)), Some(PAUSES[1]));
        assert_eq!(evidence.refused("a", at(11)), Some(Duration::from_secs(1)));
        assert_eq!(evidence.refused("a", at(12)), None);
        assert_eq!(evidence.refused("a", at(13)), None, "the verdict stands");
        evidence.accepted(&"a");
        assert_eq!(evidence.refused("a", at(14)), Some(PAUSES[0]));
        assert_eq!(evidence.refused("a", at(14) + OUTDATED), Some(PAUSES[0]), "long ago");
    }
}
