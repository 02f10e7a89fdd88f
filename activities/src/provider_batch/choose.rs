//! Whether a batch's documents go through their provider's batch API, and with which model.

use std::time::{Duration, SystemTime};

use tidegate_calls::{caller::no_provider, route::Route};
use tidegate_providers::{BatchApi, Operation, Provider};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{Deadline, Job, Mode, ProviderBatching, STOPPING};

use crate::{
    failure::Failure,
    output::{forecast::Forecast, job::Shard},
    services::Services,
};

/// Shortest deadline for which a provider's batch is used: Anthropic states that most of its
/// batches end within an hour.
const MIN_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// Assumed time of the direct path where no limit per minute determines it.
const UNKNOWN_DIRECT: Duration = Duration::from_secs(60 * 60);

/// Whether a batch's documents go through their provider's batch API, and until when.
///
/// With a deadline they do if it leaves an hour beyond the time of the direct path at the lane's
/// guaranteed share. Documents still without an answer when only that time is left take the direct
/// path. A deadline that is too near takes precedence over the mode.
///
/// # Errors
/// `InvalidInput` for a deadline that has passed, or a provider without a batch API.
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
        // Each line reports the error itself.
        if job.lines.is_some() {
            return Ok(None);
        }
        return Err(Failure::invalid_input(
            "deadline is over already; name a later one, or leave it out",
        ));
    }
    let model = model(services, job, route);
    let economy = job.mode == Some(Mode::Economy);
    if economy && model.is_none() {
        let models: Vec<String> = route.models.iter().map(ToString::to_string).collect();
        return Err(Failure::invalid_input(format!(
            "mode \"economy\" needs a provider with a batch API, and none is known for {}; leave out mode, or choose a model of anthropic, openai or gemini",
            models.join(", ")
        )));
    }
    let direct = forecast.of_asked().seconds.map_or(UNKNOWN_DIRECT, |seconds| {
        Duration::try_from_secs_f64(seconds.to).unwrap_or(Duration::MAX)
    });
    let latest =
        deadline.map(|deadline| deadline.checked_sub(direct).unwrap_or(SystemTime::UNIX_EPOCH));
    Ok(match latest {
        None if economy => Some(ProviderBatching { until: None }),
        Some(latest) if model.is_some() && latest >= now + MIN_DEADLINE => {
            // The provider is asked to stop at this time, which takes a while.
            let until = latest - STOPPING;
            Some(ProviderBatching {
                until: Some(
                    until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs(),
                ),
            })
        }
        Some(_) if economy => {
            tracing::warn!(
                "the deadline leaves no time for the provider's batch API; the documents take the direct path"
            );
            None
        }
        _ => None,
    })
}

/// The reason why documents that could wait cost the full price, for a batch that asked for the
/// batch API and was planned without it.
#[must_use]
pub fn full_price(services: &Services, job: &Job, route: &Route) -> Option<String> {
    if job.deadline.is_none() && job.mode != Some(Mode::Economy) {
        return None;
    }
    Some(match (model(services, job, route), route.models.first()) {
        (None, Some(first)) => format!(
            "there is time until the deadline, and each call costs the full price: no batch API is known for {first}"
        ),
        _ => "each call costs the full price: the deadline leaves no time for the provider's batch API".to_owned(),
    })
}

/// The model that a route's batches are submitted to: the first of its best models whose provider
/// has a batch API and, for requests in a vendor's own form, takes them. A provider that is not
/// configured here is assumed to have one: dry runs need no keys.
fn model<'a>(services: &Services, job: &Job, route: &'a Route) -> Option<&'a ModelId> {
    let operation = operation(job);
    let takes = |it: &dyn Provider| operation.is_none_or(|operation| it.takes(operation));
    let has_batches = |model: &&ModelId| {
        services.providers.get(model).is_none_or(|it| it.batches().is_some() && takes(it))
    };
    route.step(0).into_iter().find(has_batches)
}

/// The model of [`model`], with its provider.
pub(super) fn batch_api<'a>(
    services: &'a Services,
    shard: &'a Shard,
) -> Result<(&'a ModelId, &'a dyn BatchApi), Failure> {
    let model = model(services, &shard.job, &shard.route).or_else(|| shard.route.models.first());
    let model = model.ok_or_else(|| Failure::invalid_input("the route names no model"))?;
    let provider = services.providers.get(model).ok_or_else(|| no_provider(model))?;
    let batches = provider
        .batches()
        .ok_or_else(|| Failure::invalid_input(format!("{} has no batch API", model.provider())))?;
    Ok((model, batches))
}

/// The operation of a job's requests that are in a vendor's own form.
pub(super) fn operation(job: &Job) -> Option<Operation> {
    job.lines.as_ref().and_then(|lines| Operation::at(&lines.endpoint))
}
