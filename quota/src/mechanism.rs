//! The atomic part of the limiter, equal for every provider: levels that refill with time, a queue
//! in work, entries, a gate, and a bounded log for the policy. It knows nothing of headers, bursts
//! or vendors. It is `lua/` in memory: the scripts are tested against it, and a process uses it
//! while Redis is away.
//!
//! A level is stored as the amount *drawn* ahead of the rate. So another capacity changes no level,
//! and the policy never needs to write one. Times are microseconds.
//!
//! * `levels`: refills levels, and computes the time until there is room
//! * `queue`: the order of turns
//! * `state`: the parts of the state; `entry`: admitted calls, and the window
//! * `gate`, `in_flight`, `day`: limits outside the plan
//! * `log`: observations for the policy; `learned`: the use of each template's calls; `settle`: the
//!   end of a call; `snapshot`: the state for people

mod day;
mod entry;
mod gate;
mod in_flight;
pub(crate) mod learned;
mod levels;
pub(crate) mod log;
mod queue;
mod settle;
mod snapshot;
mod state;

use std::collections::{BTreeMap, HashMap, VecDeque};

use tidegate_types::Tenant;

use crate::{
    conversions::{duration, float, micros, whole},
    dimension::{Dimension, PerDimension},
    lanes::Lanes,
    model::ModelQuota,
    numbers::{GRAIN, Numbers},
    plan::{Allowance, Plan, Units, units},
    request::Ticket,
    store::{Ask, Decision, Hold},
};

use self::{
    log::{Log, Reading},
    queue::Arrival,
    state::{Day, Entry, Gate, InFlight, Learned},
};
pub(crate) use state::{CloseReason, Spent};

/// The part of a quota's configuration that each call brings and the mechanism does not store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) window: f64,
    /// The lease of a call that has outlived the window.
    pub(crate) lease: f64,
    /// Requests and tokens a day; 0 for no limit.
    pub(crate) by_day: [f64; 2],
    pub(crate) day_offset: f64,
    pub(crate) lanes: &'a Lanes,
    pub(crate) numbers: &'a Numbers,
}

impl<'a> Terms<'a> {
    pub(crate) fn from_model(model: &'a ModelQuota, numbers: &'a Numbers) -> Self {
        let limits = &model.limits;
        let of = |limit: Option<u64>| limit.map_or(0.0, float);
        Self {
            window: micros(limits.window),
            lease: micros(limits.lease()),
            by_day: [of(limits.requests_per_day), of(limits.tokens_per_day)],
            day_offset: micros(limits.day_offset),
            lanes: &model.lanes,
            numbers,
        }
    }

    fn share(&self, lane: usize) -> f64 {
        self.lanes.at(lane).guaranteed
    }
}

/// One quota.
#[derive(Debug)]
pub(crate) struct Mechanism {
    epoch: u64,
    at: f64,
    pub(crate) version: u64,
    pub(crate) plan: Plan,
    drawn: Units,
    /// The maximum drawn since the policy last ran, up to the capacity: a call larger than the
    /// capacity is admitted when nothing is drawn, and proves nothing.
    peak: Units,
    /// The total ever drawn, after corrections: the policy measures rates by it.
    spent: Units,
    /// Amounts that policies added to the drawn amounts.
    changed: Units,
    /// Use in the window, and its unsettled part.
    total: Units,
    held: Units,
    /// By how much the calls in the window moved their queues on.
    progress: f64,
    entries: HashMap<String, Entry>,
    ledger: VecDeque<(f64, String)>,
    /// Calls that outlived the window, by the end of their leases.
    leases: BTreeMap<String, f64>,
    lanes: Vec<LaneState>,
    gate: Option<Gate>,
    in_flight: InFlight,
    /// Mean time from admission to settlement; 0 while there is none.
    latency: f64,
    day: Day,
    log: Log,
    learned: HashMap<u64, Learned>,
}

/// The state of a lane.
#[derive(Debug, Default)]
struct LaneState {
    queue: queue::Queue,
    /// Work that waited when the queue was last saved, and work that passed since.
    waiting: f64,
    passed: f64,
    /// Work that is kept for the lane's next call.
    standby: f64,
    /// The most work that the first caller in turn needs, and the time until which it may come for
    /// it.
    need: (f64, f64),
    used: Units,
    in_flight: f64,
}

