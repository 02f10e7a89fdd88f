//! `tidegate status`.

use futures::{StreamExt, stream};
use tidegate_workflows::contract::Progress;

use crate::{config::Config, temporal::Temporal};

use super::{
    advice,
    batch_report::BatchReport,
    exit::Outcome,
    failed,
    fleet::Fleet,
    format::{self, count},
    output::{self, Table},
    snapshot::{self, BatchView, Known},
    summary, webhook,
};

/// Batches that are asked at once.
const AT_ONCE: usize = 8;

/// Show batches and their progress, or one batch in detail
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The batch [default: a list of the newest]
    workflow_id: Option<String>,
    /// Maximum number of listed batches
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let (limiter, temporal) = (&config.quota()?, &Temporal::open(config).await?);
    let fleet = Fleet { config, limiter, temporal };
    match &args.workflow_id {
        Some(id) => one(fleet, id, args.json).await?,
        None => list(fleet, args.limit as usize, args.json).await?,
    }
    Ok(Outcome::Done)
}

async fn one(fleet: Fleet<'_>, id: &str, as_json: bool) -> anyhow::Result<()> {
    let batch = fleet.temporal.describe(id).await?;
    let webhook = match batch.is_running() {
        true => None,
        false => webhook::sentence(fleet.temporal, &batch).await,
    };
    let seen = snapshot::inspect_batch_alone(fleet, batch).await;
    if as_json {
        let mut value = seen.value()?;
        // These two fields are always present.
        value["why"] = seen.cause.as_ref().map(|cause| cause.sentence.as_str()).into();
        value["failures_by_type"] = failed::value(&seen.failed, None);
        value["webhook"] = webhook.into();
        value["cancel_requested"] = seen.batch.cancel_requested.into();
        return output::print_json(&value);
    }
    let mut rows = rows(&seen);
    if let Known::Progress(progress) = &seen.known {
        let full_price = BatchReport::read(fleet.config, progress).await.full_price;
        rows.extend(full_price.map(|why| ("note", why)));
    }
    rows.extend(webhook.map(|told| ("webhook", told)));
    output::print_data(&output::pairs(&rows))
}

fn rows(seen: &BatchView) -> Vec<(&'static str, String)> {
    let (batch, running) = (&seen.batch, seen.batch.is_running());
    let mut rows = vec![("batch", batch.id.clone()), ("status", seen.status().to_owned())];
    if running && batch.cancel_requested {
        rows.push(("cancelled", advice::CANCELLED.to_owned()));
    }
    rows.extend(seen.started().map(|time| ("started", format::rfc3339(time))));
    let why = seen.cause.as_ref().map(|cause| ("why", cause.sentence.clone()));
    match &seen.known {
        Known::Progress(progress) => {
            if running {
                let totals = &progress.totals;
                let done = format!("{} of {}", count(totals.ended()), count(progress.documents));
                rows.push(("done", done));
                let paused = if progress.paused { ", paused" } else { "" };
                rows.push(("in flight", format!("{}{paused}", count(totals.in_flight))));
                let eta = seen.eta().map(format::duration);
                rows.push(("ETA", eta.unwrap_or_else(|| "unknown".to_owned())));
            }
            rows.extend(why);
            rows.extend(summary::rows(progress, seen.took()));
            rows.extend(failed::rows(&seen.failed, None));
        }
        Known::Nothing(nothing) => {
            // Without a worker, the cause is equal.
            rows.push(("progress", nothing.clone()));
            rows.extend(why.filter(|(_, why)| why != nothing));
        }
    }
    rows
}

async fn list(fleet: Fleet<'_>, limit: usize, as_json: bool) -> anyhow::Result<()> {
    let temporal = fleet.temporal;
    // One extra entry shows whether there are more.
    let mut batches = temporal.list(limit.saturating_add(1)).await?;
    let is_cut = batches.len() > limit;
    batches.truncate(limit);
    let asked = batches.into_iter().map(|batch| async move {
        if batch.is_running() {
            return snapshot::inspect_batch(fleet, batch).await;
        }
        let known = snapshot::known(fleet, &batch).await;
        BatchView::listed(batch, known)
    });
    let mut batches: Vec<BatchView> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    snapshot::forecast(&mut batches);
    if as_json {
        return output::print_json(&batches);
    }
    if batches.is_empty() {
        output::print_message(&format!(
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
        table.add_row(vec![
            seen.id().to_owned(),
            seen.status().to_owned(),
            figure(|progress| progress.totals.ended()),
            figure(|progress| progress.documents),
            figure(|progress| progress.totals.failed),
            figure(|progress| progress.totals.spend.rate_limited),
            seen.started().map_or_else(dash, format::rfc3339),
            seen.took().map_or_else(dash, format::duration),
            seen.eta().map_or_else(dash, format::duration),
        ]);
    }
    output::print_data(&table.text())?;
    if is_cut {
        output::print_message(&format!(
            "there are more batches than {limit}; --limit N lists more"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{
        cli::diagnosis::Cause,
        temporal::{Batch, Status},
    };

    use super::*;

    #[test]
    fn without_a_worker_the_cause_is_said_once_and_the_cancellation_too() {
        let batch = Batch {
            id: "night".to_owned(),
            run: "1".to_owned(),
            task_queue: "tidegate".to_owned(),
            status: Status::Running,
            started: None,
            closed: None,
            cancel_requested: true,
        };
        let mut seen = BatchView::listed(batch, Known::Nothing("no worker answers".to_owned()));
        let cause = |sentence: &str| Some(Cause::stands(sentence));
        seen.cause = cause("no worker answers");
        let said = |seen: &BatchView| {
            let rows = rows(seen);
            let said = rows.iter().filter(|(_, text)| text == "no worker answers").count();
            (said, rows)
        };
        let (times, told) = said(&seen);
        assert_eq!(times, 1, "{told:?}");
        assert!(told.contains(&("cancelled", advice::CANCELLED.to_owned())), "{told:?}");
        seen.cause = cause("it is pinned");
        assert!(said(&seen).1.contains(&("why", "it is pinned".to_owned())));
    }
}
