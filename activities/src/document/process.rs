//! One document's way: read → text → already done? → estimate → guard → result.

use std::borrow::Cow;

use tidegate_workflows::contract::{DocumentOutcome, DocumentTask, Job, Task};

use crate::{
    batch::job::{Document, Shard},
    call::{attempt::Attempt, prompt::Content},
    document::{
        asked::{self, About, Inquiry},
        content::{self, Care, Read},
        done::{self, Before, Open},
        embed, long, readings,
        result::DocumentResult,
        version::Version,
    },
    failure::Failure,
    metrics,
    services::Services,
    spans,
    storage::Location,
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
    let unwritten = &services.unwritten;
    unwritten.recover(attempt, &location).await?;
    let care = Care::alone(attempt);
    let before = done::before(services, &shard, &document, care).await?;
    let Open { raw, updated, instead_of } = match before {
        Before::Done(result) if result.is_of(attempt) => return Ok(result.outcome(attempt)),
        Before::Done(_) => {
            return Ok(DocumentOutcome { skipped: true, ..DocumentOutcome::default() });
        }
        Before::Open(open) => open,
    };
    unwritten.check_spooled(attempt)?;
    if updated {
        attempt.updates();
    }
    let again = match attempt.state().document.has_text && raw.is_none() {
        true => readings::find(services, &shard, task, &document).await,
        false => None,
    };
    // What it takes of this worker's memory is given back when the document is done with.
    let Read { content, version, parsed, held } = match again {
        Some((text, version)) => {
            let held = services.memory.hold(text.len() as u64).await;
            Read { content: Content::Text(text), version, parsed: false, held }
        }
        None => {
            let raw = content::fetched(services, &document, raw, &shard.job.lane).await?;
            if let Some(result) = bought_before(services, &shard, &document, &raw.version).await {
                unwritten.keep(attempt, &result.bought(&location, instead_of)?).await?;
                return Ok(result.outcome(attempt));
            }
            content::extract(services, raw, &shard.job, &shard.route, care).await?
        }
    };
    if let Content::Text(text) = &content
        && let Some(long) = shard.job.in_parts(content.tokens())
    {
        let begun = long::begin(&shard, &document, text, (version, instead_of), long).await?;
        return Ok(DocumentOutcome { updated, ..begun });
    }
    let kept = DocumentResult::kept(&shard.output, &document.id);
    if task.raised {
        attempt.begin_raised(kept.to_string());
    }
    let read = version.clone();
    let answered = match shard.job.task {
        Task::Answer => {
            let asked = Asked { content: &content, version, beside: None };
            Box::pin(answer(services, attempt, &shard, document, asked, &kept)).await
        }
        Task::Embed => embed::one(services, attempt, &shard, document, &content, version).await,
    };
    let result = match answered {
        Ok(result) => result,
        Err(failure) => {
            if let Content::Text(text) = &content
                && parsed
                && failure.is_retried()
            {
                readings::keep(attempt, &shard, task, text, &read).await;
            }
            if !failure.is_retried() {
                readings::forget(attempt, &shard, task).await;
            }
            return Err(failure);
        }
    };
    drop((content, held));
    offer(services, &result).await;
    unwritten.keep(attempt, &result.bought(&location, instead_of)?).await?;
    forget(attempt, &kept).await;
    readings::forget(attempt, &shard, task).await;
    metrics::answered(&result.model, result.cost_usd, &shard.job.tenant);
    Ok(result.outcome(attempt))
}

/// The document's result, where its answer was bought before, in whichever batch.
pub(crate) async fn bought_before(
    services: &Services,
    shard: &Shard,
    document: &Document,
    version: &Version,
) -> Option<DocumentResult> {
    let found = services.answers.as_ref()?.find(document, shard.asks, version).await;
    // A route is known by its name, and may have had other models.
    let found = found.filter(|result| shard.route.models.contains(&result.model));
    found.filter(|result| !shard.job.reread || !result.version.is_of_older_reader())
}

/// Keeps what was bought for other batches, before it is written: where its own place takes
/// nothing, it is not lost.
pub(crate) async fn offer(services: &Services, result: &DocumentResult) {
    if let Some(answers) = &services.answers {
        answers.keep(result).await;
    }
}

/// What a call is about.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// What is sent of the document.
    pub(crate) content: &'a Content,
    /// Which version of it that is.
    pub(crate) version: Version,
    /// Said beside the batch's instructions.
    pub(crate) beside: Option<&'a str>,
}

/// The answer to a content, with what it took; one that is no result lies at `kept` from then on.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub(crate) async fn answer(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    document: Document,
    Asked { content, version, beside }: Asked<'_>,
    kept: &Location,
) -> Result<DocumentResult, Failure> {
    let reader = services.reader_for(&shard.job.lane);
    let mut question = shard.question(&reader, &document, content).await?;
    if let Some(beside) = beside {
        question = question.with_note(beside).uncached();
    }
    let about = About { document, version, kept, way_out: way_out(&shard.job) };
    asked::answer(services, attempt, Inquiry::of(shard), question, about).await
}

/// What a batch's author can do about what is too large for a call.
pub(crate) fn way_out(job: &Job) -> Cow<'static, str> {
    match job.long {
        None if job.attach_pdf || job.attach_pages => {
            "let its text be read in parts: \"attach\": \"text\" and \"long\": \"map_reduce\""
                .into()
        }
        None => "let it be read in parts: \"long\": \"map_reduce\"".into(),
        Some(long) => {
            format!("make the parts smaller: chunk_tokens, which is {}", long.chunk_tokens).into()
        }
    }
}

/// Removes what was kept of the answers before the result. What stays behind does no harm.
pub(crate) async fn forget(attempt: &Attempt, kept: &Location) {
    if attempt.state().document.kept.is_some()
        && let Err(error) = kept.delete().await
    {
        tracing::debug!(%error, "an answer that was no result stays behind");
    }
}
