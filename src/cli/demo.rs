//! `tidegate demo`: the sample documents through a simulated provider.

mod report;
mod samples;

use std::{
    path::{Path, PathBuf},
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tidegate_workflows::{contract::Progress, input::BatchInput};

use super::{exit::Outcome, fleet::Fleet, follow::completed, output, page, paths, servers::Fetch};
use crate::{
    config::Config,
    devstack::{Stack, simulation::DEMO, stack::Options},
    signal,
    temporal::Temporal,
};
use report::Report;
use samples::{INSTRUCTIONS, MAX_OUTPUT_TOKENS, SLOTS, Samples};

/// Process the sample documents on this machine with a simulated provider
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Number of sample documents [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    documents: Option<u32>,
    /// Folder for the results [default: ./out/demo-<time>]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Keep the servers running after the batch until Ctrl-C, for a look at the Temporal UI
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    fetch: Fetch,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Outcome> {
    let output = match args.output {
        Some(folder) => folder,
        None => PathBuf::from(format!("out/demo-{}", chrono::Local::now().format("%Y%m%d-%H%M%S"))),
    };
    let mut interrupted = pin!(signal::stop());
    let run = async {
        args.fetch.provide().await?;
        let samples = samples::write(&output.join("documents"), args.documents)?;
        process_samples(&samples, &output, args.keep).await
    };
    // If the run is dropped, its servers end with it.
    tokio::select! {
        exit = Box::pin(run) => exit,
        () = &mut interrupted => Err(anyhow::anyhow!("interrupted; what was done lies in {}", output.display())),
    }
}

/// Starts an embedded stack, and a batch on it as a user would.
async fn process_samples(samples: &Samples, folder: &Path, keep: bool) -> anyhow::Result<Outcome> {
    output::print_message("starting Temporal, Redis, a simulated provider and a worker");
    let mut config = Config::default();
    config.worker.max_concurrent_documents = SLOTS;
    config.storage.roots.clear();
    let root = folder.canonicalize();
    let roots = vec![root.with_context(|| format!("{} cannot be opened", folder.display()))?];
    let mut stack = Stack::start(Options { config, simulated: vec![DEMO], roots }).await?;
    let report = process(&mut stack, samples, folder).await;
    if let Ok(report) = &report {
        output::print_data(&report.to_string())?;
        if keep {
            output::print_message(&format!(
                "\nTemporal's UI is at {}; Ctrl-C ends it all",
                stack.temporal.ui()
            ));
            tokio::select! {
                error = stack.broken() => return Err(error),
                () = signal::stop() => {}
            }
        }
    }
    let stopped = stack.stop().await;
    let report = report?;
    stopped?;
    Ok(if report.failed == 0 { Outcome::Done } else { Outcome::SomeFailed })
}

async fn process(stack: &mut Stack, samples: &Samples, folder: &Path) -> anyhow::Result<Report> {
    let config = stack.config.clone();
    let temporal = Temporal::open(&config).await?;
    let id = format!("demo-{}", chrono::Local::now().format("%Y%m%d-%H%M%S"));
    let page = stack.temporal.workflow_page(&id);
    output::print_message(&format!(
        "{} documents, {} at {} tokens a minute",
        samples.documents.len(),
        DEMO.id(),
        DEMO.tpm
    ));
    let ours = page::start_for_one(&config).await;
    if let Some(ours) = &ours {
        output::print_message(&format!("watch it: {}", ours.url_with_token()));
    }
    output::print_message(&format!("or in Temporal's UI: {page}"));
    let began = Instant::now();
    if !temporal.start(&id, &input(samples, folder)?).await? {
        bail!("a batch called {id} runs already");
    }
    let fleet = Fleet { config: &config, limiter: &config.quota()?, temporal: &temporal };
    let progress = {
        let mut completed = pin!(completed(fleet, &id, std::future::pending(), |_| None));
        tokio::select! {
            progress = &mut completed => progress?,
            error = stack.broken() => return Err(error),
        }
    };
    let elapsed = began.elapsed();
    let progress = progress.context("the batch was not followed to its end")?;
    report(stack, &progress, elapsed, folder, page)
}

fn report(
    stack: &Stack,
    progress: &Progress,
    elapsed: Duration,
    folder: &Path,
    page: String,
) -> anyhow::Result<Report> {
    let simulator = stack.simulator.as_ref().context("the demo's stack has a simulator")?;
    let account = simulator.account().model(DEMO.model);
    let folder = folder.display();
    Ok(Report {
        documents: progress.documents,
        succeeded: progress.totals.succeeded,
        failed: progress.totals.failed,
        elapsed,
        account,
        limit: DEMO.tpm,
        places: vec![
            ("samples", format!("{folder}/documents/")),
            ("answers", format!("{folder}/results.jsonl, {folder}/results/")),
            ("report", format!("{folder}/report.json")),
            ("Temporal UI", format!("{page} (while it runs; --keep leaves it)")),
        ],
    })
}

/// The workflow's input, as for `temporal workflow start`.
fn input(samples: &Samples, folder: &Path) -> anyhow::Result<BatchInput> {
    Ok(BatchInput {
        source: Some(paths::source_url(&samples.folder.to_string_lossy())?),
        output: paths::output_url(&folder.to_string_lossy())?,
        instructions: INSTRUCTIONS.to_owned(),
        model: Some(DEMO.id().parse()?),
        max_output_tokens: Some(MAX_OUTPUT_TOKENS),
        ..BatchInput::default()
    })
}
