//! `tidegate budget`.

use anyhow::Context;
use clap::Subcommand;
use serde_json::json;
use tidegate_quota::budget::Payer;
use tidegate_types::Tenant;

use crate::config::Config;

use super::{
    exit::{Outcome, usage},
    output,
};

/// Say what was spent of a budget, where Redis has lost it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set what a batch, or a tenant today, has spent; calls under way count beside it
    Set(Set),
}

#[derive(Debug, clap::Args)]
struct Set {
    /// The batch, by its workflow id
    #[arg(long, conflicts_with = "tenant", required_unless_present = "tenant")]
    batch: Option<String>,
    /// The tenant
    #[arg(long)]
    tenant: Option<String>,
    /// US dollars: `tidegate status BATCH` and the provider's own page tell what was spent
    #[arg(long, value_name = "AMOUNT")]
    spent_usd: f64,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Set {
    fn payer(&self) -> anyhow::Result<Payer> {
        if !self.spent_usd.is_finite() || self.spent_usd < 0.0 {
            return Err(usage("--spent-usd must be an amount of at least 0".to_owned()));
        }
        match (&self.batch, &self.tenant) {
            (Some(batch), _) => Ok(Payer::Batch(batch.clone())),
            (None, Some(tenant)) => Tenant::new(tenant.clone())
                .map(Payer::Tenant)
                .map_err(|error| usage(format!("--tenant: {error}"))),
            (None, None) => Err(usage("name a --batch or a --tenant".to_owned())),
        }
    }
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let Action::Set(set) = args.action;
    let payer = set.payer()?;
    let budgets = config.quota()?.budgets();
    budgets
        .set_spent(&payer, set.spent_usd)
        .await
        .context("it cannot be set; `tidegate doctor` looks closer")?;
    if set.json {
        output::json(&json!({ "payer": payer.to_string(), "spent_usd": set.spent_usd }))?;
    } else {
        let usd = set.spent_usd;
        output::say(&format!(
            "{payer} has spent {usd} USD; documents that wait for it go on within seconds"
        ));
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        set: Set,
    }

    fn set(flags: &[&str]) -> anyhow::Result<Payer> {
        let line: Line = clap::Parser::try_parse_from([&["set"], flags].concat())?;
        line.set.payer()
    }

    #[test]
    fn a_payer_and_an_amount_are_wanted() {
        let batch = set(&["--batch", "night", "--spent-usd", "0.5"]).unwrap();
        assert_eq!(batch.to_string(), "batch \"night\"");
        let tenant = set(&["--tenant", "acme", "--spent-usd", "0"]).unwrap();
        assert_eq!(tenant.to_string(), "tenant \"acme\"");
        for bad in [
            &["--spent-usd", "1"][..],
            &["--batch", "night"],
            &["--batch", "a", "--tenant", "b", "--spent-usd", "1"],
            &["--batch", "a", "--spent-usd=-1"],
            &["--batch", "a", "--spent-usd", "NaN"],
        ] {
            set(bad).unwrap_err();
        }
    }
}
