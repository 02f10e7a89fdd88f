//! What is atomic and the same for every provider: levels that refill by the clock, a queue in work,
//! entries, a gate, and a bounded log for the policy. It knows nothing of headers, bursts or vendors.
//! This is `lua/` in memory: the model that the scripts are tested against, and what a process keeps
//! while Redis is away.
//!
//! A level is kept as what is *drawn* ahead of the rate, so another capacity changes no level, and
//! the policy never needs to write one. Times are microseconds.
//!
//! * `levels`: what time does to levels; how long until there is room
//! * `queue`: whose turn it is
//! * `kept`: what is kept; `entry`: calls that were admitted, and the window
//! * `gate`, `flight`, `day`: the small gates beside the plan
//! * `log`: what the policy is told; `learned`: what calls of a template use

mod day;
mod entry;
mod flight;
mod gate;
mod kept;
mod learned;
mod levels;
pub(crate) mod log;
mod queue;
mod seen;
mod settle;

use std::collections::{BTreeMap, HashMap, VecDeque};

use tidegate_types::Tenant;

use crate::{
    dimension::{Dimension, PerDimension},
    lanes::Lanes,
    model::ModelQuota,
    number::{duration, micros, whole},
    numbers::{GRAIN, Numbers},
    plan::{Allowance, Plan, Units, units},
    request::Ticket,
    store::{Ask, Decision, Hold},
};

use self::{
    kept::{Day, Entry, Flight, Gate, Learned},
    log::{Log, Reading},
    queue::Asks,
};
pub(crate) use kept::{Closed, Spent};

/// What callers bring of a quota's configuration, and the mechanism does not keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) window: f64,
    /// Of a call that has outlived the window.
    pub(crate) lease: f64,
    /// Requests and tokens a day; 0 for no limit.
    pub(crate) by_day: [f64; 2],
    pub(crate) day_offset: f64,
    pub(crate) lanes: &'a Lanes,
    pub(crate) numbers: &'a Numbers,
}

impl<'a> Terms<'a> {
    pub(crate) fn of(model: &'a ModelQuota, numbers: &'a Numbers) -> Self {
        let limits = &model.limits;
        let float = |limit: Option<u64>| limit.map_or(0.0, crate::number::float);
        Self {
            window: micros(limits.window),
            lease: micros(limits.lease()),
            by_day: [float(limits.requests_per_day), float(limits.tokens_per_day)],
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
    /// Most that was drawn since the policy looked, as far as the capacity goes: a call larger than
    /// that goes when nothing is drawn, and shows nothing.
    peak: Units,
    /// All that was ever drawn, corrected: the policy measures rates by it.
    spent: Units,
    /// What policies added to what is drawn.
    changed: Units,
    /// What is in the window; of it, what is not settled.
    total: Units,
    held: Units,
    /// By how much those in the window brought their queues on.
    progress: f64,
    entries: HashMap<String, Entry>,
    ledger: VecDeque<(f64, String)>,
    /// Calls that outlived the window, by the end of their leases.
    leases: BTreeMap<String, f64>,
    lanes: Vec<Lane>,
    gate: Option<Gate>,
    flight: Flight,
    /// Mean time from admission to settlement; 0 while there is none.
    latency: f64,
    day: Day,
    log: Log,
    learned: HashMap<u64, Learned>,
}

/// What is kept of a lane.
#[derive(Debug, Default)]
struct Lane {
    queue: queue::Queue,
    /// Work of all who waited when the queue was looked at last; what passed since.
    waiting: f64,
    passed: f64,
    /// Work that the lane finds when it comes.
    standby: f64,
    /// The most that a caller needs that is first in turn, and until when it comes for it.
    need: (f64, f64),
    used: Units,
    in_flight: f64,
}

impl Lane {
    /// Brings the queue on by what passed.
    fn open(&mut self) {
        self.queue.passes(std::mem::take(&mut self.passed) * GRAIN);
    }

    fn close(&mut self) {
        self.queue.forget();
        self.waiting = self.queue.waiting() / GRAIN;
    }

    /// What the lane saves for.
    fn saves_for(&self, now: f64) -> f64 {
        let (need, until) = self.need;
        if now < until { need } else { 0.0 }
    }

    /// Whether calls of it are in the window.
    fn has_calls(&self) -> bool {
        Dimension::ALL.into_iter().any(|it| self.used[it] > 0.0)
    }

    /// Work of all who wait.
    fn waits(&self) -> f64 {
        (self.waiting - self.passed).max(0.0)
    }
}

/// Why a call waits, and for how long.
#[derive(Debug, Clone, Copy)]
struct Obstacle {
    wait: f64,
    hold: Hold,
    /// By how much it is too large.
    over: f64,
}

impl Obstacle {
    const NONE: Self = Self { wait: 0.0, hold: Hold::Turn, over: 0.0 };

    fn at_least(&mut self, wait: f64, hold: Hold, over: f64) {
        if wait > self.wait {
            *self = Self { wait, hold, over };
        }
    }
}

impl Mechanism {
    /// Without a plan nothing is limited: who keeps it writes one before anything else.
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
            flight: Flight::default(),
            latency: 0.0,
            day: Day::default(),
            log: Log::default(),
            learned: HashMap::new(),
        }
    }

