//! The end of a batch: merges the shards' parts into `results.jsonl` and `failures.jsonl`, and writes
//! `report.json`, and `report.html` for people.

mod checkpoint;
mod checks;
mod gather;
mod given_up;
mod merged_results;
mod page;
mod report;
mod totals;

use tidegate_workflows::contract::{Finish, Finished, Progress};

pub use crate::output::finish::{
    checks::{CheckTotals, Checks, LevelTotals},
    given_up::{FailureGroup, FailureMessages, GivenUp, Sentence},
    report::{ModelTotals, Report},
    totals::LeftOutTotal,
};
use crate::{
    failure::Failure,
    number::{float, ratio},
    output::{
        actions,
        finish::{
            checkpoint::Checkpoint,
            gather::{Gathering, time},
        },
        forecast,
        job::{Stored, resolve},
        jsonl::{pretty, written},
        layout, result,
        truth::Truth,
    },
    storage::Storage,
};

/// Merges everything that the batch has written, checks that no planned document is missing, and
/// writes the report. Can be repeated, and continues after a worker has died. Holds in memory one
/// shard's part (500 documents at most), a few parts of earlier batches, and eight bytes for each
/// result.
///
/// # Errors
/// `InvalidInput` when the batch's own objects are damaged; `Transient` when a store fails.
pub async fn finish(storage: &Storage, finish: &Finish) -> Result<Finished, Failure> {
    let output = resolve(storage, "output", &finish.output)?;
    let folder = resolve(storage, "job", &finish.plan.job)?;
    let stored = Stored::read_if_there(&folder).await?;
    let truth = Truth::read_of_job(&folder).await?;
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
        None => forecast::recorded_reason(&folder).await,
        planned => planned,
    };
    let finished_at = result::now();
    let (spend, duration_seconds) = (
        finish.progress.totals.spend,
        seconds_between(finish.progress.started_at.as_deref(), &finished_at),
    );
    let compared = answered.compared.clone().into_report(None);
    let report = Report {
        checks: answered.checks.clone(),
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
        temporal_actions: actions::count_actions(&finish.plan, &spend, duration_seconds),
        fallbacks: stored.as_ref().map(|it| it.job.fallbacks.clone()).unwrap_or_default(),
        forecast: stored.and_then(|stored| stored.forecast),
        models: answered.models.iter().map(|(id, sum)| (id.clone(), (*sum).into())).collect(),
        left_out: answered.left_out.clone(),
        older_reader: answered.older_reader,
        unknown_stop_reasons: answered.unknown_stop_reasons.clone(),
        missing: finished.missing,
        first_missing: finished.first_missing.clone(),
        given_up: answered.given_up.clone().into_report(),
        progress: Progress {
            totals: finished.correct(finish.progress.totals).rounded(),
            done: finish.progress.done && finished.missing == 0,
            ..finish.progress.clone()
        },
    };
    let mut json = pretty(&report)?;
    json.push(b'\n');
    let html = page::page(&report, &answered.course);
    let disagreements = output.child("disagreements.jsonl");
    if has_truth {
        disagreements.write(written(&compared.disagreements)?).await?;
    }
    output.child("report.html").write(html.into_bytes()).await?;
    output.child("report.json").write(json).await?;
    Checkpoint::forget(&folder).await;
    // A document that was cancelled, or whose last attempt was lost, has left its text.
    if let Err(error) = layout::texts(&folder).clear().await {
        tracing::warn!(%error, "texts of documents stay behind");
    }
    Ok(finished)
}

fn seconds_between(from: Option<&str>, to: &str) -> f64 {
    from.and_then(time)
        .zip(time(to))
        .map_or(0.0, |(from, to)| (to - from).num_milliseconds().max(0) as f64 / 1e3)
}

#[cfg(test)]
mod tests;
