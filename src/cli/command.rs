//! The command line, and which module runs each command.

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    config::Config,
    telemetry::{self, LogFormat},
    version,
};

#[cfg(feature = "top")]
use super::top;
use super::{
    ask, budget, compare, config, dashboard, demo, doctor,
    exit::{self, Outcome},
    extract, follow, limits, pause, processes, quota, run, shell, status, submit, why, workers,
};

/// Runs documents through rate-limited LLM APIs on Temporal, at the full speed that the quota
/// allows.
///
/// Every key of the configuration can be set from the environment as TIDEGATE_SECTION__KEY,
/// such as TIDEGATE_GATE__BASE_BACKOFF=5s. Names that a variable cannot spell, such as
/// anthropic:claude-sonnet-5, are written with underscores and must stand in the file. RUST_LOG
/// filters the log. Exit codes: 0 done or detached, 1 failed, 2 wrong usage or configuration, 3 finished
/// with failed documents.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version = version::short(), long_version = version::long())]
pub struct Cli {
    /// The configuration file [default: $TIDEGATE_CONFIG, else ./tidegate.toml if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Format of log lines
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
    Dev(processes::DevArgs),
    /// Run one worker process; SIGTERM or SIGINT stops it gracefully
    Worker,
    /// Run the HTTP door, which speaks OpenAI's and Anthropic's dialects
    Serve,
    Run(Box<run::Args>),
    Compare(Box<compare::Args>),
    Ask(ask::Args),
    Submit(submit::Args),
    Status(status::Args),
    Follow(follow::Args),
    Why(why::Args),
    #[cfg(feature = "top")]
    Top(top::Args),
    Workers(workers::Args),
    Quota(quota::Args),
    Limits(limits::Args),
    Budget(budget::Args),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Dashboard(dashboard::Args),
    Doctor(doctor::Args),
    Extract(extract::Args),
    Config(config::Args),
    Simulator(processes::SimulatorArgs),
    Completions(shell::CompletionsArgs),
    #[command(hide = true)]
    Man(shell::ManArgs),
}

impl Cli {
    /// The format of log lines.
    pub fn log_format(&self) -> LogFormat {
        self.log_format
    }

    /// The default log filter without `RUST_LOG`: a worker's steps, for `dev` the course of batches, for
    /// other commands only errors.
    pub fn usual_log(&self) -> &'static str {
        match self.command {
            Command::Worker | Command::Serve | Command::Simulator(_) | Command::Dashboard(_) => {
                telemetry::WORKER
            }
            Command::Dev(_) => telemetry::OURS,
            _ => "error",
        }
    }

    /// Runs the command and prints its error.
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
            Command::Dev(args) => processes::dev(args, config()?).await,
            Command::Worker => processes::worker(&config()?).await,
            Command::Serve => processes::door(&config()?).await,
            Command::Run(args) => run::run(*args, &config()?).await,
            Command::Compare(args) => compare::run(*args, &config()?).await,
            Command::Ask(args) => ask::run(args, &config()?).await,
            Command::Submit(args) => submit::run(args, &config()?).await,
            Command::Status(args) => status::run(args, &config()?).await,
            Command::Follow(args) => follow::run(args, &config()?).await,
            Command::Why(args) => why::run(args, &config()?).await,
            #[cfg(feature = "top")]
            Command::Top(args) => top::run(args, &config()?).await,
            Command::Workers(args) => workers::run(args, &config()?).await,
            Command::Quota(args) => quota::run(args, &config()?).await,
            Command::Limits(args) => limits::run(args, &config()?).await,
            Command::Budget(args) => budget::run(args, &config()?).await,
            Command::Pause(args) => pause::pause(args, &config()?).await,
            Command::Resume(args) => pause::resume(args, &config()?).await,
            Command::Dashboard(args) => dashboard::run(args, config()?).await,
            // This command alone runs with a faulty configuration.
            Command::Doctor(args) => doctor::run(args, config()).await,
            Command::Extract(args) => extract::run(args, &config()?).await,
            Command::Config(args) => config::run(args, &config()?),
            Command::Simulator(args) => processes::simulator(args).await,
            Command::Completions(args) => shell::completions(&args, Self::command()),
            Command::Man(args) => shell::man(&args, Self::command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_makes_sense() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_negative_number_is_refused_as_a_value() {
        for line in [
            "run in --output out --model a:b --instructions x --max-output-tokens -1",
            "run in --output out --model a:b --instructions x --retry-budget -1",
            "ask --model a:b --max-output-tokens -1",
            "limits set a:b --rpm -1",
            "status --limit -1",
            "status --limit 0",
        ] {
            let words = std::iter::once("tidegate").chain(line.split(' '));
            let error = Cli::try_parse_from(words).map(drop).unwrap_err().to_string();
            assert!(error.contains("invalid value"), "{line}: {error}");
        }
    }

    #[test]
    fn a_wrong_address_is_answered_with_a_right_one() {
        for (line, says) in [
            ("dashboard --listen nope", "write an address and a port such as 127.0.0.1:9465"),
            ("simulator --host nope", "write an address such as 127.0.0.1"),
        ] {
            let words = std::iter::once("tidegate").chain(line.split(' '));
            let error = Cli::try_parse_from(words).map(drop).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_dry_run_promises_no_agreement() {
        let line = "run in --output out --model a:b -i x --truth t.jsonl --dry-run";
        let words = std::iter::once("tidegate").chain(line.split(' '));
        let refused = Cli::try_parse_from(words.clone().chain(["--at-least", "0.9"]));
        let error = refused.map(drop).unwrap_err().to_string();
        assert!(error.contains("cannot be used with"), "{error}");
        assert!(Cli::try_parse_from(words).is_ok());
    }
}
