//! Estimates when a batch will be done, from its pace and from the quota.
//!
//! The pace so far misleads in two cases. A batch that starts with a full bucket is fast until the bucket
//! is spent, and a batch with long calls is slow until the first calls have returned. So the estimate
//! also compares the remaining calls with the limits in force:
//!
//! ```text
//! quota = gate + (calls left × use of a call − what is free now) / limit, in the dimension that
//!         takes longest, + the time of one call
//! ```
//!
//! Batches of one model share it by their lanes; a batch that ends sooner leaves its share to the others.
//! The estimate is the longer of the two. If callers wait and the batch is younger than a window, its
//! pace says little: then the estimate lies between the quota's time with the free capacity, if bursts
//! are possible, and without it.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime},
};

use futures::future::join_all;
use tidegate_quota::{Amounts, Limited, ModelQuota, PerDimension, Snapshot};
use tidegate_types::{Charge, Lane, ModelId, Spend};
use tidegate_workflows::contract::Progress;

use super::{
    diagnosis::{self, Class, Diagnosis, Waits},
    fleet::Fleet,
    format,
};

/// Maximum number of running batches among which those of the same model are looked for, and of those
/// that are then asked for their remaining work.
const LISTED: usize = 100;
const OTHERS: usize = 8;

/// Interval between reads of the quota while a batch is followed.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Number of call times until the pace so far is reliable; before that it is too slow.
const SETTLED: u32 = 4;

/// The remaining needs of a running batch, and the rates that the quota gives.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Estimate {
    /// The model, or the group of models with one quota.
    quota: String,
    lane: Lane,
    /// The guaranteed share of the lane in each limit.
    share: f64,
    /// Expected use of its calls that are not admitted yet.
    needs: PerDimension<f64>,
    calls: f64,
    /// The amount admitted in a second, for each limited dimension.
    rates: PerDimension<Option<f64>>,
    /// Calls admitted in a second by the limit on concurrent calls.
    calls_rate: Option<f64>,
    free: PerDimension<f64>,
    /// Whether calls may come in bursts as large as the free capacity.
    bursts: bool,
    /// Whether callers wait for their turn.
    waits: bool,
    /// The time until the gate opens.
    gate: Duration,
    /// The time from the last call's admission to its end.
    a_call: Duration,
    /// The time left by the pace so far; `is_young` is whether the pace is not yet reliable.
    by_pace: Option<Duration>,
    is_young: bool,
}

impl Estimate {
    /// Makes the estimate from a batch's diagnosis.
    pub(in crate::cli) fn from_diagnosis(look: &Diagnosis) -> Option<Self> {
        let (model, seen) = look.quota.as_ref()?;
        let progress = look.progress.as_ref().ok()?;
        Self::from_progress(&look.class, progress, (model, seen), SystemTime::now())
    }

    /// Makes the estimate from a running batch's progress. `None` before its first document is
    /// done, and if its model is unknown or not asked: a provider's batch API has no such quota.
    pub(in crate::cli) fn from_progress(
        class: &Class,
        progress: &Progress,
        (model, seen): (&ModelQuota, &Snapshot),
        now: SystemTime,
    ) -> Option<Self> {
        let totals = &progress.totals;
        let lane = seen.lanes.iter().find(|lane| lane.lane == class.lane);
        let waits = lane.is_some_and(|lane| lane.waiting > 0);
        if totals.worked() == 0 || (seen.used().requests == 0 && !waits) {
            return None;
        }
        let a_call = use_of_a_call(&totals.spend, &model.charge, seen)?;
        let left = format::ratio(progress.documents.saturating_sub(totals.ended()), 1);
        let a_document = match totals.spend.provider_calls {
            0 => 1.0,
            calls => format::ratio(calls, totals.worked()),
        };
        // Admitted calls are charged already.
        let admitted = lane.map_or(0, |lane| lane.in_flight).min(totals.in_flight);
        let admitted = format::ratio(admitted, 1);
        let calls = (left * a_document - admitted).max(0.0);
        let share = lane.map_or(tidegate_quota::Share::ALL, |lane| lane.share);
        let window = model.limits.window.as_secs_f64();
        let rates = seen.dimensions.map(|it| {
            let limit = format::ratio(it.limit.saturating_sub(it.others), 1);
            (limit > 0.0).then(|| limit * share.ceiling / window)
        });
        let at_once = format::ratio(seen.for_limit(Limited::InFlight).limit, 1) * share.ceiling;
        let latency = seen.latency.as_secs_f64();
        let began = format::parse_time(progress.started_at.as_deref());
        let age = began.and_then(|began| now.duration_since(began).ok()).unwrap_or_default();
        let eta = format::parse_time(progress.eta.as_deref());
        Some(Self {
            quota: quota_of(model).to_owned(),
            lane: class.lane.clone(),
            share: share.guaranteed.max(0.01),
            needs: a_call.map(|used| used * calls),
            calls,
            rates,
            calls_rate: (at_once > 0.0 && latency > 0.0).then(|| at_once / latency),
            free: seen.dimensions.map(|it| format::ratio(it.limit.saturating_sub(it.used), 1)),
            bursts: model.limits.burst.is_none(),
            waits,
            gate: seen.pause,
            a_call: seen.latency,
            by_pace: eta.map(|eta| eta.duration_since(now).unwrap_or_default()),
            is_young: age < model.limits.window.max(seen.latency * SETTLED),
        })
    }

