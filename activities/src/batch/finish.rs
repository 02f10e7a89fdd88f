//! The end of a batch: the shards' parts become `results.jsonl`, `failures.jsonl` and
//! `report.json`.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, FixedOffset};
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tidegate_providers::Finish as Ending;
use tidegate_types::{DocumentId, ModelId, Spend};
use tidegate_workflows::contract::{Finish, Finished, Progress};
use tokio::io::AsyncWriteExt;

use crate::{
    batch::{
        forecast::Forecast,
        job::{self, Stored, resolve},
        question::Unmarked,
        seal::{Line, READ_AHEAD, read_line, write_failure},
    },
    document::{
        result::{self, DocumentResult},
        version::Version,
    },
    failure::Failure,
    fingerprint::Fingerprint,
    storage::{Error, Location, Storage},
};

/// So many missing documents are named.
const NAMED: usize = 5;

/// `report.json`: the workflow's result, and what only the results themselves can tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The workflow's result.
    #[serde(flatten)]
    pub progress: Progress,
    /// RFC 3339.
    pub finished_at: String,
    /// From the batch's start to its end.
    pub duration_seconds: f64,
    /// Input tokens of this run read from prompt caches, as a part of all input.
    pub cache_hit_ratio: f64,
    /// Tokens of this run, input and output, by the minute: the effective rate, cached input
    /// included.
    pub tokens_per_minute: f64,
    /// What the batch was expected to take, to be held against what it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Documents with neither a result nor a failure, in a batch that has worked on all of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// The ids of the first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_missing: Vec<String>,
    /// Everything under `results/`, results of earlier runs included, by the model that answered.
    pub models: BTreeMap<ModelId, ModelTotals>,
    /// Of these results, those whose provider gave a reason for their end that is not known here,
    /// by its own word: whether they are whole is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown_stop_reasons: BTreeMap<String, u64>,
}

/// One model's part of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelTotals {
    /// Answered documents.
    pub documents: u64,
    /// Calls that they took.
    pub provider_calls: u64,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// US dollars, of the calls whose price is known.
    pub cost_usd: f64,
}

impl From<(u64, Spend)> for ModelTotals {
    fn from((documents, spend): (u64, Spend)) -> Self {
        Self {
            documents,
            provider_calls: spend.provider_calls,
            input_tokens: spend.input_tokens,
            cached_input_tokens: spend.cached_input_tokens,
            output_tokens: spend.output_tokens,
            cost_usd: spend.cost_usd,
        }
    }
}

/// Gathers what the batch left, checks that no planned document is missing from it, and writes the
/// report. Can be repeated. What is at hand at once is one shard's part (500 documents at most) and
/// the names of all results.
///
/// # Errors
/// `InvalidInput` when the batch's own objects are damaged; `Transient` when a store fails.
pub async fn finish(storage: &Storage, finish: &Finish) -> Result<Finished, Failure> {
    let output = resolve(storage, "output", &finish.output)?;
    let folder = resolve(storage, "job", &finish.plan.job)?;
    let stored = Stored::read_if_there(&folder).await?;
    let (counted, answered) = gather(&output, &folder, finish, stored.as_ref()).await?;
    let finished = counted.finished(&finish.progress);
    if finished.missing > 0 {
        tracing::error!(
            batch = %folder, missing = finished.missing, first = ?finished.first_missing,
            "documents of this batch have neither a result nor a failure"
        );
    }

    let finished_at = result::now();
    let (spend, duration_seconds) = (
        finish.progress.totals.spend,
        seconds_between(finish.progress.started_at.as_deref(), &finished_at),
    );
    let report = Report {
        duration_seconds,
        cache_hit_ratio: ratio(spend.cached_input_tokens, spend.input_tokens),
        tokens_per_minute: if duration_seconds > 0.0 {
            float(spend.input_tokens + spend.output_tokens) * 60.0 / duration_seconds
        } else {
            0.0
        },
        finished_at,
        forecast: stored.and_then(|stored| stored.forecast),
        models: answered.models.into_iter().map(|(model, sum)| (model, sum.into())).collect(),
        unknown_stop_reasons: answered.unknown_stop_reasons,
        missing: finished.missing,
        first_missing: finished.first_missing.clone(),
        progress: Progress {
            totals: finished.correct(finish.progress.totals),
            done: finish.progress.done && finished.missing == 0,
            ..finish.progress.clone()
        },
    };
    let json = serde_json::to_vec_pretty(&report)
        .map_err(|error| Failure::invalid_input(error.to_string()))?;
    output.child("report.json").write(json).await?;
    Ok(finished)
}

