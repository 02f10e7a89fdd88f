//! One document's way: read → text → already done? → estimate → guard → result.

use std::borrow::Cow;

use bytes::Bytes;
use tidegate_documents::{Format, Unreadable, tokens};
use tidegate_providers::{Completion, Document as Body, Request as Call};
use tidegate_quota::Request;
use tidegate_types::ModelId;
use tidegate_workflows::contract::{DocumentOutcome, DocumentTask, failure_type};

use crate::{
    attempt::Attempt,
    estimate,
    failure::{Backoff, Failure},
    job::Shard,
    metrics,
    outcome::{self, DocumentResult},
    parts, schema,
    services::Services,
    source::{Document, store_failure},
    storage::Error,
};

/// Answers one document, once.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub async fn process(services: &Services, attempt: &Attempt, task: &DocumentTask) -> Result<DocumentOutcome, Failure> {
    let (shard, document) = services.shards.find(&services.storage, task).await?;
    let location = DocumentResult::location(&shard.output, &document.id);
    if let Some(result) = DocumentResult::read(&location).await? {
        // An attempt of this very activity may have written it and died before it could say so.
        let ours = result.completed_millis() >= attempt.scheduled_millis;
        return Ok(if ours {
            result.outcome(attempt.effort())
        } else {
            DocumentOutcome { skipped: true, ..DocumentOutcome::default() }
        });
    }
    let content = content(services, &document, shard.job.attach_pdf).await?;
    if let (Content::Text(text), Some(long)) = (&content, shard.job.long)
        && tokens::estimate(text) > u64::from(long.chunk_tokens)
    {
        return parts::begin(&shard, &document, text, long).await;
    }
    let result = answer(services, attempt, &shard, document, &content, None).await?;
    result.create(&location).await?;
    metrics::answered(&result, &shard.job.tenant);
    Ok(result.outcome(attempt.effort()))
}

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

/// A page as models that see it count it: between 258 (Gemini) and 3,000 and a picture (Anthropic). Ratios are learned.
const TOKENS_PER_PAGE: u64 = 2_000;

/// A document's content, for streams.
pub(crate) async fn content_owned(services: &Services, document: Document, attach_pdf: bool) -> Result<Content, Failure> {
    content(services, &document, attach_pdf).await
}

async fn content(services: &Services, document: &Document, attach_pdf: bool) -> Result<Content, Failure> {
    let unreadable = |message: String| Failure::never(failure_type::UNREADABLE_DOCUMENT, message);
    if let Some(text) = &document.text {
        return Ok(Content::Text(text.clone()));
    }
    if let Some(why) = &document.unreadable {
        return Err(unreadable(why.clone()));
    }
    let location = services.storage.resolve(&document.uri).map_err(|error| unreadable(error.to_string()))?;
    let gone = || unreadable(format!("{location} does not exist any more"));
    let size = location.size().await.map_err(store_failure)?.ok_or_else(gone)?;
    let most = services.reader.limits().bytes;
    if size > most {
        return Err(not_read(&Unreadable::TooLarge { what: "file".into(), size, most }));
    }
    let bytes = location.read().await.map_err(|error| match error {
        Error::Missing(_) => gone(),
        error => store_failure(error),
    })?;
    let attached = attach_pdf && matches!(Format::of(&bytes, location.name()), Ok(Format::Pdf));
    let read = services.reader.read(bytes.clone(), location.name()).await;
    // No process for the parser: this worker's trouble, not the document's.
    let no_reader = |error| Failure::transient(format!("the document's reader cannot be started: {error}"), Backoff::default(), 0);
    match read.map_err(no_reader)? {
        Ok(read) if attached => Ok(Content::Pdf(bytes, read.pages.unwrap_or(1))),
        Ok(read) => Ok(Content::Text(read.text)),
        // A scan: the model reads pictures.
        Err(Unreadable::NoTextLayer { pages }) if attached => Ok(Content::Pdf(bytes, pages)),
        Err(why) => Err(not_read(&why)),
    }
}

