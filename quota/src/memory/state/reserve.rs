//! What `reserve-7.lua` does.

use tidegate_types::Tenant;

use super::{Canary, Condition, IN_FLIGHT, PACE_SPEEDUP, State};
use crate::{
    amounts::Dimension,
    limits::ModelQuota,
    memory::{
        number::{duration, float, floats, floor, micros, whole},
        tuning,
    },
    store::{Ask, Binding, DayLimit, Decision},
    ticket::Ticket,
};

const STANDBY: f64 = 0.02;
const IDLE: f64 = 300e3;
const NEAR: f64 = 5e6;
const GONE: f64 = 60e6;
const SPACING: f64 = 0.92;
const MIN_WAIT: f64 = 1e3;
const CANARY_PATIENCE: f64 = 1e6;
const UNKNOWN_LATENCY: f64 = 1e6;
const SPREAD: f64 = 0.25;
const WALK: usize = 48;

impl State {
    pub(in crate::memory) fn reserve(
        &mut self,
        model: &ModelQuota,
        ask: &Ask,
        now: f64,
    ) -> Decision {
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
                if let Some(dimension) =
                    Dimension::ALL.get(index).filter(|_| amounts[index] > ceiling)
                {
                    return Decision::Never {
                        dimension: *dimension,
                        capacity: whole(ceiling.ceil()),
                    };
                }
                limits[index] = limits[index].max(amounts[index]);
                let (now, usually) = self.capacity(model, lane, index, limits[index], now);
                (capacity[index], usual[index]) =
                    (now.max(amounts[index]), usually.max(amounts[index]));
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
        let position = ticket.map_or_else(
            || self.join(lane, &ask.tenant, queued, now),
            |ticket| float(ticket.position),
        );
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
                let own = amount * window / (limit * PACE_SPEEDUP);
                let spread = if dimension == Dimension::Output {
                    self.latency.unwrap_or(0.0) * SPREAD
                } else {
                    0.0
                };
                let leave = tolerance + spread;
                let ahead =
                    self.pace[index] - now - if borrows { (leave - own).max(0.0) } else { leave };
                if ahead > wait {
                    (wait, binding, deficit) =
                        (ahead, Binding::Limit(dimension), ahead * limit / window);
                }
                idle &= self.pace[index] < now - IDLE;
                let foreign = self
                    .tuning
                    .as_ref()
                    .map_or(0.0, |tuning| tuning.foreign_use(index, limit, window, now));
                total_over[index] = (self.total[index] + foreign + amount - limit).max(0.0);
                if total_over[index] > 0.0 {
                    let fades = total_over[index] <= foreign;
                    fading = if fades {
                        fading.max(total_over[index] * window / limit)
                    } else {
                        f64::INFINITY
                    };
                }
                lane_over[index] =
                    (self.lanes[lane].used[index] + amount - capacity[index]).max(0.0);
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
            let each = self.latency.filter(|latency| *latency > 0.0).unwrap_or(UNKNOWN_LATENCY)
                / limits[IN_FLIGHT];
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
                let room = self
                    .room_at(lane, total_over, lane_over, &limits, now, window)
                    .min(now + fading);
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
            wait = wait.max(MIN_WAIT);
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

    fn closed(&self, now: f64, ticket: Option<Ticket>) -> Option<Decision> {
        let gate = self.gate.as_ref().filter(|gate| gate.until > now)?;
        let wait = duration(gate.until - now);
        Some(if gate.exhausted {
            Decision::Exhausted { wait, day: None }
        } else {
            Decision::Paused { wait, ticket }
        })
    }

    fn day_spent(&self, model: &ModelQuota, amounts: &[f64; 5], now: f64) -> Option<Decision> {
        let tuning = self.tuning.as_ref()?;
        let over = |used: f64, amount: f64, limit: Option<u64>| {
            limit.is_some_and(|limit| used + amount > float(limit))
        };
        let day = if over(tuning.day_requests, amounts[0], model.limits.requests_per_day) {
            DayLimit::Requests
        } else if over(tuning.day_tokens, amounts[3], model.limits.tokens_per_day) {
            DayLimit::Tokens
        } else {
            return None;
        };
        Some(Decision::Exhausted { wait: duration(tuning::day_left(model, now)), day: Some(day) })
    }

    /// What the lane may use now, and what it can count on while the others' use stays as it is.
    fn capacity(
        &self,
        model: &ModelQuota,
        lane: usize,
        index: usize,
        limit: f64,
        now: f64,
    ) -> (f64, f64) {
        let (mut kept, mut kept_usually) = (0.0, 0.0);
        for (other, ((_, share), state)) in model.lanes.iter().zip(&self.lanes).enumerate() {
            if other != lane && state.about(now) {
                let guaranteed = share.guaranteed * limit;
                let usually = guaranteed.min(state.used[index] + STANDBY * limit);
                kept += if state.backlogged(now) { guaranteed } else { usually };
                kept_usually += usually;
            }
        }
        let guaranteed =
            model.lanes.iter().nth(lane).map_or(0.0, |(_, share)| share.guaranteed) * limit;
        let most = ceiling(model, lane) * limit;
        (most.min(guaranteed.max(limit - kept)), most.min(guaranteed.max(limit - kept_usually)))
    }

    fn borrows_in_company(
        &self,
        model: &ModelQuota,
        lane: usize,
        limits: &[f64; 5],
        now: f64,
    ) -> bool {
        let guaranteed = model.lanes.iter().nth(lane).map_or(0.0, |(_, share)| share.guaranteed);
        let above = (0..4).any(|index| {
            limits[index] > 0.0 && self.lanes[lane].used[index] > guaranteed * limits[index]
        });
        above
            && self.lanes.iter().enumerate().any(|(other, state)| other != lane && state.about(now))
    }

    fn over_in_flight(&self, lane: usize, limits: &[f64; 5], capacity: &[f64; 5]) -> f64 {
        let own = self.lanes[lane].used[IN_FLIGHT] + 1.0 - floor(capacity[IN_FLIGHT]).max(1.0);
        own.max(self.total[IN_FLIGHT] + 1.0 - limits[IN_FLIGHT])
    }

    fn room_at(
        &self,
        lane: usize,
        mut total: [f64; 4],
        mut own: [f64; 4],
        limits: &[f64; 5],
        now: f64,
        window: f64,
    ) -> f64 {
        let gives: Vec<bool> = self
            .lanes
            .iter()
            .enumerate()
            .map(|(other, state)| other == lane || !state.backlogged(now))
            .collect();
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

    fn admit(&mut self, model: &ModelQuota, ask: &Ask, limits: &[f64; 5], window: f64, now: f64) {
        let amounts = floats(ask.amounts);
        self.enter(&ask.reservation, ask.lane, Condition::Reserved, amounts, now);
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, now, amounts[0], amounts[3]);
        }
        self.add_in_flight(ask.lane, 1.0);
        for index in 0..4 {
            if limits[index] > 0.0 {
                self.pace[index] = self.pace[index].max(now)
                    + amounts[index] * window / (limits[index] * PACE_SPEEDUP);
            }
        }
        if self.canary == Canary::Wanted {
            self.canary = Canary::Admitted(now);
        }
    }
}

fn ceiling(model: &ModelQuota, lane: usize) -> f64 {
    model.lanes.iter().nth(lane).map_or(1.0, |(_, share)| share.ceiling)
}
