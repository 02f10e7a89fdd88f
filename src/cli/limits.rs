//! `tidegate limits`.

use anyhow::Context;
use clap::Subcommand;
use serde_json::{Value, json};
use tidegate_quota::{Dimension, ModelQuota, Quota, Snapshot, store::Override};
use tidegate_types::ModelId;

use crate::config::Config;

use super::{
    exit::{Outcome, usage},
    figures::count,
    output::{self, Table},
    quota,
};

/// Limits of each model; set them for a running fleet
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    change: Option<Change>,
    /// Which model, such as anthropic:claude-sonnet-5 [default: all]
    model: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Set limits for the whole fleet at once
    Set(Set),
    /// Give the configured limits back
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
    /// Calls a minute
    #[arg(long, value_name = "N")]
    rpm: Option<u64>,
    /// Input and output tokens a minute, counted together
    #[arg(long, value_name = "N")]
    tpm: Option<u64>,
    /// Input tokens a minute
    #[arg(long, value_name = "N")]
    itpm: Option<u64>,
    /// Output tokens a minute
    #[arg(long, value_name = "N")]
    otpm: Option<u64>,
    /// Calls at once
    #[arg(long, value_name = "N")]
    concurrent: Option<u64>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Set {
    /// In the order of [`Dimension::ALL`], then calls at once.
    fn named(&self) -> [(&'static str, Option<u64>); 5] {
        [
            ("rpm", self.rpm),
            ("itpm", self.itpm),
            ("otpm", self.otpm),
            ("tpm", self.tpm),
            ("concurrent", self.concurrent),
        ]
    }

    fn check(&self) -> anyhow::Result<Override> {
        let named = self.named();
        if named.iter().all(|(_, limit)| limit.is_none()) {
            return Err(usage(
                "nothing is to be set; give at least one of --rpm, --tpm, --itpm, --otpm, --concurrent",
            ));
        }
        if let Some((name, _)) = named.iter().find(|(_, limit)| *limit == Some(0)) {
            let model = &self.model;
            return Err(usage(format!(
                "--{name} is 0, which would admit nothing; use `tidegate pause {model}` to stop the calls"
            )));
        }
        let [rpm, itpm, otpm, tpm, concurrent] = named.map(|(_, limit)| limit.map(Some));
        Ok(Override { limits: [rpm, itpm, otpm, tpm], concurrent })
    }
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let limiter = config.quota()?;
    match args.change {
        None => show(&limiter, args.model.as_deref(), args.json).await,
        Some(Change::Set(set)) => {
            let limits = set.check()?;
            let model = quota::known(&limiter, &set.model)?;
            change(&limiter, &model, &limits, set.json).await?;
            if !set.json {
                output::say(&format!(
                    "set for the whole fleet at once; use in the window stays. Redis keeps it for 30 days after its last use: \
                     write it into [models.\"{model}\"] of tidegate.toml if it is to stay"
                ));
            }
            Ok(Outcome::Done)
        }
        Some(Change::Clear { model, json }) => {
            let model = quota::known(&limiter, &model)?;
            change(
                &limiter,
                &model,
                &Override { limits: [Some(None); 4], concurrent: Some(None) },
                json,
            )
            .await?;
            if !json {
                output::say(
                    "the configured limits are in force again, for the whole fleet at once; use in the window stays",
                );
            }
            Ok(Outcome::Done)
        }
    }
}

async fn change(
    limiter: &Quota,
    model: &ModelId,
    limits: &Override,
    json: bool,
) -> anyhow::Result<()> {
    limiter
        .set_limits(model, limits)
        .await
        .with_context(|| format!("the limits of {model} could not be set"))?;
    show(limiter, Some(model.as_str()), json).await.map(|_| ())
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
            .context("the quota cannot be seen; `tidegate doctor` looks closer")?;
        let mut limits = serde_json::Map::new();
        for (name, [configured, set, in_force]) in rows(model, &snapshot) {
            let cell = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), count);
            table.row(vec![
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
        output::json(&values)?
    } else {
        output::data(&table.text())?
    }
    Ok(Outcome::Done)
}

/// Name, as configured, as set (margin and all), and in force (margin and all) of each limit that
/// there is.
fn rows(model: &ModelQuota, snapshot: &Snapshot) -> Vec<(&'static str, [Option<u64>; 3])> {
    let names = ["rpm", "itpm", "otpm", "tpm"];
    let window = names
        .into_iter()
        .zip(Dimension::ALL)
        .map(|(name, dimension)| (name, model.limits.get(dimension), *snapshot.get(dimension)));
    window
        .chain([("concurrent", model.limits.concurrent, snapshot.in_flight)])
        .map(|(name, configured, seen)| {
            (name, [configured, seen.set, Some(seen.limit).filter(|limit| *limit > 0)])
        })
        .filter(|(_, limits)| limits.iter().any(Option::is_some))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_quota::{Charge, Lanes, Limits, Options};

    use super::*;

    fn set() -> Set {
        Set {
            model: "a:b".into(),
            rpm: None,
            tpm: None,
            itpm: None,
            otpm: None,
            concurrent: None,
            json: false,
        }
    }

    #[test]
    fn what_would_admit_nothing_or_change_nothing_is_refused() {
        assert!(set().check().unwrap_err().to_string().contains("at least one of --rpm"));
        let zero = Set { itpm: Some(0), ..set() };
        assert!(
            zero.check()
                .unwrap_err()
                .to_string()
                .starts_with("--itpm is 0, which would admit nothing")
        );
    }

    #[tokio::test]
    async fn a_limit_is_set_and_cleared() {
        let limits = Limits { combined: Some(1_000), ..Limits::default() };
        let model = ModelQuota::new(
            "a:b".parse().unwrap(),
            limits,
            Charge::default(),
            Arc::new(Lanes::single()),
        )
        .unwrap();
        let limiter = Quota::in_memory([model.clone()], Options::default());
        limiter
            .set_limits(&model.id, &Set { tpm: Some(100_000), ..set() }.check().unwrap())
            .await
            .unwrap();
        let seen = limiter.inspect(&model.id).await.unwrap();
        assert_eq!(rows(&model, &seen), [("tpm", [Some(1_000), Some(98_000), Some(98_000)])]);
        limiter
            .set_limits(&model.id, &Override { limits: [Some(None); 4], concurrent: Some(None) })
            .await
            .unwrap();
        let seen = limiter.inspect(&model.id).await.unwrap();
        assert_eq!(rows(&model, &seen), [("tpm", [Some(1_000), None, Some(980)])]);
    }
}
