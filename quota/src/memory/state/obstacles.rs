//! What keeps a call from being admitted now, and for how long: `lua/include/obstacles.lua`.
//! Nothing is changed here.

use super::{Canary, State, reserve::Asked};
use crate::{
    dimension::{Dimension, PerDimension},
    number::float,
    store::Binding,
};

const IDLE: f64 = 300e3;
const UNKNOWN_LATENCY: f64 = 1e6;
const SPREAD: f64 = 0.25;
const WALK: usize = 48;
const MANY: f64 = 50.0;
const CALLS_KNOWN: f64 = 8.0;
const MUCH: f64 = 1.25;
const FASTEST: f64 = 4.0;
pub(super) const CANARY_PATIENCE: f64 = 1e6;

/// What keeps a call from being admitted, and for how long.
pub(super) struct Obstacle {
    pub(super) wait: f64,
    pub(super) binding: Binding,
    pub(super) deficit: f64,
}

impl Obstacle {
    pub(super) const NONE: Self = Self { wait: 0.0, binding: Binding::Turn, deficit: 0.0 };

    /// Of two obstacles the one that lasts longer counts.
    pub(super) fn or(&mut self, wait: f64, binding: Binding, deficit: f64) {
        if wait > self.wait {
            *self = Self { wait, binding, deficit };
        }
    }
}

/// By how much a call is too large for what the window has left.
#[derive(Default)]
pub(super) struct Over {
    /// In all.
    pub(super) total: PerDimension<f64>,
    /// In the caller's lane.
    lane: PerDimension<f64>,
    /// Until use by others, if it alone is in the way, has faded far enough.
    fading: f64,
}

impl Over {
    pub(super) fn any(&self) -> bool {
        Dimension::ALL.into_iter().any(|dimension| self.of(dimension) > 0.0)
    }

    fn of(&self, dimension: Dimension) -> f64 {
        self.total[dimension].max(self.lane[dimension])
    }
}

impl State {
    /// How long the pace clocks are too far ahead; true if they and the lane's queue are idle.
    pub(super) fn keep_pace(&self, asked: &Asked<'_>, obstacle: &mut Obstacle) -> bool {
        let &Asked { model, ask, window, now, tolerance, speed, .. } = asked;
        let borrows = self.borrows_in_company(model, ask.lane, &asked.limits.window, now);
        let mut idle = self.lanes[ask.lane].head < now - IDLE;
        for (dimension, limit, amount) in asked.counted() {
            let own = amount * window / (limit * speed);
            // Output comes over the length of the call, and not at once.
            let latency = self.latency.filter(|_| dimension == Dimension::Output);
            let mut leave = tolerance + latency.unwrap_or(0.0) * SPREAD;
            if borrows {
                leave = (leave - asked.kept[dimension] * tolerance - own).max(0.0);
            }
            let ahead = self.pace[dimension] - now - leave;
            obstacle.or(ahead, Binding::Limit(dimension), ahead * limit / window);
            idle &= self.pace[dimension] < now + self.spent_burst(model) - IDLE;
        }
        idle
    }

    /// By how much the call would be too large now.
    pub(super) fn over(&self, asked: &Asked<'_>) -> Over {
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

    /// How long until a call in flight ends, where as many are in flight as may be.
    pub(super) fn keep_in_flight(&self, asked: &Asked<'_>, obstacle: &mut Obstacle) {
        if asked.limits.in_flight > 0.0 {
            let over = self.over_in_flight(asked);
            obstacle.or(over * self.place_length(asked), Binding::InFlight, over);
        }
    }

    /// By how many calls one more would be too many, in all or in this lane.
    pub(super) fn over_in_flight(&self, asked: &Asked<'_>) -> f64 {
        let capacity = asked.capacity.now.in_flight.floor().max(1.0);
        let own = self.lanes[asked.ask.lane].used.in_flight + 1.0 - capacity;
        own.max(self.total.in_flight + 1.0 - asked.limits.in_flight)
    }

    /// How long a call in flight takes, by the number of those that may be at once.
    fn place_length(&self, asked: &Asked<'_>) -> f64 {
        let latency = self.latency.filter(|latency| *latency > 0.0).unwrap_or(UNKNOWN_LATENCY);
        latency / asked.limits.in_flight
    }

    /// After a refusal's pause one call goes first; the others wait for its answer, but not long.
    pub(super) fn keep_canary(&self, now: f64, obstacle: &mut Obstacle) {
        if let Canary::Admitted(at) = self.canary {
            obstacle.or(at + CANARY_PATIENCE - now, Binding::Canary, 0.0);
        }
    }

    /// Where the turn of a caller ends that begins at `position`.
    pub(super) fn turn_ends(&self, asked: &Asked<'_>, position: f64) -> f64 {
        position + self.turn_length(asked)
    }

    /// How long a caller's turn is, by what it will use of the fullest dimension and of the calls at
    /// once.
    fn turn_length(&self, asked: &Asked<'_>) -> f64 {
        let turn = self.fullest(&asked.limits.window).map_or(0.0, |fullest| {
            let (limit, most) = (asked.limits.window[fullest], asked.roomy[fullest]);
            let usually = asked.capacity.usual.window[fullest] * limit / most;
            // A call of nothing in a lane that may have nothing takes no time.
            let time = if usually > 0.0 { asked.window / usually } else { 0.0 };
            asked.amounts[fullest] * time * self.yield_of(fullest)
        });
        let place = if asked.limits.in_flight > 0.0 { self.place_length(asked) } else { 0.0 };
        turn.max(place)
    }

    /// How long a wait for a turn is, by what calls of the lane use now.
    pub(super) fn hastened(&self, asked: &Asked<'_>, wait: f64) -> f64 {
        let lane = &self.lanes[asked.ask.lane];
        let (waiting, calls) = (float(lane.waiting), lane.used.window.requests);
        let Some(it) = self.fullest(&asked.limits.window) else { return wait };
        let usual = asked.capacity.usual.window[it];
        if waiting < MANY || calls < CALLS_KNOWN || usual <= 0.0 {
            return wait;
        }
        let usually = usual * asked.limits.window[it] / asked.roomy[it];
        let mean = lane.used.window[it] / calls * asked.window / usually;
        let each = mean.max(self.turn_length(asked));
        let queue = lane.tail + lane.shift - asked.now;
        let faster = queue / (waiting * each.max(1.0));
        if faster > MUCH { wait / faster.min(FASTEST) } else { wait }
    }

    /// How long until enough has left the window.
    pub(super) fn wait_for_room(&self, asked: &Asked<'_>, over: &Over, obstacle: &mut Obstacle) {
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
}
