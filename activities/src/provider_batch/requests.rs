//! The requests of a provider's batch: which of a shard's documents go into it.

use futures::{StreamExt, stream};
use tidegate_calls::caller::Question as _;
use tidegate_documents::tokens;
use tidegate_providers::{BatchApi, batch};
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::SubmitBatch;

use crate::{
    document::{
        ask::{inquiry::question, prompt::Content},
        read::{
            content::{self, Care, Extracted},
            earlier::{self, ExistingResult, Open, bought_before},
        },
        request,
    },
    failure::{Failure, MAX_BATCH_SUBMITS},
    output::job::{Document, Shard},
    provider_batch::{
        queue,
        submission::{self, Sent},
    },
    services::Services,
};

/// Maximum bytes of one batch's requests, because they are held in memory; the vendors take 200 MB
/// and more.
const MAX_BYTES: usize = 32 << 20;

/// Documents that are read at once.
const READ_AHEAD: usize = 8;

/// One document's request.
#[derive(Debug)]
pub(super) struct BatchRequest {
    pub(super) index: u32,
    pub(super) sent: Sent,
    pub(super) json: Vec<u8>,
    /// Its maximum expected cost in US dollars; 0 without a price.
    pub(super) usd: f64,
    /// Its input tokens.
    pub(super) tokens: u64,
}

/// The requests of a batch, and the first document after it.
pub(super) async fn gather(
    services: &Services,
    shard: &Shard,
    model: &ModelId,
    batches: &dyn BatchApi,
    task: &SubmitBatch,
    key: &str,
    (attempt, care): (u32, Care<'_>),
) -> Result<(Vec<BatchRequest>, u32), Failure> {
    let (mut lines, mut bytes, mut tokens) = (Vec::new(), 0, 0_u64);
    // A request larger than the queue's limit would never fit.
    let queue = queue::limit(services, model);
    let documents: Vec<(u32, Document)> = (task.from..task.to)
        .zip(shard.documents.iter().skip(task.from as usize).cloned())
        .collect();
    let mut read = std::pin::pin!(
        stream::iter(documents)
            .map(|(index, document)| async move {
                let document = match shard.with_record(document).await {
                    Ok(document) => document,
                    Err(failure) => return (index, Err(failure)),
                };
                let custom_id = submission::custom_id(key, index);
                let of = (model, batches);
                let asked = build_request(services, shard, document, of, &custom_id, attempt, care);
                (index, asked.await)
            })
            .buffered(READ_AHEAD)
    );
    while let Some((index, asked)) = read.next().await {
        let Some((json, input, sent)) = asked? else { continue };
        let is_full = queue.is_some_and(|most| tokens.saturating_add(input) > most);
        if !lines.is_empty() && (is_full || bytes + json.len() > MAX_BYTES) {
            return Ok((lines, index));
        }
        tokens = tokens.saturating_add(input);
        let usage = Usage {
            uncached_input: input,
            output: shard.job.likely_output_tokens().into(),
            ..Usage::default()
        };
        let usd = services.cost_usd(model, &usage).unwrap_or(0.0) * batch::PRICE;
        bytes += json.len();
        lines.push(BatchRequest { index, sent, json, usd, tokens: input });
    }
    Ok((lines, task.to))
}

/// Builds a document's request in a batch, with its input tokens and content; `None` for a document
/// that must take the direct path.
async fn build_request(
    services: &Services,
    shard: &Shard,
    document: Document,
    (model, batches): (&ModelId, &dyn BatchApi),
    custom_id: &str,
    attempt: u32,
    care: Care<'_>,
) -> Result<Option<(Vec<u8>, u64, Sent)>, Failure> {
    let not_now = |failure: &Failure| failure.is_retried() && attempt < MAX_BATCH_SUBMITS;
    let before = earlier::find_existing(services, shard, &document, care).await;
    let Open { raw, updated, instead_of } = match before {
        Ok(ExistingResult::Open(open)) => open,
        Err(failure) if not_now(&failure) => return Err(failure),
        // The direct path handles this document.
        Ok(ExistingResult::Done(_)) | Err(_) => return Ok(None),
    };
    if let Some(lines) = &shard.job.lines {
        let of = (model, batches);
        let request = request::in_batch(services, lines, &document, of, custom_id).await;
        return match request {
            Err(failure) if not_now(&failure) => Err(failure),
            Err(_) => Ok(None),
            Ok(request) => Ok(request.map(|(json, input)| {
                (json, input, Sent { version: document.version, updated, instead_of })
            })),
        };
    }
    let raw = match content::fetch_unless_read(services, &document, raw, &shard.job.lane).await {
        Ok(raw) => raw,
        Err(failure) if not_now(&failure) => return Err(failure),
        Err(_) => return Ok(None),
    };
    // Answered before: the direct path copies the answer.
    if bought_before(services, shard, &document, &raw.version).await.is_some() {
        return Ok(None);
    }
    let extracted = content::extract(services, raw, &shard.job, &shard.route, care).await;
    let (content, version) = match extracted {
        // A document that is read in parts takes the direct path.
        Ok(Extracted { content: Content::Text(text), .. })
            if shard.job.in_parts(tokens::estimate(&text)).is_some() =>
        {
            return Ok(None);
        }
        Ok(Extracted { content, version, .. }) => (content, version),
        Err(failure) if not_now(&failure) => return Err(failure),
        Err(_) => return Ok(None),
    };
    let reader = services.reader_for(&shard.job.lane);
    // The direct path reports why no question can be built.
    let Ok(question) = question(&reader, shard, &document, &content).await else {
        return Ok(None);
    };
    let line = batches.line(custom_id, &question.call(model, question.room(None)));
    let sent = Sent { version, updated, instead_of };
    Ok(line.ok().map(|json| (json, question.input_tokens_of_any_model(), sent)))
}
