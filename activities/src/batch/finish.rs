//! The end of a batch: the shards' parts become `results.jsonl`, `failures.jsonl` and
//! `report.json`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_providers::Finish as Ending;
use tidegate_types::{ModelId, Spend};
use tidegate_workflows::contract::{Finish, Progress};
use tokio::io::AsyncWriteExt;

use crate::{
    batch::{
        forecast::Forecast,
        job::{self, Stored, resolve},
        seal::write_failure,
    },
    document::result::{self, DocumentResult},
    failure::Failure,
    services::Services,
    storage::Location,
};

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

/// Gathers the parts. Can be repeated. A part is read whole (a shard holds at most 500 documents),
/// the rest streams.
///
/// # Errors
/// `Transient` when a store fails.
pub async fn finish(services: &Services, finish: &Finish) -> Result<(), Failure> {
    let output = resolve(&services.storage, "output", &finish.output)?;
    let folder = resolve(&services.storage, "job", &finish.plan.job)?;
    let mut models: BTreeMap<ModelId, (u64, Spend)> = BTreeMap::new();
    let mut unknown_stop_reasons = BTreeMap::new();
    let mut results = output.child("results.jsonl").writer();
    let mut failures = output.child("failures.jsonl").writer();
    for shard in 0..finish.plan.shards() {
        let part = part(&job::results_part(&folder, shard)).await?;
        for line in part.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(result) = serde_json::from_slice::<DocumentResult>(line) else { continue };
            let spend = result.spend();
            if result.finish == Some(Ending::Unknown) {
                *unknown_stop_reasons.entry(result.stop_reason).or_default() += 1;
            }
            let (documents, sum) = models.entry(result.model).or_default();
            *documents += 1;
            *sum += spend;
        }
        results.write_all(&part).await.map_err(write_failure)?;
        let part = self::part(&job::failures_part(&folder, shard)).await?;
        failures.write_all(&part).await.map_err(write_failure)?;
    }
    results.shutdown().await.map_err(write_failure)?;
    failures.shutdown().await.map_err(write_failure)?;

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
        // A report without it is better than none.
        forecast: Stored::read(&folder).await.ok().and_then(|stored| stored.forecast),
        models: models.into_iter().map(|(model, sum)| (model, sum.into())).collect(),
        unknown_stop_reasons,
        progress: finish.progress.clone(),
    };
    let json = serde_json::to_vec_pretty(&report)
        .map_err(|error| Failure::invalid_input(error.to_string()))?;
    Ok(output.child("report.json").write(json).await?)
}

/// A part that was never sealed (a cancelled batch) is empty.
async fn part(location: &Location) -> Result<Bytes, Failure> {
    Ok(location.read_if_there().await?.unwrap_or_default())
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

#[expect(clippy::cast_precision_loss, reason = "counts lie far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

fn seconds_between(from: Option<&str>, to: &str) -> f64 {
    let time = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
    #[expect(clippy::cast_precision_loss, reason = "a batch's milliseconds lie far below 2^53")]
    from.and_then(time)
        .zip(time(to))
        .map_or(0.0, |(from, to)| (to - from).num_milliseconds().max(0) as f64 / 1e3)
}
