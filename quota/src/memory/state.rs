//! One model's quota and every rule about it, in plain arithmetic: what `lua/` does, without Redis.
//!
//! Times are microseconds as `f64`, because the scripts' are. The constants are those of `lua/`, by
//! the same names.

mod reserve;
mod settle;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use tidegate_types::Tenant;

use crate::{
    amounts::Dimension,
    limits::ModelQuota,
    store::{DimensionSnapshot, Expectation, LaneSnapshot, Override, Pause, Snapshot},
};

use super::{
    number::{duration, micros, whole, wholes},
    tuning::{self, Tuning},
};

const PACE_SPEEDUP: f64 = 1.04;
const BACKLOGGED: f64 = 2e6;
const FORGOTTEN: f64 = 300e6;
const UNKNOWN_YIELD: f64 = 0.5;
const ENOUGH: f64 = 3.0;
const IN_FLIGHT: usize = 4;

/// Everything that is known about one model.
#[derive(Debug)]
pub(super) struct State {
    epoch: u64,
    latest: f64,
    ledger: VecDeque<(f64, String)>,
    entries: HashMap<String, Entry>,
    leases: BTreeMap<String, f64>,
    total: [f64; 5],
    held: [f64; 4],
    pace: [f64; 4],
    yielded: [Option<f64>; 4],
    lanes: Vec<LaneState>,
    gate: Option<Gate>,
    canary: Canary,
    latency: Option<f64>,
    tuning: Option<Tuning>,
    learned: HashMap<u64, [f64; 5]>,
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
    amounts: [f64; 4],
}

