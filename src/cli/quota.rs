//! `tidegate quota`.

use std::time::SystemTime;

use anyhow::Context;
use serde_json::{Value, json};
use tidegate_activities::call::keys::cards;
use tidegate_quota::{
    DayLimit, Limited, ModelQuota, Quota, Snapshot, call_stats, snapshot::DimensionSnapshot, unused,
};
use tidegate_types::ModelId;

use crate::config::Config;

use super::{
    exit::{Outcome, usage},
    figures::{self, count, percent, ratio, span},
    output::{self, BAD, DOUBTFUL, FAINT, GOOD, STRONG, Table, styled},
    trouble::Trouble,
};

/// Limits, use, headroom, waiting and pauses of each model
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which model, such as anthropic:claude-sonnet-5, or which pool's members [default: all]
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
    let cards = cards(&quota).await.unwrap_or_default();
    let held = quota.held().await.unwrap_or_default();
    let mut seen = Vec::new();
    for model in models {
        let snapshot = quota
            .inspect(&model.id)
            .await
            .context("the quota cannot be seen; `tidegate doctor` looks closer")?;
        let trouble = Trouble::of(&cards, &model.id);
        let hold = held.models.contains_key(&model.id);
        seen.push((model, snapshot, trouble, hold));
    }
    if args.json {
        output::json(
            &seen
                .iter()
                .map(|(model, snapshot, trouble, hold)| {
                    let hold = *hold;
                    let mut value = value(model, snapshot);
                    value["paused_until_resume"] = hold.into();
                    value["fault"] = trouble.as_ref().map(Trouble::value).into();
                    value
                })
                .collect::<Vec<_>>(),
        )?;
    } else if seen.is_empty() {
        output::say(
            "no model is configured; add a [models.\"provider:model\"] section with its limits",
        );
    } else {
        let texts: Vec<String> = seen
            .iter()
            .map(|(model, seen, trouble, hold)| text(model, seen, trouble.as_ref(), *hold))
            .collect();
        output::data(&texts.join("\n"))?;
    }
    Ok(Outcome::Done)
}