    /// The time until the batch is done, with these other batches at the same time.
    pub(in crate::cli) fn time_left<'a>(
        &self,
        others: impl IntoIterator<Item = &'a Self>,
    ) -> Duration {
        let beside: Vec<&Self> =
            others.into_iter().filter(|other| other.quota == self.quota).collect();
        let longest = self.by_quota(&beside, 0.0);
        // At an even pace, a waiting caller gets the free capacity only over time.
        let is_even = self.waits && !self.bursts;
        let shortest = if is_even { longest } else { self.by_quota(&beside, 1.0) };
        match self.by_pace.map(|pace| self.gate + pace) {
            Some(pace) if self.waits && self.is_young => pace.clamp(shortest, longest),
            Some(pace) => pace.max(shortest),
            None => shortest,
        }
    }

    /// The time by the quota. `free` is the fraction of the free capacity that can be used at once.
    fn by_quota(&self, others: &[&Self], free: f64) -> Duration {
        let all = |of: &dyn Fn(&Self) -> f64| -> f64 {
            let weight = |it: &Self| {
                let beside = others.iter().filter(|other| other.lane == it.lane).count();
                let own = usize::from(self.lane == it.lane);
                it.share / format::ratio((beside + own) as u64, 1)
            };
            // Another batch has its share until it or this batch is done.
            let mine = of(self);
            let theirs = |it: &Self| of(it).min(mine * weight(it) / weight(self));
            mine + others.iter().copied().map(theirs).sum::<f64>()
        };
        let of_limits = self.rates.iter().filter_map(|(dimension, rate)| {
            let needs = all(&|it| it.needs[dimension]) - self.free[dimension] * free;
            Some((needs / (*rate)?).max(0.0))
        });
        let at_once = self.calls_rate.map(|rate| all(&|it| it.calls) / rate);
        let longest = of_limits.chain(at_once).fold(0.0, f64::max);
        self.gate + format::seconds(longest) + self.a_call
    }
}

fn quota_of(model: &ModelQuota) -> &str {
    model.group.as_deref().unwrap_or(model.id.as_str())
}

/// Use of one call. If the provider counts permitted but unused output, the window's figures
/// include it and the batch's own do not.
fn use_of_a_call(spend: &Spend, charge: &Charge, seen: &Snapshot) -> Option<PerDimension<f64>> {
    let settled = seen.dimensions.map(|it| it.used.saturating_sub(it.held));
    let of_window =
        (settled.requests > 0).then(|| settled.map(|used| format::ratio(used, settled.requests)));
    let own = (spend.provider_calls > 0).then(|| {
        let cached = if charge.cached_input { 0 } else { spend.cached_input_tokens };
        let input = spend.input_tokens.saturating_sub(cached);
        let a_call = |amount| format::ratio(amount, spend.provider_calls);
        let used = Amounts::call(input, spend.output_tokens).map(a_call);
        let combined = used.input + used.output * charge.output_weight;
        PerDimension { requests: 1.0, combined, ..used }
    });
    if charge.unused_returns { own.or(of_window) } else { of_window.or(own) }
}

/// The time until a diagnosed batch is done at the same time as the other batches, which are asked;
/// `None` if unknown.
pub(in crate::cli) async fn time_left(
    fleet: Fleet<'_>,
    id: &str,
    look: &Diagnosis,
) -> Option<Duration> {
    let progress = look.progress.as_ref().ok().filter(|progress| !progress.paused)?;
    if look.cause.stands {
        return None;
    }
    let Some(own) = Estimate::from_diagnosis(look) else {
        return format::parse_time(progress.eta.as_deref()).and_then(format::time_until);
    };
    let (model, seen) = look.quota.as_ref()?;
    let others = estimate_others(fleet, id, (model, seen), &mut Classes::new()).await;
    Some(own.time_left(&others))
}

/// The classes of running batches, by id; they do not change.
type Classes = HashMap<String, Class>;