impl LaneState {
    /// Moves the queue on by the work that passed.
    fn advance_queue(&mut self) {
        self.queue.pass(std::mem::take(&mut self.passed) * GRAIN);
    }

    fn update_waiting(&mut self) {
        self.queue.drop_idle();
        self.waiting = self.queue.waiting() / GRAIN;
    }

    /// The work that the lane saves for.
    fn saves_for(&self, now: f64) -> f64 {
        let (need, until) = self.need;
        if now < until { need } else { 0.0 }
    }

    /// Whether calls of the lane are in the window.
    fn has_calls(&self) -> bool {
        Dimension::ALL.into_iter().any(|it| self.used[it] > 0.0)
    }

    /// Work of all waiting callers.
    fn waiting_work(&self) -> f64 {
        (self.waiting - self.passed).max(0.0)
    }
}

/// The reason why a call waits, and for how long.
#[derive(Debug, Clone, Copy)]
struct Obstacle {
    wait: f64,
    hold: Hold,
    /// By how much the call exceeds the room.
    over: f64,
}

impl Obstacle {
    const NONE: Self = Self { wait: 0.0, hold: Hold::Turn, over: 0.0 };

    fn raise(&mut self, wait: f64, hold: Hold, over: f64) {
        if wait > self.wait {
            *self = Self { wait, hold, over };
        }
    }
}

impl Mechanism {
    /// A quota without a plan, which limits nothing: write a plan before any other use.
    pub(crate) fn new(now: f64) -> Self {
        let limits = PerDimension::default();
        Self {
            epoch: whole(now).max(1),
            at: now,
            version: 0,
            plan: Plan { horizon: 0.0, concurrent: 0.0, limits },
            drawn: Units::default(),
            peak: Units::default(),
            spent: Units::default(),
            changed: Units::default(),
            total: Units::default(),
            held: Units::default(),
            progress: 0.0,
            entries: HashMap::new(),
            ledger: VecDeque::new(),
            leases: BTreeMap::new(),
            lanes: Vec::new(),
            gate: None,
            in_flight: InFlight::default(),
            latency: 0.0,
            day: Day::default(),
            log: Log::default(),
            learned: HashMap::new(),
        }
    }

    /// Admits calls of one lane or returns when to come back, one after the other at the same time.
    pub(crate) fn reserve_all(&mut self, terms: &Terms<'_>, asks: &[Ask]) -> Vec<Decision> {
        let Some(lane) = asks.first().map(|ask| ask.lane) else { return Vec::new() };
        self.lanes[lane].advance_queue();
        let decisions = asks.iter().map(|ask| self.reserve(terms, ask)).collect();
        self.lanes[lane].update_waiting();
        decisions
    }

    /// Reserves all amounts or none.
    fn reserve(&mut self, terms: &Terms<'_>, ask: &Ask) -> Decision {
        let (now, need, numbers) = (self.at, units(&ask.amounts), terms.numbers);
        if self.entries.contains_key(&ask.reservation) {
            return Decision::Granted;
        }
        let share = terms.lanes.at(ask.lane);
        for (dimension, limit) in self.plan.limits.iter() {
            let most = limit.map_or(f64::INFINITY, |limit| share.most_of(limit.most));
            if need[dimension] > most {
                return Decision::Never { dimension, capacity: whole(most.ceil()) };
            }
        }
        if let Some(wait) = self.exhausted_for() {
            return Decision::Exhausted { wait: duration(wait), day: None };
        }
        if let Some((wait, day)) = self.day_spent(terms, &need) {
            return Decision::Exhausted { wait: duration(wait), day: Some(day) };
        }
        let arrival = match ask.ticket.filter(|it| it.position > 0) {
            Some(it) if it.epoch == self.epoch => Arrival::InTurn(float(it.position - 1)),
            Some(_) => Arrival::First,
            None => Arrival::Last,
        };
        let position = self.lanes[ask.lane].queue.position(&ask.tenant, arrival, now);
        let work = self.plan.work_of(&need);
        let grains = (work * GRAIN).ceil();
        let mut obstacle = self.until_room(terms, ask.lane, position, &need, work);
        if let Some((wait, hold)) =
            self.closed_hold(numbers).filter(|(wait, _)| *wait >= obstacle.wait)
        {
            obstacle = Obstacle { wait, hold, over: 0.0 };
        }
        if obstacle.wait > 0.0 {
            let until = now + obstacle.wait + numbers.quiet;
            let lane = &mut self.lanes[ask.lane];
            lane.queue.enqueue(&ask.tenant, position, grains, until, now);
            // A lane saves for its first caller only; otherwise two lanes could wait for each
            // other.
            if position.ahead <= 0.0 && work >= lane.saves_for(now) {
                lane.need = (work, until);
            }
            lane.waiting = lane.queue.waiting() / GRAIN;
            let ticket = Ticket { epoch: self.epoch, position: whole(position.turn) + 1 };
            let turn = duration(obstacle.wait);
            return match obstacle.hold {
                Hold::Gate => Decision::GateClosed { wait: turn, ticket },
                hold => {
                    let wait = duration(self.spread_wait(terms, ask.lane, obstacle.wait));
                    let deficit = whole(obstacle.over.ceil());
                    Decision::Wait { wait, hold, deficit, ticket, turn }
                }
            };
        }
        let probe = self.mark_probe();
        let lane = &mut self.lanes[ask.lane];
        let progress = lane.queue.admit(&ask.tenant, position, grains);
        lane.standby = (lane.standby - work).max(0.0);
        if work >= lane.need.0 {
            lane.need = (0.0, 0.0);
        }
        self.admit(terms, ask, &need, progress, probe);
        Decision::Granted
    }

