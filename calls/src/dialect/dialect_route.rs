//! Splits a route's models into those that take a request as it is and those that take it
//! translated.

use std::sync::Arc;

use serde_json::Value;
use tidegate_providers::{Fields, Operation, Providers, RequestFacts};
use tidegate_types::{ModelId, Usage};

use crate::{
    attempt::Attempt,
    caller::{Caller, Question as _, Terms},
    dialect::{conversation::RefusedField, translated::Translated},
    failure::Failure,
    route::Route,
};

/// The form in which each model of a route is asked.
#[derive(Debug)]
pub struct DialectRoute {
    operation: Operation,
    /// The models that take the request as it is or translated.
    pub route: Route,
    translated: Option<Arc<Translated>>,
}

impl DialectRoute {
    /// Reads a request for the models of `route`. If it cannot be translated, only the models that
    /// speak its own dialect are kept.
    ///
    /// # Errors
    /// Names the refused field, if no model takes the request as it is.
    pub fn read(
        (operation, name): (Operation, &str),
        fields: &Fields,
        asked: &RequestFacts,
        route: &Route,
        providers: &Providers,
    ) -> Result<Self, RefusedField> {
        let takes = |model: &ModelId| providers.get(model).is_some_and(|it| it.takes(operation));
        let (own, others) = (route.filter(takes), route.filter(|model| !takes(model)));
        let translated = match others.models.is_empty() {
            true => None,
            false => Some(Translated::read((operation, name), fields, asked, &others, providers)),
        };
        match translated {
            Some(Ok((translated, others))) => {
                let route = route.filter(|model| takes(model) || others.models.contains(model));
                Ok(Self { operation, route, translated: Some(Arc::new(translated)) })
            }
            Some(Err(refused)) if own.models.is_empty() => Err(refused),
            _ => Ok(Self { operation, route: own, translated: None }),
        }
    }

    /// The translated request for this model; `None` if the model takes it as it is.
    pub fn translated(&self, model: &ModelId) -> Option<&Arc<Translated>> {
        self.translated.as_ref().filter(|it| it.parameters.contains_key(model))
    }

    /// Asks once; returns the model, its token use, and the answer in the request's dialect.
    ///
    /// # Errors
    /// The errors of [`Caller::ask`].
    pub async fn ask(
        &self,
        caller: Caller<'_>,
        attempt: &Attempt,
        terms: Terms<'_>,
        body: &Fields,
    ) -> Result<(&ModelId, Option<Usage>, Value), Failure> {
        let chosen = caller.choose(attempt, terms.lane, &self.route).await?;
        let model = chosen.0;
        let Some(question) = self.translated(model) else {
            let operation = Some(self.operation);
            let sent = caller.send_to(chosen, attempt, terms, &self.route, operation, body);
            let whole = sent.await?;
            return Ok((model, whole.facts.usage, whole.body));
        };
        let asked = caller.ask_of(chosen, attempt, terms, &self.route, &**question);
        let completion = asked.await?;
        let answer = question.answer(&completion);
        let estimate =
            || Usage { uncached_input: question.input_tokens(model), ..Usage::default() };
        Ok((model, completion.usage.or_else(|| Some(estimate())), answer))
    }
}
