//! `tidegate config`.

use serde_json::json;

use crate::config::{Config, show};

use super::{exit::Outcome, output};

/// Show the configuration in force and the source of each key; secrets are masked
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    if args.json {
        output::print_json(&json!({ "file": config.file(), "keys": show::keys(config) }))?;
    } else {
        output::print_data(&show::toml(config))?;
    }
    Ok(Outcome::Done)
}
