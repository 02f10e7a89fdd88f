//! The steps of one document: read → text → already done? → estimate → guard → result.

use tidegate_types::Spend;
use tidegate_workflows::contract::{DocumentOutcome, DocumentTask, Task};

use crate::{
    attempt::Attempt,
    document::{
        ask::{
            answer::{ContentQuestion, answer},
            embed,
            evidence::QuoteSource,
            prompt::Content,
        },
        check::{self, Checking, Outcome},
        long,
        read::{
            content::{self, Care, Extracted},
            existing_result::{self, ExistingResult, Open},
            stored_text,
        },
        request,
        shared_answers::{bought_before, forget, offer},
    },
    failure::Failure,
    metrics,
    output::result::DocumentResult,
    services::Services,
    spans,
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
    spans::record_document(&document.id);
    let location = DocumentResult::location(&shard.output, &document.id);
    let pending_writes = &services.pending_writes;
    pending_writes.recover(attempt, &location).await?;
    let care = Care::alone(attempt);
    let before = existing_result::find_existing(services, &shard, &document, care).await?;
    let Open { raw, updated, instead_of } = match before {
        ExistingResult::Done(result) if result.is_written_by(attempt) => {
            return Ok(result.outcome_beyond(attempt, task.escalated.unwrap_or_default()));
        }
        ExistingResult::Done(_) => {
            return Ok(DocumentOutcome { skipped: true, ..DocumentOutcome::default() });
        }
        ExistingResult::Open(open) => open,
    };
    pending_writes.check_spooled(attempt)?;
    if updated {
        attempt.mark_updated();
    }
    let again = match attempt.state().document.has_text && raw.is_none() {
        true => stored_text::find(services, &shard, task, &document).await,
        false => None,
    };
    if let Some(lines) = &shard.job.lines {
        let answer = request::answer(services, attempt, &shard, lines, document);
        let result = Box::pin(answer).await?;
        pending_writes.keep(attempt, &result.bought(&location, instead_of)?).await?;
        metrics::count_answer(&result.model, result.cost_usd, &shard.job.tenant);
        return Ok(result.outcome(attempt));
    }
    // The document's share of this worker's memory is given back when it is done.
    let Extracted { content, version, parsed, pages, held } = match again {
        Some((text, version, pages)) => {
            let held = services.memory.hold(text.len() as u64).await;
            Extracted { content: Content::Text(text), version, parsed: false, pages, held }
        }
        None => {
            let raw = content::fetch_unless_read(services, &document, raw, &shard.job.lane).await?;
            if let Some(result) = bought_before(services, &shard, &document, &raw.version).await {
                pending_writes.keep(attempt, &result.bought(&location, instead_of)?).await?;
                return Ok(result.outcome(attempt));
            }
            content::extract(services, raw, &shard.job, &shard.route, care).await?
        }
    };
    if let Content::Text(text) = &content
        && let Some(long) = shard.job.in_parts(content.tokens())
    {
        let begun = long::PartsInfo { version, instead_of, pages };
        let begun = long::begin(&shard, &document, text, begun, long).await?;
        return Ok(DocumentOutcome { updated, ..begun });
    }
    let kept = DocumentResult::kept_location(&shard.output, &document.id);
    if task.raised {
        attempt.begin_raised(kept.to_string());
    }
    let read = version.clone();
    let is_checked = !shard.job.checks.is_empty();
    let checking = check::location(&shard, &document);
    let passed = |result: DocumentResult| Outcome::Passed(Box::new(result), Spend::default());
    let answered = match shard.job.task {
        Task::Answer if is_checked => {
            let (shard, document, content, kept) = (&*shard, &document, &content, &kept);
            let pages = &pages;
            let it = Checking { services, attempt, shard, document, content, pages, version, kept };
            Box::pin(it.answer()).await
        }
        Task::Answer => {
            let sought = QuoteSource::Whole(&content, &pages);
            let (content, route) = (&content, &shard.route);
            let asked =
                ContentQuestion { content, version, beside: None, amiss: None, route, sought };
            Box::pin(answer(services, attempt, &shard, document, asked, &kept)).await.map(passed)
        }
        Task::Embed => {
            embed::embed_document(services, attempt, &shard, document, &content, version)
                .await
                .map(passed)
        }
    };
    let (result, before) = match answered {
        Ok(Outcome::Passed(result, before)) => (*result, before),
        Ok(Outcome::Escalates) => {
            let (spend, cuts) = (attempt.spent(), attempt.state().document.cuts);
            let escalates = true;
            return Ok(DocumentOutcome { escalates, spend, cuts, ..DocumentOutcome::default() });
        }
        Err(failure) => {
            if let Content::Text(text) = &content
                && parsed
                && failure.is_retried()
            {
                stored_text::keep(attempt, &shard, task, (text, &pages), &read).await;
            }
            if !failure.is_retried() {
                stored_text::forget(attempt, &shard, task).await;
            }
            return Err(failure);
        }
    };
    drop((content, held));
    offer(services, &result).await;
    pending_writes.keep(attempt, &result.bought(&location, instead_of)?).await?;
    forget(attempt, &kept).await;
    if attempt.state().document.checked > 0 {
        check::remove_state(&checking).await;
    }
    stored_text::forget(attempt, &shard, task).await;
    metrics::count_answer(&result.model, result.cost_usd, &shard.job.tenant);
    Ok(result.outcome_beyond(attempt, before))
}
