//! `tidegate simulator`.

use std::{net::IpAddr, path::PathBuf};

use anyhow::Context;
use tidegate_simulator::Config;
use tokio::net::TcpListener;

use crate::signal;

use super::{
    exit::{Outcome, usage},
    output,
};

/// The simulated provider on its own
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The port; 0 for a free one
    #[arg(long, value_name = "N", default_value_t = 8089)]
    port: u16,
    /// The address to listen on; 0.0.0.0 for every interface
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The simulator's own configuration: limits, latency and faults [default: no limits, no
    /// faults]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Outcome> {
    let config = match &args.config {
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| usage(format!("{} cannot be read: {error}", file.display())))?;
            Config::from_toml(&text)
                .map_err(|error| usage(format!("{}: {error}", file.display())))?
        }
        None => Config::default(),
    };
    let address = (args.host, args.port);
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("{}:{} cannot be listened on; choose another --port", args.host, args.port)
    })?;
    let url = format!("http://{}", listener.local_addr()?);
    output::say(&format!("anthropic  {url}\nopenai     {url}/v1\naccount    {url}/account"));
    tidegate_simulator::serve(listener, config, signal::stop())
        .await
        .context("serving the simulated provider")?;
    Ok(Outcome::Done)
}
