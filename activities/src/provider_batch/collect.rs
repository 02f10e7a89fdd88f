//! Collects the provider's answers.

use futures::{StreamExt, stream::FuturesOrdered};
use tidegate_providers::{Charged, Completion, Error, Kind, batch};
use tidegate_types::{ModelId, Spend, Usage};
use tidegate_workflows::contract::{
    CollectedBatch, FailedDocument, FailureFacts, FailureType, OnCut, ProviderBatch,
};

use crate::{
    document::{
        ask::{
            evidence::{self, QuoteSource},
            inquiry::{Acceptance, accept, size_advice},
        },
        read::{
            content::{self, Care, Extracted},
            earlier::offer,
        },
        request,
    },
    failure::{Failure, MAX_BATCH_COLLECTS},
    metrics,
    output::{
        job::{Document, Shard, SharedJob, payers},
        result::{DocumentResult, Given},
        version::Version,
    },
    provider_batch::{
        check::{AT_ONCE, delete_batch},
        choose::batch_api,
        queue,
        submission::{self, Sent, Submission},
    },
    services::Services,
};

/// The outcome of one request.
#[derive(Debug)]
enum Disposition {
    /// The document has its result, which may be cut.
    Done { cut: bool },
    /// Another request would end in the same way. The answer is stored at `kept`.
    Failed { failure: Failure, kept: Option<String> },
    /// The answer was cut: the direct path asks again with a higher cap.
    Raise,
    /// The direct path may answer it.
    Open,
}

/// Writes the result of every document that the batch has answered. Can be repeated: the provider keeps
/// the answers.
///
/// # Errors
/// A [`Failure`] with the time of a retry.
pub async fn collect(
    services: &Services,
    batch: &ProviderBatch,
    attempt: u32,
) -> Result<CollectedBatch, Failure> {
    let task = &batch.submitted;
    let workflow = &task.workflow;
    let shard = services.shards.get(&services.storage, &task.job, task.shard).await?;
    let (model, batches) = batch_api(services, &shard)?;
    let (key, mut collected) = (submission::key(task), Collected::default());
    // The batch has ended, so its tokens no longer wait at the provider.
    if !queue::dequeue(services, model, &key).await && attempt < MAX_BATCH_COLLECTS {
        return Err(Failure::transient(format!(
            "a batch that has ended at {} still counts in the provider's queue, because Redis does not answer",
            model.provider()
        )));
    }
    let sent = Submission::read(&shard.folder, task).await?;
    let mut sent = sent.map(|submission| submission.sent).unwrap_or_default();
    let mut given_up = false;
    let mut answers = match batches.answers(&batch.batch).await {
        Ok(answers) => Some(answers),
        Err(error) => {
            give_up(batch, &error, attempt)?;
            given_up = true;
            None
        }
    };
    let (mut writes, mut fault) = (FuturesOrdered::new(), None);
    loop {
        while writes.len() < AT_ONCE
            && let Some(open) = &mut answers
        {
            let answer = match open.next().await {
                Ok(Some(answer)) => answer,
                ended => {
                    fault = ended.err();
                    answers = None;
                    break;
                }
            };
            let index = submission::index(&key, &answer.custom_id)
                .filter(|index| (task.from..task.to).contains(index));
            let result = match &shard.job.lines {
                Some(_) => answer.as_it_is().map(|it| it.map(request::completion)),
                None => answer.completion(),
            };
            let (Some(index), Some(result)) = (index, result) else { continue };
            let sent = sent.remove(&index).unwrap_or_default();
            writes.push_back(written(services, &shard, model, (index, sent), result));
        }
        let Some(written) = writes.next().await else { break };
        let (index, updated, disposition, charge) = written?;
        collected.add(index, updated, disposition, charge);
    }
    // The answers before the fault are written.
    if let Some(error) = fault {
        give_up(batch, &error, attempt)?;
        given_up = true;
    }
    let Collected { batch: mut collected, charges } = collected;
    collected.asked.sort_unstable();
    collected.raise.sort_unstable();
    collected.done.sort_unstable();
    collected.done.dedup();
    // Unreadable answers are paid for too, and stay charged at their highest price.
    if !given_up {
        let hold = submission::hold(&key, batch.requests);
        services
            .budgets
            .settle_batch(&payers(&shard.job, workflow), &hold, collected.spent.cost_usd)
            .await;
    }
    // Counted at the end, because an attempt that fails before is repeated.
    for Charge { usage, failed, cost_usd } in charges {
        metrics::count_batch_answer(model, usage.as_ref(), failed, cost_usd, &shard.job.tenant);
    }
    delete_batch(batches, batch).await;
    Ok(collected)
}

