//! `tidegate resume`.

use anyhow::Context;
use serde_json::json;

use crate::config::Config;

use super::{exit::Outcome, output, quota};

/// Open a model's gate for the whole fleet
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Such as anthropic:claude-sonnet-5
    model: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let quota = config.quota()?;
    let model = quota::known(&quota, &args.model)?;
    quota.resume(&model).await.with_context(|| format!("{model} could not be resumed"))?;
    if args.json {
        output::json(&json!({ "model": model, "paused_seconds": 0.0 }))?;
    } else {
        output::say(&format!("{model} is open"));
    }
    Ok(Outcome::Done)
}
