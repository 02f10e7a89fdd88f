//! `tidegate limits`.

use anyhow::Context;
use clap::{Arg, ArgMatches, Command, Subcommand, value_parser};
use serde_json::{Value, json};
use tidegate_quota::{Change, Limited, ModelQuota, PerLimit, Quota, Snapshot, store::LimitChanges};
use tidegate_types::ModelId;

use crate::config::{Config, duration::HumanDuration};

use super::{
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

impl Set {
    fn check(&self) -> anyhow::Result<LimitChanges> {
        let given = &self.flags.0;
        if given.iter().all(|(_, limit)| limit.is_none()) {
            let flags = Limited::ALL.map(|limited| format!("--{}", limited.key())).join(", ");
            return Err(usage(format!("no limit is given; give at least one of {flags}")));
        }
        if let Some((limited, _)) = given.iter().find(|(_, limit)| **limit == Some(0)) {
            let (key, model) = (limited.key(), &self.model);
            return Err(usage(format!(
                "--{key} is 0, which would admit nothing; use `tidegate pause {model}` to stop the calls"
            )));
        }
        if self.length.is_some_and(|length| length.is_zero()) {
            return Err(usage("--for is 0; write a length of time such as 1h"));
        }
        Ok(given.map(|limit| limit.map_or(Change::Keep, Change::Set)))
    }
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let limiter = config.quota()?;
    match args.action {
        None => show(&limiter, args.model.as_deref(), args.json).await,
        Some(Action::Set(set)) => {
            let limits = set.check()?;
            let model = quota::known(&limiter, &set.model)?;
            let length = set.length.map(|length| *length);
            // Set the end first: otherwise a failure in between would leave a limit without an end.
            limiter.set_limits_expiry(&model, length).await.with_context(|| not_set(&model))?;
            change(&limiter, &model, &limits, set.json).await?;
            if !set.json {
                let ends = match length {
                    Some(length) => {
                        let length = duration(length);
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
            let model = quota::known(&limiter, &model)?;
            change(&limiter, &model, &PerLimit::from_fn(|_| Change::Clear), json).await?;
            limiter.set_limits_expiry(&model, None).await.with_context(|| not_set(&model))?;
            if !json {
                output::print_message(
                    "the configured limits are in force again for the whole fleet; tokens already used this minute still count",
                );
            }
            Ok(Outcome::Done)
        }
    }
}

async fn change(
    limiter: &Quota,
    model: &ModelId,
    changes: &LimitChanges,
    json: bool,
) -> anyhow::Result<()> {
    limiter.set_limits(model, changes).await.with_context(|| not_set(model))?;
    show(limiter, Some(model.as_str()), json).await.map(|_| ())
}

fn not_set(model: &ModelId) -> String {
    format!("the limits of {model} could not be set; run `tidegate doctor`")
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

    fn set(flags: &[&str]) -> anyhow::Result<LimitChanges> {
        let line: Line = clap::Parser::parse_from([&["set", "a:b"], flags].concat());
        line.set.check()
    }

    #[test]
    fn what_would_admit_nothing_or_change_nothing_is_refused() {
        let nothing = set(&[]).unwrap_err().to_string();
        assert!(
            nothing.ends_with("one of --rpm, --itpm, --otpm, --tpm, --concurrent"),
            "{nothing}"
        );
        let zero = set(&["--itpm", "0"]).unwrap_err().to_string();
        assert!(zero.starts_with("--itpm is 0, which would admit nothing"), "{zero}");
        assert!(
            set(&["--rpm", "5", "--for", "0s"]).unwrap_err().to_string().contains("--for is 0")
        );
        let changes = set(&["--rpm", "5", "--concurrent", "2", "--for", "1h"]).unwrap();
        assert_eq!(
            (changes.window.requests, changes.window.input, changes.in_flight),
            (Change::Set(5), Change::Keep, Change::Set(2))
        );
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
        let uncalled = rows(&model, &Snapshot::default());
        assert_eq!(
            uncalled,
            [("tpm", [Some(1_000), None, Some(980)])],
            "as the first call plans it"
        );
        limiter.set_limits(&model.id, &set(&["--tpm", "100000"]).unwrap()).await.unwrap();
        let seen = limiter.inspect(&model.id).await.unwrap();
        assert_eq!(rows(&model, &seen), [("tpm", [Some(1_000), Some(100_000), Some(98_000)])]);
        limiter.set_limits(&model.id, &PerLimit::from_fn(|_| Change::Clear)).await.unwrap();
        let seen = limiter.inspect(&model.id).await.unwrap();
        assert_eq!(rows(&model, &seen), [("tpm", [Some(1_000), None, Some(980)])]);
    }
}
