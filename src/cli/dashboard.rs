//! `tidegate dashboard`.

use crate::{config::Config, signal};

use super::{
    exit::{Outcome, usage},
    output, page,
};

/// The default address of the page.
const USUAL: &str = "127.0.0.1:9465";

/// The page of a fleet, on its own, until Ctrl-C
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// An address and a port [default: dashboard.listen, else 127.0.0.1:9465]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<std::net::SocketAddr>,
}

pub(super) async fn run(args: Args, mut config: Config) -> anyhow::Result<Outcome> {
    if let Some(listen) = args.listen {
        config.dashboard.listen = listen.to_string();
    } else if config.dashboard.address().is_none() {
        USUAL.clone_into(&mut config.dashboard.listen);
    }
    let page = page::start(&config).await?;
    let page = page.ok_or_else(|| usage("there is nowhere to serve the page; give --listen"))?;
    output::print_data(&page.url())?;
    signal::stop().await;
    Ok(Outcome::Done)
}
