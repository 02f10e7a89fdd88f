//! What is atomic and the same for every provider: levels that refill by the clock, a queue in work,
//! entries, a gate, and a bounded log for the policy. It knows nothing of headers, bursts or vendors.
//!
//! A level is kept as what is *drawn* ahead of the rate, so another capacity changes no level, and a
//! level needs no capacity to be right.

use std::collections::{HashMap, VecDeque};

use tidegate_quota::{Dimension, PerDimension};

use super::{
    log::{Log, Observation, Reading},
    numbers::Numbers,
    plan::Plan,
    queue::{Place, Queue},
};

/// Amounts as levels are: with fractions.
pub(crate) type Units = PerDimension<f64>;

/// What does not change while a quota lives.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) window: f64,
    /// Guaranteed parts of the lanes.
    pub(crate) shares: Vec<f64>,
    pub(crate) numbers: Numbers,
}

/// One quota.
#[derive(Debug)]
pub(crate) struct Mechanism {
    pub(crate) setup: Setup,
    pub(crate) plan: Plan,
    pub(crate) epoch: u64,
    at: f64,
    drawn: Units,
    /// Most that was drawn since the policy looked, as far as the capacity goes: a call larger than
    /// that goes when nothing is drawn, and shows nothing.
    peak: Units,
    /// All that was ever drawn, corrected: the policy measures rates by it.
    spent: Units,
    /// What policies added to what is drawn.
    changed: Units,
    in_window: Units,
    progress_in_window: f64,
    queues: Vec<Queue>,
    entries: HashMap<String, Entry>,
    ledger: VecDeque<(f64, String)>,
    gate: Option<Gate>,
    log: Log,
}

/// A call that was admitted.
#[derive(Debug, Clone)]
struct Entry {
    at: f64,
    amounts: Units,
    /// By how much it brought its queue on.
    progress: f64,
    settled: bool,
    /// What was drawn, used in the window and spent when it was admitted, itself left out.
    drawn: Units,
    in_window: Units,
    spent: Units,
    changed: Units,
    probe: bool,
}

/// Closed until a time; then one call goes first.
#[derive(Debug, Clone, Copy)]
struct Gate {
    until: f64,
    /// By an operator.
    paused: bool,
    /// When the one call went that goes first.
    probe: Option<f64>,
}

/// What a caller asks.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) lane: usize,
    pub(crate) tenant: u64,
    pub(crate) amounts: Units,
    /// Epoch and turn of an earlier answer.
    pub(crate) ticket: Option<(u64, f64)>,
}

/// Why a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Gate,
    Pause,
    Turn,
    Level(Dimension),
    Window(Dimension),
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    Granted,
    Wait { seconds: f64, hold: Hold, turn: f64 },
    Never,
}

/// How a call ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Used(Units),
    /// Refused by the provider, which will take it after so many seconds.
    Refused {
        unused: Units,
        retry: f64,
    },
}

/// What the provider's meter said in a call's answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) used: PerDimension<Option<f64>>,
    pub(crate) reset: PerDimension<Option<f64>>,
}

impl Mechanism {
    pub(crate) fn new(setup: Setup, plan: Plan, epoch: u64, now: f64) -> Self {
        let queues = setup.shares.iter().map(|_| Queue::default()).collect();
        Self {
            setup,
            plan,
            epoch,
            at: now,
            drawn: Units::default(),
            peak: Units::default(),
            spent: Units::default(),
            changed: Units::default(),
            in_window: Units::default(),
            progress_in_window: 0.0,
            queues,
            entries: HashMap::new(),
            ledger: VecDeque::new(),
            gate: None,
            log: Log::default(),
        }
    }