fn not_read(unreadable: &Unreadable) -> Failure {
    let kind = match unreadable {
        Unreadable::TooLarge { .. } => failure_type::TOO_LARGE,
        _ => failure_type::UNREADABLE_DOCUMENT,
    };
    Failure::never(kind, unreadable.to_string())
}

/// The answer to a content, with what it took. `beside` is said after the batch's instructions.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub(crate) async fn answer(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    document: Document,
    content: &Content,
    beside: Option<&str>,
) -> Result<DocumentResult, Failure> {
    let (job, route) = (&shard.job, &shard.route);
    let instructions =
        beside.map_or(Cow::Borrowed(job.instructions.as_str()), |beside| format!("{}\n\n{beside}", job.instructions).into());
    let model = route.choose(&services.guard, &services.queues, attempt, &job.lane).await;
    let model = model.ok_or_else(|| Failure::invalid_input("the route names no model"))?;
    let provider = services.providers.get(model).ok_or_else(|| {
        Failure::invalid_input(format!(
            "this worker has no provider \"{}\"; give all workers the same configuration",
            model.provider()
        ))
    })?;
    spend_retry(services, attempt, shard).await?;
    let request = Request::new(model.clone(), attempt.reservation.clone())
        .lane(job.lane.clone())
        .tenant(job.tenant.clone())
        .tokens(estimate::input_tokens(&instructions, content.tokens(), job.schema.as_ref()), u64::from(job.max_output_tokens))
        // Other instructions have other answers.
        .template(shard.template ^ u64::from(beside.is_some()))
        .ticket(attempt.notes().ticket);
    let call = Call {
        model: model.model(),
        instructions: &instructions,
        document: match content {
            Content::Text(text) => Body::Text(text),
            Content::Pdf(bytes, _) => Body::Pdf(bytes),
        },
        max_output_tokens: job.max_output_tokens,
        schema: job.schema.as_ref(),
        // A prefix that is read once costs more to write than it saves.
        cache_instructions: beside.is_none() && (shard.documents.len() > 1 || job.long.is_some()),
    };
    let purse = services.budgets.purse(attempt, &request, job.budget_usd)?;
    let first = if call.cache_instructions { services.warmth.enter(model, shard.template, &job.instructions).await } else { None };
    let answered = services.guard.call(attempt, provider, &request, &call, &purse).await;
    let completion = answered.map_err(|failure| route.fall_back(attempt, failure))?;
    if let Some(first) = first {
        first.succeeded();
    }
    if let Some(validator) = &shard.validator {
        schema::check(validator, &completion.answer, &completion.stop_reason, attempt)?;
    }
    Ok(result(services, attempt, document, model, completion))
}

/// Calls beyond a document's first come out of the batch's retry budget. An attempt that only waits for quota and
/// returns has been counted already, so the count is taken when the call before has been made since.
async fn spend_retry(services: &Services, attempt: &Attempt, shard: &Shard) -> Result<(), Failure> {
    let Some(budget) = shard.job.retry_budget else { return Ok(()) };
    if !attempt.must_pay_for_retry() {
        return Ok(());
    }
    match services.guard.quota.count_retry(&attempt.batch).await {
        Some(spent) if spent > budget => Err(Failure::never(
            failure_type::BUDGET_EXCEEDED,
            format!("the batch's retry budget of {budget} provider calls beyond the first of each document is spent"),
        )),
        // While Redis is away the bound on each document's own faults must do.
        _ => {
            attempt.paid_for_retry();
            Ok(())
        }
    }
}

fn result(services: &Services, attempt: &Attempt, document: Document, model: &ModelId, completion: Completion) -> DocumentResult {
    let usage = completion.usage.unwrap_or_default();
    let cost_usd = completion.usage.and_then(|usage| services.prices.cost_usd(model, &usage, chrono::Utc::now().date_naive()));
    DocumentResult {
        id: document.id,
        uri: document.uri,
        model: model.clone(),
        answer: completion.answer,
        parts: None,
        stop_reason: completion.stop_reason.as_str().to_owned(),
        input_tokens: usage.input(),
        cached_input_tokens: usage.cache_read,
        output_tokens: usage.output,
        cost_usd,
        provider_calls: attempt.effort().provider_calls,
        completed_at: outcome::now(),
    }
}
