//! `tidegate status`.

use futures::{StreamExt, stream};
use tidegate_workflows::contract::Progress;

use crate::{config::Config, temporal::Temporal};

use super::{
    exit::Outcome,
    failed,
    figures::{self, count},
    output::{self, Table},
    snapshot::{self, BatchSeen, Known},
    summary,
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

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let temporal = Temporal::open(config).await?;
    match &args.workflow_id {
        Some(id) => one(config, &temporal, id, args.json).await?,
        None => list(config, &temporal, args.limit, args.json).await?,
    }
    Ok(Outcome::Done)
}

async fn one(config: &Config, temporal: &Temporal, id: &str, as_json: bool) -> anyhow::Result<()> {
    let batch = temporal.describe(id).await?;
    let seen = snapshot::batch_alone(config, &config.quota()?, temporal, batch).await;
    if as_json {
        let mut value = seen.value()?;
        // These two are there, whatever is known.
        value["why"] = seen.cause.as_ref().map(|cause| cause.sentence.as_str()).into();
        value["failures_by_type"] = failed::value(&seen.failed, None);
        return output::json(&value);
    }
    let (batch, running) = (&seen.batch, seen.batch.is_running());
    let mut rows = vec![("batch", batch.id.clone()), ("status", batch.status.as_str().to_owned())];
    rows.extend(batch.started.map(|time| ("started", figures::stamp(time))));
    let why = seen.cause.as_ref().map(|cause| ("why", cause.sentence.clone()));
    match &seen.known {
        Known::Progress(progress) => {
            if running {
                let totals = &progress.totals;
                let done = format!("{} of {}", count(totals.ended()), count(progress.documents));
                rows.push(("done", done));
                let paused = if progress.paused { ", paused" } else { "" };
                rows.push(("in flight", format!("{}{paused}", count(totals.in_flight))));
                let eta = seen.eta().map(figures::span);
                rows.push(("ETA", eta.unwrap_or_else(|| "unknown".to_owned())));
            }
            rows.extend(why);
            rows.extend(summary::rows(progress, seen.took()));
            rows.extend(failed::rows(&seen.failed, None));
        }
        Known::Nothing(nothing) => {
            rows.push(("progress", nothing.clone()));
            rows.extend(why);
        }
    }
    output::data(&output::pairs(&rows))
}

async fn list(
    config: &Config,
    temporal: &Temporal,
    limit: usize,
    as_json: bool,
) -> anyhow::Result<()> {
    let (batches, limiter) = (temporal.list(limit).await?, &config.quota()?);
    let asked = batches.into_iter().map(|batch| async move {
        if batch.is_running() {
            return snapshot::batch_seen(config, limiter, temporal, batch).await;
        }
        let known = snapshot::known(temporal, &batch).await;
        BatchSeen::listed(batch, known)
    });
    let mut batches: Vec<BatchSeen> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    snapshot::forecast(&mut batches);
    if as_json {
        return output::json(&batches);
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
    for seen in &batches {
        let dash = || "-".to_owned();
        let figure = |of: fn(&Progress) -> u64| {
            seen.progress().map_or_else(dash, |progress| count(of(progress)))
        };
        table.row(vec![
            seen.id().to_owned(),
            seen.status().to_owned(),
            figure(|progress| progress.totals.ended()),
            figure(|progress| progress.documents),
            figure(|progress| progress.totals.failed),
            figure(|progress| progress.totals.spend.rate_limited),
            seen.batch.started.map_or_else(dash, figures::stamp),
            seen.took().map_or_else(dash, figures::span),
            seen.eta().map_or_else(dash, figures::span),
        ]);
    }
    output::data(&table.text())
}
