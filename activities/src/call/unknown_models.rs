//! Models that their provider does not know, or that do not take what a batch asks of them.
//!
//! What is no request that can be answered may be about one document; where the first ones are refused
//! in the same words before anything is answered, it is about what all of them share.
//!
//! Every document of a batch is asked about under the same name, so that who is told a few times that
//! there is no such model need not ask for each of the others. It is remembered for each run of a
//! batch alone: who has corrected something and runs it again is not answered with what an earlier
//! run met. A model that has just answered is known, whatever a gateway says while it restarts.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_providers::{Error, Kind};
use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;
use tracing::warn;

use crate::failure::{Failure, UNKNOWN_MODEL, UNKNOWN_MODEL_ANSWERS};

/// A model that has answered within this time is known.
const KNOWN: Duration = Duration::from_secs(600);

/// All is forgotten at once beyond so many. Each costs a few calls more then.
const MAX_REMEMBERED: usize = 1_000;

/// What this worker's calls have been told of models.
#[derive(Debug, Default)]
pub struct UnknownModels(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By the model, and the run of the batch that asked it.
    unknown: HashMap<(ModelId, String), Unknown>,
    /// When each model has answered last.
    answered: HashMap<ModelId, Instant>,
}

#[derive(Debug, Default)]
struct Unknown {
    /// Answers in a row that there is no such model.
    answers: u32,
    /// What the last of them was.
    kind: Option<Kind>,
    /// What the last of them said.
    words: String,
    /// No call is made before.
    until: Option<Instant>,
}

fn failure(kind: Option<Kind>, model: &ModelId, words: &str) -> Failure {
    match kind {
        Some(Kind::Unsupported | Kind::InvalidRequest) => Failure::unsupported(model, words),
        _ => Failure::unknown_model(model, words),
    }
}

impl UnknownModels {
    /// Whether a call of this run to `model` may be made.
    ///
    /// # Errors
    /// `InvalidRequest`, for good: the provider has said that it does not know the model.
    pub(crate) fn check(&self, model: &ModelId, run: &str, now: Instant) -> Result<(), Failure> {
        let state = self.0.lock();
        match state.unknown.get(&(model.clone(), run.to_owned())) {
            Some(Unknown { until: Some(until), words, kind, .. }) if now < *until => {
                Err(failure(*kind, model, words))
            }
            _ => Ok(()),
        }
    }

    /// A provider does not know the model of a call. What that means for the document.
    pub(crate) fn refused(
        &self,
        model: &ModelId,
        run: &str,
        error: &Error,
        now: Instant,
    ) -> Failure {
        let mut state = self.0.lock();
        let answered = state.answered.get(model);
        let is_known = answered.is_some_and(|at| now.saturating_duration_since(*at) < KNOWN);
        if !is_known {
            if state.unknown.len() >= MAX_REMEMBERED {
                state.unknown.clear();
            }
            let unknown = state.unknown.entry((model.clone(), run.to_owned())).or_default();
            let may_be_the_document = error.kind == Kind::InvalidRequest;
            if may_be_the_document && said(&unknown.words) != said(&error.message) {
                unknown.answers = 0;
            }
            unknown.answers += 1;
            unknown.words.clone_from(&error.message);
            unknown.kind = Some(error.kind);
            if unknown.answers >= UNKNOWN_MODEL_ANSWERS {
                if unknown.until.is_none() {
                    warn!(
                        %model, words = error.message,
                        "the provider does not know this model, or does not take what the batch asks of it; this run of the batch does not ask it again for {UNKNOWN_MODEL:?}"
                    );
                }
                unknown.until = Some(now + UNKNOWN_MODEL);
            }
        }
        match error.kind {
            Kind::InvalidRequest => Failure::never(FailureType::InvalidRequest, &error.message),
            kind => failure(Some(kind), model, &error.message),
        }
    }

    /// The model has answered.
    pub(crate) fn answered(&self, model: &ModelId, now: Instant) {
        let mut state = self.0.lock();
        state.unknown.retain(|(of, _), _| of != model);
        state.answered.insert(model.clone(), now);
    }
}

/// The words of a refusal without the name of its call.
fn said(message: &str) -> &str {
    message.split_once(": ").map_or(message, |(_, said)| said)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use tidegate_providers::Charged;

    use super::*;

    fn error() -> Error {
        Error {
            kind: Kind::UnknownModel,
            message: "not_found_error: model: b".to_owned(),
            retry_after: None,
            charged: Charged::No,
            status: Some(404),
            span: None,
            observed: Box::default(),
        }
    }

    #[test]
    fn a_run_that_was_told_a_few_times_asks_no_more_for_a_while_and_another_run_asks() {
        let (models, model): (_, ModelId) = (UnknownModels::default(), "a:b".parse().unwrap());
        let start = Instant::now();
        for _ in 0..UNKNOWN_MODEL_ANSWERS {
            models.check(&model, "run", start).unwrap();
            let failure = models.refused(&model, "run", &error(), start);
            assert!(!failure.is_retried() && failure.model_is_gone(), "{failure:?}");
        }
        let behind = models.check(&model, "run", start).unwrap_err();
        assert_eq!((behind.kind, behind.model_is_gone()), (FailureType::InvalidRequest, true));
        assert!(behind.message.contains("a does not know the model b"), "{behind}");
        assert!(behind.message.contains("not_found_error: model: b"), "{behind}");
        models.check(&model, "another run", start).unwrap();
        models.check(&"a:c".parse().unwrap(), "run", start).unwrap();
        models.check(&model, "run", start + UNKNOWN_MODEL).unwrap();
        models.answered(&model, start);
        models.check(&model, "run", start).unwrap();
    }

    #[test]
    fn refusals_in_the_same_words_before_any_answer_are_about_all_documents() {
        let (models, model): (_, ModelId) = (UnknownModels::default(), "a:b".parse().unwrap());
        let start = Instant::now();
        let refused = |call: u32, words: &str| {
            let message = format!("a (call {call}): {words}");
            let error = Error { kind: Kind::InvalidRequest, message, ..error() };
            let failure = models.refused(&model, "run", &error, start);
            assert!(!failure.is_retried() && !failure.model_is_gone(), "{failure:?}");
        };
        (0..9).for_each(|call| refused(call, &format!("status 400: image {call} is broken")));
        models.check(&model, "run", start).unwrap();
        (0..UNKNOWN_MODEL_ANSWERS).for_each(|call| refused(call, "status 400: no field seed"));
        let behind = models.check(&model, "run", start).unwrap_err();
        assert!(behind.message.contains("no field seed") && behind.model_is_gone(), "{behind}");
        models.answered(&model, start);
        (0..9).for_each(|call| refused(call, "status 400: no field seed"));
        models.check(&model, "run", start).unwrap();
    }

    #[test]
    fn a_model_that_has_just_answered_is_known() {
        let (models, model): (_, ModelId) = (UnknownModels::default(), "a:b".parse().unwrap());
        let start = Instant::now();
        models.answered(&model, start);
        for _ in 0..2 * UNKNOWN_MODEL_ANSWERS {
            let _ = models.refused(&model, "run", &error(), start);
        }
        models.check(&model, "run", start).unwrap();
        let later = start + KNOWN;
        for _ in 0..UNKNOWN_MODEL_ANSWERS {
            let _ = models.refused(&model, "run", &error(), later);
        }
        models.check(&model, "run", later).unwrap_err();
    }
}
