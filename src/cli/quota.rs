//! `tidegate quota`.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use tidegate_calls::worker_status::worker_statuses;
use tidegate_quota::{DayLimit, ModelQuota, Quota};
use tidegate_types::ModelId;

use crate::config::{Config, NO_MODEL};

use super::{
    exit::{Outcome, usage},
    format::{self, count, duration, percent, seconds},
    output::{self, BAD, DOUBTFUL, FAINT, GOOD, STRONG, Table, styled},
    snapshot::{ModelView, Sources},
};

/// Show limits, use, headroom, waiting calls and pauses of each model
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model, such as anthropic:claude-sonnet-5, or a pool [default: all]
    model: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let quota = config.quota()?;
    let wanted = match args.model.as_deref() {
        None => None,
        Some(name) => match config.pool_members(name) {
            [] => Some(vec![known(&quota, name)?.to_string()]),
            members => Some(members.to_vec()),
        },
    };
    let models: Vec<ModelQuota> = quota
        .models()
        .filter(|model| {
            wanted.as_ref().is_none_or(|ids| ids.iter().any(|id| id == model.id.as_str()))
        })
        .cloned()
        .collect();
    let cards = worker_statuses(&quota).await.unwrap_or_default();
    let held = quota.operator_holds().await.unwrap_or_default();
    let mut seen = Vec::new();
    for model in models {
        let snapshot = quota
            .inspect(&model.id)
            .await
            .context("the quota could not be read from Redis; run `tidegate doctor`")?;
        seen.push(ModelView::new(&model, &snapshot, Sources { cards: &cards, held: &held }));
    }
    if args.json {
        output::print_json(&seen)?;
    } else if seen.is_empty() {
        output::print_message(NO_MODEL);
    } else {
        let texts: Vec<String> = seen.iter().map(text).collect();
        output::print_data(&texts.join("\n"))?;
    }
    Ok(Outcome::Done)
}

/// A model with limits.
pub(super) fn known(quota: &Quota, name: &str) -> anyhow::Result<ModelId> {
    let id: ModelId =
        name.parse().map_err(|error: tidegate_types::InvalidName| usage(error.to_string()))?;
    let names: Vec<&str> = quota.models().map(|model| model.id.as_str()).collect();
    if names.contains(&id.as_str()) {
        return Ok(id);
    }
    Err(usage(match names.as_slice() {
        [] => format!("no limits are configured for {id}: {NO_MODEL}"),
        names => format!("no limits are configured for {id}; configured: {}", names.join(", ")),
    }))
}