/// The use of one answer.
#[derive(Debug)]
struct Charge {
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    /// The kind of error, if it is no result.
    failed: Option<Kind>,
}

impl Charge {
    fn from_result(
        services: &Services,
        model: &ModelId,
        result: &Result<Completion, Error>,
    ) -> Self {
        let usage = match result {
            Ok(completion) => completion.usage,
            Err(Error { charged: Charged::Usage(usage), .. }) => Some(*usage),
            Err(_) => None,
        };
        let cost_usd =
            usage.and_then(|usage| services.cost_usd(model, &usage)).map(|usd| usd * batch::PRICE);
        Self { usage, cost_usd, failed: result.as_ref().err().map(|error| error.kind) }
    }
}

/// The results of a batch that were collected so far.
#[derive(Debug, Default)]
struct Collected {
    batch: CollectedBatch,
    charges: Vec<Charge>,
}

impl Collected {
    fn add(&mut self, index: u32, updated: bool, disposition: Disposition, charge: Charge) {
        let Self { batch, charges } = self;
        let Charge { usage, cost_usd, failed } = charge;
        let tokens = Spend::of_tokens(&usage.unwrap_or_default(), cost_usd);
        batch.spent += Spend { provider_calls: 1, ..tokens };
        let is_done = matches!(disposition, Disposition::Done { .. });
        let failed = failed.or_else(|| (!is_done).then_some(Kind::InvalidOutput));
        charges.push(Charge { usage, cost_usd, failed });
        match disposition {
            Disposition::Done { cut } => {
                batch.done.push(index);
                batch.cuts.cut += u64::from(cut);
                batch.updated += u64::from(updated);
            }
            Disposition::Failed { failure, kept } => batch.failed.push(FailedDocument {
                index,
                facts: FailureFacts {
                    error_type: failure.kind.as_str().to_owned(),
                    message: failure.message,
                    provider_calls: 1,
                    kept,
                    ..FailureFacts::default()
                },
            }),
            Disposition::Raise => {
                batch.asked.push(index);
                batch.raise.push(index);
                batch.cuts.raised += 1;
                batch.cuts.raised_cost_usd += cost_usd.unwrap_or(0.0);
            }
            Disposition::Open => batch.asked.push(index),
        }
    }
}

/// Decides whether to give up. A provider that fails is asked again for an hour; one that has no
/// answers is not.
fn give_up(batch: &ProviderBatch, error: &Error, attempt: u32) -> Result<(), Failure> {
    if attempt < MAX_BATCH_COLLECTS && error.kind != Kind::InvalidRequest {
        return Err(Failure::from_batch_api(error, attempt));
    }
    tracing::warn!(batch = batch.batch, %error, "the answers of a provider's batch cannot be fetched; its documents are called directly");
    Ok(())
}

/// Writes the result of one answer. Returns its document, whether that had an older result, and the
/// answer's use.
async fn written(
    services: &Services,
    shard: &Shard,
    model: &ModelId,
    (index, sent): (u32, Sent),
    result: Result<Completion, Error>,
) -> Result<(u32, bool, Disposition, Charge), Failure> {
    let charge = Charge::from_result(services, model, &result);
    let (updated, cost_usd) = (sent.updated, charge.cost_usd);
    let disposition = disposition(services, shard, model, (index, sent), result, cost_usd).await?;
    Ok((index, updated, disposition, charge))
}

