//! A model's quota in a snapshot: limits and their origin, gate, binding limit, waiting calls.

use std::{collections::BTreeMap, time::Duration};

use serde::{Serialize, Serializer};
use serde_json::Value;
use tidegate_calls::worker_status::WorkerStatus;
use tidegate_quota::{
    DayLimit, Limited, ModelQuota, Snapshot, call_stats,
    operator_holds::OperatorHolds,
    output_cap_cost,
    plan::{Allowance, Reasoned, Why},
    snapshot::DimensionSnapshot,
    usage_history::History,
};
use tidegate_types::ModelId;

use crate::cli::{
    format::{count, duration, percent, ratio},
    trouble::Trouble,
};

/// From this use on, a limit holds calls back: pacing keeps the rest free.
pub(super) const BINDS: f64 = 0.9;

/// A binding limit that refusals have reduced below this fraction is mentioned.
const MUCH_CUT: f64 = 0.9;

/// A model's quota in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct ModelView {
    pub(in crate::cli) model: ModelId,
    pub(in crate::cli) window_seconds: f64,
    /// Seconds until the gate opens; 0 if it is open.
    pub(in crate::cli) paused_seconds: f64,
    pub(in crate::cli) pause_reason: Option<String>,
    /// An operator has paused it until `resume`.
    pub(in crate::cli) paused_until_resume: bool,
    pub(in crate::cli) exhausted: bool,
    /// The cause that holds calls back, in a sentence; `None` if there is none.
    pub(in crate::cli) binds: Option<String>,
    /// The cost of the limit on output, if it counts, and the gain from a smaller one.
    pub(in crate::cli) unused_output: Option<String>,
    /// Recent faults of its calls.
    pub(in crate::cli) fault: Option<Value>,
    /// The recent faults as a sentence, with the remedy.
    #[serde(skip)]
    pub(in crate::cli) trouble: Option<String>,
    /// Whether no call is answered at all.
    #[serde(skip)]
    pub(in crate::cli) is_down: bool,
    pub(in crate::cli) factor: f64,
    pub(in crate::cli) overload_cap: Option<u64>,
    pub(in crate::cli) in_flight: u64,
    pub(in crate::cli) call_seconds: f64,
    /// The number of calls in flight that uses the quota fully.
    pub(in crate::cli) useful_in_flight: Option<u64>,
    pub(in crate::cli) day: DayView,
    pub(in crate::cli) reservations: u64,
    /// Seconds until the set limits end by themselves; `None` if they do not.
    pub(in crate::cli) set_for_seconds: Option<u64>,
    #[serde(serialize_with = "limits_by_name")]
    pub(in crate::cli) limits: Vec<LimitView>,
    #[serde(serialize_with = "lanes_by_name")]
    pub(in crate::cli) lanes: Vec<LaneView>,
    /// The last hour, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) history: Option<History>,
}

/// Limits for a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(in crate::cli) struct DayView {
    pub(in crate::cli) requests_limit: Option<u64>,
    pub(in crate::cli) requests: u64,
    pub(in crate::cli) tokens_limit: Option<u64>,
    pub(in crate::cli) tokens: u64,
    pub(in crate::cli) left_seconds: f64,
}

/// One limit: its origin and its use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct LimitView {
    #[serde(skip)]
    pub(in crate::cli) limited: Limited,
    /// The configured limit.
    pub(in crate::cli) limit: Option<u64>,
    /// The limit in force, margin included.
    pub(in crate::cli) effective_limit: u64,
    /// Reasons why the limit in force differs from the configured one.
    pub(in crate::cli) why: Vec<String>,
    pub(in crate::cli) set: Option<u64>,
    pub(in crate::cli) stated: Option<u64>,
    pub(in crate::cli) used: u64,
    pub(in crate::cli) reserved: u64,
    pub(in crate::cli) others: u64,
    pub(in crate::cli) headroom: u64,
    /// The policy's rate, burst and window, with their reasons.
    pub(in crate::cli) plan: Option<PlanView>,
}

/// The policy's decision for one limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct PlanView {
    pub(in crate::cli) a_minute: u64,
    pub(in crate::cli) a_minute_why: String,
    pub(in crate::cli) at_once: u64,
    pub(in crate::cli) at_once_why: String,
    /// Whether no window may exceed the limit.
    pub(in crate::cli) strict_window: bool,
    pub(in crate::cli) strict_window_why: String,
}

impl PlanView {
    fn new(plan: &Allowance) -> Self {
        let why = |reasoned: &Reasoned| reasoned.why.to_string();
        Self {
            a_minute: plan.a_minute(),
            a_minute_why: why(&plan.rate),
            at_once: plan.at_once(),
            at_once_why: why(&plan.capacity),
            strict_window: plan.window.value.is_finite(),
            strict_window_why: why(&plan.window),
        }
    }
}