/// Needs of the other running batches of this model. Reads the inputs of those that `classes` does not
/// have.
async fn estimate_others(
    Fleet { config, limiter, temporal }: Fleet<'_>,
    id: &str,
    quota: (&ModelQuota, &Snapshot),
    classes: &mut Classes,
) -> Vec<Estimate> {
    let mut running = temporal.running(LISTED).await.unwrap_or_default();
    running.retain(|other| other != id);
    classes.retain(|known, _| running.contains(known));
    let unknown = running.iter().filter(|other| !classes.contains_key(*other));
    let read = join_all(unknown.map(|other| async move {
        let input = temporal.input(other).await.ok()?;
        Some((other.clone(), diagnosis::read_class(&input, config)))
    }));
    let read = read.await;
    classes.extend(read.into_iter().flatten());
    let same = |model: &ModelId| {
        let found = limiter.models().find(|it| it.id == *model);
        found.is_some_and(|found| quota_of(found) == quota_of(quota.0))
    };
    let mut others = Vec::new();
    for (other, class) in of_models(&running, classes, same) {
        let progress = temporal.progress(other).await.ok().filter(|progress| !progress.paused);
        let now = SystemTime::now();
        others.extend(
            progress.and_then(|progress| Estimate::from_progress(class, &progress, quota, now)),
        );
    }
    others
}

/// At most [`OTHERS`] of the running batches, whose first model is one of the wanted.
fn of_models<'a>(
    running: &'a [String],
    classes: &'a Classes,
    is_wanted: impl Fn(&ModelId) -> bool,
) -> Vec<(&'a str, &'a Class)> {
    let of_class = |id: &'a String| Some((id.as_str(), classes.get(id)?));
    let wanted = running.iter().filter_map(of_class);
    let wanted = wanted.filter(|(_, class)| class.models.first().is_some_and(&is_wanted));
    wanted.take(OTHERS).collect()
}

/// Estimates the end of the batch that is followed.
pub(in crate::cli) struct EtaTracker<'a> {
    fleet: Fleet<'a>,
    id: &'a str,
    class: Option<Class>,
    looked: Option<Instant>,
    quota: Option<(ModelQuota, Snapshot)>,
    /// The cause, if an operator has paused the model until it is resumed.
    held: Option<String>,
    /// Use of the documents under way.
    under_way: Spend,
    /// The classes of the other running batches.
    classes: Classes,
    others: Vec<Estimate>,
}

impl<'a> EtaTracker<'a> {
    pub(in crate::cli) fn new(fleet: Fleet<'a>, id: &'a str) -> Self {
        Self {
            fleet,
            id,
            class: None,
            looked: None,
            quota: None,
            held: None,
            under_way: Spend::default(),
            classes: Classes::new(),
            others: Vec::new(),
        }
    }

    /// The time until it is done, from this progress; the quota is read from time to time. `None`
    /// if the pace so far is as good.
    pub(in crate::cli) async fn time_left(&mut self, progress: &Progress) -> Option<Duration> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            self.refresh().await;
            self.looked = Some(Instant::now());
        }
        let (model, seen) = self.quota.as_ref()?;
        let own = Estimate::from_progress(
            self.class.as_ref()?,
            progress,
            (model, seen),
            SystemTime::now(),
        )?;
        Some(own.time_left(&self.others))
    }

    /// The time until the model's gate opens, if it is closed.
    pub(in crate::cli) fn gate_closed(&self) -> Option<Duration> {
        let ((_, seen), looked) = (self.quota.as_ref()?, self.looked?);
        Some(seen.pause.saturating_sub(looked.elapsed())).filter(|left| !left.is_zero())
    }

    /// The cause, if an operator has paused the model until it is resumed.
    pub(in crate::cli) fn held(&self) -> Option<&str> {
        self.held.as_deref()
    }

    /// Use of the documents under way; the batch adds it when they end.
    pub(in crate::cli) fn under_way(&self) -> Spend {
        self.under_way
    }

    async fn refresh(&mut self) {
        let Fleet { config, limiter, temporal } = self.fleet;
        if let Ok(pending) = temporal.pending(self.id).await {
            self.under_way = Waits::count(&pending, None).spent;
        }
        if self.class.is_none() {
            let input = temporal.input(self.id).await.ok();
            self.class = input.map(|input| diagnosis::read_class(&input, config));
        }
        let Some(class) = &self.class else { return };
        self.quota = diagnosis::decisive_quota(limiter, class).await.0;
        let holds = limiter.operator_holds().await.unwrap_or_default();
        let held = |(model, seen): &(_, _)| diagnosis::held(model, seen, &holds);
        self.held = self.quota.as_ref().and_then(held);
        if let Some((model, seen)) = &self.quota {
            let quota = (model, seen);
            self.others = estimate_others(self.fleet, self.id, quota, &mut self.classes).await;
        }
    }
}

#[cfg(test)]
mod tests;
