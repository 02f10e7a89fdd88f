//! `tidegate status`.

use std::time::SystemTime;

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tidegate_workflows::contract::Progress;

use crate::{
    config::Config,
    temporal::{Batch, Ending, NoProgress, Temporal},
};

use super::{
    cause,
    exit::Outcome,
    failed,
    figures::{self, count},
    follow,
    output::{self, Table},
    place, summary,
};

/// Batches are asked so many at a time.
const AT_ONCE: usize = 8;

/// Batches and their progress; one batch in detail
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which batch [default: the newest]
    workflow_id: Option<String>,
    /// How many batches are listed
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// How far a batch is.
enum Known {
    Progress(Box<Progress>),
    Nothing(String),
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let temporal = Temporal::open(config).await?;
    match &args.workflow_id {
        Some(id) => one(config, &temporal, id, args.json).await?,
        None => list(&temporal, args.limit, args.json).await?,
    }
    Ok(Outcome::Done)
}

async fn one(config: &Config, temporal: &Temporal, id: &str, as_json: bool) -> anyhow::Result<()> {
    let batch = temporal.describe(id).await?;
    let known = ask(temporal, &batch).await;
    let cause = match batch.is_running() {
        true => cause::look(config, temporal, &batch).await.map(|look| look.cause).ok(),
        false => None,
    };
    let failed = match &known {
        Known::Progress(progress) => failed::of(config, progress).await,
        Known::Nothing(_) => Vec::new(),
    };
    if as_json {
        let mut value = value(&batch, &known)?;
        value["why"] = cause.as_ref().map(|cause| cause.sentence.as_str()).into();
        value["failures_by_type"] = failed::value(&failed, None);
        if cause.is_some_and(|cause| cause.stands) {
            value["eta"] = Value::Null;
        }
        return output::json(&value);
    }
    let mut rows = vec![("batch", batch.id.clone()), ("status", batch.status.as_str().to_owned())];
    rows.extend(batch.started.map(|time| ("started", figures::stamp(time))));
    match &known {
        Known::Progress(progress) => {
            if batch.is_running() {
                let totals = &progress.totals;
                rows.push((
                    "done",
                    format!(
                        "{} of {}",
                        count(totals.succeeded + totals.failed + totals.skipped),
                        count(progress.documents)
                    ),
                ));
                rows.push((
                    "in flight",
                    format!(
                        "{}{}",
                        count(totals.in_flight),
                        if progress.paused { ", paused" } else { "" }
                    ),
                ));
                let stands = cause.as_ref().is_some_and(|cause| cause.stands);
                let eta = eta(progress).filter(|_| !stands);
                rows.push(("ETA", eta.unwrap_or_else(|| "unknown".to_owned())));
            }
            rows.extend(cause.map(|cause| ("why", cause.sentence)));
            rows.extend(summary::rows(progress, took(&batch)));
            rows.extend(failed::rows(&failed, None));
        }
        Known::Nothing(why) => {
            rows.push(("progress", why.clone()));
            rows.extend(cause.map(|cause| ("why", cause.sentence)));
        }
    }
    output::data(&output::pairs(&rows))
}

async fn list(temporal: &Temporal, limit: usize, as_json: bool) -> anyhow::Result<()> {
    let batches = temporal.list(limit).await?;
    let asked = batches.into_iter().map(|batch| async move {
        let known = ask(temporal, &batch).await;
        (batch, known)
    });
    let batches: Vec<(Batch, Known)> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    if as_json {
        return output::json(
            &batches
                .iter()
                .map(|(batch, known)| value(batch, known))
                .collect::<anyhow::Result<Vec<_>>>()?,
        );
    }
    if batches.is_empty() {
        output::say(&format!(
            "no batches in the namespace {} of {}",
            temporal.namespace(),
            temporal.address()
        ));
        return Ok(());
    }
    let mut table =
        Table::new(&["BATCH", "STATUS", "DONE", "OF", "FAILED", "429S", "STARTED", "TOOK", "ETA"]);
    for (batch, known) in &batches {
        let dash = || "-".to_owned();
        let figure = |of: fn(&Progress) -> u64| match known {
            Known::Progress(progress) => count(of(progress)),
            Known::Nothing(_) => dash(),
        };
        table.row(vec![
            batch.id.clone(),
            if matches!(known, Known::Progress(progress) if progress.paused && batch.is_running()) {
                "paused"
            } else {
                batch.status.as_str()
            }
            .to_owned(),
            figure(|progress| progress.totals.ended()),
            figure(|progress| progress.documents),
            figure(|progress| progress.totals.failed),
            figure(|progress| progress.totals.spend.rate_limited),
            batch.started.map_or_else(dash, figures::stamp),
            took(batch).map_or_else(dash, figures::span),
            match known {
                Known::Progress(progress) if batch.is_running() => {
                    eta(progress).unwrap_or_else(dash)
                }
                _ => dash(),
            },
        ]);
    }
    output::data(&table.text())
}

/// A running batch is asked; of one that has ended, the result is read.
async fn ask(temporal: &Temporal, batch: &Batch) -> Known {
    if batch.is_running() {
        return match temporal.progress(&batch.id).await {
            Ok(progress) => Known::Progress(Box::new(progress)),
            Err(NoProgress::NoWorker) => Known::Nothing(follow::no_worker(temporal)),
            Err(NoProgress::Unknown) => Known::Nothing("it is gone".to_owned()),
            Err(NoProgress::Failed(error)) => Known::Nothing(format!("{error:#}")),
        };
    }
    match temporal.ending(&batch.id).await {
        Ok(Ending::Completed(progress)) => Known::Progress(progress),
        Ok(Ending::Broken(why)) => Known::Nothing(why),
        Err(error) => Known::Nothing(format!("{error:#}")),
    }
}

fn took(batch: &Batch) -> Option<std::time::Duration> {
    batch.closed.unwrap_or_else(SystemTime::now).duration_since(batch.started?).ok()
}

/// None while it is paused: nobody knows for how long.
fn eta(progress: &Progress) -> Option<String> {
    let eta = figures::time(progress.eta.as_deref()).filter(|_| !progress.paused);
    eta.and_then(figures::until).map(figures::span)
}

fn value(batch: &Batch, known: &Known) -> anyhow::Result<Value> {
    let mut value = match known {
        Known::Progress(progress) => summary::with_id(&batch.id, progress)?,
        Known::Nothing(why) => json!({ "workflow_id": batch.id, "message": why }),
    };
    value["status"] = batch.status.as_str().into();
    value["closed_at"] = batch.closed.map(figures::stamp).into();
    if value["started_at"].is_null() {
        value["started_at"] = batch.started.map(figures::stamp).into();
    }
    if let Known::Progress(progress) = known {
        value["results"] = place::shown(&progress.output).into();
    }
    Ok(value)
}
