//! `tidegate quota`.

use anyhow::Context;
use serde_json::{Value, json};
use tidegate_quota::{Dimension, ModelQuota, Quota, Snapshot};
use tidegate_types::ModelId;

use crate::config::Config;

use super::{
    exit::{Outcome, usage},
    figures::{count, percent, ratio, span},
    output, style,
    table::Table,
};

/// Limits, use, headroom, waiting and pauses of each model
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which model, such as anthropic:claude-sonnet-5 [default: all]
    model: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let quota = config.quota()?;
    let wanted = args.model.as_deref().map(|name| known(&quota, name)).transpose()?;
    let models: Vec<ModelQuota> =
        quota.models().filter(|model| wanted.as_ref().is_none_or(|id| *id == model.id)).cloned().collect();
    let mut seen = Vec::new();
    for model in models {
        let snapshot = quota.inspect(&model.id).await.context("the quota cannot be seen; `tidegate doctor` looks closer")?;
        seen.push((model, snapshot));
    }
    if args.json {
        output::json(&seen.iter().map(|(model, snapshot)| value(model, snapshot)).collect::<Vec<_>>())?;
    } else if seen.is_empty() {
        output::say("no model is configured; add a [models.\"provider:model\"] section with its limits");
    } else {
        let texts: Vec<String> = seen.iter().map(|(model, snapshot)| text(model, snapshot, style::data())).collect();
        output::data(&texts.join("\n"))?;
    }
    Ok(Outcome::Done)
}

/// A model that has limits.
pub(super) fn known(quota: &Quota, name: &str) -> anyhow::Result<ModelId> {
    let id: ModelId = name.parse().map_err(|error: tidegate_types::InvalidName| usage(error.to_string()))?;
    let names: Vec<&str> = quota.models().map(|model| model.id.as_str()).collect();
    if names.contains(&id.as_str()) {
        return Ok(id);
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(usage(format!("no limits are configured for {id}; configured: {names}")))
}

/// What one dimension has, what is used, and what is left.
fn dimensions<'a>(model: &'a ModelQuota, snapshot: &'a Snapshot) -> impl Iterator<Item = (Dimension, u64, u64, u64)> + 'a {
    Dimension::ALL.into_iter().filter_map(move |dimension| {
        let state = snapshot.get(dimension);
        Some((dimension, model.limits.get(dimension)?, state.limit, state.used))
    })
}

fn text(model: &ModelQuota, snapshot: &Snapshot, style: style::Style) -> String {
    let gate = if snapshot.pause.is_zero() {
        style.good("open")
    } else {
        let why = if snapshot.reason.is_empty() { String::new() } else { format!(": {}", snapshot.reason) };
        style.bad(&format!("paused for {}{why}", span(snapshot.pause)))
    };
    let mut text = format!("{}  {gate}\n", style.strong(model.id.as_str()));
    let mut limits = Table::new(&["  PER MINUTE", "LIMIT", "IN USE", "OF", "FREE", "USED"]);
    for (dimension, limit, effective, used) in dimensions(model, snapshot) {
        let free = effective.saturating_sub(used);
        let row = [count(limit), count(used), count(effective), count(free), percent(ratio(used, effective))];
        limits.row([format!("  {dimension}")].into_iter().chain(row).collect());
    }
    text += &limits.text();
    let mut lanes = Table::new(&["  LANE", "SHARE", "IN FLIGHT", "QUEUE"]);
    for (lane, (_, share)) in snapshot.lanes.iter().zip(model.lanes.iter()) {
        lanes.row(vec![format!("  {}", lane.lane), percent(share.guaranteed), count(lane.in_flight), span(lane.queue)]);
    }
    text + &lanes.text()
}

fn value(model: &ModelQuota, snapshot: &Snapshot) -> Value {
    let limits = dimensions(model, snapshot).map(|(dimension, limit, effective, used)| {
        let figures = json!({
            "limit": limit,
            "effective_limit": effective,
            "used": used,
            "headroom": effective.saturating_sub(used),
            "pace_ahead_seconds": snapshot.get(dimension).ahead.as_secs_f64(),
        });
        (dimension.name().to_owned(), figures)
    });
    let lanes = snapshot.lanes.iter().zip(model.lanes.iter()).map(|(lane, (_, share))| {
        let figures = json!({
            "share": share.guaranteed,
            "burst": share.ceiling,
            "in_flight": lane.in_flight,
            "queue_seconds": lane.queue.as_secs_f64(),
        });
        (lane.lane.to_string(), figures)
    });
    json!({
        "model": model.id,
        "window_seconds": model.limits.window.as_secs_f64(),
        "paused_seconds": snapshot.pause.as_secs_f64(),
        "pause_reason": Some(&snapshot.reason).filter(|reason| !reason.is_empty()),
        "reservations": snapshot.reservations,
        "limits": limits.collect::<serde_json::Map<_, _>>(),
        "lanes": lanes.collect::<serde_json::Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tidegate_quota::{Charge, Lanes, Limits, Options};

    use super::*;

    #[tokio::test]
    async fn a_paused_model_in_a_table_and_as_json() {
        let limits = Limits { requests: Some(100), input: Some(50_000), ..Limits::default() };
        let model = ModelQuota::new("a:b".parse().unwrap(), limits, Charge::default(), Arc::new(Lanes::single())).unwrap();
        let quota = Quota::in_memory([model.clone()], Options::default());
        quota.pause(&model.id, Duration::from_secs(60), "holiday").await.unwrap();
        let mut snapshot = quota.inspect(&model.id).await.unwrap();
        snapshot.dimensions[0].used = 49;
        snapshot.lanes[0].queue = Duration::ZERO;
        let text = text(&model, &snapshot, style::Style::plain());
        assert!(text.starts_with("a:b  paused for 1m 0s: holiday\n  PER MINUTE   LIMIT  IN USE      OF"), "{text}");
        assert!(text.contains("  requests       100      49      98      49  50.0 %\n"), "{text}");
        assert!(text.contains("  batch  100.0 %          0   0.0s\n"), "{text}");
        let value = value(&model, &snapshot);
        assert_eq!(value["limits"]["requests"]["headroom"], 49);
        assert_eq!(value["pause_reason"], "holiday");
        assert!(known(&quota, "a:c").unwrap_err().to_string().contains("configured: a:b"));
    }
}