    /// The server's clock.
    fn advance(&mut self, clock: f64) -> f64 {
        let now = clock.max(self.at);
        // A provider that refuses says when it has room for the call that goes first, and no more.
        let quiet = self.setup.numbers.quiet;
        let refused = self.gate.filter(|gate| !gate.paused).map_or(0.0, |gate| gate.until + quiet);
        let passed = (now - self.at.max(refused)).max(0.0);
        let mut unused = f64::INFINITY;
        for it in Dimension::ALL {
            let Some(allowance) = &self.plan.limits[it] else { continue };
            let left = self.drawn[it] - passed * allowance.rate.value;
            self.drawn[it] = left.max(0.0);
            unused = unused.min(-left / allowance.most);
        }
        if unused > 0.0 && unused.is_finite() && self.gate.is_none() {
            self.queues.iter_mut().for_each(|queue| queue.passes(unused));
        }
        let numbers = &self.setup.numbers;
        for (queue, share) in self.queues.iter_mut().zip(&self.setup.shares) {
            let (rate, capacity) = self.plan.work();
            queue.standby =
                (queue.standby + passed * rate * share).min(numbers.standby * share * capacity);
        }
        while let Some((at, id)) =
            self.ledger.front().filter(|(at, _)| at + self.setup.window <= now)
        {
            let _ = at;
            if let Some(entry) = self.entries.remove(id) {
                self.in_window = Units::from_fn(|it| self.in_window[it] - entry.amounts[it]);
                self.progress_in_window -= entry.progress;
            }
            self.ledger.pop_front();
        }
        self.at = now;
        now
    }

    /// Admits a call, or says when to come back.
    pub(crate) fn reserve(&mut self, clock: f64, asked: &Asked) -> Decision {
        let now = self.advance(clock);
        if self.entries.contains_key(&asked.id) {
            return Decision::Granted;
        }
        let limits = self.plan.limits;
        if limits
            .iter()
            .any(|(it, limit)| limit.is_some_and(|limit| asked.amounts[it] > limit.most))
        {
            return Decision::Never;
        }
        let turn = asked.ticket.filter(|(epoch, _)| *epoch == self.epoch).map(|(_, turn)| turn);
        let place = self.queues[asked.lane].place(asked.tenant, turn, now);
        let work = self.plan.work_of(&asked.amounts);
        let (mut seconds, mut hold) = self.until_room(asked.lane, place, &asked.amounts, now);
        if let Some((gate, why)) = self.shut(now).filter(|(gate, _)| *gate >= seconds) {
            (seconds, hold) = (gate, why);
        }
        if seconds > 0.0 {
            let until = now + seconds + self.setup.numbers.quiet;
            self.queues[asked.lane].waits(asked.tenant, place, work, until, now);
            let seconds = self.told(asked.lane, seconds, now);
            return Decision::Wait { seconds, hold, turn: place.turn };
        }
        let probe = self.gate.is_some();
        if let Some(gate) = &mut self.gate {
            gate.probe = Some(now);
        }
        let progress = self.queues[asked.lane].goes(asked.tenant, place, work);
        self.queues[asked.lane].standby = (self.queues[asked.lane].standby - work).max(0.0);
        let amounts = asked.amounts;
        let (drawn, in_window, spent) = (self.drawn, self.in_window, self.spent);
        let changed = self.changed;
        self.draw(&amounts);
        self.peak = Units::from_fn(|it| {
            let capacity = limits[it].map_or(0.0, |limit| limit.capacity.value);
            self.peak[it].max(self.drawn[it].min(capacity))
        });
        let entry = Entry {
            at: now,
            amounts,
            progress,
            settled: false,
            drawn,
            in_window,
            spent,
            changed,
            probe,
        };
        self.progress_in_window += progress;
        self.entries.insert(asked.id.clone(), entry);
        self.ledger.push_back((now, asked.id.clone()));
        Decision::Granted
    }

    fn draw(&mut self, amounts: &Units) {
        for it in Dimension::ALL {
            self.drawn[it] = (self.drawn[it] + amounts[it]).max(0.0);
            self.spent[it] += amounts[it];
            self.in_window[it] += amounts[it];
        }
    }

    /// How long the gate holds everybody, and drops it when it is over.
    fn shut(&mut self, now: f64) -> Option<(f64, Hold)> {
        let gate = self.gate?;
        if now < gate.until {
            let why = if gate.paused { Hold::Pause } else { Hold::Gate };
            return Some((gate.until - now, why));
        }
        let open =
            gate.paused || gate.probe.is_some_and(|probe| now >= probe + self.setup.numbers.quiet);
        if open {
            self.gate = None;
        }
        let probe = self.gate?.probe?;
        Some((probe + self.setup.numbers.quiet - now, Hold::Gate))
    }

