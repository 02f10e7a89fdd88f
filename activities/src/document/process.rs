//! One document's way: read → text → already done? → estimate → guard → result.

use tidegate_documents::{Format, Unreadable};
use tidegate_workflows::contract::{DocumentOutcome, DocumentTask, FailureType};

use crate::{
    batch::job::Shard,
    batch::source::{Document, store_failure},
    call::attempt::Attempt,
    call::prompt::Content,
    document::long,
    document::result::DocumentResult,
    document::schema,
    failure::Failure,
    metrics,
    services::Services,
    storage::Error,
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
    let content = content(services, &document, shard.job.attach_pdf).await?;
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

/// A document's content, for streams.
pub(crate) async fn content_owned(
    services: &Services,
    document: Document,
    attach_pdf: bool,
) -> Result<Content, Failure> {
    content(services, &document, attach_pdf).await
}

async fn content(
    services: &Services,
    document: &Document,
    attach_pdf: bool,
) -> Result<Content, Failure> {
    let unreadable = |message: String| Failure::never(FailureType::UnreadableDocument, message);
    if let Some(text) = &document.text {
        return Ok(Content::Text(text.clone()));
    }
    if let Some(why) = &document.unreadable {
        return Err(unreadable(why.clone()));
    }
    let location =
        services.storage.resolve(&document.uri).map_err(|error| unreadable(error.to_string()))?;
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
    let no_reader =
        |error| Failure::transient(format!("the document's reader cannot be started: {error}"));
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
        Unreadable::TooLarge { .. } => FailureType::TooLarge,
        _ => FailureType::UnreadableDocument,
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
