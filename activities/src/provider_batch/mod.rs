//! Documents that go through their provider's batch API: whether a batch does, and the four steps
//! of one that does.
//!
//! A shard's documents are handed in as one batch of the provider's, or several where they are
//! large. What was handed in stands in the job's folder, so that a crash on the way does not pay
//! for it twice: `batch-<shard>-<first document>-<round>.json` is written before, and again with
//! the provider's id after. The requests' names there are numbers; ids of documents are nobody's
//! business.

mod collect;
mod submission;
mod submit;

use std::time::{Duration, SystemTime};

use chrono::{TimeDelta, Utc};
use tidegate_providers::{BatchApi, Kind, batch};
use tidegate_types::ModelId;
use tidegate_workflows::{
    contract::{
        BatchState, Deadline, Job, OpenBatches, ProviderBatch, ProviderBatching,
    },
    provider_batch::STOPPING,
};

use crate::{
    batch::forecast::Forecast,
    batch::job::Shard,
    batch::source::resolve,
    call::ask::no_provider,
    call::route::Route,
    failure::{Failure, MAX_BATCH_CANCELS},
    provider_batch::submission::Submission,
    services::Services,
};

pub use collect::collect;
pub use submit::submit;

/// A provider's batch is worth while from this on: Anthropic says that most of its batches end
/// within an hour.
const MIN_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// What the direct path is taken to need where no limit by the minute tells.
const UNKNOWN_DIRECT: Duration = Duration::from_secs(60 * 60);

/// A batch that cannot be found so long after it was handed in is gone. Before that, the list may
/// not have it yet.
const SETTLED: TimeDelta = TimeDelta::minutes(10);

/// Whether a batch's documents go through their provider's batch API, and until when.
///
/// With a deadline they do if it leaves an hour beyond what the direct path would take at the
/// lane's own share; and that long before it, whatever has no answer takes the direct path. A
/// deadline that is too near goes before the mode.
///
/// # Errors
/// `InvalidInput` for a deadline that is over, or a provider without a batch API.
pub fn choose(
    services: &Services,
    job: &Job,
    route: &Route,
    forecast: &Forecast,
    now: SystemTime,
) -> Result<Option<ProviderBatching>, Failure> {
    let deadline = match job.deadline {
        Some(Deadline::At(seconds)) => {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
        }
        Some(Deadline::Within(seconds)) => now.checked_add(Duration::from_secs(seconds)),
        None => None,
    };
    if deadline.is_some_and(|deadline| deadline <= now) {
        return Err(Failure::invalid_input(
            "deadline is over already; name a later one, or leave it out",
        ));
    }
    let model = model(services, route);
    if job.economy && model.is_none() {
        let models: Vec<String> = route.models.iter().map(ToString::to_string).collect();
        return Err(Failure::invalid_input(format!(
            "mode \"economy\" needs a provider with a batch API, and none is known for {}; leave out mode, or choose a model of anthropic or openai",
            models.join(", ")
        )));
    }
    let direct = forecast.seconds.map_or(UNKNOWN_DIRECT, |seconds| {
        Duration::try_from_secs_f64(seconds.to).unwrap_or(Duration::MAX)
    });
    let latest =
        deadline.map(|deadline| deadline.checked_sub(direct).unwrap_or(SystemTime::UNIX_EPOCH));
    Ok(match latest {
        None if job.economy => Some(ProviderBatching { until: None }),
        Some(latest) if model.is_some() && latest >= now + MIN_DEADLINE => {
            // Then the provider is asked to stop, which takes a while.
            let until = latest - STOPPING;
            Some(ProviderBatching {
                until: Some(
                    until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs(),
                ),
            })
        }
        Some(_) if job.economy => {
            tracing::warn!(
                "the deadline leaves no time for the provider's batch API; the documents take the direct path"
            );
            None
        }
        _ => None,
    })
}

/// Who answers a route's batches: the first of its best models whose provider has a batch API. A
/// provider that is not set up here is given the benefit of the doubt: dry runs need no keys.
fn model<'a>(services: &Services, route: &'a Route) -> Option<&'a ModelId> {
    let has_batches = |model: &&ModelId| {
        services.providers.get(model).is_none_or(|provider| provider.batches().is_some())
    };
    route.step(0).into_iter().find(has_batches)
}

