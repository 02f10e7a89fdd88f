//! `tidegate submit`: makes one call durable, for scripts.

use anyhow::Context;
use serde_json::Value;
use tidegate_types::Lane;
use tidegate_workflows::contract::SubmittedCall;

use crate::{
    config::Config,
    temporal::{Submitted, Temporal},
};

use super::{
    batch_flags::text,
    exit::{Outcome, usage},
    output,
    paths::parse_id,
};

/// Temporal accepts no payload of more than 2 MiB.
const MAX_INPUT: usize = 2_000_000;

/// Make one call by an id, and print its outcome as JSON
///
/// Within the namespace's retention, the same id and input print the same outcome and buy nothing, unless
/// the call failed. Another input by the same id is refused.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The activity
    #[arg(value_parser = ["tidegate.call", "tidegate.embed"])]
    activity: String,
    /// The call's id, unique in the namespace
    #[arg(long, value_parser = parse_id)]
    id: String,
    /// The activity's input; @FILE reads it from a file
    #[arg(long, value_name = "JSON|@FILE")]
    input: String,
    /// The lane
    #[arg(long, default_value = "interactive")]
    lane: Lane,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let Args { activity, id, input, lane } = args;
    let text = text("--input", &input)?;
    if text.len() > MAX_INPUT {
        return Err(usage(format!(
            "--input has {} bytes, and Temporal holds no more than 2 MiB; put the large part under [calls] inputs, and give it as {{\"uri\": \"…\"}}",
            text.len()
        )));
    }
    let input: Value = serde_json::from_str(&text)
        .map_err(|error| usage(format!("--input is not JSON: {error}")))?;
    if !config.quota_lanes()?.iter().any(|(known, _)| *known == lane) {
        return Err(usage(format!("--lane: no lane is called {lane}")));
    }
    let temporal = Temporal::open(config).await?;
    let failed = || format!("{activity} by the id {id}");
    let call = SubmittedCall { activity: activity.clone(), lane, input };
    match temporal.submit(&id, &call).await.with_context(failed)? {
        Submitted::Done(outcome) => output::print_json(&outcome)?,
        Submitted::Failed(why) => return Err(anyhow::anyhow!(why).context(failed())),
        Submitted::Another => {
            return Err(usage(format!(
                "another call was submitted by the id {id}; choose another id, or give the same input"
            )));
        }
    }
    Ok(Outcome::Done)
}
