//! The plan: lists the source, checks everything that can be checked before a call is paid for, and
//! writes the shards.

use std::time::{Instant, SystemTime};

use serde_json::json;
use tidegate_calls::route::Route;
use tidegate_types::ModelId;
use tidegate_workflows::contract::{Attach, Job, Plan, ProviderBatching};

use crate::{
    attempt::Attempt,
    batch::{
        document_ids::DocumentIds,
        estimate::{self, Sample},
        examples, fallbacks, in_flight, model_parameters,
        plan_writer::PlanWriter,
        sample::Lots,
        source::{self, Cursor, Page, PageBudget},
    },
    document::{
        ask::{embed, evidence, output_cap, sandbox},
        pack, request,
    },
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        actions,
        forecast::Forecast,
        job::{Document, Stored, payers, resolve, route_of},
        layout,
        lease::{self, Holder},
        recorded_question,
        sealed::{EarlierResults, ReusePolicy},
        tables,
        truth::Truth,
    },
    provider_batch,
    schema::SchemaValidator,
    services::Services,
    storage::{Location, Storage},
};

/// Takes the lease of the output for the batch, and writes its job and manifests. `has_ended` tells
/// whether a workflow's run has ended.
///
/// # Errors
/// `InvalidInput` for faults that the batch's author must correct; `Transient` when a store fails.
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
    let has_ended = |_| std::future::ready(Ok(true));
    plan_in(services, None, job, &batch, PageBudget::page(), has_ended).await
}

/// Like [`plan`], for an activity whose earlier attempts may have been killed by a file that they
/// read.
///
/// # Errors
/// The errors of [`plan`].
pub async fn plan_in<F, Fut>(
    services: &Services,
    attempt: Option<&Attempt>,
    job: &Job,
    batch: &Holder,
    room: PageBudget,
    has_ended: F,
) -> Result<Plan, Failure>
where
    F: Fn(Holder) -> Fut,
    Fut: Future<Output = Result<bool, Failure>>,
{
    let room = room.of_worker(services, &job.lane);
    let (job, route, output) = prepare(services, job, &batch.workflow).await?;
    let job = &job;
    let storage = &services.storage;
    // Refuse before taking the output's lease: a refused batch leaves nothing in its output.
    let mut truth = match &job.truth {
        Some(uri) => Some(Truth::read_checked(storage, uri).await?),
        None => None,
    };
    let rows = truth.as_mut().map(|(_, rows)| rows);
    let page = first_page(storage, job, &output, room.clone(), rows).await?;
    if page.documents.is_empty() && page.next.is_none() {
        return Err(Failure::invalid_input("the source holds no documents"));
    }
    let judges = judges(services, job);
    route.models.iter().chain(&judges).try_for_each(|model| check_provider(services, model))?;
    if let Some(webhook) = &job.webhook {
        services.webhooks.get(webhook).map_err(Failure::invalid_input)?;
    }
    recorded_question::check(&output, job).await?;
    lease::take(&output, batch, has_ended).await?;
    // The batch that held the lease before may have written there since.
    let recorded = recorded_question::check(&output, job).await?;
    let job = &with_output_cap(services, job, &route);
    let folder = layout::folder(&output, &batch.workflow, &batch.run);
    if let Some((copy, rows)) = truth {
        Truth::save(&folder, copy).await?;
        if job.sample.is_some() {
            rows.save_unmet(&folder).await?;
        }
    }
    let earlier = EarlierResults::load(&output).await?;
    let first_part = earlier.next;
    let mut pages = PlanWriter::begin(&output, &folder, job, earlier);
    let sample = write_pages(storage, job, &output, &mut pages, page, &room).await?;
    let asked = pages.documents() - pages.plan.settled;
    let (forecast, provider_batching) =
        make_forecast(services, attempt, job, &route, (sample, asked)).await?;
    forecast.check(job.budget_usd)?;
    services.budgets.open(&payers(job, &batch.workflow)).await?;
    recorded.write(&output).await?;
    for model in route.models.iter().chain(&judges) {
        services.guard.quota.expect_documents(&job.lane, model);
    }
    let in_flight = in_flight::choose_window(services, job, &route, &forecast);
    let plan = Plan {
        provider_batching,
        pack: forecast.pack,
        in_flight: in_flight.most,
        ready: in_flight.ready,
        open: in_flight.first,
        call_seconds: in_flight.call_seconds,
        heartbeat_seconds: services.heartbeats.get(&job.lane).copied().unwrap_or_default(),
        ..pages.plan.clone()
    };
    let mut stored = Stored {
        job: job.clone(),
        route,
        parts_add_retries: job.retry_budget.is_none(),
        forecast: Some(Forecast { of_the_first: plan.more, ..forecast }),
        first_part,
    };
    if !plan.more {
        stored.complete(plan.documents);
    }
    stored.write(&folder).await?;
    Ok(plan)
}

