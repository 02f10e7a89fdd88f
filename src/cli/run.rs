//! `tidegate run`.

use serde_json::json;
use tidegate_activities::batch::plan;
use tidegate_workflows::{
    contract::Job,
    input::{self, Batch, BatchInput},
};
use tracing::Instrument;

use crate::{
    config::Config,
    temporal::{self, Temporal},
    worker,
};

use super::{
    agreement,
    batch_flags::BatchFlags,
    exit::{Outcome, usage},
    fleet::Fleet,
    follow::{self, EndDisplay},
    output, paths, summary,
};

/// Start a batch and follow it; Ctrl-C detaches and ends with 0, and the batch goes on
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    given: BatchFlags,
    /// Only estimate documents, tokens, price and time; nothing is started or spent
    // Beside --budget-usd in the help.
    #[arg(long, conflicts_with_all = ["follow", "detach", "at_least"], display_order = 19)]
    dry_run: bool,
    /// The batch's name. A running batch of this name is followed [default: made from the source and
    /// the time]
    #[arg(long, value_name = "ID", value_parser = paths::parse_id)]
    workflow_id: Option<String>,
    /// Show the progress until the batch ends (the default)
    #[arg(long, conflicts_with = "detach")]
    follow: bool,
    /// Return as soon as the batch is started
    #[arg(long)]
    detach: bool,
    /// Exit with 1 if fewer answers than PART, such as 0.9, agree with --truth (lower end of the 95 %
    /// interval)
    #[arg(long, value_name = "PART", value_parser = agreement::part, requires = "truth", conflicts_with = "detach")]
    at_least: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let input = args.given.input()?;
    let batch = input::parse(&temporal::json(&input)).map_err(usage)?;
    if args.dry_run {
        return dry_run(&args, &batch.job, config).await;
    }
    let source = input.source.as_deref().unwrap_or_default();
    let id = args
        .workflow_id
        .clone()
        .unwrap_or_else(|| paths::batch_id(source, chrono::Utc::now(), rand::random()));
    // The trace begins here, and ends with the batch if it is followed.
    let span = tracing::info_span!("tidegate run", batch = id);
    start(&args, config, &id, (&input, &batch)).instrument(span).await
}

async fn start(
    args: &Args,
    config: &Config,
    id: &str,
    (input, batch): (&BatchInput, &Batch),
) -> anyhow::Result<Outcome> {
    let temporal = Temporal::open(config).await?;
    let is_new = temporal.start(id, input).await?;
    if !is_new {
        runs_already(&temporal, id, batch).await?;
    }
    if args.detach {
        return detached(args, id, is_new);
    }
    let sample = batch.job.sample.map(|_| &batch.job);
    output::print_message(&format!(
        "batch {} on {}",
        output::styled(output::STRONG, id),
        temporal.address()
    ));
    let source = input.source.as_deref().unwrap_or_default();
    let places: Vec<&str> =
        [source, &input.output].into_iter().chain(input.truth.as_deref()).collect();
    let hint = |why: &str| paths::roots_hint(why, config, &places);
    let wanted = EndDisplay { as_json: args.json, sample, at_least: args.at_least };
    let fleet = Fleet { config, limiter: &config.quota()?, temporal: &temporal };
    follow::follow_to_end(fleet, id, wanted, hint).await
}

/// Follows a running batch with an equal input; a running batch with another input is an error.
async fn runs_already(temporal: &Temporal, id: &str, batch: &Batch) -> anyhow::Result<()> {
    let started = temporal.first_input(id).await?;
    // If a codec server hides the running batch's input, it is not compared.
    if input::parse(&temporal::json(&started)).is_ok_and(|started| started != *batch) {
        return Err(usage(format!(
            "a batch called {id} runs already with another input; choose another --workflow-id, or cancel that batch first: temporal workflow cancel --workflow-id {id}"
        )));
    }
    output::print_message(&format!("the batch {id} runs already, and goes on"));
    Ok(())
}

/// Estimates on this machine with its configuration, which should equal the workers'.
async fn dry_run(args: &Args, job: &Job, config: &Config) -> anyhow::Result<Outcome> {
    let services = worker::services_without_providers(config)?;
    output::print_message("reading the whole source for the estimate; nothing is started");
    let forecast = plan::forecast(&services, job).await?;
    let over = forecast.check(job.budget_usd);
    if args.json {
        output::print_json(&forecast)?;
    } else {
        output::print_data(&output::pairs(&summary::forecast(&forecast, job.pack.is_some())))?;
    }
    over?;
    Ok(Outcome::Done)
}

fn detached(args: &Args, id: &str, is_new: bool) -> anyhow::Result<Outcome> {
    if args.json {
        output::print_json(&json!({ "workflow_id": id }))?;
    } else {
        output::print_data(id)?;
        let started = if is_new { "started. " } else { "" };
        output::print_message(&format!("{started}See its progress with: tidegate status {id}"));
    }
    Ok(Outcome::Done)
}