/// A model that has limits.
pub(super) fn known(quota: &Quota, name: &str) -> anyhow::Result<ModelId> {
    let id: ModelId =
        name.parse().map_err(|error: tidegate_types::InvalidName| usage(error.to_string()))?;
    let names: Vec<&str> = quota.models().map(|model| model.id.as_str()).collect();
    if names.contains(&id.as_str()) {
        return Ok(id);
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(usage(format!("no limits are configured for {id}; configured: {names}")))
}

/// One row: a dimension of the window, or calls at once.
struct Row {
    limited: Limited,
    configured: Option<u64>,
    seen: DimensionSnapshot,
}

impl Row {
    fn free(&self) -> u64 {
        self.seen.limit.saturating_sub(self.seen.used)
    }

    /// How full it is; nothing without a limit.
    fn part(&self) -> f64 {
        ratio(self.seen.used, self.seen.limit)
    }
}

/// Every limit that is configured or in force: the four of the window, then calls at once.
fn rows(model: &ModelQuota, snapshot: &Snapshot) -> Vec<Row> {
    let row = |limited| Row {
        limited,
        configured: model.limits.get(limited),
        seen: *snapshot.of(limited),
    };
    let all = Limited::ALL.into_iter().map(row);
    all.filter(|row| row.configured.is_some() || row.seen.limit > 0).collect()
}

/// Why the limit in force is not the configured one.
fn reasons(model: &ModelQuota, snapshot: &Snapshot, row: &Row) -> Vec<String> {
    let mut reasons = Vec::new();
    let at_once = row.limited == Limited::InFlight;
    if let Some(set) = row.seen.set {
        reasons.push(format!("set to {} by an operator", count(set)));
    }
    if !at_once && model.limits.margin < 1.0 {
        reasons.push(format!("margin {}", model.limits.margin));
    }
    if let Some(stated) = row.seen.stated {
        reasons.push(format!("the provider states {}", count(stated)));
    }
    if !at_once && snapshot.factor < 1.0 {
        reasons.push(format!("after refusals × {:.2}", snapshot.factor));
    }
    if at_once && let Some(cap) = snapshot.cap {
        reasons.push(format!("capped at {} after overloads", count(cap)));
    }
    if row.seen.others > 0 {
        reasons.push(format!("others on this account use {}", count(row.seen.others)));
    }
    reasons
}

/// From here on a limit is said to bind: pacing keeps the last part free.
const FULL: f64 = 0.9;

/// One sentence: what holds documents back, if anything does.
pub(super) fn binds(model: &ModelQuota, snapshot: &Snapshot) -> Option<String> {
    if snapshot.exhausted || !snapshot.pause.is_zero() {
        return Some(format!("the gate: {}", gate(snapshot)));
    }
    let spent =
        |day: &DayLimit| model.limits.day(*day).is_some_and(|limit| snapshot.day(*day) >= limit);
    if let Some(day) = DayLimit::ALL.into_iter().find(spent) {
        return Some(format!("{day}: spent; a new day begins in {}", span(snapshot.day_left)));
    }
    let fullest = rows(model, snapshot).into_iter().max_by(|a, b| a.part().total_cmp(&b.part()))?;
    let waiting: u64 = snapshot.lanes.iter().map(|lane| lane.waiting).sum();
    let is_full = fullest.part() >= FULL || waiting > 0;
    is_full.then(|| {
        format!(
            "{}: {} used, {} free",
            fullest.limited.name(),
            percent(fullest.part()),
            count(fullest.free())
        )
    })
}

/// What the bound on output costs where it counts, and what a smaller one would give.
pub(super) fn unused(model: &ModelQuota, snapshot: &Snapshot) -> Option<String> {
    unused::unused(model, snapshot).map(|unused| unused.sentence())
}

/// `paused for 1m 0s (until …): reason`.
fn gate(snapshot: &Snapshot) -> String {
    let state = if snapshot.exhausted { "exhausted" } else { "paused" };
    let why =
        if snapshot.reason.is_empty() { String::new() } else { format!(": {}", snapshot.reason) };
    format!("{state} for {}{why}", span(snapshot.pause))
}

/// `held`: it is paused until an operator resumes it.
fn text(model: &ModelQuota, snapshot: &Snapshot, trouble: Option<&Trouble>, held: bool) -> String {
    let closed = snapshot.exhausted || !snapshot.pause.is_zero();
    let state = if closed { styled(BAD, gate(snapshot)) } else { styled(GOOD, "open") };
    let mut text = format!("{}  {state}\n", styled(STRONG, model.id.as_str()));
    if closed && held {
        text += &format!("  until `tidegate resume {}`\n", model.id);
    } else if closed {
        let end = figures::stamp(SystemTime::now() + snapshot.pause);
        text += &format!("  until {end}; `tidegate resume {}` opens it now\n", model.id);
    } else if let Some(binds) = binds(model, snapshot) {
        text += &format!("  {} {binds}\n", styled(DOUBTFUL, "binds"));
    }
    if let Some(trouble) = trouble {
        let (style, words) = if trouble.is_down() {
            (BAD, trouble.with_advice())
        } else {
            (DOUBTFUL, trouble.sentence())
        };
        text += &format!("  {} {words}\n", styled(style, "fault"));
    }
    let mut limits = Table::new(&["  PER MINUTE", "LIMIT", "IN USE", "OF", "FREE", "USED", "HELD"]);
    let rows = rows(model, snapshot);
    for row in &rows {
        limits.row(vec![
            format!("  {}", row.limited.title()),
            row.configured.map_or_else(|| "-".to_owned(), count),
            count(row.seen.used),
            count(row.seen.limit),
            count(row.free()),
            percent(row.part()),
            count(row.seen.held),
        ]);
    }
    text += &limits.text();
    for row in &rows {
        let reasons = reasons(model, snapshot, row);
        if row.configured != Some(row.seen.limit) && !reasons.is_empty() {
            text +=
                &styled(FAINT, format_args!("  {}: {}", row.limited.name(), reasons.join("; ")));
            text.push('\n');
        }
    }
    if let Some(unused) = unused(model, snapshot) {
        text += &format!("  {} {unused}\n", styled(DOUBTFUL, "output"));
    }
    text += &format!("  in flight {}", count(snapshot.in_flight.used));
    if !snapshot.latency.is_zero() {
        text += &format!(", a call takes {}", span(snapshot.latency));
    }
    if let Some(useful) = call_stats::kept_busy(model.limits.window, snapshot) {
        text += &format!("; the quota keeps {} busy", count(useful));
    }
    text.push('\n');
    for day in DayLimit::ALL {
        if let Some(limit) = model.limits.day(day) {
            let (used, limit, left) =
                (count(snapshot.day(day)), count(limit), span(snapshot.day_left));
            let counts = day.counts();
            text += &format!("  {counts} today {used} of {limit}; a new day begins in {left}\n");
        }
    }
    let mut lanes = Table::new(&["  LANE", "SHARE", "IN FLIGHT", "QUEUE", "WAITING", "NEXT"]);
    for (lane, (_, share)) in snapshot.lanes.iter().zip(model.lanes.iter()) {
        lanes.row(vec![
            format!("  {}", lane.lane),
            percent(share.guaranteed),
            count(lane.in_flight),
            span(lane.queue),
            count(lane.waiting),
            span(lane.next),
        ]);
    }
    text + &lanes.text()
}

pub(super) fn value(model: &ModelQuota, snapshot: &Snapshot) -> Value {
    let limits = rows(model, snapshot).into_iter().map(|row| {
        let figures = json!({
            "limit": row.configured,
            "effective_limit": row.seen.limit,
            "why": reasons(model, snapshot, &row),
            "set": row.seen.set,
            "stated": row.seen.stated,
            "used": row.seen.used,
            "reserved": row.seen.held,
            "others": row.seen.others,
            "headroom": row.free(),
            "pace_ahead_seconds": row.seen.ahead.as_secs_f64(),
        });
        (row.limited.name().to_owned(), figures)
    });
    let lanes = snapshot.lanes.iter().zip(model.lanes.iter()).map(|(lane, (_, share))| {
        let figures = json!({
            "share": share.guaranteed,
            "burst": share.ceiling,
            "in_flight": lane.in_flight,
            "queue_seconds": lane.queue.as_secs_f64(),
            "waiting": lane.waiting,
            "next_grant_seconds": lane.next.as_secs_f64(),
        });
        (lane.lane.to_string(), figures)
    });
    json!({
        "model": model.id,
        "window_seconds": model.limits.window.as_secs_f64(),
        "paused_seconds": snapshot.pause.as_secs_f64(),
        "pause_reason": Some(&snapshot.reason).filter(|reason| !reason.is_empty()),
        "exhausted": snapshot.exhausted,
        "binds": binds(model, snapshot),
        "counts": snapshot.counted,
        "unused_output": unused(model, snapshot),
        "factor": snapshot.factor,
        "overload_cap": snapshot.cap,
        "in_flight": snapshot.in_flight.used,
        "call_seconds": snapshot.latency.as_secs_f64(),
        "useful_in_flight": call_stats::kept_busy(model.limits.window, snapshot),
        "day": {
            "requests_limit": model.limits.requests_per_day,
            "requests": snapshot.day_requests,
            "tokens_limit": model.limits.tokens_per_day,
            "tokens": snapshot.day_tokens,
            "left_seconds": snapshot.day_left.as_secs_f64(),
        },
        "reservations": snapshot.reservations,
        "limits": limits.collect::<serde_json::Map<_, _>>(),
        "lanes": lanes.collect::<serde_json::Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tidegate_quota::{Charge, Counted, Dimension, Lanes, Limits, Options};

    use super::*;

    #[tokio::test]
    async fn a_paused_model_in_a_table_and_as_json() {
        let limits =
            Limits::default().with(Dimension::Requests, 100).with(Dimension::Input, 50_000);
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
        let text = output::plain(&text(&model, &snapshot, None, false));
        assert!(text.starts_with("a:b  paused for 1m 0s: holiday\n  until "), "{text}");
        assert!(text.contains("`tidegate resume a:b` opens it now"), "{text}");
        assert!(
            text.contains("  requests       100      49      98      49  50.0 %     0\n"),
            "{text}"
        );
        assert!(text.contains("  requests: margin 0.98\n"), "{text}");
        assert!(text.contains("  batch  100.0 %          0   0.0s        0  0.0s\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let value = value(&model, &snapshot);
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
        let mut snapshot = Snapshot { counted: Some(Counted::Both), ..Snapshot::default() };
        snapshot.dimensions.requests = of(62, 2);
        snapshot.dimensions.input = of(62 * 1_400, 2 * 1_400);
        snapshot.dimensions.output = of(60 * 200 + 2 * 9_000, 2 * 9_000);
        snapshot.dimensions.combined =
            DimensionSnapshot { limit: 2_000_000, ..of(62 * 10_400, 2 * 10_400) };
        let cautious = model(Charge::CAUTIOUS);
        let text = output::plain(&text(&cautious, &snapshot, None, false));
        let words = "  output the provider counts max_output_tokens, used or not, by its headers: ";
        assert!(text.contains(words), "{text}");
        assert!(text.contains("with max_output_tokens = 640 it would be"), "{text}");
        let seen = value(&cautious, &snapshot);
        assert_eq!(seen["counts"], "both");
        assert!(seen["unused_output"].as_str().unwrap().contains("640"), "{seen}");
        assert!(value(&model(Charge::default()), &snapshot)["unused_output"].is_null());
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
        let seen = |limit, used| DimensionSnapshot { limit, used, ..DimensionSnapshot::default() };
        let mut snapshot = Snapshot {
            factor: 0.9,
            cap: Some(8),
            latency: Duration::from_secs(5),
            ..Snapshot::default()
        };
        snapshot.dimensions.requests = DimensionSnapshot { set: Some(300), ..seen(264, 10) };
        snapshot.dimensions.combined =
            DimensionSnapshot { stated: Some(50_000), others: 700, ..seen(44_100, 44_000) };
        snapshot.in_flight = seen(8, 3);
        let text = output::plain(&text(&model, &snapshot, None, false));
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
        snapshot.day_tokens = 9_000;
        assert!(binds(&model, &snapshot).unwrap().starts_with("tokens a day: spent"));
    }
}
