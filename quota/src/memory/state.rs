//! One model's quota and every rule about it, in plain arithmetic: what `lua/` does, without Redis.
//!
//! Times are microseconds as `f64`, because the scripts' are.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use tidegate_types::Tenant;

use crate::{
    amounts::{Amounts, Dimension},
    limits::ModelQuota,
    store::{
        Ask, Binding, DayLimit, Decision, DimensionSnapshot, Expectation, LaneSnapshot, Lesson, Override, Pause, Settled,
        Settlement, Snapshot, Verdict,
    },
    ticket::Ticket,
};

use super::{
    number::{duration, float, floats, floor, micros, whole, wholes},
    tuning::{self, Tuning},
};

const STANDBY: f64 = 0.02;
const HASTE: f64 = 1.04;
const BACKLOGGED: f64 = 2e6;
const FORGOTTEN: f64 = 300e6;
const IDLE: f64 = 300e3;
const NEAR: f64 = 5e6;
const GONE: f64 = 60e6;
const SPACING: f64 = 0.92;
const SHORTEST_WAIT: f64 = 1e3;
const CANARY_PATIENCE: f64 = 1e6;
const UNKNOWN_LATENCY: f64 = 1e6;
const SPREAD: f64 = 0.25;
const UNKNOWN_YIELD: f64 = 0.5;
const WALK: usize = 48;
const FADE: f64 = 0.99;
const FORGET: f64 = 0.03;
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

    /// Brings the state to `now` and returns the time to reckon with: a clock that steps back stands still instead.
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
        let ended: Vec<String> = self.leases.iter().filter(|(_, end)| **end <= now).map(|(id, _)| id.clone()).collect();
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
        let slower = raised.map(|(before, after)| if after > 0.0 { before / after } else { 0.0 }).fold(0.0, f64::max);
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

    pub(super) fn reserve(&mut self, model: &ModelQuota, ask: &Ask, now: f64) -> Decision {
        let (window, lane) = (micros(model.limits.window), ask.lane);
        let [requests, input, output, combined] = floats(ask.amounts);
        let amounts = [requests, input, output, combined, 1.0];
        self.lanes[lane].seen_at = Some(now);
        if self.entries.contains_key(&ask.reservation) {
            return Decision::Granted;
        }
        let (mut limits, whole_limits) = self.limits(model);
        let (mut capacity, mut usual) = ([0.0; 5], [0.0; 5]);
        for index in 0..5 {
            if limits[index] > 0.0 {
                let ceiling = ceiling(model, lane) * whole_limits[index];
                if let Some(dimension) = Dimension::ALL.get(index).filter(|_| amounts[index] > ceiling) {
                    return Decision::Never { dimension: *dimension, capacity: whole(ceiling.ceil()) };
                }
                limits[index] = limits[index].max(amounts[index]);
                let (now, usually) = self.capacity(model, lane, index, limits[index], now);
                (capacity[index], usual[index]) = (now.max(amounts[index]), usually.max(amounts[index]));
            }
        }
        let ticket = ask.ticket.filter(|ticket| ticket.epoch == self.epoch && ticket.position > 0);
        if let Some(closed) = self.closed(now, ticket) {
            return closed;
        }
        if let Some(spent) = self.day_spent(model, &amounts, now) {
            return spent;
        }

        let shift = self.lanes[lane].shift;
        let queued = self.lanes[lane].tail > now - shift;
        let position = ticket.map_or_else(|| self.join(lane, &ask.tenant, queued, now), |ticket| float(ticket.position));
        let due = position + shift;
        let borrows = self.borrows_in_company(model, lane, &limits, now);
        let (mut wait, mut binding, mut deficit, mut turn) = (0.0, Binding::Turn, 0.0, 0.0);
        let mut idle = self.lanes[lane].head < now - IDLE;
        let tolerance = micros(model.limits.burst);
        let near = ticket.is_some() && self.lanes[lane].head <= now && due - now < NEAR;
        let (mut total_over, mut lane_over, mut fading) = ([0.0_f64; 4], [0.0_f64; 4], 0.0_f64);
        for dimension in Dimension::ALL {
            let index = dimension.index();
            let (limit, amount) = (limits[index], amounts[index]);
            if limit > 0.0 && amount > 0.0 {
                let own = amount * window / (limit * HASTE);
                let spread = if dimension == Dimension::Output { self.latency.unwrap_or(0.0) * SPREAD } else { 0.0 };
                let leave = tolerance + spread;
                let ahead = self.pace[index] - now - if borrows { (leave - own).max(0.0) } else { leave };
                if ahead > wait {
                    (wait, binding, deficit) = (ahead, Binding::Limit(dimension), ahead * limit / window);
                }
                idle &= self.pace[index] < now - IDLE;
                let foreign = self.tuning.as_ref().map_or(0.0, |tuning| tuning.foreign_use(index, limit, window, now));
                total_over[index] = (self.total[index] + foreign + amount - limit).max(0.0);
                if total_over[index] > 0.0 {
                    let fades = total_over[index] <= foreign;
                    fading = if fades { fading.max(total_over[index] * window / limit) } else { f64::INFINITY };
                }
                lane_over[index] = (self.lanes[lane].used[index] + amount - capacity[index]).max(0.0);
                if lane_over[index] > 0.0 {
                    fading = f64::INFINITY;
                }
            }
        }
        let crowded = total_over.iter().chain(&lane_over).any(|over| *over > 0.0);
        if let Some(slowest) = self.fullest(&limits) {
            turn = amounts[slowest] * window / usual[slowest] * self.yield_of(slowest);
        }
        if limits[IN_FLIGHT] > 0.0 {
            if self.over_in_flight(lane, &limits, &capacity) > 0.0 {
                self.end_leases(now);
            }
            let each = self.latency.filter(|latency| *latency > 0.0).unwrap_or(UNKNOWN_LATENCY) / limits[IN_FLIGHT];
            let over = self.over_in_flight(lane, &limits, &capacity);
            if over > 0.0 && over * each > wait {
                (wait, binding, deficit) = (over * each, Binding::InFlight, over);
            }
            turn = turn.max(each);
        }
        if let Canary::Admitted(at) = self.canary {
            let patience = at + CANARY_PATIENCE - now;
            if patience <= 0.0 {
                self.canary = Canary::None;
            } else if patience > wait {
                (wait, binding, deficit) = (patience, Binding::Canary, 0.0);
            }
        }
        if wait <= 0.0 && !crowded && (due <= now || idle || near) {
            let own = &mut self.lanes[lane];
            if ticket.is_some() {
                own.waiting = own.waiting.saturating_sub(1);
                if own.waiting == 0 {
                    own.backlogged_at = None;
                }
            }
            if due > now {
                own.shift = now - position;
            } else if queued && ticket.is_none() {
                own.move_tail(&ask.tenant, position + turn * SPACING, now - shift);
            }
            self.admit(model, ask, &limits, window, now);
            return Decision::Granted;
        }

        let mut shift = shift;
        if due > now {
            (wait, binding, deficit) = (due - now, Binding::Turn, 0.0);
        } else {
            if crowded {
                self.lanes[lane].backlogged_at = Some(now);
                let room = self.room_at(lane, total_over, lane_over, &limits, now, window).min(now + fading);
                if room - now > wait {
                    wait = room - now;
                    for dimension in Dimension::ALL {
                        let over = total_over[dimension.index()].max(lane_over[dimension.index()]);
                        if over > 0.0 {
                            (binding, deficit) = (Binding::Limit(dimension), over);
                        }
                    }
                }
            }
            wait = wait.max(SHORTEST_WAIT);
            shift = shift.max(now + wait - position);
            self.lanes[lane].shift = shift;
            self.lanes[lane].head = now + wait;
        }
        if ticket.is_none() {
            self.lanes[lane].move_tail(&ask.tenant, position + turn * SPACING, now - shift);
            self.lanes[lane].waiting += 1;
        }
        let ticket = Ticket { epoch: self.epoch, position: whole(position) };
        Decision::Wait { wait: duration(wait), binding, deficit: whole(deficit.ceil()), ticket }
    }

    /// Where a newcomer stands: behind its tenant's others, if there is a queue at all.
    fn join(&mut self, lane: usize, tenant: &Tenant, queued: bool, now: f64) -> f64 {
        let lane = &mut self.lanes[lane];
        let front = now - lane.shift;
        if queued {
            return lane.tenants.get(tenant).map_or(front, |tail| front.max(*tail));
        }
        if lane.tail < front - GONE {
            lane.waiting = 0;
        }
        front
    }

    fn over_in_flight(&self, lane: usize, limits: &[f64; 5], capacity: &[f64; 5]) -> f64 {
        let own = self.lanes[lane].used[IN_FLIGHT] + 1.0 - floor(capacity[IN_FLIGHT]).max(1.0);
        own.max(self.total[IN_FLIGHT] + 1.0 - limits[IN_FLIGHT])
    }

    fn admit(&mut self, model: &ModelQuota, ask: &Ask, limits: &[f64; 5], window: f64, now: f64) {
        let amounts = floats(ask.amounts);
        self.enter(&ask.reservation, ask.lane, Condition::Reserved, amounts, now);
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, now, amounts[0], amounts[3]);
        }
        self.add_in_flight(ask.lane, 1.0);
        for index in 0..4 {
            if limits[index] > 0.0 {
                self.pace[index] = self.pace[index].max(now) + amounts[index] * window / (limits[index] * HASTE);
            }
        }
        if self.canary == Canary::Wanted {
            self.canary = Canary::Admitted(now);
        }
    }

    fn enter(&mut self, id: &str, lane: usize, condition: Condition, amounts: [f64; 4], now: f64) {
        self.ledger.push_back((now, id.to_owned()));
        self.entries.insert(id.to_owned(), Entry { admitted: now, lane, condition, amounts });
        self.add(lane, &amounts, 1.0, if condition == Condition::Reserved { 1.0 } else { 0.0 });
    }

    pub(super) fn settle(&mut self, model: &ModelQuota, settlement: &Settlement, ttl: Duration, now: f64) -> Settled {
        if matches!(settlement.verdict, Verdict::Refused | Verdict::Overloaded) && self.tuning.is_none() {
            self.tuning = Some(Tuning::new(now));
        }
        let outcome = match self.entries.get(&settlement.reservation).cloned() {
            None => Settled::Unknown,
            Some(Entry { condition: Condition::Settled, .. }) => Settled::Before,
            Some(entry) => {
                self.end(model, settlement, &entry, now);
                Settled::Done
            }
        };
        if settlement.verdict == Verdict::Refused
            && let Some(tuning) = &mut self.tuning
        {
            tuning.lower(now);
        }
        let [requests, input, output, combined, _] = self.total;
        tuning::observe(&mut self.tuning, model, &settlement.meter, &[requests, input, output, combined], now);
        if let Some(pause) = &settlement.pause {
            let exhausted = settlement.verdict == Verdict::Exhausted;
            self.close(pause, settlement.longest_pause(ttl), exhausted, settlement.verdict == Verdict::Refused, now);
        }
        outcome
    }

    fn end(&mut self, model: &ModelQuota, settlement: &Settlement, entry: &Entry, now: f64) {
        let id = &settlement.reservation;
        let used = floats(settlement.used.unwrap_or_default());
        if settlement.verdict == Verdict::Overloaded {
            let in_flight = self.total[IN_FLIGHT];
            if let Some(tuning) = &mut self.tuning {
                tuning.cut(in_flight, now);
            }
        }
        if entry.condition == Condition::Reserved {
            let longer = self.move_pace(model, &used, &entry.amounts);
            self.lanes[entry.lane].move_queue(longer);
            self.add(entry.lane, &entry.amounts, -1.0, -1.0);
            if settlement.used.is_none() {
                self.entries.remove(id);
                self.ledger.retain(|(_, other)| other != id);
            } else {
                if settlement.verdict == Verdict::None {
                    self.learn_yield(model, &used, &entry.amounts);
                }
                self.add(entry.lane, &used, 1.0, 0.0);
                self.entries.insert(id.clone(), Entry { condition: Condition::Settled, amounts: used, ..entry.clone() });
            }
        } else {
            self.leases.remove(id);
            self.entries.remove(id);
            if model.charge.unused_returns && settlement.used.is_some() {
                let late = [0.0, 0.0, used[2], (used[3] - used[1]).max(0.0)];
                self.move_pace(model, &late, &[0.0; 4]);
                self.enter(id, entry.lane, Condition::Settled, late, now);
            }
        }
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, entry.admitted, used[0] - entry.amounts[0], used[3] - entry.amounts[3]);
        }
        self.add_in_flight(entry.lane, -1.0);
        if settlement.used.is_some() && settlement.verdict == Verdict::None {
            let latency = now - entry.admitted;
            self.latency = Some(match self.latency.filter(|known| *known > 0.0) {
                Some(known) => known + FORGET * (latency - known),
                None => latency,
            });
            if let Some(tuning) = &mut self.tuning {
                tuning.raise();
            }
            if let Some(lesson) = settlement.lesson.filter(|lesson| lesson.estimated_input > 0) {
                self.learn(settlement.template, lesson, latency);
            }
        }
        if self.canary == Canary::Admitted(entry.admitted) && settlement.verdict != Verdict::Refused {
            self.canary = Canary::None;
        }
    }

    pub(super) fn charge(&mut self, model: &ModelQuota, name: &str, lane: usize, used: Amounts, now: f64) {
        if self.entries.contains_key(name) {
            return;
        }
        let used = floats(used);
        self.move_pace(model, &used, &[0.0; 4]);
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, now, used[0], used[3]);
        }
        self.enter(name, lane, Condition::Settled, used, now);
    }

    /// Moves the pace clocks by what was used beyond what was reserved, and says by how much the turns behind are to move.
    fn move_pace(&mut self, model: &ModelQuota, used: &[f64; 4], reserved: &[f64; 4]) -> f64 {
        let (limits, _) = self.limits(model);
        let (mut longer, slowest) = (0.0, self.fullest(&limits));
        for index in 0..4 {
            if limits[index] > 0.0 {
                let rate = limits[index] / micros(model.limits.window);
                self.pace[index] += (used[index] - reserved[index]) / (rate * HASTE);
                if slowest == Some(index) {
                    longer = (used[index] - reserved[index] * self.yield_of(index)) / rate;
                }
            }
        }
        longer
    }

    fn yield_of(&self, index: usize) -> f64 {
        let unknown = if index == Dimension::Output.index() { UNKNOWN_YIELD } else { 1.0 };
        self.yielded[index].unwrap_or(unknown)
    }

    fn learn_yield(&mut self, model: &ModelQuota, used: &[f64; 4], reserved: &[f64; 4]) {
        let (limits, _) = self.limits(model);
        for index in 0..4 {
            if limits[index] > 0.0 && reserved[index] > 0.0 {
                let yielded = self.yield_of(index);
                let seen = (used[index] / reserved[index]).clamp(0.1, 3.0);
                self.yielded[index] = Some(yielded + FORGET * (seen - yielded));
            }
        }
    }

    fn learn(&mut self, template: u64, lesson: Lesson, latency: f64) {
        let learned = self.learned.entry(template).or_default();
        let weight = latency.max(1.0);
        let seen = [float(lesson.input), float(lesson.estimated_input), float(lesson.output) * weight, weight];
        for (sum, value) in learned.iter_mut().zip(seen) {
            *sum = *sum * FADE + value;
        }
        learned[4] += 1.0;
    }

    pub(super) fn expectation(&self, template: u64) -> Option<Expectation> {
        let [input, estimated, output, weight, calls] = *self.learned.get(&template)?;
        (calls >= ENOUGH && estimated > 0.0 && weight > 0.0)
            .then(|| Expectation { input_ratio: (input / estimated * 1e6).ceil() / 1e6, output: whole((output / weight).ceil()) })
    }

    pub(super) fn pause(&mut self, pause: &Pause, ttl: Duration, now: f64) -> Duration {
        self.close(pause, ttl, false, false, now)
    }

    fn close(&mut self, pause: &Pause, ttl: Duration, exhausted: bool, canary: bool, now: f64) -> Duration {
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
            others: tuning::windowed(index)
                .map_or(0, |index| whole(tuning.foreign_use(index, limits[index], micros(model.limits.window), now).ceil())),
            set: some(tuning.set[index]),
            stated: tuning.stated.get(index).copied().and_then(some),
            ahead: self.pace.get(index).map_or(Duration::ZERO, |pace| duration((pace - now).max(0.0))),
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

    fn closed(&self, now: f64, ticket: Option<Ticket>) -> Option<Decision> {
        let gate = self.gate.as_ref().filter(|gate| gate.until > now)?;
        let wait = duration(gate.until - now);
        Some(if gate.exhausted { Decision::Exhausted { wait, day: None } } else { Decision::Paused { wait, ticket } })
    }

    fn day_spent(&self, model: &ModelQuota, amounts: &[f64; 5], now: f64) -> Option<Decision> {
        let tuning = self.tuning.as_ref()?;
        let over = |used: f64, amount: f64, limit: Option<u64>| limit.is_some_and(|limit| used + amount > float(limit));
        let day = if over(tuning.day_requests, amounts[0], model.limits.requests_per_day) {
            DayLimit::Requests
        } else if over(tuning.day_tokens, amounts[3], model.limits.tokens_per_day) {
            DayLimit::Tokens
        } else {
            return None;
        };
        Some(Decision::Exhausted { wait: duration(tuning::day_left(model, now)), day: Some(day) })
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

    /// What the lane may use now, and what it can count on while the others' use stays as it is.
    fn capacity(&self, model: &ModelQuota, lane: usize, index: usize, limit: f64, now: f64) -> (f64, f64) {
        let (mut kept, mut kept_usually) = (0.0, 0.0);
        for (other, ((_, share), state)) in model.lanes.iter().zip(&self.lanes).enumerate() {
            if other != lane && state.about(now) {
                let guaranteed = share.guaranteed * limit;
                let usually = guaranteed.min(state.used[index] + STANDBY * limit);
                kept += if state.backlogged(now) { guaranteed } else { usually };
                kept_usually += usually;
            }
        }
        let guaranteed = model.lanes.iter().nth(lane).map_or(0.0, |(_, share)| share.guaranteed) * limit;
        let most = ceiling(model, lane) * limit;
        (most.min(guaranteed.max(limit - kept)), most.min(guaranteed.max(limit - kept_usually)))
    }

    fn borrows_in_company(&self, model: &ModelQuota, lane: usize, limits: &[f64; 5], now: f64) -> bool {
        let guaranteed = model.lanes.iter().nth(lane).map_or(0.0, |(_, share)| share.guaranteed);
        let above = (0..4).any(|index| limits[index] > 0.0 && self.lanes[lane].used[index] > guaranteed * limits[index]);
        above && self.lanes.iter().enumerate().any(|(other, state)| other != lane && state.about(now))
    }

    fn room_at(&self, lane: usize, mut total: [f64; 4], mut own: [f64; 4], limits: &[f64; 5], now: f64, window: f64) -> f64 {
        let gives: Vec<bool> =
            self.lanes.iter().enumerate().map(|(other, state)| other == lane || !state.backlogged(now)).collect();
        let mut last = now;
        for (_, id) in self.ledger.iter().take(WALK) {
            let Some(entry) = self.entries.get(id) else { continue };
            for index in 0..4 {
                total[index] -= entry.amounts[index];
                if gives[entry.lane] {
                    own[index] -= entry.amounts[index];
                }
            }
            last = now.max(entry.admitted + window);
            if total.iter().chain(&own).all(|over| *over <= 0.0) {
                return last;
            }
        }
        let rest = (0..4)
            .filter(|index| limits[*index] > 0.0)
            .map(|index| total[index].max(own[index]) * window / limits[index])
            .fold(0.0, f64::max);
        (last + rest).min(now + window)
    }
}

fn ceiling(model: &ModelQuota, lane: usize) -> f64 {
    model.lanes.iter().nth(lane).map_or(1.0, |(_, share)| share.ceiling)
}
