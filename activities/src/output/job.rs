//! The stored state that a batch's documents share: the job and the shards' manifests.
//!
//! Under `<output>/_tidegate/<workflow>-<run>/`: `job.json`, `shard-00000.jsonl` …, and
//! `failures-00000.jsonl`, which the seal of a shard writes; the shard's results are a part under
//! `results/`. A large record is in `texts/`, and not in its manifest. Documents that need no call are
//! not in a shard, but in `settled-00000.jsonl`.

use std::{fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tidegate_calls::{
    budget::{Payers, RetryBudget},
    caller::Terms,
    route::{Route, Routes},
};
use tidegate_documents::records::memory_of;
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{DocumentTask, Job, Target};

use crate::{
    failure::{Failure, RETRIES_PER_DOCUMENT, field_fault},
    fingerprint::{Fingerprint, hash},
    output::{
        forecast::Forecast,
        jsonl::{lines, pretty},
        layout::{self, manifest},
        question::StatedQuestion,
        size_cache::LoadingCache,
        version::Version,
    },
    schema::SchemaValidator,
    storage::{Location, Storage},
};

/// Bytes of manifests that a worker caches: those of 500 shards of files, or of 16 whose records have
/// 4 KB each. As many bytes of jobs are cached.
const CACHED_BYTES: usize = 32 << 20;

/// Resolves the URI in a field of the input.
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

/// The payers of a job's calls, in the batch of this workflow.
pub fn payers<'a>(job: &'a Job, workflow: &'a str) -> Payers<'a> {
    Payers { tenant: &job.tenant, batch: workflow, batch_usd: job.budget_usd }
}

/// `job.json`: the input of the batch's author, and the plan's additions to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// The models that are asked.
    #[serde(rename = "answered_by")]
    pub route: Route,
    /// Whether the author stated no retry budget, so that documents that are read in parts add to
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parts_add_retries: bool,
    /// The forecast.
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

    /// Reads `job.json`, which may not exist.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub async fn read_if_there(folder: &Location) -> Result<Option<Self>, Failure> {
        let object = folder.child("job.json");
        let bytes = object.read_if_there().await?;
        let stored = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        stored.map_err(|error| damaged(&object, &error))
    }

    /// Records the number of documents, once all of them are known.
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
        written.map_err(|error| field_fault("output", error))
    }

    /// The fingerprint of the question about each document.
    pub fn question_fingerprint(&self) -> Fingerprint {
        StatedQuestion::from_job(&self.job).fingerprint()
    }
}

fn damaged(what: &Location, why: &dyn fmt::Display) -> Failure {
    Failure::invalid_input(format!("{what} is damaged: {why}; start the batch anew"))
}

/// One line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its stable id.
    pub id: DocumentId,
    /// Its URI; for a record, `#` and the record follow.
    pub uri: String,
    /// A record's own text, which was read when the batch was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reason why a record has no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The version of the content, as known when the batch was planned.
    #[serde(flatten)]
    pub version: Version,
    /// A record's fields without its text.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// For a request in a file of requests, the range of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<(u64, u64)>,
    /// For a large record, the page of the plan and the number in it: the record is in
    /// [`layout::record`], so that a manifest is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<(u32, u32)>,
}

impl Document {
    pub(crate) fn file(id: DocumentId, uri: String) -> Self {
        let (version, fields) = (Version::default(), Map::new());
        Self { id, uri, text: None, unreadable: None, version, fields, line: None, apart: None }
    }

    /// The approximate bytes of a record's text and fields in memory.
    pub(crate) fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.len() + memory_of(value));
        self.text.as_ref().map_or(0, String::len) + fields.sum::<usize>()
    }
}

/// A shard with everything that its documents need.
#[derive(Debug)]
pub struct Shard {
    /// What all shards of its batch share.
    pub shared: Arc<SharedJob>,
    /// Its documents, in order.
    pub documents: Vec<Document>,
}

impl Shard {
    /// Returns the document, with the record that is kept apart.
    ///
    /// # Errors
    /// `InvalidInput` when the record is damaged or gone; `Transient` when the store fails.
    pub(crate) async fn with_record(&self, document: Document) -> Result<Document, Failure> {
        let Some((page, number)) = document.apart else { return Ok(document) };
        let object = layout::record(&self.folder, page, number);
        let bytes = object.read_if_there().await?.ok_or_else(|| damaged(&object, &"it is gone"))?;
        serde_json::from_slice(&bytes).map_err(|error| damaged(&object, &error))
    }
}

impl Deref for Shard {
    type Target = SharedJob;

    fn deref(&self) -> &SharedJob {
        &self.shared
    }
}

/// What all shards of a batch share.
#[derive(Debug)]
pub struct SharedJob {
    /// The run's own folder.
    pub folder: Location,
    /// The job of the batch.
    pub job: Job,
    /// The models that are asked.
    pub route: Route,
    /// The budget of provider calls beyond the first of each document.
    pub retries: Option<RetryBudget>,
    /// The schema of the answers.
    pub validator: Option<SchemaValidator>,
    /// Hash of the parts that the prompts share: token use is learned for calls with equal hashes
    /// together.
    pub template: u64,
    /// Fingerprint of the question about each document; the results state it.
    pub asks: Fingerprint,
    /// [`Stored::first_part`].
    pub first_part: u32,
    /// The location of the results.
    pub output: Location,
}