/// One lane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct LaneView {
    #[serde(skip)]
    pub(in crate::cli) lane: String,
    pub(in crate::cli) share: f64,
    pub(in crate::cli) burst: f64,
    /// Whether only other workers have this lane, and this program's configuration does not.
    pub(in crate::cli) elsewhere: bool,
    pub(in crate::cli) in_flight: u64,
    pub(in crate::cli) queue_seconds: f64,
    pub(in crate::cli) waiting: u64,
}

/// Sources in addition to the quota.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Sources<'a> {
    pub(in crate::cli) cards: &'a [(String, WorkerStatus)],
    pub(in crate::cli) held: &'a OperatorHolds,
}

impl ModelView {
    pub(in crate::cli) fn new(
        model: &ModelQuota,
        snapshot: &Snapshot,
        Sources { cards, held }: Sources<'_>,
    ) -> Self {
        let trouble = Trouble::from_cards(cards, &model.id);
        let lanes = snapshot.lanes.iter().map(|lane| LaneView {
            lane: lane.lane.to_string(),
            share: lane.share.guaranteed,
            burst: lane.share.ceiling,
            elsewhere: lane.elsewhere,
            in_flight: lane.in_flight,
            queue_seconds: lane.queue.as_secs_f64(),
            waiting: lane.waiting,
        });
        Self {
            model: model.id.clone(),
            window_seconds: model.limits.window.as_secs_f64(),
            paused_seconds: snapshot.pause.as_secs_f64(),
            pause_reason: Some(snapshot.reason.clone()).filter(|reason| !reason.is_empty()),
            paused_until_resume: held.models.contains_key(&model.id),
            exhausted: snapshot.exhausted,
            binds: binds(model, snapshot, held),
            unused_output: unused(model, snapshot),
            is_down: trouble.as_ref().is_some_and(Trouble::is_down),
            fault: trouble.as_ref().map(Trouble::value),
            trouble: trouble.as_ref().filter(|trouble| !trouble.is_over()).map(|trouble| {
                if trouble.is_down() { trouble.with_advice() } else { trouble.sentence() }
            }),
            factor: snapshot.factor,
            overload_cap: snapshot.cap,
            in_flight: snapshot.in_flight.used,
            call_seconds: snapshot.latency.as_secs_f64(),
            useful_in_flight: call_stats::calls_to_fill_limits(model.limits.window, snapshot),
            day: DayView {
                requests_limit: model.limits.requests_per_day,
                requests: snapshot.day_requests,
                tokens_limit: model.limits.tokens_per_day,
                tokens: snapshot.day_tokens,
                left_seconds: snapshot.day_left.as_secs_f64(),
            },
            reservations: snapshot.reservations,
            set_for_seconds: held.limit_left(&model.id).map(|left| left.as_secs()),
            limits: limits(model, snapshot),
            lanes: lanes.collect(),
            history: None,
        }
    }

    /// Whether no call is admitted.
    pub(in crate::cli) fn is_closed(&self) -> bool {
        self.exhausted || self.paused_seconds > 0.0
    }

    /// `open`, or the reason why it is closed, and for how long.
    pub(in crate::cli) fn gate(&self) -> String {
        if !self.is_closed() {
            return "open".to_owned();
        }
        let length =
            (!self.paused_until_resume).then(|| Duration::from_secs_f64(self.paused_seconds));
        gate(self.exhausted, length, self.pause_reason.as_deref().unwrap_or_default())
    }

    pub(in crate::cli) fn waiting(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.waiting).sum()
    }

    /// The fullest limit.
    pub(in crate::cli) fn fullest(&self) -> Option<&LimitView> {
        self.limits.iter().max_by(|a, b| a.part().total_cmp(&b.part()))
    }
}

impl LimitView {
    /// The used fraction of the limit, at most 1; 0 without a limit. More than the limit may be in use
    /// after it was lowered.
    pub(in crate::cli) fn part(&self) -> f64 {
        ratio(self.used, self.effective_limit).min(1.0)
    }
}

fn limits_by_name<S: Serializer>(limits: &[LimitView], to: S) -> Result<S::Ok, S::Error> {
    let by_name: BTreeMap<_, _> = limits.iter().map(|it| (it.limited.name(), it)).collect();
    to.collect_map(by_name)
}

fn lanes_by_name<S: Serializer>(lanes: &[LaneView], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(lanes.iter().map(|lane| (&lane.lane, lane)))
}

/// Every limit that is configured or in force: the four of the window, then concurrent calls.
fn limits(model: &ModelQuota, snapshot: &Snapshot) -> Vec<LimitView> {
    let seen = |limited| {
        let (limit, mut seen) = (model.limits.get(limited), *snapshot.for_limit(limited));
        seen.limit = limit_in_force(model, snapshot, limited).unwrap_or_default();
        LimitView {
            limited,
            limit,
            effective_limit: seen.limit,
            why: reasons(model, snapshot, limited, &seen),
            set: seen.set,
            stated: seen.stated,
            used: seen.used,
            reserved: seen.held,
            others: seen.others,
            headroom: seen.limit.saturating_sub(seen.used),
            plan: seen.plan.as_ref().map(PlanView::new),
        }
    };
    let all = Limited::ALL.into_iter().map(seen);
    all.filter(|it| it.limit.is_some() || it.effective_limit > 0).collect()
}

