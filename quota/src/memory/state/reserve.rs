//! What `reserve-8.lua` does.

use tidegate_types::Tenant;

use super::{Canary, Condition, State, lanes::Capacity};
use crate::{
    dimension::{DayLimit, Dimension, Limited, PerDimension, PerLimit},
    memory::tuning::{self, InForce},
    model::ModelQuota,
    number::{duration, float, micros, whole},
    request::Ticket,
    store::{Ask, Binding, Decision},
};

const IDLE: f64 = 300e3;
const NEAR: f64 = 5e6;
const GONE: f64 = 60e6;
const SPACING: f64 = 0.92;
const MIN_WAIT: f64 = 1e3;
const CANARY_PATIENCE: f64 = 1e6;
const UNKNOWN_LATENCY: f64 = 1e6;
const SPREAD: f64 = 0.25;
const WALK: usize = 48;

/// What keeps a call from being admitted, and for how long.
struct Obstacle {
    wait: f64,
    binding: Binding,
    deficit: f64,
}

impl Obstacle {
    const NONE: Self = Self { wait: 0.0, binding: Binding::Turn, deficit: 0.0 };

    /// Of two obstacles the one that lasts longer counts.
    fn or(&mut self, wait: f64, binding: Binding, deficit: f64) {
        if wait > self.wait {
            *self = Self { wait, binding, deficit };
        }
    }
}

/// By how much a call is too large for what the window has left.
#[derive(Default)]
struct Over {
    /// In all.
    total: PerDimension<f64>,
    /// In the caller's lane.
    lane: PerDimension<f64>,
    /// Until use by others, if it alone is in the way, has faded far enough.
    fading: f64,
}

impl Over {
    fn any(&self) -> bool {
        Dimension::ALL.into_iter().any(|dimension| self.of(dimension) > 0.0)
    }

    fn of(&self, dimension: Dimension) -> f64 {
        self.total[dimension].max(self.lane[dimension])
    }
}

/// A question, and what of the limits it may use.
struct Asked<'a> {
    model: &'a ModelQuota,
    ask: &'a Ask,
    amounts: PerDimension<f64>,
    /// The limits in force, but never less than the call: what a refusal has taken off comes back,
    /// so a call as large as the whole limit waits and is not turned away.
    limits: PerLimit<f64>,
    capacity: Capacity,
    /// By how much the window may exceed each limit, and the limits with it.
    credit: PerDimension<f64>,
    roomy: PerDimension<f64>,
    /// How far the pace may be ahead, and how much faster than the limits its clock runs.
    tolerance: f64,
    speed: f64,
    window: f64,
    now: f64,
}

impl State {
    pub(in crate::memory) fn reserve(
        &mut self,
        model: &ModelQuota,
        ask: &Ask,
        now: f64,
    ) -> Decision {
        let lane = ask.lane;
        let amounts = PerLimit { window: ask.amounts.map(float), in_flight: 1.0 };
        self.lanes[lane].seen_at = Some(now);
        if self.entries.contains_key(&ask.reservation) {
            return Decision::Granted;
        }
        let InForce { limits, whole } = self.in_force(model);
        let ceiling = whole.window.map(|limit| limit * model.lanes.at(lane).ceiling);
        let too_large = |dimension: &Dimension| {
            limits.window[*dimension] > 0.0 && amounts.window[*dimension] > ceiling[*dimension]
        };
        if let Some(dimension) = Dimension::ALL.into_iter().find(too_large) {
            return Decision::Never { dimension, capacity: above(ceiling[dimension]) };
        }
        let limits = PerLimit::from_fn(|limited| match limits[limited] {
            limit if limit > 0.0 => limit.max(amounts[limited]),
            none => none,
        });
        let shown = ask.ticket.filter(|ticket| ticket.position > 0);
        let ticket = shown.filter(|ticket| ticket.epoch == self.epoch);
        if shown.is_some() && ticket.is_none() {
            self.begin_steady(model, now);
        }
        if let Some(closed) = self.closed(now, ticket) {
            return closed;
        }
        if let Some(spent) = self.day_spent(model, &amounts.window, now) {
            return spent;
        }
        let credit = self.credits(model, &limits.window, now);
        self.grow(model, &limits.window, &credit, now);
        let roomy = PerLimit::from_fn(|limited| match limited {
            Limited::Window(it) if limits[limited] > 0.0 => {
                (limits[limited] + credit[it]).max(amounts[limited])
            }
            _ => limits[limited],
        });
        let asked = Asked {
            model,
            ask,
            amounts: amounts.window,
            limits,
            capacity: self.capacity(model, lane, &roomy, &amounts, now),
            credit,
            roomy: roomy.window,
            tolerance: self
                .burst
                .as_ref()
                .map_or_else(|| micros(model.limits.burst), |burst| burst.allowance),
            speed: self.pace_speed(model),
            window: micros(model.limits.window),
            now,
        };
        self.decide(&asked, ticket)
    }

