//! A question's way to its answer: choose the model, pay for a retry, warm the cache, admit, call.

use std::sync::Arc;

use tidegate_calls::{
    budget::Budgets,
    guard::Guard,
    retries::RetryBudget,
    route::{Queues, Route},
    warm_cache::Warmth,
};
use tidegate_providers::{Completion, Embedded, EmbeddingRequest, Provider, Providers};
use tidegate_quota::Request;
use tidegate_types::ModelId;
use tidegate_workflows::contract::Job;

use crate::{
    batch::job::Shard,
    call::{attempt::Attempt, prompt::Question},
    failure::Failure,
};

/// What a worker asks with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) providers: &'a Providers,
    pub(crate) queues: &'a Queues,
    pub(crate) warmth: &'a Arc<Warmth>,
    pub(crate) budgets: &'a Arc<Budgets>,
    pub(crate) guard: &'a Guard,
}

impl Caller<'_> {
    /// Asks once; the model that answered, and its answer.
    ///
    /// # Errors
    /// A [`Failure`] that says whether and when to try again.
    pub(crate) async fn ask<'r>(
        &self,
        attempt: &Attempt,
        job: &Job,
        retries: Option<&RetryBudget>,
        route: &'r Route,
        question: &Question<'_>,
    ) -> Result<(&'r ModelId, Completion), Failure> {
        let (model, provider) = self.choose(attempt, job, route).await?;
        let bounds = provider.bounds(model.model());
        let (room, input) = (question.room(bounds.output_tokens), question.input_tokens_of(model));
        let room = self.guard.learned_caps.of(model).map_or(room, |cap| room.min(cap));
        if let Some(context) = bounds.context_tokens.filter(|most| input > overestimated(*most)) {
            let too_large = Failure::exceeds_context(model, input, context);
            return Err(self.fall_back(attempt, route, model, too_large));
        }
        if let Some(retries) = retries {
            retries
                .pay(&self.guard.quota, &attempt.call, || self.guard.gates.health.words(model))
                .await?;
        }
        let request = request(attempt, job, model, question.alike()).tokens(input, room.into());
        let learned = self.guard.quota.learned_output(model, question.alike());
        let request = match question.likely(learned) {
            Some(likely) => request.likely_output(likely),
            None => request,
        };
        let call = question.call(model, room);
        let budget = self.budgets.call_budget(&attempt.call, &request, job.budget_usd)?;
        let first = if question.cache {
            self.warmth.enter(model, question.template, question.system()).await
        } else {
            None
        };
        let answered = self.guard.call(&attempt.call, provider, &request, &call, &budget).await;
        let completion =
            answered.map_err(|failure| self.fall_back(attempt, route, model, failure))?;
        if let Some(first) = first {
            first.succeeded();
        }
        Ok((model, completion))
    }

    /// Asks once for the vectors of some texts; the model that gave them, and the vectors. `tokens`
    /// is what all of them have, estimated; `template` names the calls that are like this one.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) async fn embed<'r>(
        &self,
        attempt: &Attempt,
        shard: &'r Shard,
        texts: &[&str],
        tokens: u64,
    ) -> Result<(&'r ModelId, Embedded), Failure> {
        let (job, route) = (&shard.job, &shard.route);
        let (model, provider) = self.choose(attempt, job, route).await?;
        // A server that takes one text a call refuses several together: the first call of each alone is
        // no retry.
        if let Some(retries) = shard.retries.as_ref().filter(|_| attempt.call.has_called()) {
            retries
                .pay(&self.guard.quota, &attempt.call, || self.guard.gates.health.words(model))
                .await?;
        }
        let request = request(attempt, job, model, shard.template).tokens(tokens, 0);
        let call = EmbeddingRequest {
            model: model.model(),
            texts,
            dimensions: job.dimensions,
            fields: job.asked_with.get(model).map(|with| &with.parameters),
        };
        let budget = self.budgets.call_budget(&attempt.call, &request, job.budget_usd)?;
        let embedded = self.guard.embed(&attempt.call, provider, &request, &call, &budget).await;
        let embedded =
            embedded.map_err(|failure| self.fall_back(attempt, route, model, failure))?;
        Ok((model, embedded))
    }

    /// What the failure of a call to `model` means for the next. A model whose context nobody knows may
    /// have more room.
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
        route.fall_back(&attempt.call, failure, has_more_room)
    }

    /// The model that is asked now, and who serves it.
    async fn choose<'r>(
        &self,
        attempt: &Attempt,
        job: &Job,
        route: &'r Route,
    ) -> Result<(&'r ModelId, &dyn Provider), Failure> {
        let none = || Failure::invalid_input("the route names no model");
        self.guard.check(&attempt.call, route.models.first().ok_or_else(none)?)?;
        let model = route.choose(self.guard, self.queues, &attempt.call, &job.lane).await;
        let model = model.ok_or_else(none)?;
        let provider = self.providers.get(model).ok_or_else(|| no_provider(model))?;
        Ok((model, provider))
    }
}

fn request(attempt: &Attempt, job: &Job, model: &ModelId, template: u64) -> Request {
    let request = attempt.call.request(model.clone()).lane(job.lane.clone());
    request.tenant(job.tenant.clone()).template(template)
}

/// So many estimated tokens may be so few in truth: texts in languages with long words have up to 6
/// bytes a token, where 4 are taken for one.
fn overestimated(tokens: u64) -> u64 {
    tokens + tokens / 2
}

pub(crate) fn no_provider(model: &ModelId) -> Failure {
    Failure::invalid_input(format!(
        "this worker has no provider \"{}\"; give all workers the same configuration",
        model.provider()
    ))
}
