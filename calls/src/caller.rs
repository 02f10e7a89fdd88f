//! Asks a question of the models of a route: chooses the model, pays for a retry, warms the cache,
//! admits, calls.

use std::sync::Arc;

use tidegate_providers::{
    BoxFuture, Completion, Embedded, EmbeddingRequest, Fields, Operation, Provider, Providers,
    RequestFacts, Verbatim, passive::Whole,
};
use tidegate_quota::Request;
use tidegate_types::{Lane, ModelId, Tenant};

use crate::{
    attempt::Attempt,
    budget::{Budgets, RetryBudget},
    failure::Failure,
    guard::Guard,
    route::{Queues, Route},
    spans,
    warm_cache::Warmth,
};

/// The services of a process that calls need.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Clients of the providers.
    pub providers: &'a Providers,
    /// The lengths of the models' queues.
    pub queues: &'a Queues,
    /// State of prompt caches.
    pub warmth: &'a Arc<Warmth>,
    /// Budgets of tenants and batches.
    pub budgets: &'a Arc<Budgets>,
    /// Admits every call.
    pub guard: &'a Guard,
}

/// The class of a call, and its payers.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The class of traffic.
    pub lane: &'a Lane,
    /// The tenant that makes the call.
    pub tenant: &'a Tenant,
    /// Budget of its batch, in US dollars.
    pub batch_usd: Option<f64>,
    /// Budget for calls beyond the first.
    pub retries: Option<&'a RetryBudget>,
}

/// A question that any model of a route can answer.
pub trait Question: Sync {
    /// Returns the template: token use is learned together for calls with the same template.
    fn template(&self) -> u64;

    /// Estimated input tokens, as this model counts them.
    fn input_tokens(&self, model: &ModelId) -> u64;

    /// Returns the bound on the answer in tokens, for a model that writes at most `cap`.
    fn room(&self, cap: Option<u32>) -> u32;

    /// Likely length of the answer in tokens, if most answers with the same template had `learned`;
    /// `None` if only the bound is known.
    fn likely_output(&self, learned: Option<u64>) -> Option<u64>;

    /// The instructions that the provider may cache for calls with the same template, and the
    /// cache's name.
    fn cached_instructions(&self) -> Option<(u64, &str)>;

    /// Builds the call to this model, with `room` tokens for its answer.
    fn call<'c>(&'c self, model: &'c ModelId, room: u32) -> tidegate_providers::Request<'c>;
}