impl SharedJob {
    /// The lane in which its documents are asked, and the payers.
    pub(crate) fn terms(&self) -> Terms<'_> {
        let Job { lane, tenant, budget_usd, .. } = &self.job;
        Terms { lane, tenant, batch_usd: *budget_usd, retries: self.retries.as_ref() }
    }
}

/// A cache of the jobs and shards that this worker has read lately.
#[derive(Debug)]
pub struct Shards {
    /// By their URIs and the content of `job.json`, which the end of the planning writes anew.
    jobs: LoadingCache<(String, Fingerprint), SharedJob>,
    /// By the URI of their job and their number. They never change once written.
    shards: LoadingCache<(String, u32), Shard>,
}

impl Default for Shards {
    fn default() -> Self {
        Self { jobs: LoadingCache::new(CACHED_BYTES), shards: LoadingCache::new(CACHED_BYTES) }
    }
}

impl Shards {
    /// The shard and the document of a task.
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
        let document = shard.with_record(document).await?;
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
        let load = async || {
            let folder = resolve(storage, "job", uri)?;
            let job = folder.child("job.json").read().await?;
            let (documents, bytes) = read_manifest(&folder, number).await?;
            let key = (uri.to_owned(), Fingerprint::of_bytes(&job));
            let parse = async || SharedJob::parse(storage, folder, &job);
            let shared = self.jobs.get(key, parse).await?;
            Ok((Shard { shared, documents }, bytes))
        };
        self.shards.get((uri.to_owned(), number), load).await
    }
}

impl SharedJob {
    /// Parses the `job.json` of a folder. Returns the size in bytes too.
    fn parse(storage: &Storage, folder: Location, json: &[u8]) -> Result<(Self, usize), Failure> {
        let stored: Stored = serde_json::from_slice(json)
            .map_err(|error| damaged(&folder.child("job.json"), &error))?;
        let asks = stored.question_fingerprint();
        let Stored { job, route, parts_add_retries, first_part, .. } = stored;
        let output = resolve(storage, "output", &job.output)?;
        let validator = job.schema.as_ref().map(SchemaValidator::compile).transpose()?;
        let retries = job.retry_budget.map(|calls| RetryBudget {
            run: folder.name().to_owned(),
            calls,
            parts_add: parts_add_retries,
        });
        let template = template(&job);
        let shared =
            Self { folder, job, route, retries, validator, template, asks, first_part, output };
        Ok((shared, json.len()))
    }
}

/// Reads the documents of a shard, in order, with the fields of type `T`; and the manifest's size in bytes.
///
/// # Errors
/// `InvalidInput` where the manifest is damaged or gone; `Transient` when the store fails.
pub(crate) async fn read_manifest<T: DeserializeOwned>(
    folder: &Location,
    shard: u32,
) -> Result<(Vec<T>, usize), Failure> {
    let object = manifest(folder, shard);
    let bytes = object.read_if_there().await?.ok_or_else(|| damaged(&object, &"it is gone"))?;
    let documents: Result<_, serde_json::Error> =
        lines(&bytes).map(|line| serde_json::from_slice(&line)).collect();
    Ok((documents.map_err(|error| damaged(&object, &error))?, bytes.len()))
}

/// Hashes everything that prompts share, except the document and the cap on output, which does not
/// tell the output's length.
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
    // Thinking changes the output's length.
    let asked_with = serde_json::to_vec(&job.asked_with).unwrap_or_default();
    hash([&known.to_le_bytes()[..], &asked_with])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn shards_share_their_job_and_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = url::Url::from_directory_path(folder.path().canonicalize().unwrap()).unwrap();
        let storage = Storage::new([root.as_str()]).unwrap();
        let output = format!("{root}out/");
        let job: Job = serde_json::from_value(json!({"source": {"prefix": "file:///in/"},
            "output": output, "instructions": "x", "model": "a:b", "lane": "batch",
            "tenant": "default", "max_output_tokens": 1}))
        .unwrap();
        let route = route_of(&job.target, &Routes::default()).unwrap();
        let (parts_add_retries, forecast, first_part) = (false, None, 0);
        let mut stored = Stored { job, route, parts_add_retries, forecast, first_part };
        let uri = format!("{output}_tidegate/run/");
        let run = storage.resolve(&uri).unwrap();
        stored.write(&run).await.unwrap();
        let document = Document::file(DocumentId::from_relative_path("a"), "file:///in/a".into());
        for shard in 0..3 {
            let line = serde_json::to_vec(&document).unwrap();
            manifest(&run, shard).write(line).await.unwrap();
        }
        let shards = Shards::default();
        let slots = (0..8).map(|slot| shards.get(&storage, &uri, slot % 2));
        let read = futures::future::try_join_all(slots).await.unwrap();
        assert!(read.iter().all(|shard| Arc::ptr_eq(&shard.shared, &read[0].shared)));
        assert!((2..8).all(|slot| Arc::ptr_eq(&read[slot], &read[slot % 2])));
        assert_eq!(read[1].documents, [document]);
        stored.job.retry_budget = Some(7);
        stored.write(&run).await.unwrap();
        let later = shards.get(&storage, &uri, 2).await.unwrap();
        assert_eq!(later.retries.as_ref().map(|retries| retries.calls), Some(7));
        assert!(read[0].retries.is_none());
    }
}