/// The limit in force, after the margin. The first call makes the plan in Redis; before it, the limit
/// follows from the configuration.
pub(in crate::cli) fn limit_in_force(
    model: &ModelQuota,
    snapshot: &Snapshot,
    limited: Limited,
) -> Option<u64> {
    let planned = Some(snapshot.for_limit(limited).limit).filter(|limit| *limit > 0);
    planned.or_else(|| {
        let configured = model.limits.get(limited)?;
        Some(match limited {
            Limited::Window(_) => model.limits.with_margin(configured),
            Limited::InFlight => configured,
        })
    })
}

/// Reasons why the limit in force differs from the configured one.
fn reasons(
    model: &ModelQuota,
    snapshot: &Snapshot,
    limited: Limited,
    seen: &DimensionSnapshot,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let at_once = limited == Limited::InFlight;
    if let Some(set) = seen.set {
        reasons.push(format!("set to {} by an operator", count(set)));
    }
    if !at_once && model.limits.margin < 1.0 {
        reasons.push(format!("margin {}", model.limits.margin));
    }
    if let Some(stated) = seen.stated {
        reasons.push(format!("the provider states {}", count(stated)));
    }
    if !at_once && snapshot.factor < 1.0 {
        reasons.push(format!("after refusals × {:.2}", snapshot.factor));
    }
    if at_once && let Some(cap) = snapshot.cap {
        reasons.push(format!("capped at {} after overloads", count(cap)));
    }
    if !at_once && seen.used > seen.limit {
        reasons.push(
            "more than the limit is in use: the bucket was full, or the limit was higher before"
                .to_owned(),
        );
    }
    if let Some(plan) = &seen.plan
        && plan.capacity.why != Why::Full
    {
        reasons.push(format!("at once {}: {}", count(plan.at_once()), plan.capacity.why));
    }
    if seen.others > 0 {
        reasons.push(format!("others on this account use {}", count(seen.others)));
    }
    reasons
}

/// The cause that holds documents back, in one sentence; `None` if there is none.
pub(in crate::cli) fn binds(
    model: &ModelQuota,
    snapshot: &Snapshot,
    held: &OperatorHolds,
) -> Option<String> {
    if snapshot.exhausted || !snapshot.pause.is_zero() {
        let until_resume = held.models.contains_key(&model.id);
        let length = (!until_resume).then_some(snapshot.pause);
        return Some(format!("the gate: {}", gate(snapshot.exhausted, length, &snapshot.reason)));
    }
    let spent =
        |day: &DayLimit| model.limits.day(*day).is_some_and(|limit| snapshot.day(*day) >= limit);
    if let Some(day) = DayLimit::ALL.into_iter().find(spent) {
        return Some(format!("{day}: spent; a new day begins in {}", duration(snapshot.day_left)));
    }
    let limits = limits(model, snapshot);
    let fullest = limits.iter().max_by(|a, b| a.part().total_cmp(&b.part()))?;
    let waiting: u64 = snapshot.lanes.iter().map(|lane| lane.waiting).sum();
    let is_full = fullest.part() >= BINDS || waiting > 0;
    let name = fullest.limited.name();
    is_full.then(|| {
        let bound = if fullest.used > fullest.effective_limit {
            let (used, limit) = (count(fullest.used), count(fullest.effective_limit));
            format!("{name}: used up, {used} are in use at a limit of {limit}")
        } else {
            let (part, free) = (percent(fullest.part()), count(fullest.headroom));
            format!("{name}: {part} used, {free} free")
        };
        if snapshot.factor >= MUCH_CUT {
            return bound;
        }
        let part = percent(snapshot.factor);
        format!("{bound}; refusals have cut the limit to {part}; 2.5 % of the limit come back every two minutes, more where headers show room, all at once by `tidegate limits clear {}`", model.id)
    })
}

/// The cost of the limit on output, if it counts, and the gain from a smaller one.
pub(in crate::cli) fn unused(model: &ModelQuota, snapshot: &Snapshot) -> Option<String> {
    output_cap_cost::output_cap_cost(model, snapshot).map(|unused| unused.sentence())
}

/// `paused for 1m 0s: reason`; without a length, until an operator resumes it.
fn gate(exhausted: bool, length: Option<Duration>, reason: &str) -> String {
    let state = if exhausted { "exhausted" } else { "paused" };
    let length = length.map_or_else(
        || "until it is resumed".to_owned(),
        |length| format!("for {}", duration(length)),
    );
    let colon = if reason.is_empty() { "" } else { ": " };
    format!("{state} {length}{colon}{reason}")
}