/// Decides as on the direct path: a refusal is final. A cut answer is asked for again with a higher
/// cap, if the batch raises caps. An answer that does not satisfy the schema has another chance.
async fn disposition(
    services: &Services,
    shard: &Shard,
    model: &ModelId,
    (index, sent): (u32, Sent),
    result: Result<Completion, Error>,
    cost_usd: Option<f64>,
) -> Result<Disposition, Failure> {
    let failed = |kind, message: &str| {
        let failure = Failure::never(kind, message);
        Ok(Disposition::Failed { failure, kept: None })
    };
    let completion = match result {
        Ok(completion) => completion,
        // The direct path reports it in the client's form.
        Err(_) if shard.job.lines.is_some() => return Ok(Disposition::Open),
        Err(Error { kind: Kind::ContentRefused, .. }) => {
            return failed(
                FailureType::ContentRefused,
                "the provider or the model refused the content",
            );
        }
        Err(Error { kind: Kind::TooLarge, .. }) => {
            let message = "the document and its answer do not fit into the model's context";
            let failure = Failure::never(FailureType::TooLarge, message);
            let failure = failure.with_size_advice(&size_advice(&shard.job));
            return Ok(Disposition::Failed { failure, kept: None });
        }
        Err(_) => return Ok(Disposition::Open),
    };
    let Some(document) =
        usize::try_from(index).ok().and_then(|index| shard.documents.get(index)).cloned()
    else {
        return Ok(Disposition::Open);
    };
    let document = shard.with_record(document).await?;
    tidegate_calls::metrics::count_stop_reason(model, &completion.stop_reason);
    let dialect = services.providers.dialect(model);
    let answer = match (&evidence::schema_with_evidence(&shard.job), dialect) {
        (Some(schema), Some(dialect)) => dialect.restored(model.model(), schema, completion.answer),
        _ => completion.answer,
    };
    let read = read_again(services, shard, &document, &sent.version).await;
    let sought =
        read.as_ref().map_or(QuoteSource::Gone, |it| QuoteSource::Whole(&it.content, &it.pages));
    let (answer, evidence) = evidence::take_evidence(&shard.job, answer, &document, &sought).await;
    let (evidence, wrong) = evidence.map_or_else(|wrong| (None, Some(wrong)), |it| (it, None));
    let asked = (&shard.job, shard.asks);
    let given = Given::Answer(answer, completion.stop_reason);
    let result = DocumentResult::answered(asked, (document, sent.version), model, given)
        .with_evidence(evidence)
        .with_usage_unknown(completion.usage.is_none())
        .with_cost(1, completion.usage, cost_usd);
    let (cut, short) = (result.is_cut(), result.shortfall(shard.job.max_output_tokens));
    let failure = match accept(services, &shard.job, shard.validator.as_ref(), &result, wrong).await
    {
        Err(failure) if failure.is_retried() => return Err(failure),
        Err(failure) => Some(failure),
        Ok(Acceptance::Cut) if shard.job.on_cut == OnCut::Raise => None,
        Ok(Acceptance::Cut) => Some(Failure::truncated(short)),
        Ok(Acceptance::Invalid(wrong)) if cut => Some(Failure::truncated_json(short, &wrong)),
        Ok(Acceptance::Invalid(_)) => return Ok(Disposition::Open),
        Ok(Acceptance::Accepted) => {
            // The answer to a line may have any form.
            if shard.job.lines.is_none() {
                offer(services, &result).await;
            }
            let location = DocumentResult::location(&shard.output, &result.id);
            result.bought(&location, sent.instead_of)?.write().await?;
            return Ok(Disposition::Done { cut });
        }
    };
    let refused = DocumentResult::refused_location(&shard.output, &result.id);
    let kept = result.write_refused(&refused).await.then(|| refused.to_string());
    Ok(failure.map_or(Disposition::Raise, |failure| Disposition::Failed { failure, kept }))
}

/// The content of a document that was sent, for its evidence, if it can be read again and has not
/// changed.
async fn read_again(
    services: &Services,
    shard: &Shard,
    document: &Document,
    sent: &Version,
) -> Option<Extracted> {
    if !shard.job.evidence {
        return None;
    }
    let SharedJob { job, route, .. } = &**shard;
    let raw = content::fetch(services, document, &job.lane).await.ok()?;
    let read = content::extract(services, raw, job, route, Care::None).await.ok()?;
    let is_same = read.version.is_same(sent) == Some(true);
    (is_same && read.version.extracted == sent.extracted).then_some(read)
}
