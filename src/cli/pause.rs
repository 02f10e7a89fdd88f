//! `tidegate pause` and `tidegate resume`.

use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use tidegate_types::ModelId;

use crate::config::{Config, duration::HumanDuration};

use super::{
    exit::{Outcome, usage},
    format, output, quota,
};

/// Close a model's gate for the whole fleet
#[derive(Debug, clap::Args)]
pub(super) struct PauseArgs {
    /// Such as anthropic:claude-sonnet-5
    model: String,
    /// For how long, such as 60s or 5m; at most gate.pause-ttl [default: until `tidegate resume`]
    #[arg(long = "for", value_name = "TIME")]
    length: Option<HumanDuration>,
    /// Why: a line for people, shown by `tidegate quota`
    #[arg(long, value_name = "TEXT", default_value = "paused by hand")]
    reason: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn pause(args: PauseArgs, config: &Config) -> anyhow::Result<Outcome> {
    let length = args.length.map(|length| *length);
    if length.is_some_and(|length| length.is_zero()) {
        return Err(usage(
            "--for is 0; write a length of time such as 60s, or use `tidegate resume`",
        ));
    }
    let quota = config.quota()?;
    let model = quota::known(&quota, &args.model)?;
    let reason = args.reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let failed = || format!("{model} could not be paused; `tidegate doctor` looks closer");
    let closed = match length {
        Some(length) => Some(quota.pause(&model, length, &reason).await.with_context(failed)?),
        None => {
            quota.hold_model(&model, &reason).await.with_context(failed)?;
            None
        }
    };
    if args.json {
        let seconds = closed.map(|closed| closed.as_secs_f64());
        output::print_json(&json!({ "model": model, "paused_seconds": seconds }))?;
    } else {
        output::print_message(&match (closed, length) {
            (Some(closed), Some(length)) => {
                let (span, shortened) = (format::duration(closed), shortened(length, closed));
                format!("{model} is paused for {span}{shortened}")
            }
            _ => format!("{model} is paused until `tidegate resume {model}`"),
        });
    }
    Ok(Outcome::Done)
}

fn shortened(wanted: Duration, closed: Duration) -> &'static str {
    match closed.as_secs().cmp(&wanted.as_secs()) {
        std::cmp::Ordering::Less => " (no pause may be longer than gate.pause-ttl)",
        std::cmp::Ordering::Greater => {
            " (it was paused for longer already; `tidegate resume` opens it)"
        }
        std::cmp::Ordering::Equal => "",
    }
}

/// Open a model's gate for the whole fleet
#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    /// Such as anthropic:claude-sonnet-5
    model: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn resume(args: ResumeArgs, config: &Config) -> anyhow::Result<Outcome> {
    let quota = config.quota()?;
    let model = quota::known(&quota, &args.model)?;
    let failed = || format!("{model} could not be resumed; `tidegate doctor` looks closer");
    quota.resume(&model).await.with_context(failed)?;
    if args.json {
        output::print_json(&json!({ "model": model, "paused_seconds": 0.0 }))?;
    } else {
        output::print_message(&opened(&model, *config.gate.max_backoff));
    }
    Ok(Outcome::Done)
}

/// Documents in Temporal have a time at which they come back, and cannot be called earlier.
fn opened(model: &ModelId, max_backoff: Duration) -> String {
    let within = format::duration(max_backoff);
    format!(
        "{model} is open; documents that waited at its gate come back by themselves, within {within}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_opens_a_gate_is_told_when_documents_come_back() {
        let said = opened(&"a:b".parse().unwrap(), Duration::from_secs(60));
        assert!(said.starts_with("a:b is open; ") && said.ends_with("within 1m 0s"), "{said}");
    }

    #[test]
    fn a_pause_that_is_not_what_was_asked_for_says_why() {
        let seconds = Duration::from_secs;
        assert_eq!(shortened(seconds(60), Duration::from_millis(60_000)), "");
        assert!(shortened(seconds(600), seconds(300)).contains("pause-ttl"));
        assert!(shortened(seconds(60), seconds(200)).contains("already"));
    }
}