    /// A wait as it is told: none beyond the horizon, and those that would be are spread over its
    /// second half by their turns, so that they do not come back together.
    fn told(&self, lane: usize, wait: f64, now: f64) -> f64 {
        let horizon = self.plan.horizon.max(self.gate.map_or(0.0, |gate| gate.until - now));
        let part = self.part(lane);
        let mix = self.mix();
        let waiting = self.queues[lane].waiting();
        let last = self.plan.limits.iter().filter_map(|(it, limit)| {
            let limit = (*limit)?;
            Some(waiting * limit.most * mix[it] / (limit.rate.value * part))
        });
        let last = last.fold(wait, f64::max);
        let near = horizon * self.setup.numbers.half;
        if last <= horizon || wait <= near {
            return wait;
        }
        near + (wait - near) / (last - near) * (horizon - near)
    }

    /// How long until there is room for a call behind those before it, by the present rate.
    fn until_room(&self, lane: usize, place: Place, need: &Units, now: f64) -> (f64, Hold) {
        let mut longest = (0.0, Hold::Turn);
        let part = self.part(lane);
        let standby: f64 = self.standby(lane);
        let mix = self.mix();
        let half = self.setup.numbers.half;
        for (it, limit) in self.plan.limits.iter() {
            let Some(limit) = limit else { continue };
            let ahead = place.ahead * limit.most * mix[it];
            let need = need[it];
            let capacity = limit.capacity.value;
            // What is larger than the capacity goes when nothing is drawn.
            let room = capacity - self.drawn[it] - (standby * limit.most).min(capacity * half);
            let lack = if ahead > 0.0 {
                ahead + need - room
            } else {
                need.min(capacity - (standby * limit.most).min(capacity * half)) - room
            };
            let wait = lack / (limit.rate.value * part);
            if wait > longest.0 {
                longest = (wait, if ahead > 0.0 { Hold::Turn } else { Hold::Level(it) });
            }
            let over = self.in_window[it] + ahead + need - limit.window.value;
            if over > 0.0 {
                let rate = limit.rate.value * part;
                let head = ahead <= 0.0;
                let wait = if head { self.until_freed(it, over, rate, now) } else { over / rate };
                if wait > longest.0 {
                    longest = (wait, if ahead > 0.0 { Hold::Turn } else { Hold::Window(it) });
                }
            }
        }
        longest
    }