    /// Admits a call that fits and is due; gives any other its turn.
    fn decide(&mut self, asked: &Asked<'_>, ticket: Option<Ticket>) -> Decision {
        let &Asked { ask, window, now, .. } = asked;
        let lane = ask.lane;
        let shift = self.lanes[lane].shift;
        let queued = self.lanes[lane].tail > now - shift;
        let position = ticket.map_or_else(
            || self.join(lane, &ask.tenant, queued, now),
            |ticket| float(ticket.position),
        );
        let due = position + shift;
        let near = ticket.is_some() && self.lanes[lane].head <= now && due - now < NEAR;
        let mut obstacle = Obstacle::NONE;
        let idle = self.keep_pace(asked, &mut obstacle);
        let over = self.over(asked);
        let mut turn = self.fullest(&asked.limits.window).map_or(0.0, |fullest| {
            let (limit, most) = (asked.limits.window[fullest], asked.roomy[fullest]);
            let usually = asked.capacity.usual.window[fullest] * limit / most;
            asked.amounts[fullest] * window / usually * self.yield_of(fullest)
        });
        if asked.limits.in_flight > 0.0 {
            turn = turn.max(self.keep_in_flight(asked, &mut obstacle));
        }
        self.keep_canary(now, &mut obstacle);
        let turn_ends = position + turn * SPACING;

        if obstacle.wait <= 0.0 && !over.any() && (due <= now || idle || near) {
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
                own.move_tail(&ask.tenant, turn_ends, now - shift);
            }
            self.admit(asked);
            return Decision::Granted;
        }

