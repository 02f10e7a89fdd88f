//! `tidegate worker`.

use crate::{config::Config, signal, telemetry, worker};

use super::exit::Outcome;

/// One worker process; stops gracefully on SIGTERM or SIGINT
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) async fn run(_args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let telemetry = telemetry::start(config.worker.metrics_address()).await;
    worker::run(config, &telemetry, signal::stop()).await?;
    Ok(Outcome::Done)
}
