//! `tidegate doctor`.
//!
//! # Layout
//!
//! * [`check`]: one thing that was looked at, and what to do about it
//! * `services`: Temporal, storage, credentials; `redis`: Redis

mod check;
mod redis;
mod services;

use serde_json::json;

use crate::config::{Config, ConfigError};

use super::{exit::Outcome, output, style};
use check::{Check, State};

/// Look at Temporal, Redis, the configuration, credentials and storage; say how to mend each fault
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) async fn run(
    args: Args,
    config: Result<Config, ConfigError>,
) -> anyhow::Result<Outcome> {
    let checks = match config {
        Ok(config) => all(&config).await,
        Err(error) => error
            .faults
            .iter()
            .map(|fault| {
                Check::fail(
                    "configuration",
                    fault.to_string(),
                    "correct it, and run `tidegate doctor` again",
                )
            })
            .collect(),
    };
    let failed = checks.iter().filter(|check| check.state == State::Fail).count();
    if args.json {
        output::json(&json!({ "ok": failed == 0, "checks": checks }))?;
    } else {
        let style = style::data();
        output::data(&checks.iter().map(|check| check.text(style)).collect::<String>())?;
        output::say(&match failed {
            0 => "all is well".to_owned(),
            1 => "1 fault".to_owned(),
            many => format!("{many} faults"),
        });
    }
    Ok(if failed == 0 { Outcome::Done } else { Outcome::Faulty })
}

async fn all(config: &Config) -> Vec<Check> {
    let mut checks = vec![services::configuration(config)];
    let (temporal, redis, storage) = tokio::join!(
        services::temporal(config),
        Box::pin(redis::all(config)),
        services::storage(config)
    );
    checks.extend(
        temporal.into_iter().chain(redis).chain(services::credentials(config)).chain(storage),
    );
    checks
}
