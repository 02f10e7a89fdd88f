//! The steps of one document: done already? → read → text → question → guard → result.

use tidegate_types::Spend;
use tidegate_workflows::contract::{DocumentOutcome, DocumentTask, Task};

use crate::{
    attempt::Attempt,
    document::{
        ask::{
            embed,
            evidence::QuoteSource,
            inquiry::{AnswerSubject, answer_content},
            prompt::Content,
        },
        check::{self, Checking, Outcome},
        long,
        read::{
            content::{self, Care, Extracted, Raw},
            earlier::{self, ExistingResult, Open, bought_before, forget, offer},
        },
        request,
    },
    failure::Failure,
    fingerprint::Fingerprint,
    metrics,
    output::{
        job::{Document, Shard},
        result::DocumentResult,
    },
    services::Services,
    spans,
    storage::Location,
};

/// Answers one document, once.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub async fn process(
    services: &Services,
    attempt: &Attempt,
    task: &DocumentTask,
) -> Result<DocumentOutcome, Failure> {
    let (shard, document) = services.shards.find(&services.storage, task).await?;
    spans::record_document(&document.id);
    let location = DocumentResult::location(&shard.output, &document.id);
    let pending_writes = &services.pending_writes;
    pending_writes.recover(attempt, &location).await?;
    let care = Care::Alone(attempt);
    let existing = earlier::find_existing(services, &shard, &document, care).await?;
    let Open { raw, updated, instead_of } = match existing {
        ExistingResult::Done(result) if result.is_written_by(attempt) => {
            return Ok(result.outcome_beyond(attempt, task.escalated.unwrap_or_default()));
        }
        ExistingResult::Done(_) => {
            return Ok(DocumentOutcome { skipped: true, ..DocumentOutcome::default() });
        }
        ExistingResult::Open(open) => open,
    };
    let place = (&location, instead_of);
    pending_writes.check_spooled(attempt)?;
    if updated {
        attempt.mark_updated();
    }
    if let Some(lines) = &shard.job.lines {
        let answer = request::answer(services, attempt, &shard, lines, document);
        let result = keep(services, attempt, Box::pin(answer).await?, place).await?;
        metrics::count_answer(&result.model, result.cost_usd, &shard.job.tenant);
        return Ok(result.outcome(attempt));
    }
    let extracted = match read_content(services, attempt, &shard, task, &document, raw).await? {
        Reading::Content(extracted) => *extracted,
        Reading::Bought(result) => {
            return Ok(keep(services, attempt, *result, place).await?.outcome(attempt));
        }
    };
    if let Content::Text(text) = &extracted.content
        && let Some(long) = shard.job.in_parts(extracted.content.tokens())
    {
        let Extracted { version, pages, .. } = &extracted;
        let (version, pages) = (version.clone(), pages.clone());
        let begun = long::PartsInfo { version, instead_of, pages };
        let begun = long::begin(&shard, &document, text, begun, long).await?;
        return Ok(DocumentOutcome { updated, ..begun });
    }
    let refused = DocumentResult::refused_location(&shard.output, &document.id);
    if task.raised {
        attempt.begin_raised(refused.to_string());
    }
    let (result, spent_before) =
        match ask(services, attempt, &shard, &document, &extracted, &refused).await {
            Ok(Outcome::Passed(result, spent_before)) => (*result, spent_before),
            Ok(Outcome::Escalates) => {
                forget(attempt, &refused).await;
                let (spend, cuts) = (attempt.spent(), attempt.state().document.cuts);
                let outcome = DocumentOutcome { spend, cuts, ..DocumentOutcome::default() };
                return Ok(DocumentOutcome { escalates: true, ..outcome });
            }
            Err(failure) => {
                keep_text_for_retry(attempt, &shard, task, &extracted, &failure).await;
                return Err(failure);
            }
        };
    // Gives back the document's share of this worker's memory.
    let Extracted { content, held, .. } = extracted;
    drop((content, held));
    offer(services, &result).await;
    let result = keep(services, attempt, result, place).await?;
    forget(attempt, &refused).await;
    if attempt.state().document.checked > 0 {
        check::remove_state(&check::location(&shard, &document)).await;
    }
    earlier::forget_text(attempt, &shard, task).await;
    metrics::count_answer(&result.model, result.cost_usd, &shard.job.tenant);
    Ok(result.outcome_beyond(attempt, spent_before))
}

