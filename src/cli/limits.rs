//! `tidegate limits`.

use anyhow::Context;
use clap::{Arg, ArgMatches, Command, Subcommand, value_parser};
use serde_json::{Value, json};
use tidegate_quota::{Limited, ModelQuota, PerLimit, Quota, Snapshot};
use tidegate_types::ModelId;

use crate::config::{Config, NO_MODEL, duration::HumanDuration};

use super::{
    actions,
    exit::{Outcome, usage},
    format::{count, duration},
    output::{self, Table},
    quota,
    snapshot::limit_in_force,
};

/// Show the limits of each model, and set them for a running fleet
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// The model, such as anthropic:claude-sonnet-5 [default: all]
    model: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set limits for the whole fleet at once
    Set(Set),
    /// Return to the configured limits
    Clear {
        /// Such as anthropic:claude-sonnet-5
        model: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// As the provider states them: the margin is taken off here too.
#[derive(Debug, Clone, clap::Args)]
struct Set {
    /// Such as anthropic:claude-sonnet-5
    model: String,
    #[command(flatten)]
    flags: Flags,
    /// How long they hold, such as 1h; then the configured limits return [default: until `tidegate
    /// limits clear`]
    #[arg(long = "for", value_name = "TIME")]
    length: Option<HumanDuration>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// One flag for each limit, by its key.
#[derive(Debug, Clone, Default)]
struct Flags(PerLimit<Option<u64>>);

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        Limited::ALL.into_iter().fold(command, |command, limited| {
            let flag = Arg::new(limited.key()).long(limited.key()).value_name("N");
            let flag = flag.value_parser(value_parser!(u64)).allow_negative_numbers(true);
            command.arg(flag.help(limited.about()))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(given: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(PerLimit::from_fn(|limited| given.get_one(limited.key()).copied())))
    }

    fn update_from_arg_matches(&mut self, given: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(given)?;
        Ok(())
    }
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let limiter = config.quota()?;
    match args.action {
        None => show(&limiter, args.model.as_deref(), args.json).await,
        Some(Action::Set(set)) => {
            let model = set.carry_out(&limiter).await?;
            show(&limiter, Some(model.as_str()), set.json).await?;
            if !set.json {
                let ends = match set.length {
                    Some(length) => {
                        let length = duration(*length);
                        format!("The configured limits return after {length}")
                    }
                    None => format!(
                        "Redis keeps it for 31 days after its last use; to keep it longer, write it into [models.\"{model}\"] of tidegate.toml"
                    ),
                };
                output::print_message(&format!(
                    "set for the whole fleet; tokens already used this minute still count. {ends}"
                ));
            }
            Ok(Outcome::Done)
        }
        Some(Action::Clear { model, json }) => {
            let model = actions::clear_limits(&limiter, &model).await?;
            show(&limiter, Some(model.as_str()), json).await?;
            if !json {
                output::print_message(
                    "the configured limits are in force again for the whole fleet; tokens already used this minute still count",
                );
            }
            Ok(Outcome::Done)
        }
    }
}

impl Set {
    async fn carry_out(&self, limiter: &Quota) -> anyhow::Result<ModelId> {
        let limits = self.flags.0;
        if limits.iter().all(|(_, limit)| limit.is_none()) {
            let flags = Limited::ALL.map(|limited| format!("--{}", limited.key())).join(", ");
            return Err(usage(format!("no limit is given; give at least one of {flags}")));
        }
        let length = self.length.map(|length| *length);
        actions::set_limits(limiter, &self.model, limits, length).await
    }
}

async fn show(limiter: &Quota, model: Option<&str>, json: bool) -> anyhow::Result<Outcome> {
    let wanted = model.map(|name| quota::known(limiter, name)).transpose()?;
    let models = limiter.models().filter(|model| wanted.as_ref().is_none_or(|id| *id == model.id));
    let (mut table, mut values) =
        (Table::new(&["MODEL", "LIMIT", "CONFIGURED", "SET", "IN FORCE"]), Vec::new());
    for model in models {
        let snapshot = limiter
            .inspect(&model.id)
            .await
            .context("the quota could not be read from Redis; run `tidegate doctor`")?;
        let mut limits = serde_json::Map::new();
        for (name, [configured, set, in_force]) in rows(model, &snapshot) {
            let cell = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), count);
            table.add_row(vec![
                model.id.to_string(),
                name.to_owned(),
                cell(configured),
                cell(set),
                cell(in_force),
            ]);
            limits.insert(
                name.to_owned(),
                json!({ "configured": configured, "set": set, "in_force": in_force }),
            );
        }
        values.push(json!({ "model": model.id, "limits": Value::Object(limits) }));
    }
    if json {
        output::print_json(&values)?
    } else if values.is_empty() {
        output::print_message(NO_MODEL);
    } else {
        output::print_data(&table.text())?
    }
    Ok(Outcome::Done)
}

/// Each limit's name, and its configured, set and effective values.
fn rows(model: &ModelQuota, snapshot: &Snapshot) -> Vec<(&'static str, [Option<u64>; 3])> {
    let row = |limited: Limited| {
        let (configured, seen) = (model.limits.get(limited), snapshot.for_limit(limited));
        let in_force = limit_in_force(model, snapshot, limited);
        (limited.key(), [configured, seen.set, in_force])
    };
    let all = Limited::ALL.into_iter().map(row);
    all.filter(|(_, limits)| limits.iter().any(Option::is_some)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_quota::{Charge, Dimension, Lanes, Limits, Options};

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        set: Set,
    }

    #[tokio::test]
    async fn a_limit_is_set_and_cleared() {
        let limits = Limits::default().with(Dimension::Combined, 1_000);
        let model = ModelQuota::new(
            "a:b".parse().unwrap(),
            limits,
            Charge::default(),
            Arc::new(Lanes::single()),
        )
        .unwrap();
        let limiter = Quota::in_memory([model.clone()], Options::default());
        let set = async |flags: &[&str]| {
            let line: Line = clap::Parser::parse_from([&["set", "a:b"], flags].concat());
            line.set.carry_out(&limiter).await.map_err(|error| error.to_string())
        };
        let nothing = set(&[]).await.unwrap_err();
        assert!(
            nothing.ends_with("one of --rpm, --itpm, --otpm, --tpm, --concurrent"),
            "{nothing}"
        );
        assert!(set(&["--rpm", "5", "--for", "0s"]).await.unwrap_err().contains("the time is 0"));
        let uncalled = rows(&model, &Snapshot::default());
        assert_eq!(
            uncalled,
            [("tpm", [Some(1_000), None, Some(980)])],
            "as the first call plans it"
        );
        set(&["--tpm", "100000", "--concurrent", "2"]).await.unwrap();
        let seen = limiter.inspect(&model.id).await.unwrap();
        let rows_set = rows(&model, &seen);
        assert_eq!(rows_set[0], ("tpm", [Some(1_000), Some(100_000), Some(98_000)]));
        assert_eq!(rows_set[1].1[1], Some(2));
        actions::clear_limits(&limiter, "a:b").await.unwrap();
        let seen = limiter.inspect(&model.id).await.unwrap();
        assert_eq!(rows(&model, &seen), [("tpm", [Some(1_000), None, Some(980)])]);
    }
}
