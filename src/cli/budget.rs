//! `tidegate budget`.

use anyhow::Context;
use clap::{ArgGroup, Subcommand};
use serde_json::json;
use tidegate_quota::budget::Payer;
use tidegate_types::Tenant;

use crate::{config::Config, temporal::Temporal};

use super::{
    exit::{Outcome, usage},
    output,
};

/// Set what was spent of a budget, if Redis has lost it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set what a batch, or a tenant today, has spent, without calls that are under way
    Set(Set),
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("payer").required(true).args(["batch", "tenant"]))]
struct Set {
    /// The batch, by its workflow id
    #[arg(long)]
    batch: Option<String>,
    /// The tenant
    #[arg(long)]
    tenant: Option<String>,
    /// US dollars, as `tidegate status BATCH` or the provider's own page shows
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    spent_usd: f64,
    /// Set it even if the batch is unknown or the tenant has no budget
    #[arg(long)]
    force: bool,
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

/// Returns the reason if the payer is unknown: setting its budget then has no effect, and is probably a
/// mistake.
async fn unknown(payer: &Payer, config: &Config) -> Option<String> {
    match payer {
        Payer::Batch(id) => {
            let described = match Temporal::open(config).await {
                Ok(temporal) => temporal.describe(id).await.map(drop),
                Err(away) => Err(away),
            };
            described.err().map(|why| format!("{why:#}"))
        }
        Payer::Tenant(tenant) => without_budget(tenant, config),
    }
}

fn without_budget(tenant: &Tenant, config: &Config) -> Option<String> {
    let budgets = config.daily_budgets().ok()?;
    (!budgets.iter().any(|(known, _)| known == tenant)).then(|| {
        format!("no tenant \"{tenant}\" has a daily-budget-usd in this configuration, which should be the workers'")
    })
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let Action::Set(set) = args.action;
    let payer = set.payer()?;
    if !set.force
        && let Some(why) = unknown(&payer, config).await
    {
        return Err(usage(format!("{why}; nothing was set (--force sets it anyway)")));
    }
    let budgets = config.quota()?.budgets();
    budgets
        .set_spent(&payer, set.spent_usd)
        .await
        .context("the budget could not be set; run `tidegate doctor`")?;
    if set.json {
        output::print_json(&json!({ "payer": payer.to_string(), "spent_usd": set.spent_usd }))?;
    } else {
        let usd = set.spent_usd;
        output::print_message(&format!(
            "{payer} has spent {usd} USD; waiting documents go on within seconds"
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
        let neither = set(&["--spent-usd", "1"]).unwrap_err().to_string();
        assert!(neither.contains("--batch <BATCH>|--tenant <TENANT>"), "{neither}");
        let below = set(&["--batch", "a", "--spent-usd", "-1"]).unwrap_err().to_string();
        assert_eq!(below, "--spent-usd must be an amount of at least 0");
    }

    #[test]
    fn a_tenant_without_a_budget_is_no_success() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.toml");
        std::fs::write(&file, "[tenants.acme]\ndaily-budget-usd = 10.0\n").unwrap();
        let config = Config::from_layers(Some(&file), []).unwrap();
        let of = |name: &str| without_budget(&Tenant::new(name.to_owned()).unwrap(), &config);
        assert_eq!(of("acme"), None);
        assert!(of("amce").unwrap().contains("no tenant \"amce\" has a daily-budget-usd"));
    }
}
