//! One model's quota and every rule about it, in plain arithmetic: what `lua/` does, without Redis.
//!
//! Times are microseconds as `f64`, because the scripts' are. The constants are those of `lua/`, by
//! the same names.

mod burst;
mod counted;
mod lanes;
mod obstacles;
mod reserve;
mod settle;
mod starving;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use tidegate_types::{Lane, Tenant};

use crate::{
    dimension::{Amounts, Dimension, Limited, PerDimension, PerLimit},
    lanes::Share,
    model::ModelQuota,
    number::{duration, micros, whole},
    snapshot::{DimensionSnapshot, LaneSnapshot, Snapshot},
    store::{Expectation, LimitChanges, Pause},
};

use self::counted::Counting;

use super::{
    burst::Burst,
    tuning::{self, InForce, Tuning},
};

const PACE_SPEEDUP: f64 = 1.04;
const BACKLOGGED: f64 = 2e6;
const FORGOTTEN: f64 = 300e6;
const UNKNOWN_YIELD: f64 = 0.5;
const ENOUGH: f64 = 3.0;
const CACHE_LIVES: f64 = 240e6;
const AT_FIRST: f64 = 10e6;
const MINUTES: f64 = 4.0;
const TOGETHER: f64 = 1e6;

/// The largest of the calls that are due and find no room.
#[derive(Debug, Clone, Copy)]
struct Starving {
    lane: usize,
    since: f64,
    asked_at: f64,
    /// The part of a limit.
    need: f64,
}

/// What a lane used in this process alone.
#[derive(Debug)]
pub(crate) struct Spent {
    pub(crate) lane: usize,
    pub(crate) used: Amounts,
    /// The calls' reservations.
    pub(crate) calls: Vec<String>,
}

/// Everything that is known about one model.
#[derive(Debug)]
pub(super) struct State {
    epoch: u64,
    latest: f64,
    ledger: VecDeque<(f64, String)>,
    entries: HashMap<String, Entry>,
    leases: BTreeMap<String, f64>,
    total: PerLimit<f64>,
    held: PerDimension<f64>,
    pace: PerDimension<f64>,
    yielded: PerDimension<Option<f64>>,
    lanes: Vec<LaneState>,
    gate: Option<Gate>,
    canary: Canary,
    latency: Option<f64>,
    tuning: Option<Tuning>,
    learned: HashMap<u64, Learned>,
    burst: Option<Burst>,
    starving: Option<Starving>,
    counting: Counting,
    /// Of the calls that were admitted since the limits were lowered last, those that were refused.
    refusals: f64,
}

/// Sums over the calls of a template, of which older ones count less, and the number of calls.
#[derive(Debug, Clone, Copy, Default)]
struct Learned {
    input: f64,
    estimated: f64,
    output: f64,
    weight: f64,
    calls: f64,
    /// Input that a cache gave and the provider did not count, and when that was last.
    cached: f64,
    cached_at: f64,
    /// The minute since which nothing of a cache has been seen.
    unknown_since: f64,
}

/// Why a gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// By an operator.
    Pause,
    /// The provider refused: one call goes first when the gate opens.
    Refusal,
    /// Nothing more before the day ends or the account is paid.
    Exhaustion,
}

