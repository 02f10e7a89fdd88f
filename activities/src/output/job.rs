//! What a batch's documents share, as it lies in the store: the job and the shards' manifests.
//!
//! Under `<output>/_tidegate/<workflow>-<run>/`: `job.json`, `shard-00000.jsonl` …, and what sealing
//! a shard leaves for the end: `failures-00000.jsonl`; its results are a part under `results/`.
//! Documents that need nothing are in no shard, but in `settled-00000.jsonl`.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_calls::{
    budget::Payers,
    caller::Terms,
    retries::RetryBudget,
    route::{Route, Routes},
};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{DocumentTask, Job, Target};

use crate::{
    failure::{Failure, OfStore as _, RETRIES_PER_DOCUMENT},
    fingerprint::Fingerprint,
    hash::hash,
    output::{
        forecast::Forecast,
        jsonl::{lines, pretty},
        layout::manifest,
        question::StatedQuestion,
        version::Version,
    },
    schema::Judge,
    storage::{Location, Storage},
};

/// Shards whose manifests a worker keeps at hand: some 60 KB each.
const REMEMBERED_SHARDS: usize = 64;

/// The place that a field names.
pub(crate) fn resolve(storage: &Storage, field: &str, uri: &str) -> Result<Location, Failure> {
    storage.resolve(uri).map_err(|error| Failure::invalid_input(format!("{field} {error}")))
}

/// The route that a job asks for.
///
/// # Errors
/// `InvalidInput`, which names the configured routes.
pub fn route_of(target: &Target, routes: &Routes) -> Result<Route, Failure> {
    match target {
        Target::Model(model) => Ok(Route::for_model(model, routes)),
        Target::Route(name) => Route::named(name, routes),
    }
}

/// Who pays for what a job asks, in the batch of this workflow.
pub fn payers<'a>(job: &'a Job, workflow: &'a str) -> Payers<'a> {
    Payers { tenant: &job.tenant, batch: workflow, batch_usd: job.budget_usd }
}

/// `job.json`: what the batch's author wrote, and what the plan made of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// The models that are asked.
    #[serde(rename = "answered_by")]
    pub route: Route,
    /// The batch's author stated no retry budget: documents that are read in parts add to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parts_add_retries: bool,
    /// What it was expected to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// The number of its first sealed part.
    pub first_part: u32,
}

impl Stored {
    /// Reads `job.json` of a job's folder.
    ///
    /// # Errors
    /// `InvalidInput` when it is damaged; `Transient` when the store fails.
    pub async fn read(folder: &Location) -> Result<Self, Failure> {
        let object = folder.child("job.json");
        let bytes = object.read().await?;
        serde_json::from_slice(&bytes).map_err(|error| damaged(&object, &error))
    }

    /// The same, where there may be none.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_if_there(folder: &Location) -> Result<Option<Self>, Failure> {
        let object = folder.child("job.json");
        let bytes = object.read_if_there().await?;
        let stored = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        stored.map_err(|error| damaged(&object, &error))
    }

    /// All documents are known, and how many they are.
    pub(crate) fn complete(&mut self, documents: u64) {
        if self.parts_add_retries {
            self.job.retry_budget = Some(documents.saturating_mul(RETRIES_PER_DOCUMENT));
        }
        if let Some(forecast) = self.forecast.take() {
            self.forecast = Some(forecast.for_documents(documents));
        }
    }

    /// Writes `job.json`.
    pub(crate) async fn write(&self, folder: &Location) -> Result<(), Failure> {
        let written = folder.child("job.json").write(pretty(self)?).await;
        written.map_err(|error| Failure::of_field("output", error))
    }

    /// What the job asks about each document.
    pub fn asks(&self) -> Fingerprint {
        StatedQuestion::of(&self.job).fingerprint()
    }
}

fn damaged(what: &Location, error: &serde_json::Error) -> Failure {
    Failure::invalid_input(format!("{what} is damaged: {error}; start the batch anew"))
}

/// One line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its stable name.
    pub id: DocumentId,
    /// Where it lies; for a record, behind a `#`, which one it is.
    pub uri: String,
    /// A record's own text: it was read when the batch was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why a record has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// What was known of its content when the batch was planned.
    #[serde(flatten)]
    pub version: Version,
    /// A record's fields, but for its text.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Of a request among the lines of a file, the bytes that it has there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<(u64, u64)>,
}

impl Document {
    pub(crate) fn file(id: DocumentId, uri: String) -> Self {
        let (version, fields) = (Version::default(), Map::new());
        Self { id, uri, text: None, unreadable: None, version, fields, line: None }
    }
}