/// What the planned documents have come to.
#[derive(Debug, Default)]
struct Counted {
    /// Results that were written since the batch began.
    new: u64,
    /// Results of before.
    old: u64,
    failed: u64,
    /// Documents with neither.
    neither: u64,
    /// The ids of the first few of them.
    first: Vec<String>,
}

impl Counted {
    /// In the words of the workflow, which knows best which results are its own; those that it does
    /// not know of are told by their time.
    fn finished(self, progress: &Progress) -> Finished {
        let results = self.new + self.old;
        let skipped = progress.totals.skipped.min(results);
        let succeeded = self.new.max(progress.totals.succeeded).min(results - skipped);
        let (cancelled, missing) =
            if progress.done { (0, self.neither) } else { (self.neither, 0) };
        Finished {
            succeeded,
            failed: self.failed,
            skipped: results - succeeded,
            cancelled,
            missing,
            first_missing: if missing > 0 { self.first } else { Vec::new() },
        }
    }
}

/// What the results say of those who answered.
#[derive(Debug, Default)]
struct Answered {
    /// What each model has taken, with the documents that it has answered.
    models: BTreeMap<ModelId, (u64, Spend)>,
    /// Results with an unknown reason for their end, by the provider's word.
    unknown_stop_reasons: BTreeMap<String, u64>,
}

impl Answered {
    fn add(&mut self, result: &DocumentResult) {
        if result.finish == Some(Ending::Unknown) {
            *self.unknown_stop_reasons.entry(result.stop_reason.clone()).or_default() += 1;
        }
        let (documents, sum) = self.models.entry(result.model.clone()).or_default();
        *documents += 1;
        *sum += result.spend();
    }
}

/// Writes `results.jsonl` and `failures.jsonl`: the plan's documents in its order, from the shards'
/// parts, and from the results themselves where there is no part (the shard was not sealed) or it
/// was written too early; then the results of documents that are not in the plan, because the
/// output belongs to them too.
async fn gather(
    output: &Location,
    folder: &Location,
    finish: &Finish,
    stored: Option<&Stored>,
) -> Result<(Counted, Answered), Failure> {
    let takes = Takes::of(stored, finish.progress.done);
    let began = finish.progress.started_at.as_deref().and_then(time);
    let (mut counted, mut answered) = (Counted::default(), Answered::default());
    let mut present = present(output).await?;
    let mut results = output.child("results.jsonl").writer();
    let mut failures = output.child("failures.jsonl").writer();
    for shard in 0..finish.plan.shards() {
        let mut sealed: HashMap<DocumentId, Line> =
            lines(&part(&job::results_part(folder, shard)).await?)
                .filter_map(Line::of)
                .map(|line| (line.result.id.clone(), line))
                .collect();
        let mut failed: HashMap<DocumentId, Bytes> =
            lines(&part(&job::failures_part(folder, shard)).await?)
                .filter_map(|line| Some((serde_json::from_slice::<Named>(&line).ok()?.id, line)))
                .collect();
        let planned: Vec<(Planned, Found)> = planned(folder, shard)
            .await?
            .into_iter()
            .map(|planned| {
                let id = &planned.id;
                let is_present = present.as_mut().is_none_or(|present| present.remove(id.as_str()));
                let found = match sealed.remove(id) {
                    Some(line) => Found::Sealed(Box::new(line)),
                    None if is_present => Found::Alone(DocumentResult::location(output, id)),
                    None => Found::Nowhere,
                };
                (planned, found)
            })
            .collect();
        let planned = stream::iter(planned)
            .map(|(planned, found)| async { Ok::<_, Failure>((planned, found.read().await?)) })
            .buffered(READ_AHEAD);
        let mut planned = std::pin::pin!(planned);
        while let Some((Planned { id, version }, line)) = planned.try_next().await? {
            if let Some(line) = &line {
                // Whatever it answers, it is a result.
                answered.add(&line.result);
                results.write_all(&line.json).await.map_err(write_failure)?;
            }
            let line = line.filter(|line| takes.question(&line.result));
            let is_new = line.as_ref().is_some_and(|line| time(&line.result.completed_at) >= began);
            let failed = if is_new { None } else { failed.remove(&id) };
            if is_new {
                counted.new += 1;
            } else if let Some(line) = failed {
                counted.failed += 1;
                failures.write_all(&line).await.map_err(write_failure)?;
            } else if line.is_some_and(|line| takes.version(&version, &line.result)) {
                counted.old += 1;
            } else {
                counted.neither += 1;
                if counted.first.len() < NAMED {
                    counted.first.push(id.to_string());
                }
            }
        }
    }
    let mut others: Vec<String> = present.into_iter().flatten().collect();
    others.sort_unstable();
    let others = stream::iter(others)
        .map(|name| async move {
            let line = read_line(output.child("results").child(&format!("{name}.json"))).await?;
            Ok::<_, Failure>(line.filter(|line| line.result.id.as_str() == name))
        })
        .buffered(READ_AHEAD);
    let mut others = std::pin::pin!(others);
    while let Some(line) = others.try_next().await? {
        if let Some(line) = line {
            answered.add(&line.result);
            results.write_all(&line.json).await.map_err(write_failure)?;
        }
    }
    results.shutdown().await.map_err(write_failure)?;
    failures.shutdown().await.map_err(write_failure)?;
    Ok((counted, answered))
}