#[derive(Debug, Clone)]
struct Gate {
    until: f64,
    exhausted: bool,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Canary {
    None,
    Wanted,
    Admitted(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Reserved,
    Settled,
    Outlived,
}

#[derive(Debug, Clone)]
struct Entry {
    admitted: f64,
    lane: usize,
    condition: Condition,
    amounts: PerDimension<f64>,
    /// The fleet has been told of it.
    handed_over: bool,
}

#[derive(Debug, Clone, Default)]
struct LaneState {
    tail: f64,
    shift: f64,
    head: f64,
    backlogged_at: Option<f64>,
    seen_at: Option<f64>,
    waiting: u64,
    used: PerLimit<f64>,
    tenants: HashMap<Tenant, f64>,
}

impl LaneState {
    fn move_queue(&mut self, by: f64) {
        self.shift += by;
        self.head += by;
    }

    fn about(&self, now: f64) -> bool {
        self.seen_at.is_some_and(|seen| now - seen < FORGOTTEN)
    }

    fn backlogged(&self, now: f64) -> bool {
        self.backlogged_at.is_some_and(|at| now - at < BACKLOGGED)
    }

    /// Moves the end of a tenant's queue behind one more call; `front` is the turn that is due now.
    fn move_tail(&mut self, tenant: &Tenant, tail: f64, front: f64) {
        self.tenants.retain(|_, tail| *tail > front);
        // Redis keeps whole microseconds.
        self.tenants.insert(tenant.clone(), tail.round_ties_even());
        self.tail = self.tail.max(tail);
    }
}

impl State {
    pub(super) fn new(now: f64) -> Self {
        Self {
            epoch: whole(now).max(1),
            latest: now,
            ledger: VecDeque::new(),
            entries: HashMap::new(),
            leases: BTreeMap::new(),
            total: PerLimit::default(),
            held: PerDimension::default(),
            pace: PerDimension::from_fn(|_| now),
            yielded: PerDimension::default(),
            lanes: Vec::new(),
            gate: None,
            canary: Canary::None,
            latency: None,
            tuning: None,
            learned: HashMap::new(),
            burst: None,
            starving: None,
            counting: Counting::default(),
            refusals: 0.0,
        }
    }

    /// Brings the state to `now` and returns the time to reckon with: a clock that steps back
    /// stands still instead, or time goes on from there if the step is longer than a window.
    pub(super) fn advance(&mut self, model: &ModelQuota, now: f64) -> f64 {
        if self.latest - now > micros(model.limits.window) {
            self.rebase(self.latest - now);
        }
        self.latest = self.latest.max(now);
        if self.lanes.len() < model.lanes.iter().len() {
            self.lanes.resize_with(model.lanes.iter().len(), LaneState::default);
        }
        if model.limits.requests_per_day.is_some() || model.limits.tokens_per_day.is_some() {
            self.tuning.get_or_insert_with(|| Tuning::new(now));
        }
        if let Some(tuning) = &mut self.tuning {
            tuning.advance(model, self.latest);
        }
        self.latest
    }

    /// Moves every time back: what was so long ago or so far ahead still is.
    fn rebase(&mut self, by: f64) {
        self.latest -= by;
        (self.starving, self.counting, self.refusals) = (None, Counting::default(), 0.0);
        self.ledger.iter_mut().for_each(|(admitted, _)| *admitted -= by);
        self.entries.values_mut().for_each(|entry| entry.admitted -= by);
        self.leases.values_mut().for_each(|end| *end -= by);
        self.pace = self.pace.map(|pace| pace - by);
        if let Some(gate) = &mut self.gate {
            gate.until -= by;
        }
        if let Canary::Admitted(at) = &mut self.canary {
            *at -= by;
        }
        for lane in &mut self.lanes {
            lane.shift -= by;
            if lane.head > 0.0 {
                lane.head -= by;
            }
            for at in [&mut lane.backlogged_at, &mut lane.seen_at].into_iter().flatten() {
                *at -= by;
            }
        }
    }

    /// Takes what has left the window out of the totals.
    pub(super) fn expire(&mut self, model: &ModelQuota, now: f64) {
        let (horizon, lease) = (now - micros(model.limits.window), micros(model.limits.lease()));
        let mut outlived = false;
        while self.ledger.front().is_some_and(|(admitted, _)| *admitted <= horizon) {
            let Some((_, id)) = self.ledger.pop_front() else { break };
            let Some(entry) = self.entries.get(&id).cloned() else { continue };
            if entry.condition == Condition::Reserved {
                self.add(entry.lane, &entry.amounts, -1.0, -1.0);
                self.leases.insert(id.clone(), entry.admitted + lease);
                self.entries.insert(id, Entry { condition: Condition::Outlived, ..entry });
                outlived = true;
            } else {
                self.add(entry.lane, &entry.amounts, -1.0, 0.0);
                self.entries.remove(&id);
            }
        }
        if outlived {
            self.end_leases(now);
        }
    }

    /// Gives back the places of calls whose lease has ended.
    pub(super) fn end_leases(&mut self, now: f64) {
        let ended: Vec<String> =
            self.leases.iter().filter(|(_, end)| **end <= now).map(|(id, _)| id.clone()).collect();
        for id in ended {
            self.leases.remove(&id);
            if let Some(entry) = self.entries.remove(&id) {
                self.add_in_flight(entry.lane, -1.0);
            }
        }
    }

    pub(super) fn renew(&mut self, model: &ModelQuota, reservation: &str, now: f64) {
        if let Some(end) = self.leases.get_mut(reservation) {
            *end = now + micros(model.limits.lease());
        }
    }

    pub(super) fn leave(&mut self, lane: usize, tenant: &Tenant, now: f64) {
        let lane = &mut self.lanes[lane];
        let front = now - lane.shift;
        lane.tenants.remove(tenant);
        let last = lane.tenants.values().copied().fold(0.0, f64::max);
        lane.tail = lane.tail.min(front.max(last));
        if last <= front {
            (lane.waiting, lane.backlogged_at) = (0, None);
            lane.head = lane.head.min(now);
        }
    }

    pub(super) fn set_limits(&mut self, model: &ModelQuota, changes: &LimitChanges, now: f64) {
        let before = self.in_force(model).limits;
        let mut tuning = self.tuning.take().unwrap_or_else(|| Tuning::new(now));
        tuning.set(model, changes);
        self.tuning = Some(tuning);
        let after = self.in_force(model).limits;
        let mut slower = 0.0_f64;
        for (limited, before) in before.iter().filter(|(_, before)| **before > 0.0) {
            let ratio = if after[limited] > 0.0 { before / after[limited] } else { 0.0 };
            slower = slower.max(ratio);
            if let Limited::Window(dimension) = limited {
                // Never farther than a window: by then what was used has left it.
                let ahead = (self.pace[dimension] - now).max(0.0);
                let most = ahead.max(micros(model.limits.window));
                self.pace[dimension] = now + (ahead * ratio).min(most);
            }
        }
        if slower > 0.0 && slower < 1.0 {
            for lane in &mut self.lanes {
                let queue = (lane.tail + lane.shift - now).max(0.0);
                lane.move_queue(-queue * (1.0 - slower));
            }
        }
    }

    fn in_force(&self, model: &ModelQuota) -> InForce {
        let untuned = || {
            let limits = tuning::configured(model);
            InForce { limits, whole: limits }
        };
        self.tuning.as_ref().map_or_else(untuned, |tuning| tuning.in_force(model))
    }

    fn enter(
        &mut self,
        id: &str,
        lane: usize,
        condition: Condition,
        amounts: PerDimension<f64>,
        now: f64,
    ) {
        self.ledger.push_back((now, id.to_owned()));
        self.entries.insert(
            id.to_owned(),
            Entry { admitted: now, lane, condition, amounts, handed_over: false },
        );
        self.add(lane, &amounts, 1.0, if condition == Condition::Reserved { 1.0 } else { 0.0 });
    }

    pub(super) fn spent(&self) -> Vec<Spent> {
        let each = |lane: usize| {
            let mine = |id: &&String| {
                self.entries.get(*id).is_some_and(|it| it.lane == lane && !it.handed_over)
            };
            let calls: Vec<String> =
                self.ledger.iter().map(|(_, id)| id).filter(mine).cloned().collect();
            let used = calls
                .iter()
                .filter_map(|id| self.entries.get(id))
                .fold(PerDimension::<f64>::default(), |sum, entry| {
                    PerDimension::from_fn(|it| sum[it] + entry.amounts[it])
                });
            Spent { lane, used: used.map(|amount| whole(amount.ceil())), calls }
        };
        (0..self.lanes.len()).map(each).filter(|spent| !spent.calls.is_empty()).collect()
    }

    pub(super) fn handed_over(&mut self, calls: &[String]) {
        for id in calls {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.handed_over = true;
            }
        }
    }

    fn yield_of(&self, dimension: Dimension) -> f64 {
        let unknown = if dimension == Dimension::Output { UNKNOWN_YIELD } else { 1.0 };
        self.yielded[dimension].unwrap_or(unknown)
    }

    pub(super) fn expectation(&self, template: u64, now: f64) -> Option<Expectation> {
        let Learned { input, estimated, output, weight, calls, cached, cached_at, .. } =
            *self.learned.get(&template)?;
        (calls >= ENOUGH && estimated > 0.0 && weight > 0.0).then(|| Expectation {
            input_ratio: (input / estimated * 1e6).ceil() / 1e6,
            output: whole((output / weight).ceil()),
            cached: if now - cached_at < CACHE_LIVES { whole(cached) } else { 0 },
        })
    }

    /// The longest wait that a caller is told before it is known what a cache gives.
    fn longest_unknowing(&self, template: u64, now: f64) -> f64 {
        let learned = self
            .learned
            .get(&template)
            .filter(|learned| learned.cached <= 0.0 || now - learned.cached_at < CACHE_LIVES);
        let Some(learned) = learned else { return AT_FIRST };
        let minutes = tuning::minutes_since(learned.unknown_since, now);
        if minutes < MINUTES { AT_FIRST * minutes.exp2() } else { f64::INFINITY }
    }

    pub(super) fn pause(&mut self, pause: &Pause, ttl: Duration, now: f64) -> Duration {
        self.close(pause, ttl, Closing::Pause, now)
    }

    fn close(&mut self, pause: &Pause, ttl: Duration, closing: Closing, now: f64) -> Duration {
        let before = self.closed_for(now);
        let length = micros(pause.length).min(micros(ttl));
        if closing == Closing::Refusal && length > 0.0 {
            self.canary = Canary::Wanted;
        }
        if length > before {
            let exhausted = closing == Closing::Exhaustion;
            self.gate = Some(Gate { until: now + length, exhausted, reason: pause.reason.clone() });
            self.shift_queues(length - before);
        }
        duration(length.max(before))
    }

    pub(super) fn resume(&mut self, now: f64) {
        let before = self.closed_for(now);
        (self.gate, self.canary) = (None, Canary::None);
        self.shift_queues(-before);
    }

    pub(super) fn snapshot(&self, model: &ModelQuota, now: f64) -> Snapshot {
        let pause = self.closed_for(now);
        let gate = self.gate.as_ref().filter(|_| pause > 0.0);
        let limits = self.in_force(model).limits;
        let some = |limit: f64| (limit > 0.0).then(|| whole(limit.ceil()));
        let tuning = self.tuning.clone().unwrap_or_else(|| Tuning::new(now));
        let (window, above) = (micros(model.limits.window), |amount: f64| whole(amount.ceil()));
        let said = |limited, number: f64| some(number).map(|it| model.limits.stated(limited, it));
        let limited = |limited: Limited| DimensionSnapshot {
            limit: whole(limits[limited]),
            used: above(self.total[limited]),
            set: said(limited, tuning.set[limited]),
            ..DimensionSnapshot::default()
        };
        let dimension = |dimension: Dimension| DimensionSnapshot {
            held: above(self.held[dimension]),
            others: above(tuning.external_use(dimension, limits.window[dimension], window, now)),
            stated: said(Limited::Window(dimension), tuning.stated[dimension]),
            ahead: duration(self.pace[dimension] - now),
            ..limited(Limited::Window(dimension))
        };
        let lane = |((name, share), state): (&(Lane, Share), &LaneState)| {
            let queue = (state.tail + state.shift - now).max(0.0);
            LaneSnapshot {
                lane: name.clone(),
                share: *share,
                elsewhere: false,
                waiting: if queue > 0.0 { state.waiting } else { 0 },
                queue: duration(queue),
                next: duration(state.head - now),
                in_flight: whole(state.used.in_flight),
                used: state.used.window.map(above),
            }
        };
        Snapshot {
            pause: duration(pause),
            exhausted: gate.is_some_and(|gate| gate.exhausted),
            reason: gate.map_or_else(String::new, |gate| gate.reason.clone()),
            reservations: self.ledger.len() as u64,
            latency: duration(self.latency.unwrap_or(0.0)),
            factor: (tuning.factor * 1e6).ceil() / 1e6,
            cap: Some(whole(tuning.cap)).filter(|cap| *cap > 0),
            day_requests: whole(tuning.day_requests),
            day_tokens: whole(tuning.day_tokens.ceil()),
            day_left: duration(tuning::day_left(model, now)),
            dimensions: PerDimension::from_fn(dimension),
            in_flight: limited(Limited::InFlight),
            counted: self.counting.known(),
            lanes: model.lanes.iter().zip(&self.lanes).map(lane).collect(),
        }
    }

    /// The dimension that is fullest, and so sets the rate at which turns come.
    fn fullest(&self, limits: &PerDimension<f64>) -> Option<Dimension> {
        let mut fullest: Option<(Dimension, f64)> = None;
        for (dimension, limit) in limits.iter().filter(|(_, limit)| **limit > 0.0) {
            let part = self.total.window[dimension] / limit;
            if fullest.is_none_or(|(_, most)| part > most) {
                fullest = Some((dimension, part));
            }
        }
        fullest.map(|(dimension, _)| dimension)
    }

    fn closed_for(&self, now: f64) -> f64 {
        self.gate.as_ref().map_or(0.0, |gate| (gate.until - now).max(0.0))
    }

    fn shift_queues(&mut self, by: f64) {
        for lane in &mut self.lanes {
            lane.move_queue(by);
        }
    }

    /// Adds amounts to the totals, or with sign -1 takes them out; `held` likewise to what is not
    /// settled.
    fn add(&mut self, lane: usize, amounts: &PerDimension<f64>, sign: f64, held: f64) {
        for (dimension, amount) in amounts.iter() {
            self.total.window[dimension] += sign * amount;
            self.lanes[lane].used.window[dimension] += sign * amount;
            self.held[dimension] += held * amount;
        }
    }

    fn add_in_flight(&mut self, lane: usize, by: f64) {
        for used in [&mut self.total, &mut self.lanes[lane].used] {
            used.in_flight = (used.in_flight + by).max(0.0);
        }
    }
}
