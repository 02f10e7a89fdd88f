//! What a call asks, and its way to an answer: choose the model, pay for a retry, warm the cache,
//! admit, call.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;
use tidegate_documents::tokens;
use tidegate_providers::{Completion, Document as Body, Request as Call};
use tidegate_quota::Request;
use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;

use crate::{
    batch::job::{self, Shard},
    call::attempt::Attempt,
    call::estimate,
    failure::Failure,
    services::Services,
};

/// What of a document goes to the provider.
#[derive(Debug)]
pub(crate) enum Content {
    /// Its text.
    Text(String),
    /// A PDF as it is, and its pages.
    Pdf(Bytes, usize),
}

impl Content {
    /// Estimated tokens of the document alone.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) => tokens::estimate(text),
            Self::Pdf(_, pages) => *pages as u64 * TOKENS_PER_PAGE,
        }
    }
}

/// A page as models that see it count it: between 258 (Gemini) and 3,000 and a picture (Anthropic).
/// Ratios are learned.
const TOKENS_PER_PAGE: u64 = 2_000;

/// What a call asks.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    instructions: Cow<'a, str>,
    content: &'a Content,
    schema: Option<Cow<'a, Value>>,
    max_output_tokens: u32,
    /// Hash of what prompts like this one share.
    template: u64,
    cache: bool,
}

impl<'a> Question<'a> {
    /// What the batch asks about one document.
    pub(crate) fn of(shard: &'a Shard, content: &'a Content) -> Self {
        let job = &shard.job;
        Self {
            instructions: Cow::Borrowed(&job.instructions),
            content,
            schema: job.schema.as_ref().map(Cow::Borrowed),
            max_output_tokens: job.max_output_tokens,
            template: shard.template,
            // A prefix that is read once costs more to write than it saves.
            cache: shard.documents.len() > 1 || job.long.is_some(),
        }
    }

    /// The same, with something said after the batch's instructions.
    pub(crate) fn beside(mut self, said: &str) -> Self {
        self.instructions = format!("{}\n\n{said}", self.instructions).into();
        // Other instructions have other answers.
        self.template ^= job::hash([said.as_bytes()]);
        self
    }

    /// The same, asked once or seldom: nothing is to be cached.
    pub(crate) fn uncached(self) -> Self {
        Self { cache: false, ..self }
    }

    /// The same, with another form of answer.
    pub(crate) fn answered_as(self, schema: Value, max_output_tokens: u32) -> Self {
        Self { schema: Some(Cow::Owned(schema)), max_output_tokens, ..self }
    }

    /// Estimated input tokens.
    pub(crate) fn input_tokens(&self) -> u64 {
        estimate::input_tokens(&self.instructions, self.content.tokens(), self.schema.as_deref())
    }

    /// As a provider takes it.
    pub(crate) fn call(&'a self, model: &'a ModelId) -> Call<'a> {
        Call {
            model: model.model(),
            instructions: &self.instructions,
            document: match self.content {
                Content::Text(text) => Body::Text(text),
                Content::Pdf(bytes, _) => Body::Pdf(bytes),
            },
            max_output_tokens: self.max_output_tokens,
            schema: self.schema.as_deref(),
            cache_instructions: self.cache,
        }
    }
}

/// Asks it, once; the model that answered, and its answer.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub(crate) async fn ask<'s>(
    services: &Services,
    attempt: &Attempt,
    shard: &'s Shard,
    question: &Question<'_>,
) -> Result<(&'s ModelId, Completion), Failure> {
    let (job, route) = (&shard.job, &shard.route);
    let model = route.choose(&services.guard, &services.queues, attempt, &job.lane).await;
    let model = model.ok_or_else(|| Failure::invalid_input("the route names no model"))?;
    let provider = services.providers.get(model).ok_or_else(|| no_provider(model))?;
    spend_retry(services, attempt, shard).await?;
    let request = Request::new(model.clone(), attempt.reservation.clone())
        .lane(job.lane.clone())
        .tenant(job.tenant.clone())
        .tokens(question.input_tokens(), u64::from(question.max_output_tokens))
        .template(question.template)
        .ticket(attempt.notes().ticket);
    let call = question.call(model);
    let call_budget = services.budgets.call_budget(attempt, &request, job.budget_usd)?;
    let first = if question.cache {
        services.warmth.enter(model, question.template, &question.instructions).await
    } else {
        None
    };
    let answered = services.guard.call(attempt, provider, &request, &call, &call_budget).await;
    let completion = answered.map_err(|failure| route.fall_back(attempt, failure))?;
    if let Some(first) = first {
        first.succeeded();
    }
    Ok((model, completion))
}

pub(crate) fn no_provider(model: &ModelId) -> Failure {
    Failure::invalid_input(format!(
        "this worker has no provider \"{}\"; give all workers the same configuration",
        model.provider()
    ))
}

/// Calls beyond a document's first come out of the batch's retry budget. An attempt that only waits
/// for quota and returns has been counted already, so the count is taken when the call before has
/// been made since.
async fn spend_retry(services: &Services, attempt: &Attempt, shard: &Shard) -> Result<(), Failure> {
    let Some(budget) = shard.job.retry_budget else { return Ok(()) };
    if !attempt.must_pay_for_retry() {
        return Ok(());
    }
    match services.guard.quota.count_retry(&attempt.batch).await {
        Some(spent) if spent > budget => Err(Failure::never(
            FailureType::BudgetExceeded,
            format!(
                "the batch's retry budget of {budget} provider calls beyond the first of each document is spent"
            ),
        )),
        // While Redis is away the bound on each document's own faults must do.
        _ => {
            attempt.paid_for_retry();
            Ok(())
        }
    }
}
