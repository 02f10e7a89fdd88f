//! Accounts that are said to be spent: one such reply may be a passing fault, and is asked about again
//! before the model is left alone for the whole fleet.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_providers::Error;
use tidegate_types::ModelId;

use crate::{call::evidence::Evidence, failure::Failure};

/// A call that finds out has this long until another one does.
const PROBE: Duration = Duration::from_secs(10);

/// What this worker's calls were told of the accounts behind models.
#[derive(Debug, Default)]
pub struct Accounts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    evidence: Evidence<ModelId>,
    /// Until when calls wait for the one that finds out, and what the last refusal said.
    held: HashMap<ModelId, (Instant, String)>,
}

impl Accounts {
    /// A call to `model` was refused because its account is spent. What that means for its document:
    /// `None` where it is no passing fault.
    pub(crate) fn refused(&self, model: &ModelId, error: &Error, now: Instant) -> Option<Failure> {
        let mut state = self.0.lock();
        let Some(pause) = state.evidence.refused(model.clone(), now) else {
            state.held.remove(model);
            return None;
        };
        state.held.insert(model.clone(), (now + pause, error.message.clone()));
        Some(Failure::account_may_pass(&error.message, pause))
    }

    /// A call to `model` was let in.
    pub(crate) fn accepted(&self, model: &ModelId) {
        let mut state = self.0.lock();
        state.evidence.accepted(model);
        state.held.remove(model);
    }

    /// Whether a call to `model` may leave: of those that wait for news, one does.
    ///
    /// # Errors
    /// `QuotaExhausted`, which comes back when the news is due.
    pub(crate) fn enter(&self, model: &ModelId, now: Instant) -> Result<(), Failure> {
        let mut state = self.0.lock();
        let Some((until, words)) = state.held.get_mut(model) else { return Ok(()) };
        if let Some(left) = until.checked_duration_since(now).filter(|left| !left.is_zero()) {
            return Err(Failure { benign: true, ..Failure::account_may_pass(words, left) });
        }
        *until = now + PROBE;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tidegate_providers::{Charged, Kind};

    use super::*;

    #[test]
    fn one_call_finds_out_and_the_third_refusal_is_a_verdict() {
        let (accounts, model): (_, ModelId) = (Accounts::default(), "a:b".parse().unwrap());
        let error = Error {
            kind: Kind::QuotaExhausted,
            span: None,
            message: "pay".to_owned(),
            retry_after: None,
            charged: Charged::No,
            status: Some(402),
            observed: Box::default(),
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        accounts.enter(&model, at(0)).unwrap();
        assert!(accounts.refused(&model, &error, at(0)).unwrap().is_retried());
        let behind = accounts.enter(&model, at(1)).unwrap_err();
        assert!(behind.is_retried() && behind.benign && behind.message.contains("pay"));
        accounts.enter(&model, at(2)).unwrap();
        accounts.enter(&model, at(2)).unwrap_err();
        assert!(accounts.refused(&model, &error, at(3)).is_some());
        accounts.enter(&model, at(13)).unwrap();
        assert!(accounts.refused(&model, &error, at(13)).is_none());
        accounts.enter(&model, at(13)).unwrap();
        accounts.accepted(&model);
        assert!(accounts.refused(&model, &error, at(14)).is_some());
        accounts.accepted(&model);
        accounts.enter(&model, at(14)).unwrap();
    }
}
