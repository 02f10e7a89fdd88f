//! One model's quota and every rule about it, in plain arithmetic: what `lua/` does, without Redis.
//!
//! Times are microseconds as `f64`, because the scripts' are.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use crate::{
    amounts::{Amounts, Dimension},
    limits::ModelQuota,
    store::{Ask, Binding, Decision, Expectation, LaneSnapshot, Lesson, Pause, Settled, Settlement, Snapshot},
    ticket::Ticket,
};

const STANDBY: f64 = 0.03;
const BACKLOGGED: f64 = 2e6;
const FORGOTTEN: f64 = 300e6;
const IDLE: f64 = 300e3;
const SPACING: f64 = 0.85;
const SHORTEST_WAIT: f64 = 1e3;
const WALK: usize = 48;
const FADE: f64 = 0.99;
const FORGET: f64 = 0.1;
const ENOUGH: f64 = 3.0;

/// Everything that is known about one model.
#[derive(Debug)]
pub(super) struct State {
    epoch: u64,
    latest: f64,
    ledger: VecDeque<(f64, String)>,
    entries: HashMap<String, Entry>,
    total: [f64; 4],
    pace: [f64; 4],
    lanes: Vec<LaneState>,
    gate: Option<(f64, String)>,
    learned: HashMap<u64, [f64; 5]>,
}

#[derive(Debug, Clone)]
struct Entry {
    admitted: f64,
    lane: usize,
    settled: bool,
    amounts: [f64; 4],
}

#[derive(Debug, Clone, Default)]
struct LaneState {
    tail: f64,
    shift: f64,
    head: f64,
    refused_at: Option<f64>,
    seen_at: Option<f64>,
    in_flight: u64,
    yielded: Option<f64>,
    used: [f64; 4],
}

impl LaneState {
    fn move_queue(&mut self, by: f64) {
        self.shift += by;
        self.head += by;
    }

    fn about(&self, now: f64) -> bool {
        self.seen_at.is_some_and(|seen| now - seen < FORGOTTEN)
    }
}

impl State {
    pub(super) fn new(now: f64) -> Self {
        Self {
            epoch: whole(now).max(1),
            latest: now,
            ledger: VecDeque::new(),
            entries: HashMap::new(),
            total: [0.0; 4],
            pace: [now; 4],
            lanes: Vec::new(),
            gate: None,
            learned: HashMap::new(),
        }
    }

    /// Brings the state to `now` and returns the time to reckon with: a clock that steps back stands still instead.
    pub(super) fn advance(&mut self, model: &ModelQuota, now: f64) -> f64 {
        self.latest = self.latest.max(now);
        if self.lanes.len() < model.lanes.iter().len() {
            self.lanes.resize_with(model.lanes.iter().len(), LaneState::default);
        }
        let window = window(model);
        while self.ledger.front().is_some_and(|(admitted, _)| *admitted <= self.latest - window) {
            let Some((_, id)) = self.ledger.pop_front() else { break };
            if let Some(entry) = self.entries.remove(&id) {
                self.add(entry.lane, &entry.amounts, -1.0);
                if !entry.settled {
                    self.lanes[entry.lane].in_flight = self.lanes[entry.lane].in_flight.saturating_sub(1);
                }
            }
        }
        self.latest
    }

