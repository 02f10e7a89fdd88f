//! The end of a batch: the shards' parts become `results.jsonl`, `failures.jsonl` and
//! `report.json`, and `report.html` for people.

mod checkpoint;
mod counted;
mod course;
mod gather;
mod given_up;
mod page;
mod said;
mod together;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_documents::left_out::Kind as LeftOut;
use tidegate_types::{ModelId, Spend, spend::rounded_usd};
use tidegate_workflows::contract::{Finish, Finished, Progress};

use self::{
    checkpoint::Checkpoint,
    gather::{Gathering, time},
};
pub use self::{
    counted::LeftOutTotal,
    given_up::{GivenUp, Kind},
    said::{Said, Sentence},
};
use crate::{
    failure::Failure,
    number::float,
    output::full_price,
    output::{
        actions,
        agreement::Agreement,
        forecast::Forecast,
        job::{Stored, resolve},
        jsonl::written,
        result,
        truth::Truth,
    },
    storage::Storage,
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
    /// What Temporal Cloud charges for it, about: without the beats of calls longer than 15 s, and the
    /// questions of those who look on.
    #[serde(default)]
    pub temporal_actions: u64,
    /// What the batch was expected to take, to be held against what it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Why documents that could wait cost as much as others, where they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_price: Option<String>,
    /// Documents with neither a result nor a failure, in a batch that has worked on all of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// The ids of the first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_missing: Vec<String>,
    /// What was said of documents that were given up, by type.
    #[serde(default, skip_serializing_if = "GivenUp::is_empty")]
    pub given_up: GivenUp,
    /// How many answers are as the author's `truth` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// Everything under `results/`, results of earlier runs included, by the model that answered.
    pub models: BTreeMap<ModelId, ModelTotals>,
    /// What of the documents of these results was not in the text that was sent, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<LeftOut, LeftOutTotal>,
    /// Of these results, those of files that an older version of the reader has read: it may make
    /// another text of them today.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older_reader: u64,
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
    /// US dollars, of the calls whose price is known; `null` where it is known of none.
    pub cost_usd: Option<f64>,
}

impl From<(u64, Spend)> for ModelTotals {
    fn from((documents, spend): (u64, Spend)) -> Self {
        Self {
            documents,
            provider_calls: spend.provider_calls,
            input_tokens: spend.input_tokens,
            cached_input_tokens: spend.cached_input_tokens,
            output_tokens: spend.output_tokens,
            cost_usd: spend.known_usd().map(rounded_usd),
        }
    }
}

/// Gathers what the batch left, checks that no planned document is missing from it, and writes the
/// report. Can be repeated, and goes on where a worker has died. What is at hand at once is one
/// shard's part (500 documents at most), a few parts of earlier batches, and eight bytes for each
/// result.
///
/// # Errors
/// `InvalidInput` when the batch's own objects are damaged; `Transient` when a store fails.
pub async fn finish(storage: &Storage, finish: &Finish) -> Result<Finished, Failure> {
    let output = resolve(storage, "output", &finish.output)?;
    let folder = resolve(storage, "job", &finish.plan.job)?;
    let stored = Stored::read_if_there(&folder).await?;
    let truth = match stored.as_ref().and_then(|stored| stored.job.truth.as_deref()) {
        Some(uri) => Some(Truth::read(storage, uri).await?),
        None => None,
    };
    let has_truth = truth.is_some();
    let gathering = Gathering::begin(&output, &folder, finish, stored.as_ref(), truth).await?;
    let (counted, answered) = gathering.gather().await?;
    let finished = counted.finished(&finish.progress);
    if finished.missing > 0 {
        tracing::error!(
            batch = %folder, missing = finished.missing, first = ?finished.first_missing,
            "documents of this batch have neither a result nor a failure"
        );
    }

    let planned = stored.as_ref().and_then(|stored| stored.forecast.as_ref());
    let full_price = match planned.and_then(|forecast| forecast.full_price.clone()) {
        None => full_price::said(&folder).await,
        planned => planned,
    };
    let finished_at = result::now();
    let (spend, duration_seconds) = (
        finish.progress.totals.spend,
        seconds_between(finish.progress.started_at.as_deref(), &finished_at),
    );
    let compared = answered.compared.clone().told();
    let report = Report {
        agreement: has_truth.then_some(compared.agreement),
        duration_seconds,
        cache_hit_ratio: ratio(spend.cached_input_tokens, spend.input_tokens),
        tokens_per_minute: if duration_seconds > 0.0 {
            float(spend.input_tokens + spend.output_tokens) * 60.0 / duration_seconds
        } else {
            0.0
        },
        finished_at,
        full_price,
        temporal_actions: actions::taken(&finish.plan, &spend, duration_seconds),
        forecast: stored.and_then(|stored| stored.forecast),
        models: answered.models.iter().map(|(id, sum)| (id.clone(), (*sum).into())).collect(),
        left_out: answered.left_out.clone(),
        older_reader: answered.older_reader,
        unknown_stop_reasons: answered.unknown_stop_reasons.clone(),
        missing: finished.missing,
        first_missing: finished.first_missing.clone(),
        given_up: answered.given_up.clone().told(),
        progress: Progress {
            totals: finished.correct(finish.progress.totals).rounded(),
            done: finish.progress.done && finished.missing == 0,
            ..finish.progress.clone()
        },
    };
    let mut json = serde_json::to_vec_pretty(&report)
        .map_err(|error| Failure::invalid_input(error.to_string()))?;
    json.push(b'\n');
    let html = page::page(&report, &answered.course);
    let disagreements = output.child("disagreements.jsonl");
    if has_truth {
        disagreements.write(written(&compared.disagreements)?).await?;
    }
    output.child("report.html").write(html.into_bytes()).await?;
    output.child("report.json").write(json).await?;
    Checkpoint::forget(&folder).await;
    Ok(finished)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

fn seconds_between(from: Option<&str>, to: &str) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a batch's milliseconds lie far below 2^53")]
    from.and_then(time)
        .zip(time(to))
        .map_or(0.0, |(from, to)| (to - from).num_milliseconds().max(0) as f64 / 1e3)
}

#[cfg(test)]
mod tests;