fn text(seen: &ModelView) -> String {
    let closed = seen.is_closed();
    let state = if closed { styled(BAD, seen.gate()) } else { styled(GOOD, "open") };
    let mut text = format!("{}  {state}\n", styled(STRONG, seen.model.as_str()));
    if closed && seen.paused_until_resume {
        text += &format!("  until `tidegate resume {}`\n", seen.model);
    } else if closed {
        let end = format::rfc3339(SystemTime::now() + seconds(seen.paused_seconds));
        text += &format!("  until {end}; `tidegate resume {}` opens it now\n", seen.model);
    } else if let Some(binds) = &seen.binds {
        text += &format!("  {} {binds}\n", styled(DOUBTFUL, "binds"));
    }
    if let Some(trouble) = &seen.trouble {
        let style = if seen.is_down { BAD } else { DOUBTFUL };
        text += &format!("  {} {trouble}\n", styled(style, "fault"));
    }
    let mut limits = Table::new(&["  PER MINUTE", "LIMIT", "IN USE", "OF", "FREE", "USED", "HELD"]);
    for limit in &seen.limits {
        limits.add_row(vec![
            format!("  {}", limit.limited.title()),
            limit.limit.map_or_else(|| "-".to_owned(), count),
            count(limit.used),
            count(limit.effective_limit),
            count(limit.headroom),
            percent(limit.part()),
            count(limit.reserved),
        ]);
    }
    text += &limits.text();
    for limit in &seen.limits {
        if !limit.why.is_empty() {
            let (name, why) = (limit.limited.name(), limit.why.join("; "));
            text += &styled(FAINT, format_args!("  {name}: {why}"));
            text.push('\n');
        }
    }
    if let Some(left) = seen.set_for_seconds {
        let left = duration(Duration::from_secs(left));
        text += &format!("  what is set ends by itself in {left}\n");
    }
    if let Some(unused) = &seen.unused_output {
        text += &format!("  {} {unused}\n", styled(DOUBTFUL, "output"));
    }
    text += &format!("  in flight {}", count(seen.in_flight));
    if seen.call_seconds > 0.0 {
        text += &format!(", a call takes {}", duration(seconds(seen.call_seconds)));
    }
    if let Some(useful) = seen.useful_in_flight {
        text += &format!("; the quota keeps {} busy", count(useful));
    }
    text.push('\n');
    let day = seen.day;
    let days = [
        (DayLimit::Requests, day.requests_limit, day.requests),
        (DayLimit::Tokens, day.tokens_limit, day.tokens),
    ];
    for (which, limit, used) in days {
        let Some(limit) = limit else { continue };
        let (used, limit, left) = (count(used), count(limit), duration(seconds(day.left_seconds)));
        let counts = which.counts();
        text += &format!("  {counts} today {used} of {limit}; a new day begins in {left}\n");
    }
    let mut lanes = Table::new(&["  LANE", "SHARE", "IN FLIGHT", "QUEUE", "WAITING"]);
    for lane in &seen.lanes {
        let elsewhere = if lane.elsewhere { " (of other workers)" } else { "" };
        lanes.add_row(vec![
            format!("  {}{elsewhere}", lane.lane),
            percent(lane.share),
            count(lane.in_flight),
            duration(seconds(lane.queue_seconds)),
            count(lane.waiting),
        ]);
    }
    text + &lanes.text()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_quota::{
        Charge, Dimension, Lanes, Limits, Options, Snapshot, operator_holds::OperatorHolds,
        snapshot::DimensionSnapshot,
    };

    use super::*;
    use crate::cli::snapshot::binds;

    fn seen(model: &ModelQuota, snapshot: &Snapshot) -> ModelView {
        ModelView::new(model, snapshot, Sources { cards: &[], held: &OperatorHolds::default() })
    }

    #[tokio::test]
    async fn a_paused_model_in_a_table_and_as_json() {
        let limits = Limits { burst: Some(std::time::Duration::from_secs(1)), ..Limits::default() }
            .with(Dimension::Requests, 100)
            .with(Dimension::Input, 50_000);
        let model = ModelQuota::new(
            "a:b".parse().unwrap(),
            limits,
            Charge::default(),
            Arc::new(Lanes::single()),
        )
        .unwrap();
        let quota = Quota::in_memory([model.clone()], Options::default());
        quota.pause(&model.id, Duration::from_secs(60), "holiday").await.unwrap();
        let mut snapshot = quota.inspect(&model.id).await.unwrap();
        snapshot.dimensions.requests.used = 49;
        snapshot.lanes[0].queue = Duration::ZERO;
        let text = output::plain(&text(&seen(&model, &snapshot)));
        assert!(text.starts_with("a:b  paused for 1m 0s: holiday\n  until "), "{text}");
        assert!(text.contains("`tidegate resume a:b` opens it now"), "{text}");
        assert!(
            text.contains("  requests       100      49      98      49  50.0 %     0\n"),
            "{text}"
        );
        assert!(text.contains("  requests: margin 0.98; at once 1: as configured\n"), "{text}");
        assert!(text.contains("  batch  100.0 %          0   0.0s        0\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let value = serde_json::to_value(seen(&model, &snapshot)).unwrap();
        assert_eq!(value["limits"]["requests"]["headroom"], 49);
        assert_eq!(value["pause_reason"], "holiday");
        assert!(known(&quota, "a:c").unwrap_err().to_string().contains("configured: a:b"));
    }

    #[test]
    fn what_a_bound_on_output_costs_is_said_where_it_counts() {
        let limits = Limits::default().with(Dimension::Combined, 2_000_000);
        let model = |charge| {
            ModelQuota::new("openai:m".parse().unwrap(), limits, charge, Arc::new(Lanes::single()))
                .unwrap()
        };
        let of = |used, held| DimensionSnapshot { used, held, ..DimensionSnapshot::default() };
        let mut snapshot = Snapshot::default();
        snapshot.dimensions.requests = of(62, 2);
        snapshot.dimensions.input = of(62 * 1_400, 2 * 1_400);
        snapshot.dimensions.output = of(60 * 200 + 2 * 9_000, 2 * 9_000);
        snapshot.dimensions.combined =
            DimensionSnapshot { limit: 2_000_000, ..of(62 * 10_400, 2 * 10_400) };
        let cautious = model(Charge::CAUTIOUS);
        let text = output::plain(&text(&seen(&cautious, &snapshot)));
        let words = "  output max_output_tokens is taken to count, used or not, until headers show otherwise: ";
        assert!(text.contains(words), "{text}");
        assert!(text.contains("with max_output_tokens = 640 it would be"), "{text}");
        let value = serde_json::to_value(seen(&cautious, &snapshot)).unwrap();
        assert!(value["unused_output"].as_str().unwrap().contains("640"), "{value}");
        assert_eq!(seen(&model(Charge::default()), &snapshot).unused_output, None);
    }

    #[test]
    fn every_reason_for_a_lower_limit_is_named() {
        let limits = Limits {
            tokens_per_day: Some(9_000),
            ..Limits::default().with(Dimension::Requests, 600).with(Dimension::Combined, 60_000)
        };
        let model = ModelQuota::new(
            "a:b".parse().unwrap(),
            limits,
            Charge::default(),
            Arc::new(Lanes::single()),
        )
        .unwrap();
        let of = |limit, used| DimensionSnapshot { limit, used, ..DimensionSnapshot::default() };
        let mut snapshot = Snapshot {
            factor: 0.9,
            cap: Some(8),
            latency: Duration::from_secs(5),
            ..Snapshot::default()
        };
        snapshot.dimensions.requests = DimensionSnapshot { set: Some(300), ..of(264, 10) };
        snapshot.dimensions.combined =
            DimensionSnapshot { stated: Some(50_000), others: 700, ..of(44_100, 44_000) };
        snapshot.in_flight = of(8, 3);
        let uncalled = seen(&model, &Snapshot { factor: 1.0, ..Snapshot::default() });
        let free = uncalled.limits.iter().map(|limit| (limit.effective_limit, limit.headroom));
        assert_eq!(free.collect::<Vec<_>>(), [(588, 588), (58_800, 58_800)], "no plan exists yet");
        let mut lowered = snapshot.clone();
        lowered.dimensions.requests = of(20, 515);
        let lowered = output::plain(&super::text(&seen(&model, &lowered)));
        assert!(lowered.contains("0  100.0 %"), "no more than all of it: {lowered}");
        let text = output::plain(&text(&seen(&model, &snapshot)));
        for part in [
            "binds tokens: 99.8 % used, 100 free",
            "requests: set to 300 by an operator; margin 0.98; after refusals × 0.90",
            "tokens: margin 0.98; the provider states 50,000; after refusals × 0.90; others on this account use 700",
            "in_flight: capped at 8 after overloads",
            // 10 calls of 4,400 tokens: the quota admits 10 a window of 60.5 s, and each takes 5 s.
            "in flight 3, a call takes 5.0s; the quota keeps 1 busy",
            "tokens today 0 of 9,000",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        snapshot.dimensions.combined.used = 66_000;
        let over = output::plain(&super::text(&seen(&model, &snapshot)));
        assert!(
            over.contains("binds tokens: used up, 66,000 are in use at a limit of 44,100"),
            "{over}"
        );
        assert!(over.contains("the bucket was full"), "{over}");
        snapshot.day_tokens = 9_000;
        assert!(
            binds(&model, &snapshot, &OperatorHolds::default())
                .unwrap()
                .starts_with("tokens a day: spent")
        );
    }
}