/// Adds the plan's cap on output to the job, if its author states none.
fn with_output_cap(services: &Services, job: &Job, route: &Route) -> Job {
    if !job.default_output {
        return job.clone();
    }
    let (guard, providers) = (&services.guard, &services.providers);
    let most = output_cap::of_route(guard, providers, route, job.thinking_tokens());
    Job { max_output_tokens: most, ..job.clone() }
}

/// Writes a plan's first page; all pages if a budget or a deadline needs all documents to be listed.
/// Returns a sample of their documents.
async fn write_pages(
    storage: &Storage,
    job: &Job,
    output: &Location,
    pages: &mut PlanWriter<'_>,
    mut page: Page,
    room: &PageBudget,
) -> Result<Sample, Failure> {
    let by_all = job.budget_usd.is_some() || job.deadline.is_some();
    let mut sample = Sample::default();
    loop {
        examples::check(job, &page.documents)?;
        sample.add(&page.documents);
        match pages.write(page).await? {
            Some(cursor) if by_all => {
                let names = &pages.names;
                page = source::page(storage, job, output, cursor, names, room.clone()).await?;
            }
            _ => break,
        }
    }
    sample.is_of(pages.documents());
    Ok(sample)
}

/// Plans the next pages for some time, while shards of the pages before run. Can be repeated:
/// continues after the last written page.
///
/// # Errors
/// The errors of [`plan`].
pub async fn plan_more(
    services: &Services,
    plan: &Plan,
    room: PageBudget,
) -> Result<Plan, Failure> {
    let (storage, began) = (&services.storage, Instant::now());
    let folder = resolve(storage, "job", &plan.job)?;
    let mut stored = Stored::read(&folder).await?;
    let room = room.of_worker(services, &stored.job.lane);
    let output = resolve(storage, "output", &stored.job.output)?;
    let (mut pages, cursor) = PlanWriter::resume(&output, &folder, &stored.job, plan).await?;
    let mut next = Some(cursor);
    while let Some(cursor) = next {
        let (job, names) = (&stored.job, &pages.names);
        let page = source::page(storage, job, &output, cursor, names, room.clone()).await?;
        next = pages.write(page).await?;
        if began.elapsed() >= room.time {
            break;
        }
    }
    let plan = pages.plan.clone();
    if !plan.more {
        stored.complete(plan.documents);
        stored.write(&folder).await?;
    }
    Ok(plan)
}

/// Checks a batch as far as that is possible without its source: its models, lane, schema and prices,
/// and the question of its output's results. Nothing is written. Returns the models that it asks.
///
/// # Errors
/// The errors of [`plan`].
pub async fn check(services: &Services, job: &Job) -> Result<Vec<ModelId>, Failure> {
    let (job, route, output) = prepare(services, job, "").await?;
    recorded_question::check(&output, &job).await?;
    Ok(route.models)
}

