//! The steps of one document: read → text → already done? → estimate → guard → result.

use tidegate_types::Spend;
use tidegate_workflows::contract::{DocumentOutcome, DocumentTask, Task};

use crate::{
    attempt::Attempt,
    document::{
        ask::{
            answer::{Asked, answer},
            embed,
            evidence::Sought,
            prompt::Content,
        },
        check::{self, Checking, Outcome},
        keep::{bought_before, forget, offer},
        long,
        read::{
            content::{self, Care, Read},
            done::{self, Before, Open},
            readings,
        },
        request,
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
    spans::names(&document.id);
    let location = DocumentResult::location(&shard.output, &document.id);
    let pending_writes = &services.pending_writes;
    pending_writes.recover(attempt, &location).await?;
    let care = Care::alone(attempt);
    let before = done::before(services, &shard, &document, care).await?;
    let Open { raw, updated, instead_of } = match before {
        Before::Done(result) if result.is_of(attempt) => {
            return Ok(result.outcome_beyond(attempt, task.escalated.unwrap_or_default()));
        }
        Before::Done(_) => {
            return Ok(DocumentOutcome { skipped: true, ..DocumentOutcome::default() });
        }
        Before::Open(open) => open,
    };
    pending_writes.check_spooled(attempt)?;
    if updated {
        attempt.updates();
    }
    let again = match attempt.state().document.has_text && raw.is_none() {
        true => readings::find(services, &shard, task, &document).await,
        false => None,
    };
    if let Some(lines) = &shard.job.lines {
        let answer = request::answer(services, attempt, &shard, lines, document);
        let result = Box::pin(answer).await?;
        pending_writes.keep(attempt, &result.bought(&location, instead_of)?).await?;
        metrics::answered(&result.model, result.cost_usd, &shard.job.tenant);
        return Ok(result.outcome(attempt));
    }
    // The document's share of this worker's memory is given back when it is done.
    let Read { content, version, parsed, pages, held } = match again {
        Some((text, version, pages)) => {
            let held = services.memory.hold(text.len() as u64).await;
            Read { content: Content::Text(text), version, parsed: false, pages, held }
        }
        None => {
            let raw = content::fetched(services, &document, raw, &shard.job.lane).await?;
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
        let begun = long::Begun { version, instead_of, pages };
        let begun = long::begin(&shard, &document, text, begun, long).await?;
        return Ok(DocumentOutcome { updated, ..begun });
    }
    let kept = DocumentResult::kept(&shard.output, &document.id);
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
            let sought = Sought::Whole(&content, &pages);
            let (content, route) = (&content, &shard.route);
            let asked = Asked { content, version, beside: None, amiss: None, route, sought };
            Box::pin(answer(services, attempt, &shard, document, asked, &kept)).await.map(passed)
        }
        Task::Embed => {
            embed::one(services, attempt, &shard, document, &content, version).await.map(passed)
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
                readings::keep(attempt, &shard, task, (text, &pages), &read).await;
            }
            if !failure.is_retried() {
                readings::forget(attempt, &shard, task).await;
            }
            return Err(failure);
        }
    };
    drop((content, held));
    offer(services, &result).await;
    pending_writes.keep(attempt, &result.bought(&location, instead_of)?).await?;
    forget(attempt, &kept).await;
    if attempt.state().document.checked > 0 {
        check::forget(&checking).await;
    }
    readings::forget(attempt, &shard, task).await;
    metrics::answered(&result.model, result.cost_usd, &shard.job.tenant);
    Ok(result.outcome_beyond(attempt, before))
}
