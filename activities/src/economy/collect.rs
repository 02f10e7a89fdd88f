//! Collecting.

use chrono::Utc;
use tidegate_providers::{Charged, Completion, batch};
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::{CollectedBatch, DocumentOutcome, Effort, ProviderBatch};

use super::{desk, later, memo};
use crate::{failure::Failure, job::Shard, metrics, outcome::DocumentResult, schema, services::Services};

/// Writes the result of every document that the batch has answered. Can be repeated: the provider keeps the answers.
///
/// # Errors
/// A [`Failure`] that says when to try again.
pub async fn collect(services: &Services, workflow: &str, batch: &ProviderBatch, attempt: u32) -> Result<CollectedBatch, Failure> {
    let task = &batch.submitted;
    let shard = services.shards.get(&services.storage, &task.job, task.shard).await?;
    let (model, batches) = desk(services, &shard)?;
    let (key, mut collected) = (memo::key(task), CollectedBatch::default());
    let mut answers = batches.answers(&batch.batch).await.map_err(|error| later(services, &error, attempt))?;
    while let Some(answer) = answers.next().await.map_err(|error| later(services, &error, attempt))? {
        let index = memo::index(&key, &answer.custom_id).filter(|index| (task.from..task.to).contains(index));
        let (Some(index), Some(result)) = (index, answer.result) else { continue };
        collected.spent.effort.provider_calls += 1;
        let usage = match &result {
            Ok(completion) => completion.usage,
            Err(error) => match error.charged {
                Charged::Usage(usage) => Some(usage),
                Charged::No | Charged::Unknown => None,
            },
        };
        let cost_usd = usage.and_then(|usage| cost(services, model, &usage));
        collected.spent.add(&spent(usage, cost_usd));
        metrics::batch_answer(model, usage.as_ref(), result.as_ref().err().map(|error| error.kind));
        if let Ok(completion) = result
            && keep(&shard, model, index, completion, cost_usd).await?
        {
            collected.done.push(index);
        }
    }
    collected.done.sort_unstable();
    collected.done.dedup();
    services.budgets.settle_batch(&shard.job, workflow, &key, collected.spent.cost_usd).await;
    Ok(collected)
}

/// Whether the answer is the document's result. One that does not satisfy the schema is not, and is asked for again.
async fn keep(shard: &Shard, model: &ModelId, index: u32, completion: Completion, cost_usd: Option<f64>) -> Result<bool, Failure> {
    let Some(document) = usize::try_from(index).ok().and_then(|index| shard.documents.get(index)).cloned() else {
        return Ok(false);
    };
    if shard.validator.as_ref().is_some_and(|validator| schema::valid(validator, &completion.answer).is_err()) {
        return Ok(false);
    }
    let result = DocumentResult::new(document, model, completion, cost_usd, 1);
    result.create(&DocumentResult::location(&shard.output, &result.id)).await?;
    metrics::answered(&result, &shard.job.tenant);
    Ok(true)
}

fn cost(services: &Services, model: &ModelId, usage: &Usage) -> Option<f64> {
    services.prices.cost_usd(model, usage, Utc::now().date_naive()).map(|usd| usd * batch::PRICE)
}

fn spent(usage: Option<Usage>, cost_usd: Option<f64>) -> DocumentOutcome {
    let usage = usage.unwrap_or_default();
    DocumentOutcome {
        effort: Effort::default(),
        input_tokens: usage.input(),
        cached_input_tokens: usage.cache_read,
        output_tokens: usage.output,
        cost_usd: cost_usd.unwrap_or(0.0),
        ..DocumentOutcome::default()
    }
}