/// Which results answer what this batch asks.
#[derive(Debug, Clone, Copy)]
struct Takes {
    /// The question, and what becomes of results that do not say theirs. Absent where the batch is
    /// of a version that took every result.
    asks: Option<(Fingerprint, Unmarked)>,
    /// The batch has worked on all documents, so that what only reading can tell was read.
    all_read: bool,
}

impl Takes {
    fn of(stored: Option<&Stored>, all_read: bool) -> Self {
        let asks = stored.and_then(|stored| Some((stored.asks(), stored.unmarked?)));
        Self { asks, all_read }
    }

    fn question(self, result: &DocumentResult) -> bool {
        self.asks
            .is_none_or(|(asks, unmarked)| Unmarked::takes(Some(unmarked), asks, result.question))
    }

    fn version(self, planned: &Version, result: &DocumentResult) -> bool {
        let is_listed = planned.stamp.is_some() && result.version.stamp.is_some();
        self.asks.is_none()
            || planned.is_same(&result.version).unwrap_or(self.all_read || !is_listed)
    }
}

/// Where the result of a planned document is.
enum Found {
    /// In its shard's part.
    Sealed(Box<Line>),
    /// Only under its own name.
    Alone(Location),
    Nowhere,
}

impl Found {
    async fn read(self) -> Result<Option<Line>, Failure> {
        match self {
            Self::Sealed(line) => Ok(Some(*line)),
            Self::Alone(location) => read_line(location).await,
            Self::Nowhere => Ok(None),
        }
    }
}

/// The ids of everything that lies under `results/`; `None` where the workers may not list it, so
/// that each must be asked for.
async fn present(output: &Location) -> Result<Option<HashSet<String>>, Failure> {
    let folder = output.child("results");
    let mut present = HashSet::new();
    let listed = folder
        .list(|location| {
            let name = location.relative_to(&folder);
            if let Some(id) = name.strip_suffix(".json").filter(|id| !id.contains('/')) {
                present.insert(id.to_owned());
            }
        })
        .await;
    match listed {
        Ok(()) => Ok(Some(present)),
        Err(error @ Error::Failed(_)) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "results that are not in the plan are left out of results.jsonl");
            Ok(None)
        }
    }
}

/// What of a manifest's line, or a failure's, is needed here.
#[derive(Deserialize)]
struct Named {
    id: DocumentId,
}

/// A document of a shard, and what was known of its version when it was planned.
struct Planned {
    id: DocumentId,
    version: Version,
}

/// A shard's documents, in order.
async fn planned(folder: &Location, shard: u32) -> Result<Vec<Planned>, Failure> {
    let object = job::manifest(folder, shard);
    let damaged = |why: &dyn std::fmt::Display| {
        Failure::invalid_input(format!("{object} is damaged: {why}; start the batch anew"))
    };
    let bytes = object.read_if_there().await?.ok_or_else(|| damaged(&"it is gone"))?;
    // Earlier versions wrote none.
    let versions = part(&job::versions(folder, shard)).await?;
    let versions = lines(&versions).map(|line| serde_json::from_slice(&line).unwrap_or_default());
    lines(&bytes)
        .zip(versions.chain(std::iter::repeat_with(Version::default)))
        .map(|(line, version)| {
            let Named { id } = serde_json::from_slice(&line)?;
            Ok(Planned { id, version })
        })
        .collect::<Result<_, _>>()
        .map_err(|error: serde_json::Error| damaged(&error))
}

/// With their newlines; they share the memory of the whole.
fn lines(whole: &Bytes) -> impl Iterator<Item = Bytes> {
    whole
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| whole.slice_ref(line))
}

/// A part that was never sealed (a cancelled batch) is empty.
async fn part(location: &Location) -> Result<Bytes, Failure> {
    Ok(location.read_if_there().await?.unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

#[expect(clippy::cast_precision_loss, reason = "counts lie far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

fn time(text: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(text).ok()
}

fn seconds_between(from: Option<&str>, to: &str) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a batch's milliseconds lie far below 2^53")]
    from.and_then(time)
        .zip(time(to))
        .map_or(0.0, |(from, to)| (to - from).num_milliseconds().max(0) as f64 / 1e3)
}

#[cfg(test)]
mod tests;