    /// Admits calls of one lane, or says when to come back: one after the other at one time.
    pub(crate) fn reserve_all(&mut self, terms: &Terms<'_>, asks: &[Ask]) -> Vec<Decision> {
        let Some(lane) = asks.first().map(|ask| ask.lane) else { return Vec::new() };
        self.lanes[lane].open();
        let decisions = asks.iter().map(|ask| self.reserve(terms, ask)).collect();
        self.lanes[lane].close();
        decisions
    }

    /// All or nothing.
    fn reserve(&mut self, terms: &Terms<'_>, ask: &Ask) -> Decision {
        let (now, need, numbers) = (self.at, units(&ask.amounts), terms.numbers);
        if self.entries.contains_key(&ask.reservation) {
            return Decision::Granted;
        }
        let ceiling = terms.lanes.at(ask.lane).ceiling;
        for (dimension, limit) in self.plan.limits.iter() {
            let most = limit.map_or(f64::INFINITY, |limit| limit.most * ceiling);
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
        let asks_as = match ask.ticket.filter(|it| it.position > 0) {
            Some(it) if it.epoch == self.epoch => {
                Asks::InTurn(crate::number::float(it.position - 1))
            }
            Some(_) => Asks::First,
            None => Asks::Last,
        };
        let place = self.lanes[ask.lane].queue.place(&ask.tenant, asks_as, now);
        let work = self.plan.work_of(&need);
        let grains = (work * GRAIN).ceil();
        let mut obstacle = self.until_room(terms, ask.lane, place, &need, work);
        if let Some((wait, hold)) = self.shut(numbers).filter(|(wait, _)| *wait >= obstacle.wait) {
            obstacle = Obstacle { wait, hold, over: 0.0 };
        }
        if obstacle.wait > 0.0 {
            let until = now + obstacle.wait + numbers.quiet;
            let lane = &mut self.lanes[ask.lane];
            lane.queue.waits(&ask.tenant, place, grains, until, now);
            // A lane saves for its first: for those behind, two lanes could wait for each other.
            if place.ahead <= 0.0 && work >= lane.saves_for(now) {
                lane.need = (work, until);
            }
            lane.waiting = lane.queue.waiting() / GRAIN;
            let position = whole(place.turn) + 1;
            let ticket = Ticket { epoch: self.epoch, position };
            return match obstacle.hold {
                Hold::Gate => {
                    Decision::Paused { wait: duration(obstacle.wait), ticket: Some(ticket) }
                }
                hold => {
                    let wait = duration(self.told(terms, ask.lane, obstacle.wait));
                    let deficit = whole(obstacle.over.ceil());
                    Decision::Wait { wait, hold, deficit, ticket }
                }
            };
        }
        let probe = self.goes_first();
        let lane = &mut self.lanes[ask.lane];
        let progress = lane.queue.goes(&ask.tenant, place, grains);
        lane.standby = (lane.standby - work).max(0.0);
        if work >= lane.need.0 {
            lane.need = (0.0, 0.0);
        }
        self.admit(terms, ask, &need, progress, probe);
        Decision::Granted
    }

    /// The time to reckon with.
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
    pub(crate) fn hand(&mut self, numbers: &Numbers) -> Option<Reading> {
        self.log.hands(self.at, numbers).then(|| self.reading())
    }

    pub(crate) fn reading(&self) -> Reading {
        let (end, answers, log) = self.log.read();
        let (version, drawn, peak) = (self.version, self.drawn, self.peak);
        Reading { now: self.at, version, end, answers, drawn, peak, log }
    }

    /// A tenant's callers come no more.
    pub(crate) fn leave(&mut self, lane: usize, tenant: &Tenant) {
        let lane = &mut self.lanes[lane];
        lane.open();
        lane.queue.leaves(tenant);
        lane.close();
    }

    /// The caller that asked so comes no more.
    pub(crate) fn give_up(&mut self, ask: &Ask) {
        let Some(ticket) = ask.ticket.filter(|it| it.position > 0) else { return };
        let work = (self.plan.work_of(&units(&ask.amounts)) * GRAIN).ceil();
        let lane = &mut self.lanes[ask.lane];
        lane.open();
        if ticket.epoch == self.epoch {
            lane.queue.gives_up(&ask.tenant, crate::number::float(ticket.position - 1), work);
        }
        lane.close();
    }

    /// A new plan, with changes of what is drawn: false if another was written since the reading.
    pub(crate) fn write(&mut self, version: u64, end: u64, plan: Plan, change: &Units) -> bool {
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

    /// How long an even pace takes for what may go now.
    pub(crate) fn room(&self) -> f64 {
        let room = |(it, limit): (Dimension, &Option<Allowance>)| {
            let limit = (*limit)?;
            let level = limit.capacity.value - self.drawn[it];
            Some(level.min(limit.window.value - self.total[it]) / limit.rate.value)
        };
        let rooms = self.plan.limits.iter().filter_map(room);
        if self.gate.is_some() { 0.0 } else { rooms.min_by(f64::total_cmp).unwrap_or(0.0).max(0.0) }
    }
}