impl Caller<'_> {
    /// Asks once. Returns the model that answered, and its answer.
    ///
    /// # Errors
    /// A [`Failure`] with the time of a retry, if any.
    pub async fn ask<'r>(
        &self,
        attempt: &Attempt,
        terms: Terms<'_>,
        route: &'r Route,
        question: &impl Question,
    ) -> Result<(&'r ModelId, Completion), Failure> {
        let chosen = self.choose(attempt, terms.lane, route).await?;
        let completion = self.ask_of(chosen, attempt, terms, route, question).await?;
        Ok((chosen.0, completion))
    }

    /// Like [`Self::ask`], for a model of the route that is already chosen.
    pub(crate) async fn ask_of(
        &self,
        (model, provider): (&ModelId, &dyn Provider),
        attempt: &Attempt,
        terms: Terms<'_>,
        route: &Route,
        question: &impl Question,
    ) -> Result<Completion, Failure> {
        let bounds = provider.bounds(model.model());
        let (room, input) = (question.room(bounds.output_tokens), question.input_tokens(model));
        let room = self.guard.learned_caps.get(model).map_or(room, |cap| room.min(cap));
        // The largest estimate for which the true count may be `most`: texts in languages with long
        // words have up to 6 bytes a token, and the estimate assumes 4.
        if let Some(context) = bounds.context_tokens.filter(|most| input > most + most / 2) {
            let too_large = Failure::exceeds_context(model, input, context);
            return Err(self.fall_back(attempt, route, model, too_large));
        }
        if let Some(retries) = terms.retries {
            retries.pay(&self.guard.quota, &self.guard.gates.health, attempt, model).await?;
        }
        let request = self
            .request(attempt, terms, route, model, question.template())
            .tokens(input, room.into());
        let learned = self.guard.quota.learned_output(model, question.template());
        let request = match question.likely_output(learned) {
            Some(likely) => request.likely_output(likely),
            None => request,
        };
        let call = question.call(model, room);
        let budget = self.budgets.call_budget(attempt, &request, terms.batch_usd)?;
        let first = match question.cached_instructions() {
            Some((name, instructions)) => self.warmth.enter(model, name, instructions).await,
            None => None,
        };
        let ask = || provider.complete(&call);
        let answered = self.guard.call("chat", attempt, provider, &request, ask, &budget).await;
        let completion =
            answered.map_err(|failure| self.fall_back(attempt, route, model, failure))?;
        if let Some(first) = first {
            first.succeeded();
        }
        Ok(completion)
    }

    /// Embeds texts with one call; returns the model and the vectors. `tokens` is the estimate for
    /// all texts; `template` groups similar calls.
    ///
    /// # Errors
    /// The errors of [`Self::ask`].
    pub async fn embed<'r, 'c>(
        &self,
        attempt: &Attempt,
        terms: Terms<'_>,
        route: &'r Route,
        (tokens, template): (u64, u64),
        call: impl FnOnce(&'r ModelId) -> EmbeddingRequest<'c>,
    ) -> Result<(&'r ModelId, Embedded), Failure> {
        let (model, provider) = self.choose(attempt, terms.lane, route).await?;
        // A server that takes one text a call refuses several together. So the first call for each
        // single text is no retry.
        if let Some(retries) = terms.retries.filter(|_| attempt.has_called()) {
            retries.pay(&self.guard.quota, &self.guard.gates.health, attempt, model).await?;
        }
        let request = self.request(attempt, terms, route, model, template).tokens(tokens, 0);
        let budget = self.budgets.call_budget(attempt, &request, terms.batch_usd)?;
        let call = call(model);
        let ask = || provider.embed(&call);
        let operation = spans::operation(Operation::Embeddings);
        let answered = self.guard.call(operation, attempt, provider, &request, ask, &budget).await;
        let embedded =
            answered.map_err(|failure| self.fall_back(attempt, route, model, failure))?;
        Ok((model, embedded))
    }

    /// Sends a body in the vendor's own form to a model that takes it; returns the model and the
    /// reply in one piece. If `operation` is absent, it is derived from the body's fields.
    ///
    /// # Errors
    /// The errors of [`Self::ask`]; `InvalidInput` where the provider takes no such body.
    pub async fn send<'r>(
        &self,
        attempt: &Attempt,
        terms: Terms<'_>,
        route: &'r Route,
        operation: Option<Operation>,
        body: &Fields,
    ) -> Result<(&'r ModelId, Whole), Failure> {
        let chosen = self.choose(attempt, terms.lane, route).await?;
        let whole = self.send_to(chosen, attempt, terms, route, operation, body).await?;
        Ok((chosen.0, whole))
    }

    /// Like [`Self::send`], for a model of the route that is already chosen.
    pub(crate) async fn send_to(
        &self,
        (model, provider): (&ModelId, &dyn Provider),
        attempt: &Attempt,
        terms: Terms<'_>,
        route: &Route,
        operation: Option<Operation>,
        body: &Fields,
    ) -> Result<Whole, Failure> {
        let operation = operation.or_else(|| read_operation(provider, body)).ok_or_else(|| {
            Failure::invalid_input(format!(
                "body: {model} does not take this form; give a prompt or messages, or a body of Chat Completions or Responses (OpenAI's dialect) or of Messages (Anthropic's dialect), as the model's provider takes it"
            ))
        })?;
        let mut named = body.clone();
        named
            .set("model", &model.model().into())
            .map_err(|error| Failure::invalid_input(format!("body: {error}")))?;
        let asked = RequestFacts::read(operation.path(), &named.to_vec());
        let cap = provider.bounds(model.model()).output_tokens;
        let ask = asked.map(|asked| Ask::from_facts(&asked, cap)).unwrap_or_default();
        if let Some(retries) = terms.retries {
            retries.pay(&self.guard.quota, &self.guard.gates.health, attempt, model).await?;
        }
        let request = self.request(attempt, terms, route, model, ask.template);
        let request = request.tokens(ask.input_tokens, ask.max_output_tokens);
        let budget = self.budgets.call_budget(attempt, &request, terms.batch_usd)?;
        let headers = http::HeaderMap::new();
        let call = Verbatim { operation, model: model.model(), body, headers: &headers };
        let ask = || -> BoxFuture<'_, _> {
            Box::pin(async { provider.send(&call).await?.whole().await })
        };
        let operation = spans::operation(operation);
        let whole = self.guard.call(operation, attempt, provider, &request, ask, &budget).await;
        whole.map_err(|failure| self.fall_back(attempt, route, model, failure))
    }

    /// Decides the next attempt after the failure of a call to `model`. A model with an unknown
    /// context may have more room.
    fn fall_back(
        &self,
        attempt: &Attempt,
        route: &Route,
        model: &ModelId,
        failure: Failure,
    ) -> Failure {
        let context = |model: &ModelId| {
            self.providers.get(model).and_then(|it| it.bounds(model.model()).context_tokens)
        };
        let has_more_room = |next: &ModelId| {
            context(next).zip(context(model)).is_none_or(|(next, this)| next > this)
        };
        route.fall_back(attempt, failure, has_more_room)
    }

    /// Chooses the model that is asked now, and its client.
    pub(crate) async fn choose<'r>(
        &self,
        attempt: &Attempt,
        lane: &Lane,
        route: &'r Route,
    ) -> Result<(&'r ModelId, &dyn Provider), Failure> {
        let none = || Failure::invalid_input("the route names no model");
        self.guard.check(attempt, route.models.first().ok_or_else(none)?)?;
        let model = route.choose(self.guard, self.queues, attempt, lane).await;
        let model = model.ok_or_else(none)?;
        let provider = self.providers.get(model).ok_or_else(|| no_provider(model))?;
        Ok((model, provider))
    }

    /// The limiter's request. If another model may take the document sooner, it waits only as long
    /// as it takes to find that out.
    fn request(
        &self,
        attempt: &Attempt,
        terms: Terms<'_>,
        route: &Route,
        model: &ModelId,
        template: u64,
    ) -> Request {
        let request = attempt.request(model.clone()).lane(terms.lane.clone());
        let request = request.tenant(terms.tenant.clone()).template(template);
        match route.models.len() {
            ..=1 => request,
            _ => request.max_wait(self.guard.quota.longest_wait_in_place()),
        }
    }
}