        let mut shift = shift;
        if due > now {
            obstacle = Obstacle { wait: due - now, ..Obstacle::NONE };
            // While a burst has room, those who are within it come in order and much sooner.
            if !over.any() {
                let (limits, wait) = (&asked.limits.window, (lane, obstacle.wait));
                obstacle.wait = self.wait_in_burst(asked.model, limits, &asked.credit, wait, now);
            }
        } else {
            if over.any() {
                self.lanes[lane].backlogged_at = Some(now);
                self.spend_burst(asked.model, &over.total, now);
                self.wait_for_room(asked, &over, &mut obstacle);
            }
            obstacle.wait = obstacle.wait.max(MIN_WAIT);
            shift = shift.max(now + obstacle.wait - position);
            self.lanes[lane].shift = shift;
            self.lanes[lane].head = now + obstacle.wait;
        }
        if ticket.is_none() {
            self.lanes[lane].move_tail(&ask.tenant, turn_ends, now - shift);
            self.lanes[lane].waiting += 1;
        }
        Decision::Wait {
            wait: duration(obstacle.wait),
            binding: obstacle.binding,
            deficit: above(obstacle.deficit),
            ticket: Ticket { epoch: self.epoch, position: whole(position) },
        }
    }

    /// How long the pace clocks are too far ahead; true if they and the lane's queue are idle.
    fn keep_pace(&self, asked: &Asked<'_>, obstacle: &mut Obstacle) -> bool {
        let &Asked { model, ask, window, now, tolerance, speed, .. } = asked;
        let borrows = self.borrows_in_company(model, ask.lane, &asked.limits.window, now);
        let mut idle = self.lanes[ask.lane].head < now - IDLE;
        for (dimension, limit, amount) in asked.counted() {
            let own = amount * window / (limit * speed);
            // Output comes over the length of the call, and not at once.
            let latency = self.latency.filter(|_| dimension == Dimension::Output);
            let leave = tolerance + latency.unwrap_or(0.0) * SPREAD;
            let leave = if borrows { (leave - own).max(0.0) } else { leave };
            let ahead = self.pace[dimension] - now - leave;
            obstacle.or(ahead, Binding::Limit(dimension), ahead * limit / window);
            idle &= self.pace[dimension] < now + self.spent_burst(model) - IDLE;
        }
        idle
    }

    /// By how much the call would be too large now.
    fn over(&self, asked: &Asked<'_>) -> Over {
        let &Asked { ask, window, now, .. } = asked;
        let mut over = Over::default();
        for (dimension, limit, amount) in asked.counted() {
            let external = self
                .tuning
                .as_ref()
                .map_or(0.0, |tuning| tuning.external_use(dimension, limit, window, now));
            let most = asked.roomy[dimension];
            let total = (self.total.window[dimension] + external + amount - most).max(0.0);
            if total > 0.0 {
                let fades = total <= external;
                over.fading =
                    if fades { over.fading.max(total * window / limit) } else { f64::INFINITY };
            }
            let used = self.lanes[ask.lane].used.window[dimension];
            let lane = (used + amount - asked.capacity.now.window[dimension]).max(0.0);
            if lane > 0.0 {
                over.fading = f64::INFINITY;
            }
            (over.total[dimension], over.lane[dimension]) = (total, lane);
        }
        over
    }

    /// How long until a call in flight ends, where as many are in flight as may be; how long a
    /// place among them is taken.
    fn keep_in_flight(&mut self, asked: &Asked<'_>, obstacle: &mut Obstacle) -> f64 {
        if self.over_in_flight(asked) > 0.0 {
            self.end_leases(asked.now);
        }
        let latency = self.latency.filter(|latency| *latency > 0.0).unwrap_or(UNKNOWN_LATENCY);
        let each = latency / asked.limits.in_flight;
        let over = self.over_in_flight(asked);
        if over > 0.0 {
            obstacle.or(over * each, Binding::InFlight, over);
        }
        each
    }

    /// After a refusal's pause one call goes first; the others wait for its answer, but not long.
    fn keep_canary(&mut self, now: f64, obstacle: &mut Obstacle) {
        if let Canary::Admitted(at) = self.canary {
            let patience = at + CANARY_PATIENCE - now;
            if patience <= 0.0 {
                self.canary = Canary::None;
            } else {
                obstacle.or(patience, Binding::Canary, 0.0);
            }
        }
    }

    /// How long until enough has left the window.
    fn wait_for_room(&self, asked: &Asked<'_>, over: &Over, obstacle: &mut Obstacle) {
        let now = asked.now;
        let mut room = self.room_at(asked, over).min(now + over.fading);
        if self.refills(asked.model) {
            let over = Dimension::ALL.map(|it| (over.of(it), asked.limits.window[it]));
            let over = over.into_iter().filter(|(over, _)| *over > 0.0);
            let refill = over.map(|(over, limit)| over * asked.window / limit).fold(0.0, f64::max);
            room = room.min(now + refill);
        }
        if room - now > obstacle.wait {
            obstacle.wait = room - now;
            for dimension in Dimension::ALL.into_iter().filter(|it| over.of(*it) > 0.0) {
                obstacle.binding = Binding::Limit(dimension);
                obstacle.deficit = over.of(dimension);
            }
        }
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

    fn day_spent(
        &self,
        model: &ModelQuota,
        amounts: &PerDimension<f64>,
        now: f64,
    ) -> Option<Decision> {
        let tuning = self.tuning.as_ref()?;
        let spent = |day: &DayLimit| {
            let after = match day {
                DayLimit::Requests => tuning.day_requests + amounts.requests,
                DayLimit::Tokens => tuning.day_tokens + amounts.combined,
            };
            model.limits.day(*day).is_some_and(|limit| after > float(limit))
        };
        let day = DayLimit::ALL.into_iter().find(spent)?;
        Some(Decision::Exhausted { wait: duration(tuning::day_left(model, now)), day: Some(day) })
    }

    /// By how many calls one more would be too many, in all or in this lane.
    fn over_in_flight(&self, asked: &Asked<'_>) -> f64 {
        let capacity = asked.capacity.now.in_flight.floor().max(1.0);
        let own = self.lanes[asked.ask.lane].used.in_flight + 1.0 - capacity;
        own.max(self.total.in_flight + 1.0 - asked.limits.in_flight)
    }

    /// When enough will have left the window. Walks the oldest entries; beyond the walk the rest is
    /// taken to leave at the limit's rate.
    fn room_at(&self, asked: &Asked<'_>, over: &Over) -> f64 {
        let &Asked { ask, window, now, .. } = asked;
        // What leaves the window of a lane that is not backlogged is this lane's to borrow.
        let gives = |lane: usize| lane == ask.lane || !self.lanes[lane].backlogged(now);
        let (mut total, mut own) = (over.total, over.lane);
        let mut last = now;
        for (_, id) in self.ledger.iter().take(WALK) {
            let Some(entry) = self.entries.get(id) else { continue };
            for (dimension, amount) in entry.amounts.iter() {
                total[dimension] -= amount;
                if gives(entry.lane) {
                    own[dimension] -= amount;
                }
            }
            last = now.max(entry.admitted + window);
            if total.iter().chain(own.iter()).all(|(_, over)| *over <= 0.0) {
                return last;
            }
        }
        let limited = asked.limits.window.iter().filter(|(_, limit)| **limit > 0.0);
        let rest = limited
            .map(|(dimension, limit)| total[dimension].max(own[dimension]) * window / limit)
            .fold(0.0, f64::max);
        (last + rest).min(now + window)
    }

    fn admit(&mut self, asked: &Asked<'_>) {
        let &Asked { model, ask, amounts, window, now, speed, .. } = asked;
        self.enter(&ask.reservation, ask.lane, Condition::Reserved, amounts, now);
        if let Some(tuning) = &mut self.tuning {
            tuning.add_to_day(model, now, &amounts);
        }
        self.add_in_flight(ask.lane, 1.0);
        for (dimension, limit) in asked.limits.window.iter().filter(|(_, limit)| **limit > 0.0) {
            let cost = amounts[dimension] * window / (limit * speed);
            self.pace[dimension] = self.pace[dimension].max(now) + cost;
        }
        if self.canary == Canary::Wanted {
            self.canary = Canary::Admitted(now);
        }
    }
}

impl Asked<'_> {
    /// Each limited dimension that the call uses, with its limit and amount.
    fn counted(&self) -> impl Iterator<Item = (Dimension, f64, f64)> {
        let each = self.limits.window.iter().map(|(it, limit)| (it, *limit, self.amounts[it]));
        each.filter(|(_, limit, amount)| *limit > 0.0 && *amount > 0.0)
    }
}

fn above(number: f64) -> u64 {
    whole(number.ceil())
}
