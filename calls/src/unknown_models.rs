//! Models that their provider does not know, or that do not support what a batch asks.
//!
//! All documents of a batch name the same model and have the same form, so that after a few
//! refusals the others need not be sent. A name may become known soon (a deployment, a gateway that
//! restarts), so it is in doubt first. After three refusals with the same message before any answer
//! the form is in doubt too: the documents may be broken, and others good. A form that the provider
//! does not support is refused for all documents then.
//!
//! This is remembered for each run of a batch: a corrected batch that runs again does not fail on
//! the refusals of an earlier run.

use std::{collections::HashMap, sync::Arc, time::Instant};

use parking_lot::Mutex;
use tidegate_providers::{Error, Kind};
use tidegate_types::{FailureType, ModelId};
use tracing::warn;

use crate::{
    doubts::{Doubts, Probe},
    failure::{Failure, MAX_FAULTS, SAME_REFUSALS, UNKNOWN_MODEL},
};

/// Maximum number of remembered runs; beyond it, all are forgotten at once, and each costs a few
/// more calls.
const MAX_REMEMBERED: usize = 1_000;

/// The runs of batches that no longer ask a model, and models whose name is in doubt.
#[derive(Debug)]
pub struct UnknownModels {
    doubts: Arc<Doubts>,
    state: Mutex<State>,
}

