//! The plan: list the source, check everything that can be known before a call is paid for, write
//! the shards.

use std::time::SystemTime;

use tidegate_types::ModelId;
use tidegate_workflows::contract::{Job, Plan, ProviderBatching, SHARD_WINDOW};

use crate::{
    batch::{
        asked_with, estimate,
        forecast::Forecast,
        in_flight,
        job::{Document, Stored, resolve},
        jsonl::written,
        lease::{self, Holder},
        output, places,
        sealed::{Earlier, Settled},
        source::{self, Documents},
    },
    call::{attempt::Attempt, output_cap, route::Route},
    document::{pack, schema},
    failure::{Failure, RETRIES_PER_DOCUMENT},
    provider_batch,
    services::Services,
    storage::Location,
};

/// Makes the output the batch's own, and writes its job and manifests. `has_ended` says whether the
/// run of a workflow has ended.
///
/// # Errors
/// `InvalidInput` says what the batch's author must change; `Transient` when a store fails.
pub async fn plan(
    services: &Services,
    job: &Job,
    workflow_id: &str,
    run_id: &str,
) -> Result<Plan, Failure> {
    let batch = Holder {
        namespace: String::new(),
        workflow: workflow_id.to_owned(),
        run: run_id.to_owned(),
    };
    plan_in(services, None, job, &batch, |_| std::future::ready(Ok(true))).await
}

/// The same in an activity, whose attempts before this one may have died of what they read.
/// `has_ended` says whether the run of another batch has.
///
/// # Errors
/// As [`plan`].
pub async fn plan_in<F, Fut>(
    services: &Services,
    attempt: Option<&Attempt>,
    job: &Job,
    batch: &Holder,
    has_ended: F,
) -> Result<Plan, Failure>
where
    F: Fn(Holder) -> Fut,
    Fut: Future<Output = Result<bool, Failure>>,
{
    let (route, output) = survey(services, job, &batch.workflow)?;
    let job = &asked_with::decided(services, job, &route)?;
    lease::take(&output, batch, has_ended).await?;
    let recorded = output::check(&output, job).await?;
    let Documents { documents, renamed } =
        source::documents(&services.storage, job, &output).await?;
    route.models.iter().try_for_each(|model| check_provider(services, model))?;
    let job = &match job.default_output {
        true => {
            let (guard, providers) = (&services.guard, &services.providers);
            let thinking = job.thinking_tokens();
            let most = output_cap::of_route(guard, providers, &route, thinking);
            Job { max_output_tokens: most, ..job.clone() }
        }
        false => job.clone(),
    };
    let (forecast, provider_batching) =
        expected(services, attempt, job, &route, &documents).await?;
    forecast.check(job.budget_usd)?;
    services.budgets.open(job, &batch.workflow).await?;
    let pack = forecast.pack;
    let in_flight = in_flight::of(services, job, &route, &forecast);
    recorded.write(&output).await?;
    let earlier = Earlier::of(&output).await?;
    let folder = places::folder(&output, &batch.workflow, &batch.run);
    let count = documents.len() as u64;
    let retry_budget =
        Some(job.retry_budget.unwrap_or_else(|| count.saturating_mul(RETRIES_PER_DOCUMENT)));
    let stored = Stored {
        job: Job { retry_budget, ..job.clone() },
        route,
        parts_add_retries: job.retry_budget.is_none(),
        unmarked: Some(recorded.unmarked),
        forecast: Some(forecast),
        first_part: Some(earlier.next),
    };
    let json = serde_json::to_vec_pretty(&stored)
        .map_err(|error| Failure::invalid_input(error.to_string()))?;
    folder
        .child("job.json")
        .write(json)
        .await
        .map_err(|error| Failure::of_field("output", error))?;

    let settled = earlier.settle(&output, stored.asks(), &documents).await?;
    let mut asked = Vec::with_capacity(documents.len());
    let mut done = Vec::new();
    for (document, part) in documents.into_iter().zip(settled) {
        match part {
            Some(part) => {
                done.push(Settled { id: document.id, part, at: asked.len() as u64 });
            }
            None => asked.push(document),
        }
    }
    if !done.is_empty() {
        places::settled(&folder, 0).write(written(&done)?).await?;
    }
    // Few enough for one workflow's history; a smaller batch is one shard, which needs no workflow of
    // its own.
    let shard_size = SHARD_WINDOW;
    for (number, shard) in
        (0_u32..).zip(asked.chunks(usize::try_from(shard_size).unwrap_or(usize::MAX)))
    {
        let versions = written(shard.iter().map(|document| &document.version))?;
        places::versions(&folder, number).write(versions).await?;
        places::manifest(&folder, number).write(written(shard)?).await?;
    }
    Ok(Plan {
        job: folder.uri(),
        documents: count,
        shard_size,
        provider_batching,
        pack,
        renamed,
        settled: done.len() as u64,
        pages: 1,
        in_flight,
    })
}

/// What a batch will take, without starting it.
///
/// # Errors
/// As [`plan`].
pub async fn forecast(services: &Services, job: &Job) -> Result<Forecast, Failure> {
    let (route, output) = survey(services, job, "")?;
    let job = &asked_with::decided(services, job, &route)?;
    output::check(&output, job).await?;
    let source = source::documents(&services.storage, job, &output).await?;
    Ok(expected(services, None, job, &route, &source.documents).await?.0)
}

/// What it will take, and whether it goes through the provider's batch API.
async fn expected(
    services: &Services,
    attempt: Option<&Attempt>,
    job: &Job,
    route: &Route,
    documents: &[Document],
) -> Result<(Forecast, Option<ProviderBatching>), Failure> {
    let forecast = estimate::forecast(services, job, route, documents, attempt).await?;
    let batching = provider_batch::choose(services, job, route, &forecast, SystemTime::now())?;
    Ok((if batching.is_some() { forecast.in_provider_batch() } else { forecast }, batching))
}

/// Who answers and where the results go: everything that can be known without asking a store.
fn survey(services: &Services, job: &Job, batch: &str) -> Result<(Route, Location), Failure> {
    let route = Route::of(&job.target, &services.routes)?;
    route.models.iter().try_for_each(|model| check_model(services, job, model))?;
    job.schema.as_ref().map(schema::compile).transpose()?;
    pack::check(job)?;
    services.budgets.check(job, &route.models, batch)?;
    let output = resolve(&services.storage, "output", &job.output)?;
    Ok((route, output))
}

fn check_model(services: &Services, job: &Job, id: &ModelId) -> Result<(), Failure> {
    let known: Vec<String> =
        services.guard.quota.models().map(|model| model.id.to_string()).collect();
    let Some(model) = services.guard.quota.models().find(|model| model.id == *id) else {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Failure::invalid_input(format!(
            "model \"{id}\" is not configured; configured: {known}; choose one of them, or add a [models.\"{id}\"] section with its limits to the workers' configuration"
        )));
    };
    if model.lanes.index(&job.lane).is_none() {
        let lanes: Vec<String> = model.lanes.iter().map(|(lane, _)| lane.to_string()).collect();
        return Err(Failure::invalid_input(format!(
            "lane \"{}\" is not configured; choose one of {}",
            job.lane,
            lanes.join(", ")
        )));
    }
    Ok(())
}

fn check_provider(services: &Services, id: &ModelId) -> Result<(), Failure> {
    services.providers.get(id).map(drop).ok_or_else(|| {
        Failure::invalid_input(format!(
            "model \"{id}\" has no provider; add a [providers.{}] section to the workers' configuration",
            id.provider()
        ))
    })
}