/// Recognises the operation of a body that is answered with text.
fn read_operation(provider: &dyn Provider, body: &Fields) -> Option<Operation> {
    let has = |name: &str| body.names().any(|given| given == name);
    let of_form = match has("messages") {
        true => [Operation::Messages, Operation::ChatCompletions].as_slice(),
        false if has("input") => &[Operation::Responses],
        false => &[],
    };
    of_form.iter().copied().find(|operation| provider.takes(*operation))
}

/// The failure if this process has no client for the model.
pub fn no_provider(model: &ModelId) -> Failure {
    Failure::invalid_input(format!(
        "no provider \"{provider}\" is configured here; correct the name of the model {model}, or add a [providers.{provider}] section to the configuration of every worker",
        provider = model.provider()
    ))
}

/// Output tokens reserved for a request that states no bound: most answers keep within it. If the
/// provider charges by use, the real use is learned.
pub const UNBOUNDED_OUTPUT: u64 = 4_096;

/// Properties of one call that the limiter needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Estimated input tokens; the error of the estimate is learned.
    pub input_tokens: u64,
    /// The call's own bound on its whole output, in tokens.
    pub max_output_tokens: u64,
    /// The class of traffic. Default `batch`.
    pub lane: Lane,
    /// The tenant that makes the call.
    pub tenant: Tenant,
    /// Template of the call. Token use is learned together for calls with the same template.
    pub template: u64,
}

impl Ask {
    /// Creates it with estimated input tokens, and a bound on the output tokens.
    pub fn tokens(input: u64, max_output: u64) -> Self {
        Self { input_tokens: input, max_output_tokens: max_output, ..Self::default() }
    }

    /// Reads the needs of a request in a vendor's form. `cap` is the model's own bound of one answer.
    pub fn from_facts(asked: &RequestFacts, cap: Option<u32>) -> Self {
        let each = asked.max_output_tokens.unwrap_or(UNBOUNDED_OUTPUT);
        let each = cap.map_or(each, |cap| each.min(cap.into()));
        let output = each.saturating_mul(asked.answers);
        Self { template: asked.template, ..Self::tokens(asked.input_tokens, output) }
    }

    /// Sets the lane.
    pub fn lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// Sets the tenant.
    pub fn tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    /// Sets the template.
    pub fn template(self, template: u64) -> Self {
        Self { template, ..self }
    }

    /// Makes the limiter's request, under the name of one attempt.
    pub fn request(self, model: ModelId, reservation: impl Into<String>) -> Request {
        let Self { input_tokens, max_output_tokens, lane, tenant, template } = self;
        Request::new(model, reservation)
            .tokens(input_tokens, max_output_tokens)
            .lane(lane)
            .tenant(tenant)
            .template(template)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_answer_is_bounded_and_all_are_counted() {
        let output = |path: &str, mut body: Value, cap| {
            body["model"] = "m".into();
            let asked = RequestFacts::read(path, body.to_string().as_bytes()).unwrap();
            Ask::from_facts(&asked, cap).max_output_tokens
        };
        let chat = |body, cap| output("/v1/chat/completions", body, cap);
        assert_eq!(chat(json!({}), None), UNBOUNDED_OUTPUT);
        assert_eq!(chat(json!({"n": 100}), None), 100 * UNBOUNDED_OUTPUT);
        assert_eq!(chat(json!({"n": 100}), Some(1_000)), 100_000);
        assert_eq!(chat(json!({"n": 1_000_000, "max_tokens": 1_000}), Some(16_384)), 1_000_000_000);
        assert_eq!(chat(json!({"n": 2, "max_tokens": 50_000}), Some(16_384)), 32_768);
        assert_eq!(chat(json!({"n": u64::MAX, "max_tokens": 9}), None), u64::MAX);
        assert_eq!(output("/v1/embeddings", json!({"n": 9}), Some(1)), 0);
    }
}
