//! `tidegate pause` and `tidegate resume`.

use std::time::Duration;

use serde_json::json;
use tidegate_types::ModelId;

use crate::config::{Config, duration::HumanDuration};

use super::{actions, exit::Outcome, format, output};

/// Close a model's gate for the whole fleet
#[derive(Debug, clap::Args)]
pub(super) struct PauseArgs {
    /// Such as anthropic:claude-sonnet-5
    model: String,
    /// Length of the pause, such as 60s; at most gate.pause-ttl [default: until `tidegate resume`]
    #[arg(long = "for", value_name = "TIME")]
    length: Option<HumanDuration>,
    /// The reason, which `tidegate quota` shows
    #[arg(long, value_name = "TEXT", default_value = "paused by hand")]
    reason: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn pause(args: PauseArgs, config: &Config) -> anyhow::Result<Outcome> {
    let length = args.length.map(|length| *length);
    let limiter = config.quota()?;
    let (model, closed) =
        actions::pause(config, &limiter, &args.model, length, &args.reason).await?;
    if args.json {
        let seconds = closed.map(|closed| closed.as_secs_f64());
        output::print_json(&json!({ "model": model, "paused_seconds": seconds }))?;
    } else {
        output::print_message(&match (closed, length) {
            (Some(closed), Some(length)) => {
                let span = format::duration(closed);
                let earlier = if closed.as_secs() > length.as_secs() {
                    ", by an earlier pause; `tidegate resume` opens it"
                } else {
                    ""
                };
                format!("{model} is paused for {span}{earlier}")
            }
            _ => format!("{model} is paused until `tidegate resume {model}`"),
        });
    }
    Ok(Outcome::Done)
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
    let model = actions::resume(&config.quota()?, &args.model).await?;
    if args.json {
        output::print_json(&json!({ "model": model, "paused_seconds": 0.0 }))?;
    } else {
        output::print_message(&opened(&model, *config.gate.max_backoff));
    }
    Ok(Outcome::Done)
}

/// A message after a model's gate is opened. Documents in Temporal come back at a fixed time, and
/// cannot be called earlier.
fn opened(model: &ModelId, max_backoff: Duration) -> String {
    let within = format::duration(max_backoff);
    format!("{model} is open; documents that waited at its gate return within {within}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_opens_a_gate_is_told_when_documents_come_back() {
        let said = opened(&"a:b".parse().unwrap(), Duration::from_secs(60));
        assert!(said.starts_with("a:b is open; ") && said.ends_with("within 1m 0s"), "{said}");
    }

    #[tokio::test]
    async fn a_pause_longer_than_any_may_be_is_refused() {
        let args = PauseArgs {
            model: "a:b".to_owned(),
            length: Some("1h".parse().unwrap()),
            reason: String::new(),
            json: false,
        };
        let refused = pause(args, &Config::default()).await.unwrap_err().to_string();
        assert!(refused.contains("at most 5m (gate.pause-ttl)"), "{refused}");
        assert!(refused.ends_with("`tidegate resume a:b`"), "{refused}");
    }
}