/// The same, with its provider.
fn desk<'a>(
    services: &'a Services,
    shard: &'a Shard,
) -> Result<(&'a ModelId, &'a dyn BatchApi), Failure> {
    let model = model(services, &shard.route).or_else(|| shard.route.models.first());
    let model = model.ok_or_else(|| Failure::invalid_input("the route names no model"))?;
    let provider = services.providers.get(model).ok_or_else(|| no_provider(model))?;
    let batches = provider
        .batches()
        .ok_or_else(|| Failure::invalid_input(format!("{} has no batch API", model.provider())))?;
    Ok((model, batches))
}

/// How far the provider is with each. A batch that nobody can tell of now is taken to be under way:
/// it is asked for again.
///
/// # Errors
/// A [`Failure`] that says when to ask again.
pub async fn check(
    services: &Services,
    workflow: &str,
    open: &OpenBatches,
) -> Result<Vec<BatchState>, Failure> {
    let mut states = Vec::with_capacity(open.batches.len());
    for batch in &open.batches {
        states.push(state(services, workflow, batch).await?);
    }
    Ok(states)
}

async fn state(
    services: &Services,
    workflow: &str,
    batch: &ProviderBatch,
) -> Result<BatchState, Failure> {
    let shard =
        services.shards.get(&services.storage, &batch.submitted.job, batch.submitted.shard).await?;
    let (model, batches) = desk(services, &shard)?;
    let (state, why) = match batches.state(&batch.batch).await {
        Ok(batch::State::Running) => return Ok(BatchState::Running),
        Ok(batch::State::Ended) => return Ok(BatchState::Ended),
        Ok(batch::State::Full) => (BatchState::Full, "the account's queue is full".to_owned()),
        Ok(batch::State::Failed(why)) => (BatchState::Failed, why),
        Err(error) if error.kind == Kind::InvalidRequest && is_settled(services, batch).await? => {
            (BatchState::Failed, error.message)
        }
        Err(error) => {
            tracing::warn!(%model, batch = batch.batch, %error, "a provider's batch cannot be asked after; it is taken to be under way");
            return Ok(BatchState::Running);
        }
    };
    tracing::warn!(%model, batch = batch.batch, why, "a provider's batch was not done");
    // Nothing was spent.
    let hold = submission::hold(&submission::key(&batch.submitted), batch.requests);
    services.budgets.settle_batch(&shard.job, workflow, &hold, 0.0).await;
    forget(batches, batch).await;
    Ok(state)
}

/// Whether a batch was handed in long ago.
async fn is_settled(services: &Services, batch: &ProviderBatch) -> Result<bool, Failure> {
    let folder = resolve(&services.storage, "job", &batch.submitted.job)?;
    Ok(Submission::read(&folder, &batch.submitted)
        .await?
        .is_none_or(|submission| Utc::now() - submission.at > SETTLED))
}

/// What stays behind with the provider does no harm to anything but privacy.
async fn forget(batches: &dyn BatchApi, batch: &ProviderBatch) {
    if let Err(error) = batches.forget(&batch.batch).await {
        tracing::info!(batch = batch.batch, %error, "the requests of a batch stay in the provider's store");
    }
}

/// Asks the provider to stop; what is answered by then is collected.
///
/// # Errors
/// A [`Failure`] that says when to ask again.
pub async fn cancel(
    services: &Services,
    batch: &ProviderBatch,
    attempt: u32,
) -> Result<(), Failure> {
    let shard =
        services.shards.get(&services.storage, &batch.submitted.job, batch.submitted.shard).await?;
    let (_, batches) = desk(services, &shard)?;
    let folder = resolve(&services.storage, "job", &batch.submitted.job)?;
    if Submission::read(&folder, &batch.submitted)
        .await?
        .is_some_and(|submission| submission.guessed)
    {
        // It may be somebody else's.
        return Ok(());
    }
    match batches.cancel(&batch.batch).await {
        Err(error)
            if error.kind.is_retryable()
                && error.status != Some(409)
                && attempt < MAX_BATCH_CANCELS =>
        {
            Err(Failure::from_batch_api(&error, attempt))
        }
        // It has ended by itself, or goes on: it is waited for all the same.
        _ => Ok(()),
    }
}