#[derive(Debug, Clone, Default)]
struct LaneState {
    tail: f64,
    shift: f64,
    head: f64,
    backlogged_at: Option<f64>,
    seen_at: Option<f64>,
    waiting: u64,
    used: [f64; 5],
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
            total: [0.0; 5],
            held: [0.0; 4],
            pace: [now; 4],
            yielded: [None; 4],
            lanes: Vec::new(),
            gate: None,
            canary: Canary::None,
            latency: None,
            tuning: None,
            learned: HashMap::new(),
        }
    }

    /// Brings the state to `now` and returns the time to reckon with: a clock that steps back
    /// stands still instead.
    pub(super) fn advance(&mut self, model: &ModelQuota, now: f64) -> f64 {
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

    pub(super) fn set_limits(&mut self, model: &ModelQuota, new: &Override, now: f64) {
        let (before, _) = self.limits(model);
        let mut tuning = self.tuning.take().unwrap_or_else(|| Tuning::new(now));
        tuning.set(model, new);
        self.tuning = Some(tuning);
        let (after, _) = self.limits(model);
        for index in (0..4).filter(|index| before[*index] > 0.0) {
            let ratio = if after[index] > 0.0 { before[index] / after[index] } else { 0.0 };
            self.pace[index] = now + (self.pace[index] - now).max(0.0) * ratio;
        }
        let raised = before.iter().zip(after).filter(|(before, _)| **before > 0.0);
        let slower = raised
            .map(|(before, after)| if after > 0.0 { before / after } else { 0.0 })
            .fold(0.0, f64::max);
        if slower > 0.0 && slower < 1.0 {
            for lane in &mut self.lanes {
                let queue = (lane.tail + lane.shift - now).max(0.0);
                lane.move_queue(-queue * (1.0 - slower));
            }
        }
    }

    fn limits(&self, model: &ModelQuota) -> ([f64; 5], [f64; 5]) {
        match &self.tuning {
            Some(tuning) => tuning.limits(model),
            None => (tuning::configured(model), tuning::configured(model)),
        }
    }

    fn enter(&mut self, id: &str, lane: usize, condition: Condition, amounts: [f64; 4], now: f64) {
        self.ledger.push_back((now, id.to_owned()));
        self.entries.insert(id.to_owned(), Entry { admitted: now, lane, condition, amounts });
        self.add(lane, &amounts, 1.0, if condition == Condition::Reserved { 1.0 } else { 0.0 });
    }

    fn yield_of(&self, index: usize) -> f64 {
        let unknown = if index == Dimension::Output.index() { UNKNOWN_YIELD } else { 1.0 };
        self.yielded[index].unwrap_or(unknown)
    }

    pub(super) fn expectation(&self, template: u64) -> Option<Expectation> {
        let [input, estimated, output, weight, calls] = *self.learned.get(&template)?;
        (calls >= ENOUGH && estimated > 0.0 && weight > 0.0).then(|| Expectation {
            input_ratio: (input / estimated * 1e6).ceil() / 1e6,
            output: whole((output / weight).ceil()),
        })
    }

    pub(super) fn pause(&mut self, pause: &Pause, ttl: Duration, now: f64) -> Duration {
        self.close(pause, ttl, false, false, now)
    }

    fn close(
        &mut self,
        pause: &Pause,
        ttl: Duration,
        exhausted: bool,
        canary: bool,
        now: f64,
    ) -> Duration {
        let before = self.closed_for(now);
        let length = micros(pause.length).min(micros(ttl));
        if canary && length > 0.0 {
            self.canary = Canary::Wanted;
        }
        if length > before {
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
        let (limits, _) = self.limits(model);
        let some = |limit: f64| (limit > 0.0).then(|| whole(limit.ceil()));
        let tuning = self.tuning.clone().unwrap_or_else(|| Tuning::new(now));
        let dimension = |index: usize| DimensionSnapshot {
            limit: whole(limits[index]),
            used: whole(self.total[index].ceil()),
            held: self.held.get(index).map_or(0, |held| whole(held.ceil())),
            others: tuning::windowed(index).map_or(0, |index| {
                whole(
                    tuning
                        .foreign_use(index, limits[index], micros(model.limits.window), now)
                        .ceil(),
                )
            }),
            set: some(tuning.set[index]),
            stated: tuning.stated.get(index).copied().and_then(some),
            ahead: self
                .pace
                .get(index)
                .map_or(Duration::ZERO, |pace| duration((pace - now).max(0.0))),
        };
        let lane = |state: &LaneState| {
            let queue = (state.tail + state.shift - now).max(0.0);
            let [requests, input, output, combined, in_flight] = state.used;
            LaneSnapshot {
                lane: tidegate_types::Lane::default(),
                waiting: if queue > 0.0 { state.waiting } else { 0 },
                queue: duration(queue),
                next: duration((state.head - now).max(0.0)),
                in_flight: whole(in_flight),
                used: wholes(&[requests, input, output, combined]),
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
            dimensions: [0, 1, 2, 3].map(dimension),
            in_flight: dimension(IN_FLIGHT),
            lanes: model
                .lanes
                .iter()
                .zip(&self.lanes)
                .map(|((name, _), state)| LaneSnapshot { lane: name.clone(), ..lane(state) })
                .collect(),
        }
    }

    /// The dimension that is fullest, and so sets the rate at which turns come.
    fn fullest(&self, limits: &[f64; 5]) -> Option<usize> {
        let mut fullest: Option<(usize, f64)> = None;
        for index in (0..4).filter(|index| limits[*index] > 0.0) {
            let part = self.total[index] / limits[index];
            if fullest.is_none_or(|(_, most)| part > most) {
                fullest = Some((index, part));
            }
        }
        fullest.map(|(index, _)| index)
    }

    fn closed_for(&self, now: f64) -> f64 {
        self.gate.as_ref().map_or(0.0, |gate| (gate.until - now).max(0.0))
    }

    fn shift_queues(&mut self, by: f64) {
        for lane in &mut self.lanes {
            lane.move_queue(by);
        }
    }

    fn add(&mut self, lane: usize, amounts: &[f64; 4], sign: f64, held: f64) {
        for (index, amount) in amounts.iter().enumerate() {
            self.total[index] += sign * amount;
            self.lanes[lane].used[index] += sign * amount;
            self.held[index] += held * amount;
        }
    }

    fn add_in_flight(&mut self, lane: usize, by: f64) {
        self.total[IN_FLIGHT] = (self.total[IN_FLIGHT] + by).max(0.0);
        self.lanes[lane].used[IN_FLIGHT] = (self.lanes[lane].used[IN_FLIGHT] + by).max(0.0);
    }
}