/// One shard, ready to work on.
#[derive(Debug)]
pub struct Shard {
    uri: String,
    /// The run's own folder.
    pub folder: Location,
    number: u32,
    /// What all documents of the batch share.
    pub job: Job,
    /// The models that are asked.
    pub route: Route,
    /// Provider calls beyond the first of each document.
    pub retries: Option<RetryBudget>,
    /// What each answer must satisfy.
    pub judge: Option<Judge>,
    /// Hash of what the prompts share: calls with the same template learn from each other.
    pub template: u64,
    /// What is asked about each document: results of the same question carry the same.
    pub asks: Fingerprint,
    /// [`Stored::first_part`].
    pub first_part: u32,
    /// Where the results go.
    pub output: Location,
    /// Its documents, in order.
    pub documents: Vec<Document>,
}

impl Shard {
    /// In which class its documents are asked about, and who pays.
    pub(crate) fn terms(&self) -> Terms<'_> {
        let Job { lane, tenant, budget_usd, .. } = &self.job;
        Terms { lane, tenant, batch_usd: *budget_usd, retries: self.retries.as_ref() }
    }
}

/// Shards that this worker has read lately. They never change once written.
#[derive(Debug, Default)]
pub struct Shards(Mutex<VecDeque<Arc<Shard>>>);

impl Shards {
    /// The shard and the document that a task names.
    ///
    /// # Errors
    /// `InvalidInput` when there is no such document; `Transient` when the store fails.
    pub async fn find(
        &self,
        storage: &Storage,
        task: &DocumentTask,
    ) -> Result<(Arc<Shard>, Document), Failure> {
        let shard = self.get(storage, &task.job, task.shard).await?;
        let document =
            usize::try_from(task.index).ok().and_then(|index| shard.documents.get(index)).cloned();
        let document = document.ok_or_else(|| {
            Failure::invalid_input(format!(
                "shard {} of {} has no document {}",
                task.shard, task.job, task.index
            ))
        })?;
        Ok((shard, document))
    }

    /// A shard by its number.
    ///
    /// # Errors
    /// `InvalidInput` when the job cannot be read; `Transient` when the store fails.
    pub async fn get(
        &self,
        storage: &Storage,
        uri: &str,
        number: u32,
    ) -> Result<Arc<Shard>, Failure> {
        let known =
            self.0.lock().iter().find(|shard| shard.number == number && shard.uri == uri).cloned();
        if let Some(shard) = known {
            return Ok(shard);
        }
        let shard = Arc::new(read(storage, uri, number).await?);
        let mut shards = self.0.lock();
        if shards.len() >= REMEMBERED_SHARDS {
            shards.pop_front();
        }
        shards.push_back(Arc::clone(&shard));
        Ok(shard)
    }
}

async fn read(storage: &Storage, uri: &str, number: u32) -> Result<Shard, Failure> {
    let folder = resolve(storage, "job", uri)?;
    let stored = Stored::read(&folder).await?;
    let asks = stored.asks();
    let Stored { job, route, parts_add_retries, first_part, .. } = stored;
    let object = manifest(&folder, number);
    let bytes = object.read().await?;
    let documents: Vec<Document> = lines(&bytes)
        .map(|line| serde_json::from_slice(&line))
        .collect::<Result<_, _>>()
        .map_err(|error| damaged(&object, &error))?;
    let output = resolve(storage, "output", &job.output)?;
    let judge = job.schema.as_ref().map(Judge::of).transpose()?;
    let retries = job.retry_budget.map(|calls| RetryBudget {
        run: folder.name().to_owned(),
        calls,
        parts_add: parts_add_retries,
    });
    Ok(Shard {
        uri: uri.to_owned(),
        folder,
        number,
        retries,
        template: template(&job),
        asks,
        first_part,
        job,
        route,
        judge,
        output,
        documents,
    })
}

/// Of everything but the document, and the room for the answer, which says nothing about it.
fn template(job: &Job) -> u64 {
    let schema = job.schema.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut known = hash([job.instructions.as_bytes(), b"\0", schema.as_bytes()]);
    if job.system.is_some() || !job.messages.is_empty() || !job.shown.is_empty() {
        let said = serde_json::to_vec(&(&job.system, &job.messages, &job.shown));
        known = hash([&known.to_le_bytes()[..], &said.unwrap_or_default()]);
    }
    if job.evidence {
        known = hash([&known.to_le_bytes()[..], b"evidence"]);
    }
    if job.asked_with.is_empty() {
        return known;
    }
    // What thinks more puts out more.
    let asked_with = serde_json::to_vec(&job.asked_with).unwrap_or_default();
    hash([&known.to_le_bytes()[..], &asked_with])
}
