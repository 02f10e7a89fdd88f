//! Models that are in doubt: their provider has said that the account is spent, or that there is no such
//! model, which may be a passing fault. One call finds out after seconds, and then another one; the
//! others wait for it in Temporal. The third refusal in a row is a verdict.
//!
//! Of a model that has just answered, one refusal alone is about its own document: the others go on
//! until a second one follows without an answer between them.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::ModelId;

use crate::{evidence::Evidence, failure::Failure, probe::Probe};

/// A call that finds out has this long until another one does.
const PROBE: Duration = Duration::from_secs(10);

/// A model that has answered within this time is known.
pub(crate) const KNOWN: Duration = Duration::from_secs(600);

/// Models that are remembered; all are forgotten at once beyond.
const MAX_REMEMBERED: usize = 1_000;

/// What this worker's calls were told of models.
#[derive(Debug)]
pub struct Doubts {
    /// What a document in doubt comes back with, by the provider's words and the time to wait.
    comes_back: fn(&str, Duration) -> Failure,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    evidence: Evidence<ModelId>,
    /// Until when calls wait for the one that finds out, and what the last refusal said.
    held: HashMap<ModelId, (Instant, String)>,
    /// When each model has answered last, if no refusal came since.
    answered: HashMap<ModelId, Instant>,
}

impl Doubts {
    /// Nothing is in doubt.
    pub(crate) fn new(comes_back: fn(&str, Duration) -> Failure) -> Self {
        Self { comes_back, state: Mutex::default() }
    }

    /// A call to `model` was refused in these words. What that means for its document: `None` where it
    /// is no passing fault.
    pub(crate) fn refused(&self, model: &ModelId, words: &str, now: Instant) -> Option<Failure> {
        let mut state = self.state.lock();
        let answered = state.answered.remove(model);
        let is_known = answered.is_some_and(|at| now.saturating_duration_since(at) < KNOWN);
        let Some(pause) = state.evidence.refused(model.clone(), now) else {
            state.held.remove(model);
            return None;
        };
        if !is_known {
            state.held.insert(model.clone(), (now + pause, words.to_owned()));
        }
        Some((self.comes_back)(words, pause))
    }

    /// The model has answered.
    pub(crate) fn answered(&self, model: &ModelId, now: Instant) {
        let mut state = self.state.lock();
        state.evidence.accepted(model);
        state.held.remove(model);
        if state.answered.len() >= MAX_REMEMBERED {
            state.answered.clear();
        }
        state.answered.insert(model.clone(), now);
    }

    /// Whether calls to `model` wait for one that finds out.
    ///
    /// # Errors
    /// A failure that comes back when the news is due.
    pub(crate) fn check(&self, model: &ModelId, now: Instant) -> Result<(), Failure> {
        self.state.lock().held.get(model).map_or(Ok(()), |held| self.look(held, now))
    }

    fn look(&self, (until, words): &(Instant, String), now: Instant) -> Result<(), Failure> {
        match until.checked_duration_since(now).filter(|left| !left.is_zero()) {
            Some(left) => Err(Failure { benign: true, ..(self.comes_back)(words, left) }),
            None => Ok(()),
        }
    }

    /// The same of a call that is about to leave: of those that wait for news, one does.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(crate) fn enter(self: &Arc<Self>, model: &ModelId, now: Instant) -> Result<Probe, Failure> {
        let mut state = self.state.lock();
        let Some(held) = state.held.get_mut(model) else { return Ok(Probe::default()) };
        self.look(held, now)?;
        let mine = now + PROBE;
        let before = std::mem::replace(&mut held.0, mine);
        let (doubts, model) = (Arc::clone(self), model.clone());
        Ok(Probe::new(move || {
            if let Some((until, _)) = doubts.state.lock().held.get_mut(&model)
                && *until == mine
            {
                *until = before;
            }
        }))
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
        doubts.enter(&model, at(0)).unwrap().leaves();
        assert!(doubts.refused(&model, "pay", at(0)).unwrap().is_retried());
        let behind = doubts.enter(&model, at(1)).unwrap_err();
        assert!(behind.is_retried() && behind.benign && behind.message.contains("pay"));
        assert!(doubts.check(&model, at(1)).is_err() && doubts.check(&model, at(2)).is_ok());
        drop(doubts.enter(&model, at(2)).unwrap());
        doubts.enter(&model, at(2)).unwrap().leaves();
        doubts.enter(&model, at(2)).unwrap_err();
        assert!(doubts.refused(&model, "pay", at(3)).is_some());
        doubts.enter(&model, at(13)).unwrap().leaves();
        assert!(doubts.refused(&model, "pay", at(13)).is_none());
        doubts.enter(&model, at(13)).unwrap().leaves();
        doubts.answered(&model, at(13));
        assert!(doubts.refused(&model, "pay", at(14)).is_some());
        doubts.answered(&model, at(14));
        doubts.enter(&model, at(14)).unwrap().leaves();
    }

    #[test]
    fn a_refusal_among_answers_costs_its_own_document_a_moment() {
        let (doubts, model, at) = doubts();
        for second in 0..9 {
            doubts.answered(&model, at(second));
            assert!(doubts.refused(&model, "pay", at(second)).unwrap().is_retried());
            doubts.enter(&model, at(second)).unwrap().leaves();
        }
        // A second one without an answer between them holds the others, and so does one long after.
        assert!(doubts.refused(&model, "pay", at(9)).is_some());
        doubts.enter(&model, at(9)).unwrap_err();
        doubts.answered(&model, at(10));
        assert!(doubts.refused(&model, "pay", at(10) + KNOWN).is_some());
        doubts.enter(&model, at(10) + KNOWN).unwrap_err();
    }
}
