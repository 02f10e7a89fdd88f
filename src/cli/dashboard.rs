//! `tidegate dashboard`.

use std::net::SocketAddr;

use crate::{config::Config, signal};

use super::{
    exit::{Outcome, usage},
    output, page,
};

/// The default address of the page.
const USUAL: &str = "127.0.0.1:9465";

/// Serve the page about the fleet until Ctrl-C
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The address and port [default: dashboard.listen, else 127.0.0.1:9465]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("write an address and a port such as {USUAL}"))
}

pub(super) async fn run(args: Args, mut config: Config) -> anyhow::Result<Outcome> {
    if let Some(listen) = args.listen {
        config.dashboard.listen = listen.to_string();
    } else if config.dashboard.address().is_none() {
        USUAL.clone_into(&mut config.dashboard.listen);
    }
    let page = page::start(&config).await?;
    let page = page.ok_or_else(|| usage("the page has no address; give --listen"))?;
    output::print_data(&page.url())?;
    signal::stop().await;
    Ok(Outcome::Done)
}
