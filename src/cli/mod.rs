//! The commands. Data goes to stdout, talk to stderr.
//!
//! # Layout
//!
//! * one file each: `demo`, `dev`, `worker`, `run`, `status`, `why`, `quota`, `limits`, `pause`,
//!   `resume`, `doctor`, `config`, `simulator`
//! * `exit`: exit codes, and what deserves which
//! * `output`, `table`, `style`: stdout, stderr, columns, colour
//! * `figures`: numbers, times and rates for people
//! * `place`: paths and URLs of documents; `batch_id`: names for batches
//! * `follow`, `bar`: a batch on its way; `summary`: how it ended

mod bar;
mod batch_id;
mod config;
mod demo;
mod dev;
mod doctor;
mod exit;
mod figures;
mod follow;
mod limits;
mod output;
mod pause;
mod place;
mod quota;
mod resume;
mod run;
mod simulator;
mod status;
mod style;
mod summary;
mod table;
mod why;
mod worker;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use tracing::Level;

use crate::{config::Config, telemetry::LogFormat};

use exit::Outcome;

/// Runs documents through rate-limited LLM APIs on Temporal, at the full speed that the quota
/// allows.
///
/// Every key of the configuration can be set from the environment as TIDEGATE_<SECTION>__<KEY>,
/// such as TIDEGATE_GATE__BASE_BACKOFF=5s. Names that a variable cannot spell, such as
/// anthropic:claude-sonnet-5, are written with underscores and must stand in the file. RUST_LOG
/// steers logging.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version)]
pub struct Cli {
    /// The configuration [default: $TIDEGATE_CONFIG, else ./tidegate.toml if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How log lines look
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "TIDEGATE_LOG_FORMAT",
        default_value = "text"
    )]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Dev(dev::Args),
    Worker(worker::Args),
    Run(Box<run::Args>),
    Status(status::Args),
    Why(why::Args),
    Quota(quota::Args),
    Limits(limits::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    Simulator(simulator::Args),
}

impl Cli {
    /// How log lines look.
    #[must_use]
    pub fn log_format(&self) -> LogFormat {
        self.log_format
    }

    /// What is logged when `RUST_LOG` does not say: servers tell what they do, commands only what
    /// is amiss.
    #[must_use]
    pub fn log_level(&self) -> Level {
        match self.command {
            Command::Worker(_) | Command::Simulator(_) => Level::INFO,
            Command::Dev(_) => Level::WARN,
            _ => Level::ERROR,
        }
    }

    /// Runs the command, and tells what went wrong.
    pub async fn run(self) -> ExitCode {
        match Box::pin(self.dispatch()).await {
            Ok(outcome) => outcome.code(),
            Err(error) => exit::failed(&error),
        }
    }

    async fn dispatch(self) -> anyhow::Result<Outcome> {
        let file = self.config;
        let config = || Config::load(file.as_deref());
        match self.command {
            Command::Demo(args) => demo::run(args).await,
            Command::Dev(args) => dev::run(args, config()?).await,
            Command::Worker(args) => worker::run(args, &config()?).await,
            Command::Run(args) => run::run(*args, &config()?).await,
            Command::Status(args) => status::run(args, &config()?).await,
            Command::Why(args) => why::run(args, &config()?).await,
            Command::Quota(args) => quota::run(args, &config()?).await,
            Command::Limits(args) => limits::run(args, &config()?).await,
            Command::Pause(args) => pause::run(args, &config()?).await,
            Command::Resume(args) => resume::run(args, &config()?).await,
            // The one command that goes on when the configuration is at fault.
            Command::Doctor(args) => doctor::run(args, config()).await,
            Command::Config(args) => config::run(args, &config()?),
            Command::Simulator(args) => simulator::run(args).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_makes_sense() {
        super::Cli::command().debug_assert();
    }
}