    pub(super) fn reserve(&mut self, model: &ModelQuota, ask: &Ask, now: f64) -> Decision {
        let (window, limits, amounts, lane) = (window(model), floats(model.limits.effective()), floats(ask.amounts), ask.lane);
        self.lanes[lane].seen_at = Some(now);
        if self.entries.contains_key(&ask.reservation) {
            return Decision::Granted;
        }
        let mut capacity = [0.0; 4];
        for dimension in Dimension::ALL {
            let index = dimension.index();
            if limits[index] > 0.0 {
                let ceiling = ceiling(model, lane) * limits[index];
                if amounts[index] > ceiling {
                    return Decision::Never { dimension, capacity: whole(ceiling.ceil()) };
                }
                capacity[index] = self.capacity(model, lane, index, limits[index], now).max(amounts[index]);
            }
        }
        let ticket = ask.ticket.filter(|ticket| ticket.epoch == self.epoch && ticket.position > 0);
        let closed = self.closed(now);
        if closed > 0.0 {
            return Decision::Paused { wait: duration(closed), ticket };
        }

        let shift = self.lanes[lane].shift;
        let position = ticket.map_or_else(|| (now - shift).max(self.lanes[lane].tail), |ticket| float(ticket.position));
        let due = position + shift;
        let pace_limit = now + self.tolerance(model, lane, &limits, now);
        let (mut wait, mut binding, mut deficit, mut turn) = (0.0, Binding::Turn, 0.0, 0.0_f64);
        let mut idle = self.lanes[lane].head < now - IDLE;
        let (mut total_over, mut lane_over) = ([0.0_f64; 4], [0.0_f64; 4]);
        for dimension in Dimension::ALL {
            let index = dimension.index();
            let (limit, amount) = (limits[index], amounts[index]);
            if limit > 0.0 && amount > 0.0 {
                turn = turn.max(amount * window / capacity[index]);
                let ahead = self.pace[index] - pace_limit;
                if ahead > wait {
                    (wait, binding, deficit) = (ahead, Binding::Limit(dimension), ahead * limit / window);
                }
                idle &= self.pace[index] < now - IDLE;
                total_over[index] = (self.total[index] + amount - limit).max(0.0);
                lane_over[index] = (self.lanes[lane].used[index] + amount - capacity[index]).max(0.0);
            }
        }
        let crowded = total_over.iter().chain(&lane_over).any(|over| *over > 0.0);
        if wait <= 0.0 && !crowded && (due <= now || idle) {
            if due > now {
                self.lanes[lane].shift = now - position;
            }
            self.admit(ask, &amounts, &limits, window, now);
            return Decision::Granted;
        }

        self.lanes[lane].refused_at = Some(now);
        if due > now {
            (wait, binding, deficit) = (due - now, Binding::Turn, 0.0);
        } else {
            if crowded {
                let room = self.room_at(lane, total_over, lane_over, &limits, now, window);
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
            self.lanes[lane].shift = shift.max(now + wait - position);
            self.lanes[lane].head = now + wait;
        }
        if ticket.is_none() {
            self.lanes[lane].tail = position + turn * self.lanes[lane].yielded.unwrap_or(1.0) * SPACING;
        }
        let ticket = Ticket { epoch: self.epoch, position: whole(position) };
        Decision::Wait { wait: duration(wait), binding, deficit: whole(deficit.ceil()), ticket }
    }

    fn admit(&mut self, ask: &Ask, amounts: &[f64; 4], limits: &[f64; 4], window: f64, now: f64) {
        self.ledger.push_back((now, ask.reservation.clone()));
        self.entries.insert(ask.reservation.clone(), Entry { admitted: now, lane: ask.lane, settled: false, amounts: *amounts });
        self.add(ask.lane, amounts, 1.0);
        for index in 0..4 {
            if limits[index] > 0.0 {
                self.pace[index] = self.pace[index].max(now) + amounts[index] * window / limits[index];
            }
        }
        self.lanes[ask.lane].in_flight += 1;
    }

    pub(super) fn settle(&mut self, model: &ModelQuota, settlement: &Settlement, now: f64) -> Settled {
        let (window, limits) = (window(model), floats(model.limits.effective()));
        let Some(entry) = self.entries.get(&settlement.reservation).cloned() else { return Settled::Unknown };
        if entry.settled {
            return Settled::Before;
        }
        let used = floats(settlement.used.unwrap_or_default());
        self.add(entry.lane, &entry.amounts, -1.0);
        self.add(entry.lane, &used, 1.0);
        let (mut reserved_turn, mut used_turn) = (0.0_f64, 0.0_f64);
        for index in 0..4 {
            if limits[index] > 0.0 {
                let rate = limits[index] / window;
                self.pace[index] += (used[index] - entry.amounts[index]) / rate;
                reserved_turn = reserved_turn.max(entry.amounts[index] / rate);
                used_turn = used_turn.max(used[index] / rate);
            }
        }
        let lane = &mut self.lanes[entry.lane];
        let yielded = lane.yielded.unwrap_or(1.0);
        lane.move_queue(used_turn - reserved_turn * yielded);
        if settlement.used.is_some() && reserved_turn > 0.0 {
            let seen = (used_turn / reserved_turn).clamp(0.1, 3.0);
            lane.yielded = Some(yielded + FORGET * (seen - yielded));
        }
        lane.in_flight = lane.in_flight.saturating_sub(1);
        if settlement.used.is_some() {
            self.entries.insert(settlement.reservation.clone(), Entry { settled: true, amounts: used, ..entry });
            if let Some(lesson) = settlement.lesson.filter(|lesson| lesson.estimated_input > 0) {
                self.learn(settlement.template, lesson, now - entry.admitted);
            }
        } else {
            self.entries.remove(&settlement.reservation);
            self.ledger.retain(|(_, id)| *id != settlement.reservation);
        }
        Settled::Done
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
        let before = self.closed(now);
        let length = micros(pause.length).min(micros(ttl));
        if length > before {
            self.gate = Some((now + length, pause.reason.clone()));
            self.shift_queues(length - before);
        }
        duration(length.max(before))
    }

    pub(super) fn resume(&mut self, now: f64) {
        let before = self.closed(now);
        self.gate = None;
        self.shift_queues(-before);
    }

    pub(super) fn snapshot(&self, model: &ModelQuota, now: f64) -> Snapshot {
        let pause = self.closed(now);
        Snapshot {
            pause: duration(pause),
            reason: self.gate.as_ref().filter(|_| pause > 0.0).map_or_else(String::new, |(_, reason)| reason.clone()),
            reservations: self.ledger.len() as u64,
            used: wholes(&self.total),
            ahead: self.pace.map(|pace| duration((pace - now).max(0.0))),
            lanes: model
                .lanes
                .iter()
                .zip(&self.lanes)
                .map(|((lane, _), state)| LaneSnapshot {
                    lane: lane.clone(),
                    in_flight: state.in_flight,
                    queue: duration((state.tail + state.shift - now).max(0.0)),
                    used: wholes(&state.used),
                })
                .collect(),
        }
    }

    fn closed(&self, now: f64) -> f64 {
        self.gate.as_ref().map_or(0.0, |(until, _)| (until - now).max(0.0))
    }

    fn shift_queues(&mut self, by: f64) {
        for lane in &mut self.lanes {
            lane.move_queue(by);
        }
    }

    fn add(&mut self, lane: usize, amounts: &[f64; 4], sign: f64) {
        for (index, amount) in amounts.iter().enumerate() {
            self.total[index] += sign * amount;
            self.lanes[lane].used[index] += sign * amount;
        }
    }

    fn capacity(&self, model: &ModelQuota, lane: usize, index: usize, limit: f64, now: f64) -> f64 {
        let mut kept = 0.0;
        for (other, ((_, share), state)) in model.lanes.iter().zip(&self.lanes).enumerate() {
            if other != lane && state.about(now) {
                let guaranteed = share.guaranteed * limit;
                let backlogged = state.refused_at.is_some_and(|refused| now - refused < BACKLOGGED);
                kept += if backlogged { guaranteed } else { guaranteed.min(state.used[index] + STANDBY * limit) };
            }
        }
        let guaranteed = model.lanes.iter().nth(lane).map_or(0.0, |(_, share)| share.guaranteed);
        (ceiling(model, lane) * limit).min((guaranteed * limit).max(limit - kept))
    }

    fn tolerance(&self, model: &ModelQuota, lane: usize, limits: &[f64; 4], now: f64) -> f64 {
        let guaranteed = model.lanes.iter().nth(lane).map_or(0.0, |(_, share)| share.guaranteed);
        let above = (0..4).any(|index| limits[index] > 0.0 && self.lanes[lane].used[index] > guaranteed * limits[index]);
        let company = self.lanes.iter().enumerate().any(|(other, state)| other != lane && state.about(now));
        let tolerance = micros(model.limits.burst);
        if above && company { tolerance / 2.0 } else { tolerance }
    }

    fn room_at(&self, lane: usize, mut total: [f64; 4], mut own: [f64; 4], limits: &[f64; 4], now: f64, window: f64) -> f64 {
        let mut last = now;
        for (_, id) in self.ledger.iter().take(WALK) {
            let Some(entry) = self.entries.get(id) else { continue };
            for index in 0..4 {
                total[index] -= entry.amounts[index];
                if entry.lane == lane {
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

fn window(model: &ModelQuota) -> f64 {
    micros(model.limits.window)
}

#[expect(clippy::cast_precision_loss, reason = "amounts and times lie far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, which is what is wanted")]
fn whole(number: f64) -> u64 {
    number as u64
}

fn floats(amounts: Amounts) -> [f64; 4] {
    amounts.0.map(float)
}

fn wholes(amounts: &[f64; 4]) -> Amounts {
    Amounts(amounts.map(|amount| whole(amount.ceil())))
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn duration(micros: f64) -> Duration {
    Duration::from_micros(whole(micros.max(0.0).ceil()))
}