/// The forecast of a batch, without starting it.
///
/// # Errors
/// The errors of [`plan`].
pub async fn forecast(services: &Services, job: &Job) -> Result<Forecast, Failure> {
    let (job, route, output) = prepare(services, job, "").await?;
    let job = &job;
    let storage = &services.storage;
    if let Some(uri) = &job.truth {
        Truth::read_checked(storage, uri).await?;
    }
    let room = PageBudget::page().of_worker(services, &job.lane);
    let (earlier, settles) = (EarlierResults::load(&output).await?, ReusePolicy::from_job(job));
    let (mut sample, mut asked) = (Sample::default(), 0);
    let mut add = async |documents: Vec<Document>| -> Result<(), Failure> {
        examples::check(job, &documents)?;
        sample.add(&documents);
        asked += earlier.count_unsettled(&output, settles, &documents).await?;
        Ok(())
    };
    if job.sample.is_some() {
        add(first_page(storage, job, &output, room, None).await?.documents).await?;
    } else {
        let mut pages = Pages::new(storage, job, &output, &room);
        while let Some(page) = pages.next().await? {
            add(page).await?;
        }
    }
    if sample.is_empty() {
        return Err(Failure::invalid_input("the source holds no documents"));
    }
    recorded_question::check(&output, job).await?;
    Ok(make_forecast(services, None, job, &route, (sample, asked)).await?.0)
}

/// Returns the first page of the source; or, if the author asks for a sample, the sample drawn from
/// all pages, and marks all their documents in the truth.
async fn first_page(
    storage: &Storage,
    job: &Job,
    output: &Location,
    room: PageBudget,
    mut truth: Option<&mut Truth>,
) -> Result<Page, Failure> {
    let Some(count) = job.sample else {
        let (from, none) = (Cursor::default(), DocumentIds::default());
        return source::page(storage, job, output, from, &none, room).await;
    };
    let mut lots = Lots::new(Fingerprint::of_json(&json!(job.instructions)));
    let mut pages = Pages::new(storage, job, output, &room);
    while let Some(page) = pages.next().await? {
        for document in &page {
            if let Some(truth) = &mut truth {
                truth.mark_seen(&document.id);
            }
            lots.add(document);
        }
    }
    // The source is listed again, so that its records are never in memory all at once.
    let drawn = lots.draw(usize::try_from(count).unwrap_or(usize::MAX));
    let (mut documents, mut place) = (Vec::new(), 0);
    let mut pages = Pages::new(storage, job, output, &room);
    while documents.len() < drawn.len()
        && let Some(page) = pages.next().await?
    {
        let places = place..;
        place += page.len();
        let page = places.zip(page).filter(|(place, _)| drawn.contains(place));
        documents.extend(page.map(|(_, document)| document));
    }
    Ok(Page { documents, files: Vec::new(), next: None })
}

/// The documents of the source, page by page, with the ids that a batch gives them.
struct Pages<'a> {
    storage: &'a Storage,
    job: &'a Job,
    output: &'a Location,
    room: &'a PageBudget,
    cursor: Option<Cursor>,
    names: DocumentIds,
}

impl<'a> Pages<'a> {
    fn new(storage: &'a Storage, job: &'a Job, output: &'a Location, room: &'a PageBudget) -> Self {
        let (cursor, names) = (Some(Cursor::default()), DocumentIds::default());
        Self { storage, job, output, room, cursor, names }
    }

    async fn next(&mut self) -> Result<Option<Vec<Document>>, Failure> {
        let Some(from) = self.cursor.take() else { return Ok(None) };
        let Self { storage, job, output, room, .. } = *self;
        let page = source::page(storage, job, output, from, &self.names, room.clone()).await?;
        let (documents, _, added) = self.names.assign(page.documents, page.files);
        self.names.add(&added);
        self.cursor = page.next;
        Ok(Some(documents))
    }
}

/// The forecast, and whether the documents go through the provider's batch API. A sample stands for all
/// documents; so many of them are to be asked.
async fn make_forecast(
    services: &Services,
    attempt: Option<&Attempt>,
    job: &Job,
    route: &Route,
    (sample, asked): (Sample, u64),
) -> Result<(Forecast, Option<ProviderBatching>), Failure> {
    let forecast = estimate::forecast(services, job, route, sample, attempt).await?;
    let forecast = Forecast { asked: Some(asked), ..forecast };
    let batching = provider_batch::choose(services, job, route, &forecast, SystemTime::now())?;
    let forecast = if batching.is_some() {
        forecast.in_provider_batch()
    } else {
        Forecast { full_price: provider_batch::full_price(services, job, route), ..forecast }
    };
    let call = in_flight::seconds_of_a_call(services, job, route, &forecast);
    let temporal_actions = Some(actions::forecast_actions(&forecast, call));
    Ok((Forecast { temporal_actions, ..forecast }, batching))
}

