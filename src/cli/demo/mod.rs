//! `tidegate demo`: the sample documents through a simulated provider, with tidegate or without it.

mod baseline;
mod samples;
mod tidegate;

use std::{path::PathBuf, pin::pin};

use super::exit::Outcome;
use crate::signal;

/// What each document is asked.
const INSTRUCTIONS: &str = "Summarise the document in three points, each of one sentence.";

/// Enough for three sentences.
const MAX_OUTPUT_TOKENS: u32 = 400;

/// Callers at once, with tidegate and without it. More than there are documents would change
/// nothing.
const CALLERS: usize = 64;

/// The sample documents through a simulated provider, from start to finish on this machine
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Process the same documents the usual way, without tidegate: callers that retry on their own
    #[arg(long)]
    without_limiter: bool,
    /// Process only so many of the samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    documents: Option<u32>,
    /// Where the results go [default: ./out/demo-<time>]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Leave the servers running after the batch, until Ctrl-C, to look around in the Temporal UI
    #[arg(long, conflicts_with = "without_limiter")]
    keep: bool,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Outcome> {
    let samples = samples::find(args.documents)?;
    let output = match args.output {
        Some(folder) => folder,
        None => PathBuf::from(format!("out/demo-{}", chrono::Local::now().format("%Y%m%d-%H%M%S"))),
    };
    let mut told = pin!(signal::stop());
    let run = async {
        if args.without_limiter {
            baseline::run(&samples, &output).await
        } else {
            tidegate::run(&samples, &output, args.keep).await
        }
    };
    // Dropped halfway, the run takes its servers with it.
    tokio::select! {
        exit = Box::pin(run) => exit,
        () = &mut told => Err(anyhow::anyhow!("interrupted; what was done lies in {}", output.display())),
    }
}