    /// How long until so much has left the window.
    fn until_freed(&self, it: Dimension, over: f64, rate: f64, now: f64) -> f64 {
        let (mut left, mut wait) = (over, 0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        for (at, id) in self.ledger.iter().take(self.setup.numbers.walk as usize) {
            if left <= 0.0 {
                break;
            }
            left -= self.entries.get(id).map_or(0.0, |entry| entry.amounts[it]);
            wait = at + self.setup.window - now;
        }
        wait + left.max(0.0) / rate
    }

    /// What other lanes are to find when they come.
    fn standby(&self, lane: usize) -> f64 {
        let others = self.queues.iter().enumerate().filter(|(it, _)| *it != lane);
        others.map(|(_, queue)| queue.standby).sum()
    }

    /// The part of the rate that a lane has while others wait too.
    fn part(&self, lane: usize) -> f64 {
        let waits = |it: &usize| *it == lane || self.queues[*it].waiting() > 0.0;
        let sum: f64 = (0..self.queues.len()).filter(waits).map(|it| self.setup.shares[it]).sum();
        if sum > 0.0 { self.setup.shares[lane] / sum } else { 1.0 }
    }

    /// How much of a dimension's limit a unit of work takes in the mean: rather too little, for who
    /// comes too early asks again, and who comes too late leaves room unused.
    fn mix(&self) -> Units {
        Units::from_fn(|it| match self.plan.limits[it] {
            Some(limit) if self.progress_in_window > 0.0 => {
                (self.in_window[it] / limit.most / self.progress_in_window).min(1.0)
            }
            _ => 1.0,
        })
    }

    /// Ends a call. Whether it was known.
    pub(crate) fn settle(&mut self, clock: f64, id: &str, end: End, told: &Told) -> bool {
        let now = self.advance(clock);
        let Some(entry) = self.entries.get_mut(id).filter(|entry| !entry.settled) else {
            return false;
        };
        entry.settled = true;
        let (used, reserved) = match end {
            End::Used(used) | End::Refused { unused: used, .. } => (used, entry.amounts),
        };
        entry.amounts = used;
        let entry = entry.clone();
        self.draw(&Units::from_fn(|it| used[it] - reserved[it]));
        match end {
            End::Used(_) => {
                if entry.probe {
                    self.gate = self.gate.filter(|gate| now < gate.until);
                }
                self.log.answered();
                let observed = Observation::Told {
                    used: told.used,
                    reset: told.reset,
                    drawn: Units::from_fn(|it| {
                        entry.drawn[it] + self.changed[it] - entry.changed[it]
                    }),
                    in_window: entry.in_window,
                };
                if Dimension::ALL.into_iter().any(|it| told.used[it].is_some()) {
                    self.log.push(observed, &self.setup.numbers);
                }
            }
            End::Refused { retry, .. } => {
                self.close(now, retry, false);
                let Entry { at: admitted, drawn, spent, probe, .. } = entry;
                let refused = Observation::Refused {
                    at: now,
                    admitted,
                    need: reserved,
                    retry,
                    drawn,
                    spent,
                    probe,
                };
                self.log.push(refused, &self.setup.numbers);
            }
        }
        true
    }

    fn close(&mut self, now: f64, seconds: f64, paused: bool) {
        let until = (now + seconds).max(self.gate.map_or(0.0, |gate| gate.until));
        self.gate = Some(Gate { until, paused, probe: None });
    }

    /// An operator holds everybody.
    pub(crate) fn pause(&mut self, clock: f64, seconds: f64) {
        let now = self.advance(clock);
        self.close(now, seconds, true);
    }

    /// What was used without being asked about, while the store was away: it brings the queue on.
    pub(crate) fn charge(&mut self, clock: f64, id: &str, lane: usize, used: &Units) {
        let now = self.advance(clock);
        let entry = Entry {
            at: now,
            amounts: *used,
            progress: 0.0,
            settled: true,
            drawn: self.drawn,
            in_window: self.in_window,
            spent: self.spent,
            changed: self.changed,
            probe: false,
        };
        self.draw(used);
        let work = self.plan.work_of(used);
        self.queues[lane].passes(work);
        self.entries.insert(id.to_owned(), entry);
        self.ledger.push_back((now, id.to_owned()));
    }

    /// A tenant's callers come no more.
    pub(crate) fn leave(&mut self, lane: usize, tenant: u64) {
        self.queues[lane].leaves(tenant);
    }

    /// Whether the caller at hand shall run the policy.
    pub(crate) fn task(&mut self, clock: f64) -> bool {
        self.log.task(clock, &self.setup.numbers)
    }

    /// What the policy needs to know.
    pub(crate) fn read(&mut self, clock: f64) -> Reading {
        let now = self.advance(clock);
        Reading {
            now,
            version: self.plan.version,
            drawn: self.drawn,
            spent: self.spent,
            peak: self.peak,
            log: self.log.read(),
        }
    }

    /// A new plan, with changes of the levels: `false` if another was written since the reading.
    pub(crate) fn write(
        &mut self,
        clock: f64,
        reading: &Reading,
        plan: Plan,
        change: &Units,
    ) -> bool {
        self.advance(clock);
        if self.plan.version != reading.version {
            return false;
        }
        self.plan = Plan { version: reading.version + 1, ..plan };
        self.peak = Units::default();
        for it in Dimension::ALL {
            self.drawn[it] = (self.drawn[it] + change[it]).max(0.0);
            self.changed[it] += change[it];
        }
        self.log.trim(reading.log.end);
        true
    }

    /// What is drawn, for a worker to remember: what fills a window counts as drawn, for the window
    /// itself is forgotten.
    pub(crate) fn levels(&self) -> Units {
        Units::from_fn(|it| {
            self.plan.limits[it].map_or(0.0, |limit| {
                let room = (limit.window.value - self.in_window[it]).max(0.0);
                self.drawn[it].max(limit.capacity.value - room)
            })
        })
    }

    /// What was used in the window.
    pub(crate) fn used(&self) -> Units {
        self.in_window
    }

    /// Begins with what a worker remembers.
    pub(crate) fn restore(&mut self, drawn: Units) {
        self.drawn = drawn;
    }

    /// How long an even pace takes for what may go now.
    pub(crate) fn room(&self) -> f64 {
        let rooms = self.plan.limits.iter().filter_map(|(it, limit)| {
            let limit = (*limit)?;
            let level = limit.capacity.value - self.drawn[it];
            Some(level.min(limit.window.value - self.in_window[it]) / limit.rate.value)
        });
        let shut = self.gate.is_some_and(|gate| self.at < gate.until);
        if shut { 0.0 } else { rooms.fold(f64::INFINITY, f64::min).max(0.0) }
    }
}
