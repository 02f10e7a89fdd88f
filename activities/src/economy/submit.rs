//! Handing in.

use chrono::Utc;
use futures::{StreamExt, stream};
use tidegate_documents::tokens;
use tidegate_providers::{Charged, Kind, batch};
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::{SubmitBatch, SubmittedBatch, failure_type};

use super::{
    desk, later,
    memo::{self, Memo},
};
use crate::{
    document,
    failure::Failure,
    job::Shard,
    outcome::DocumentResult,
    question::{Content, Question},
    services::Services,
    source::{Document, resolve},
    storage::Location,
};

/// Requests of one batch have no more than this together, because they are held in memory; the vendors take 200 MB and more.
const MOST_BYTES: usize = 32 << 20;

/// Documents that are read at once.
const READ_AHEAD: usize = 8;

/// Requests that will be handed in.
#[derive(Debug, Default)]
struct Parcel {
    lines: Vec<Vec<u8>>,
    bytes: usize,
    /// The most that they should cost, in US dollars; unknown where there is no price.
    usd: Option<f64>,
    next: u32,
}

/// Hands in as many documents as fit into one batch, once. Those that cannot go this way are left out: they take the direct
/// path, which says what is wrong with them.
///
/// # Errors
/// A [`Failure`] that says whether and when to try again.
pub async fn submit(services: &Services, workflow: &str, task: &SubmitBatch, attempt: u32) -> Result<SubmittedBatch, Failure> {
    let shard = services.shards.get(&services.storage, &task.job, task.shard).await?;
    let (folder, key) = (resolve(&services.storage, "job", &task.job)?, memo::key(task));
    let (model, batches) = desk(services, &shard)?;
    if let Some(memo) = Memo::read(&folder, task).await? {
        // Handed in, or nearly: whoever did it may have died before the id was known.
        let found = match &memo.batch {
            Some(id) => Some(id.clone()),
            None => match batches.find(&key, memo.requests as usize, memo.at).await {
                Ok(found) => only(&folder, found).await?,
                Err(error) if error.kind.is_retryable() => return Err(later(services, &error, attempt)),
                // Not every compatible server keeps a list.
                Err(_) => None,
            },
        };
        if found.is_some() {
            let memo = Memo { batch: found, ..memo };
            memo.write(&folder, task).await?;
            return Ok(SubmittedBatch { requests: memo.requests, next: memo.next, batch: memo.batch });
        }
    }
    let parcel = gather(services, &shard, model, batches, task, &key).await?;
    let nothing = SubmittedBatch { batch: None, requests: 0, next: parcel.next };
    if parcel.lines.is_empty() {
        return Ok(nothing);
    }
    match services.budgets.hold_batch(&shard.job, workflow, &key, parcel.usd, services.guard.backoff).await {
        Ok(()) => {}
        // Each document asks for its own part, and says that there is none.
        Err(failure) if failure.kind == failure_type::BUDGET_EXCEEDED => return Ok(nothing),
        Err(failure) => return Err(failure),
    }
    let requests = u32::try_from(parcel.lines.len()).unwrap_or(u32::MAX);
    let memo = Memo { at: Utc::now(), requests, next: parcel.next, batch: None };
    memo.write(&folder, task).await?;
    match batches.submit(&key, &parcel.lines).await {
        Ok(id) => {
            tracing::info!(%model, batch = id, requests, "documents were handed in to the provider's batch API");
            let memo = Memo { batch: Some(id.clone()), ..memo };
            memo.write(&folder, task).await?;
            Ok(SubmittedBatch { batch: Some(id), requests, next: parcel.next })
        }
        Err(error) => {
            if error.charged == Charged::No {
                services.budgets.settle_batch(&shard.job, workflow, &key, 0.0).await;
            }
            match error.kind {
                kind if kind.is_retryable() => Err(later(services, &error, attempt)),
                Kind::InvalidRequest if shard.job.economy => Err(Failure::invalid_input(format!(
                    "{} takes no batches ({}); leave out mode \"economy\", or correct base-url",
                    model.provider(),
                    error.message
                ))),
                _ => {
                    tracing::warn!(%model, %error, "a batch was not taken; its documents take the direct path");
                    Ok(nothing)
                }
            }
        }
    }
}

/// The one batch that is none of the other shards'. `None` also where nobody can say which of several it is.
async fn only(folder: &Location, mut found: Vec<String>) -> Result<Option<String>, Failure> {
    if !found.is_empty() {
        let taken = memo::taken(folder).await?;
        found.retain(|batch| !taken.contains(batch));
    }
    Ok(if found.len() == 1 { found.pop() } else { None })
}

async fn gather(
    services: &Services,
    shard: &Shard,
    model: &ModelId,
    batches: &dyn tidegate_providers::Batches,
    task: &SubmitBatch,
    key: &str,
) -> Result<Parcel, Failure> {
    let mut parcel = Parcel { usd: Some(0.0), next: task.to, ..Parcel::default() };
    let documents: Vec<(u32, Document)> =
        (task.from..task.to).zip(shard.documents.iter().skip(task.from as usize).cloned()).collect();
    let mut read = std::pin::pin!(
        stream::iter(documents)
            .map(|(index, document)| async move { (index, content(services, shard, document).await) })
            .buffered(READ_AHEAD)
    );
    while let Some((index, content)) = read.next().await {
        let Some(content) = content? else { continue };
        let question = Question::of(shard, &content);
        // A request that cannot be written is refused by name on the direct path.
        let Ok(line) = batches.line(&memo::custom_id(key, index), &question.call(model)) else { continue };
        if !parcel.lines.is_empty() && parcel.bytes + line.len() > MOST_BYTES {
            parcel.next = index;
            break;
        }
        let usage =
            Usage { uncached_input: question.input_tokens(), output: shard.job.max_output_tokens.into(), ..Usage::default() };
        let cost = services.prices.cost_usd(model, &usage, Utc::now().date_naive());
        parcel.usd = parcel.usd.zip(cost).map(|(sum, cost)| sum + cost * batch::PRICE);
        parcel.bytes += line.len();
        parcel.lines.push(line);
    }
    Ok(parcel)
}

/// What of a document goes into a batch, if anything does.
async fn content(services: &Services, shard: &Shard, document: Document) -> Result<Option<Content>, Failure> {
    if DocumentResult::read(&DocumentResult::location(&shard.output, &document.id)).await?.is_some() {
        return Ok(None);
    }
    match document::content_owned(services, document, shard.job.attach_pdf).await {
        // Its parts are steps of their own.
        Ok(Content::Text(text)) if shard.job.long.is_some_and(|long| tokens::estimate(&text) > u64::from(long.chunk_tokens)) => {
            Ok(None)
        }
        Ok(content) => Ok(Some(content)),
        Err(failure) if failure.retry_after.is_some() => Err(failure),
        Err(_) => Ok(None),
    }
}
