//! One document's way: read → text → already done? → estimate → guard → result.

use tidegate_workflows::contract::{DocumentOutcome, DocumentTask};

use crate::{
    batch::job::{Document, Shard},
    call::{attempt::Attempt, prompt::Content},
    document::{content, long, result::DocumentResult, schema},
    failure::Failure,
    metrics,
    services::Services,
};

/// Answers one document, once.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub async fn process(
    services: &Services,
    attempt: &Attempt,
    task: &DocumentTask,
) -> Result<DocumentOutcome, Failure> {
    let (shard, document) = services.shards.find(&services.storage, task).await?;
    let location = DocumentResult::location(&shard.output, &document.id);
    if let Some(result) = DocumentResult::read(&location).await? {
        return Ok(if result.is_of(attempt) {
            result.outcome(attempt.counts())
        } else {
            DocumentOutcome { skipped: true, ..DocumentOutcome::default() }
        });
    }
    let content = content::read(services, &document, shard.job.attach_pdf).await?;
    if let Content::Text(text) = &content
        && let Some(long) = shard.job.in_parts(content.tokens())
    {
        return long::begin(&shard, &document, text, long).await;
    }
    let result = answer(services, attempt, &shard, document, &content, None).await?;
    result.create(&location).await?;
    metrics::answered(&result.model, result.cost_usd, &shard.job.tenant);
    Ok(result.outcome(attempt.counts()))
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
    let question = shard.question(content);
    let question =
        if let Some(beside) = beside { question.with_note(beside).uncached() } else { question };
    let (model, completion) =
        services.caller().ask(attempt, &shard.job, &shard.route, &question).await?;
    if let Some(validator) = &shard.validator {
        schema::check(validator, &completion.answer, &completion.stop_reason, attempt)?;
    }
    let cost_usd = completion
        .usage
        .and_then(|usage| services.prices.cost_usd(model, &usage, chrono::Utc::now().date_naive()));
    let result = DocumentResult::new(document, model, completion.answer, &completion.stop_reason);
    Ok(result.taking(attempt.counts().provider_calls.into(), completion.usage, cost_usd))
}