    /// The present time.
    pub(crate) fn now(&self) -> f64 {
        self.at
    }

    pub(crate) fn drawn(&self) -> Units {
        self.drawn
    }

    pub(crate) fn total(&self) -> Units {
        self.total
    }

    /// Hands the policy's task to one caller at a time.
    pub(crate) fn hand_out_task(&mut self, numbers: &Numbers) -> Option<Reading> {
        self.log.hand_out_task(self.at, numbers).then(|| self.reading())
    }

    pub(crate) fn reading(&self) -> Reading {
        let (end, answers, log) = self.log.read();
        let (version, drawn, peak) = (self.version, self.drawn, self.peak);
        Reading { now: self.at, version, end, answers, drawn, peak, log }
    }

    /// Removes a tenant's waiting callers.
    pub(crate) fn leave(&mut self, lane: usize, tenant: &Tenant) {
        let lane = &mut self.lanes[lane];
        lane.advance_queue();
        lane.queue.remove_tenant(tenant);
        lane.update_waiting();
    }

    /// Removes the caller with the ask's ticket.
    pub(crate) fn give_up(&mut self, ask: &Ask) {
        let Some(ticket) = ask.ticket.filter(|it| it.position > 0) else { return };
        let work = (self.plan.work_of(&units(&ask.amounts)) * GRAIN).ceil();
        let lane = &mut self.lanes[ask.lane];
        lane.advance_queue();
        if ticket.epoch == self.epoch {
            lane.queue.give_up(&ask.tenant, float(ticket.position - 1), work);
        }
        lane.update_waiting();
    }

    /// Writes a plan and adds its changes to the drawn amounts. Returns false if another plan was
    /// written since the reading.
    pub(crate) fn write_plan(
        &mut self,
        version: u64,
        end: u64,
        plan: Plan,
        change: &Units,
    ) -> bool {
        if self.version != version {
            return false;
        }
        (self.version, self.plan, self.peak) = (version + 1, plan, Units::default());
        for it in Dimension::ALL {
            self.drawn[it] = (self.drawn[it] + change[it]).max(0.0);
            self.changed[it] += change[it];
        }
        self.log.trim(end);
        true
    }

    /// The room that is left now, as the time that an even pace takes to use it.
    pub(crate) fn room(&self, numbers: &Numbers) -> f64 {
        let room = |(it, limit): (Dimension, &Option<Allowance>)| {
            let limit = (*limit)?;
            let level = self.usable(it, &limit, numbers) - self.drawn[it];
            Some(level.min(limit.window.value - self.total[it]) / limit.rate.value)
        };
        let rooms = self.plan.limits.iter().filter_map(room);
        if self.gate.is_some() { 0.0 } else { rooms.min_by(f64::total_cmp).unwrap_or(0.0).max(0.0) }
    }
}