/// Writes a result at its place, as this activity's; what stands there may be replaced if it is
/// the second part of `place`.
async fn keep(
    services: &Services,
    attempt: &Attempt,
    result: DocumentResult,
    (location, instead_of): (&Location, Option<Fingerprint>),
) -> Result<DocumentResult, Failure> {
    let result = result.of_activity(attempt);
    services.pending_writes.write(attempt, &result.bought(location, instead_of)?).await?;
    Ok(result)
}

/// After a failure that is retried, stores a text that took a parser for the next attempt; after
/// any other, removes it.
async fn keep_text_for_retry(
    attempt: &Attempt,
    shard: &Shard,
    task: &DocumentTask,
    extracted: &Extracted,
    failure: &Failure,
) {
    let Extracted { content, version, parsed, pages, .. } = extracted;
    match content {
        _ if !failure.is_retried() => earlier::forget_text(attempt, shard, task).await,
        Content::Text(text) if *parsed => {
            earlier::save(attempt, shard, task, (text, pages), version).await;
        }
        _ => {}
    }
}

/// The outcome of reading a document.
enum Reading {
    /// The content to send.
    Content(Box<Extracted>),
    /// The result: equal content was answered for another document or batch.
    Bought(Box<DocumentResult>),
}

/// Reads a document's content, or the text of it that an earlier attempt stored.
async fn read_content(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    task: &DocumentTask,
    document: &Document,
    raw: Option<Box<Raw>>,
) -> Result<Reading, Failure> {
    if attempt.state().document.has_text
        && raw.is_none()
        && let Some((text, version, pages)) = earlier::find(services, shard, task, document).await
    {
        let held = services.memory.hold(text.len() as u64).await;
        let content = Content::Text(text);
        let extracted = Extracted { content, version, parsed: false, pages, held };
        return Ok(Reading::Content(extracted.into()));
    }
    let raw = content::fetch_unless_read(services, document, raw, &shard.job.lane).await?;
    if let Some(result) = bought_before(services, shard, document, &raw.version).await {
        return Ok(Reading::Bought(Box::new(result)));
    }
    let care = Care::Alone(attempt);
    let extracted = content::extract(services, raw, &shard.job, &shard.route, care).await?;
    Ok(Reading::Content(extracted.into()))
}

/// Performs the batch's task on a document's content. An answer that is not accepted is stored at
/// `refused`.
async fn ask(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    document: &Document,
    extracted: &Extracted,
    refused: &Location,
) -> Result<Outcome, Failure> {
    let Extracted { content, version, pages, .. } = extracted;
    let version = version.clone();
    let passed = |result: DocumentResult| Outcome::Passed(Box::new(result), Spend::default());
    match shard.job.task {
        Task::Answer if !shard.job.checks.is_empty() => {
            let it =
                Checking { services, attempt, shard, document, content, pages, version, refused };
            Box::pin(it.answer()).await
        }
        Task::Answer => {
            let (sought, of) = (QuoteSource::Whole(content, pages), (document.clone(), version));
            let about = AnswerSubject::of_shard(shard, of, refused, sought);
            let (route, asked) = (&shard.route, (content, None));
            let answer = answer_content(services, attempt, shard, route, asked, about);
            Box::pin(answer).await.map(passed)
        }
        Task::Embed => {
            let document = document.clone();
            embed::embed_document(services, attempt, shard, document, content, version)
                .await
                .map(passed)
        }
    }
}