/// Returns the route and the output, after all checks that need no store.
async fn prepare(
    services: &Services,
    job: &Job,
    batch: &str,
) -> Result<(Job, Route, Location), Failure> {
    let (route, output) = survey(services, job, batch)?;
    sandbox::examine_checks(&services.reader_for(&job.lane), job).await?;
    let job = &model_parameters::with_parameters(services, job, &route)?;
    let job = &examples::read(services, job).await?;
    let job = Box::pin(fallbacks::with_reasons(services, job, &route)).await?;
    Ok((job, route, output))
}

fn survey(services: &Services, job: &Job, batch: &str) -> Result<(Route, Location), Failure> {
    let route = match &job.lines {
        Some(lines) => request::route(services, job, lines)?,
        None => route_of(&job.target, &services.routes)?,
    };
    route.models.iter().try_for_each(|model| check_model(services, job, model))?;
    job.schema.as_ref().map(SchemaValidator::compile).transpose()?;
    evidence::check_fields(job)?;
    pack::check(job)?;
    if let Some(webhook) = &job.webhook {
        services.webhooks.check(webhook).map_err(Failure::invalid_input)?;
    }
    embed::check(services, job, &route)?;
    tables::check(job)?;
    if job.attach == Attach::Auto && !tidegate_documents::DRAWS_PAGES {
        return Err(Failure::invalid_input(
            "attach \"auto\" draws pages, and this worker's program was built without that; build it with the feature \"pages\", which is on by default, or leave attach out",
        ));
    }
    examples::check(job, [])?;
    let judges = judges(services, job);
    judges.iter().try_for_each(|model| check_model(services, job, model))?;
    if job.escalate && route.levels().len() < 2 {
        return Err(Failure::invalid_input(format!(
            "escalate: {} has no model after the first; name one, or leave escalate out",
            job.target
        )));
    }
    services.budgets.check(&payers(job, batch), route.models.iter().chain(&judges))?;
    let output = resolve(&services.storage, "output", &job.output)?;
    if let Some(file) = output.blocking_file() {
        return Err(Failure::invalid_input(format!(
            "output {output}: {} is a file; choose a folder, or a name that is free",
            file.display()
        )));
    }
    Ok((route, output))
}

/// The models that judge answers.
fn judges(services: &Services, job: &Job) -> Vec<ModelId> {
    let routes = job.judges().map(|it| Route::for_model(&it.model, &services.routes));
    routes.flat_map(|route| route.models).collect()
}

fn check_model(services: &Services, job: &Job, id: &ModelId) -> Result<(), Failure> {
    let Some(model) = services.guard.quota.models().find(|model| model.id == *id) else {
        let known = known_names(services).join(", ");
        let choose = if known.is_empty() {
            "no model is;".to_owned()
        } else {
            format!("configured: {known}; choose one of them, or")
        };
        return Err(Failure::invalid_input(format!(
            "model \"{id}\" is not configured; {choose} add a [models.\"{id}\"] section with its limits to the workers' configuration"
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

/// The models that a job can name: pools, and models that are in no pool.
fn known_names(services: &Services) -> Vec<&str> {
    let pools = || services.routes.iter().filter(|(_, route)| route.by_room);
    let is_alone = |id: &&ModelId| !pools().any(|(_, pool)| pool.models.contains(id));
    let alone = services.guard.quota.models().map(|model| &model.id).filter(is_alone);
    pools().map(|(name, _)| name.as_str()).chain(alone.map(ModelId::as_str)).collect()
}

fn check_provider(services: &Services, id: &ModelId) -> Result<(), Failure> {
    services.providers.get(id).map(drop).ok_or_else(|| {
        Failure::invalid_input(format!(
            "model \"{id}\" has no provider; add a [providers.{}] section to the workers' configuration",
            id.provider()
        ))
    })
}