impl Default for UnknownModels {
    fn default() -> Self {
        Self { doubts: Arc::new(Doubts::new(Failure::model_may_come)), state: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct State {
    /// By model, and by the run that asked it.
    refused: HashMap<(ModelId, String), RefusedRun>,
}

#[derive(Debug, Default)]
struct RefusedRun {
    /// Refusals in a row with the same message.
    times: u32,
    /// The kind of the last one.
    kind: Option<Kind>,
    /// The message of the last one.
    words: String,
    /// No call is made before this time.
    until: Option<Instant>,
}

fn failure(kind: Option<Kind>, model: &ModelId, words: &str) -> Failure {
    match kind {
        Some(Kind::UnknownModel) => Failure::unknown_model(model, words),
        _ => Failure::unsupported(model, words),
    }
}

impl UnknownModels {
    /// Whether a call of this run to `model` may be made.
    ///
    /// # Errors
    /// `InvalidRequest`: final if the provider does not know the model or does not take what the
    /// batch asks; retried while another call tests the model.
    pub(crate) fn check(&self, model: &ModelId, run: &str, now: Instant) -> Result<(), Failure> {
        self.check_run(model, run, now)?;
        self.doubts.check((model, Some(run)), now)
    }

    /// Checks a call that is about to leave; while the model's name is in doubt, one call of the
    /// run passes.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub(crate) fn enter(&self, model: &ModelId, run: &str, now: Instant) -> Result<Probe, Failure> {
        self.check_run(model, run, now)?;
        self.doubts.enter((model, Some(run)), now)
    }

    fn check_run(&self, model: &ModelId, run: &str, now: Instant) -> Result<(), Failure> {
        let state = self.state.lock();
        match state.refused.get(&(model.clone(), run.to_owned())) {
            Some(RefusedRun { until: Some(until), words, kind, .. }) if now < *until => {
                Err(failure(*kind, model, words))
            }
            _ => Ok(()),
        }
    }

    /// Records a call that was refused for the model's name or form. Returns the failure of its
    /// document, which has had `faults` failed calls.
    pub(crate) fn refused(
        &self,
        model: &ModelId,
        run: &str,
        error: &Error,
        faults: u32,
        now: Instant,
    ) -> Failure {
        if error.kind == Kind::UnknownModel {
            let in_doubt = self.doubts.refused((model, Some(run)), &error.message, now);
            match in_doubt {
                // A gateway may look for a model that takes this one document.
                Some(_) if faults >= MAX_FAULTS => {}
                Some(comes_back) => return comes_back,
                None => self.remember(model, run, error, now, 1),
            }
            return failure(Some(error.kind), model, &error.message);
        }
        self.remember(model, run, error, now, SAME_REFUSALS);
        match error.kind {
            Kind::Unsupported => failure(Some(error.kind), model, &error.message),
            _ => Failure::never(FailureType::InvalidRequest, &error.message),
        }
    }

    /// After `enough` refusals with the same message, this run no longer asks the model.
    fn remember(&self, model: &ModelId, run: &str, error: &Error, now: Instant, enough: u32) {
        if error.kind != Kind::UnknownModel && self.doubts.has_answered(model, now) {
            return;
        }
        let mut state = self.state.lock();
        if state.refused.len() >= MAX_REMEMBERED {
            state.refused.clear();
        }
        let refused = state.refused.entry((model.clone(), run.to_owned())).or_default();
        if without_id(&refused.words) != without_id(&error.message) {
            refused.times = 0;
        }
        refused.times += 1;
        refused.words.clone_from(&error.message);
        refused.kind = Some(error.kind);
        let in_doubt = || self.doubts.refused((model, Some(run)), &error.message, now).is_some();
        if refused.times >= enough && !(error.kind == Kind::InvalidRequest && in_doubt()) {
            if refused.until.is_none() {
                warn!(
                    %model, words = error.message,
                    "the provider does not know this model, or does not take what the batch asks of it; this run of the batch does not ask it again for {UNKNOWN_MODEL:?}"
                );
            }
            refused.until = Some(now + UNKNOWN_MODEL);
        }
    }

    /// Records that the model has answered.
    pub(crate) fn answered(&self, model: &ModelId, now: Instant) {
        self.doubts.answered(model, now);
        self.state.lock().refused.retain(|(of, _), _| of != model);
    }
}

/// The message without the id of its request.
fn without_id(message: &str) -> &str {
    message.split_once(": ").map_or(message, |(_, rest)| rest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::time::Duration;

    use tidegate_providers::Charged;

    use super::*;

    fn error(kind: Kind, message: &str) -> Error {
        let nothing = Error::no_reply(message.to_owned(), Charged::No);
        Error { kind, status: Some(404), ..nothing }
    }

    fn models() -> (UnknownModels, ModelId, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        let at = move |seconds| start + Duration::from_secs(seconds);
        (UnknownModels::default(), "a:b".parse().unwrap(), at)
    }

    #[test]
    fn three_refusals_stop_a_run_for_a_while_and_no_other_run() {
        let (models, model, at) = models();
        let unknown = error(Kind::UnknownModel, "not_found_error: model: b");
        for second in [0, 2] {
            models.enter(&model, "run", at(second)).unwrap().use_up();
            let failure = models.refused(&model, "run", &unknown, 1, at(second));
            assert!(failure.is_retried() && !failure.model_is_gone(), "{failure:?}");
            assert!(models.enter(&model, "run", at(second + 1)).unwrap_err().is_retried());
            models.enter(&model, "another run", at(second + 1)).unwrap().use_up();
        }
        models.enter(&model, "run", at(12)).unwrap().use_up();
        assert!(models.refused(&model, "run", &unknown, 1, at(12)).model_is_gone());
        let behind = models.check(&model, "run", at(12)).unwrap_err();
        assert_eq!((behind.kind, behind.model_is_gone()), (FailureType::InvalidRequest, true));
        assert!(behind.message.contains("a does not know the model b"), "{behind}");
        assert!(behind.message.contains("not_found_error: model: b"), "{behind}");
        models.check(&model, "another run", at(12)).unwrap();
        models.check(&"a:c".parse().unwrap(), "run", at(12)).unwrap();
        models.check(&model, "run", at(12) + UNKNOWN_MODEL).unwrap();
        models.answered(&model, at(12));
        models.check(&model, "run", at(12)).unwrap();
    }

    #[test]
    fn refusals_in_the_same_words_before_any_answer_may_be_about_all_documents() {
        let (models, model, at) = models();
        let refused = |call: u32, words: &str, second| {
            let error = error(Kind::InvalidRequest, &format!("a (call {call}): {words}"));
            let failure = models.refused(&model, "run", &error, 1, at(second));
            assert!(!failure.is_retried() && !failure.model_is_gone(), "{failure:?}");
        };
        let broken = |call| refused(call, &format!("status 400: image {call} is broken"), 0);
        (0..9).for_each(broken);
        models.check(&model, "run", at(0)).unwrap();
        let no_field = |call, second| refused(call, "status 400: no field seed", second);
        (0..9).for_each(|call| no_field(call, 0));
        let behind = models.check(&model, "run", at(0)).unwrap_err();
        assert!(behind.message.contains("no field seed") && behind.is_retried(), "{behind}");
        for second in [2, 12] {
            models.enter(&model, "run", at(second)).unwrap().use_up();
            no_field(9, second);
        }
        assert!(models.check(&model, "run", at(12)).unwrap_err().model_is_gone());
        models.answered(&model, at(13));
        (0..9).for_each(|call| no_field(call, 13));
        models.check(&model, "run", at(13)).unwrap();
    }

    #[test]
    fn a_form_that_is_not_supported_is_refused_for_all_documents() {
        let (models, model, at) = models();
        let unsupported = error(Kind::Unsupported, "status 400: no pictures");
        for _ in 0..SAME_REFUSALS {
            models.check(&model, "run", at(0)).unwrap();
            assert!(models.refused(&model, "run", &unsupported, 1, at(0)).model_is_gone());
        }
        assert!(models.check(&model, "run", at(0)).unwrap_err().model_is_gone());
    }

    #[test]
    fn a_document_that_a_known_model_is_not_there_for_fails_alone() {
        let (models, model, at) = models();
        let unknown = error(Kind::UnknownModel, "no endpoint takes pictures");
        for (faults, second) in [(1, 0), (2, 20), (MAX_FAULTS, 40)] {
            models.answered(&model, at(second));
            let failure = models.refused(&model, "run", &unknown, faults, at(second));
            assert_eq!(failure.is_retried(), faults < MAX_FAULTS, "{failure:?}");
            models.enter(&model, "run", at(second)).unwrap().use_up();
        }
    }
}
