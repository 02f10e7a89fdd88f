//! Documents that go through their provider's batch API: whether a batch does, and the four steps of one that does.
//!
//! A shard's documents are handed in as one batch of the provider's, or several where they are large. What was handed in
//! stands in the job's folder, so that a crash on the way does not pay for it twice:
//! `batch-<shard>-<first document>-<round>.json` is written before, and again with the provider's id after. The requests'
//! names there are numbers; ids of documents are nobody's business.

mod collect;
mod memo;
mod submit;

use std::time::{Duration, SystemTime};

use tidegate_providers::{Batches, Kind, batch};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{BatchState, Deadline, Economy, Effort, Job, ProviderBatch};

use crate::{
    failure::{Failure, MAX_FAULTS},
    forecast::Forecast,
    job::Shard,
    question,
    route::Route,
    services::Services,
};

pub use collect::collect;
pub use submit::submit;

/// A provider's batch is worth while from this on: Anthropic says that most of its batches end within an hour.
const SHORTEST: Duration = Duration::from_secs(60 * 60);

/// Whether a batch's documents go through their provider's batch API, and until when.
///
/// With a deadline they do if it leaves an hour beyond what the direct path would take at the lane's own share; and that
/// long before it, whatever has no answer takes the direct path.
///
/// # Errors
/// `InvalidInput` for a deadline that is over, or a provider without a batch API.
pub fn choose(
    services: &Services,
    job: &Job,
    route: &Route,
    forecast: &Forecast,
    now: SystemTime,
) -> Result<Option<Economy>, Failure> {
    let deadline = match job.deadline {
        Some(Deadline::At(seconds)) => Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
        Some(Deadline::Within(seconds)) => Some(now + Duration::from_secs(seconds)),
        None => None,
    };
    if deadline.is_some_and(|deadline| deadline <= now) {
        return Err(Failure::invalid_input("deadline is over already; name a later one, or leave it out"));
    }
    let model = model(services, route);
    if job.economy && model.is_none() {
        let models: Vec<String> = route.models.iter().map(ToString::to_string).collect();
        return Err(Failure::invalid_input(format!(
            "mode \"economy\" needs a provider with a batch API, and none is known for {}; leave out mode, or choose a model of anthropic or openai",
            models.join(", ")
        )));
    }
    let direct = forecast.seconds.map_or(0.0, |seconds| seconds.to);
    let direct = Duration::try_from_secs_f64(direct).unwrap_or(Duration::MAX);
    let latest = deadline.map(|deadline| deadline.checked_sub(direct).unwrap_or(now).max(now));
    let until = |latest: SystemTime| latest.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(match latest {
        _ if job.economy => Some(Economy { until: latest.map(until) }),
        Some(latest) if model.is_some() && latest >= now + SHORTEST => Some(Economy { until: Some(until(latest)) }),
        _ => None,
    })
}

/// The first model of a route whose provider has a batch API. A provider that is not set up here is given the benefit of the
/// doubt: dry runs need no keys.
fn model<'a>(services: &Services, route: &'a Route) -> Option<&'a ModelId> {
    route.models.iter().find(|model| services.providers.get(model).is_none_or(|provider| provider.batches().is_some()))
}

/// Who answers a shard's batches.
fn desk<'a>(services: &'a Services, shard: &'a Shard) -> Result<(&'a ModelId, &'a dyn Batches), Failure> {
    let model = model(services, &shard.route).or_else(|| shard.route.models.first());
    let model = model.ok_or_else(|| Failure::invalid_input("the route names no model"))?;
    let provider = services.providers.get(model).ok_or_else(|| question::no_provider(model))?;
    let batches = provider.batches().ok_or_else(|| Failure::invalid_input(format!("{} has no batch API", model.provider())))?;
    Ok((model, batches))
}

/// How far the provider is.
///
/// # Errors
/// A [`Failure`] that says when to ask again.
pub async fn check(services: &Services, workflow: &str, batch: &ProviderBatch, attempt: u32) -> Result<BatchState, Failure> {
    let shard = services.shards.get(&services.storage, &batch.submitted.job, batch.submitted.shard).await?;
    let (model, batches) = desk(services, &shard)?;
    let why = match batches.state(&batch.batch).await {
        Ok(batch::State::Running) => return Ok(BatchState::Running),
        Ok(batch::State::Ended) => return Ok(BatchState::Ended),
        Ok(batch::State::Full) => {
            release(services, workflow, &shard, batch).await;
            return Ok(BatchState::Full);
        }
        Ok(batch::State::Failed(why)) => why,
        // It is not there any more: nobody will ever answer.
        Err(error) if error.kind == Kind::InvalidRequest => error.message,
        Err(error) => return Err(later(services, &error, attempt)),
    };
    tracing::warn!(%model, batch = batch.batch, why, "a provider's batch failed; its documents take the direct path");
    release(services, workflow, &shard, batch).await;
    Ok(BatchState::Failed)
}

/// Asks the provider to stop; what is answered by then is collected.
///
/// # Errors
/// A [`Failure`] that says when to ask again.
pub async fn cancel(services: &Services, batch: &ProviderBatch, attempt: u32) -> Result<(), Failure> {
    let shard = services.shards.get(&services.storage, &batch.submitted.job, batch.submitted.shard).await?;
    let (_, batches) = desk(services, &shard)?;
    match batches.cancel(&batch.batch).await {
        // It has ended by itself.
        Err(error) if error.kind == Kind::InvalidRequest => Ok(()),
        Err(error) if attempt < MAX_FAULTS => Err(later(services, &error, attempt)),
        // It is waited for all the same.
        _ => Ok(()),
    }
}

/// Nothing was spent.
async fn release(services: &Services, workflow: &str, shard: &Shard, batch: &ProviderBatch) {
    let id = memo::key(&batch.submitted);
    services.budgets.settle_batch(&shard.job, workflow, &id, 0.0).await;
}

/// Whatever it is, it may pass: a batch that was handed in is not given up.
fn later(services: &Services, error: &tidegate_providers::Error, attempt: u32) -> Failure {
    let backoff = services.guard.backoff;
    let effort = Effort { provider_calls: attempt.min(MAX_FAULTS - 1), ..Effort::default() };
    let failure = Failure::from_provider(error, &effort, backoff);
    Failure { retry_after: Some(failure.retry_after.unwrap_or(backoff.max)), ..failure }
}
