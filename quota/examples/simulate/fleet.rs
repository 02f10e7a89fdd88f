//! A fleet of clients in virtual time. Clients ask, wait, call, are refused, come back, or die.

use tidegate_quota::Ticket;

use crate::{
    documents::{Chance, Document, MEAN_INPUT, MEAN_OUTPUT},
    driver::{Answer, Call, Held, Limiter, Told},
    event::{Events, Micros, SECOND},
    provider::Provider,
    report::Report,
};

/// `Options::default()` in `quota/src/shared.rs`: the longest wait in place, and the spread of
/// wake-ups after a pause.
pub(crate) const MAX_SLOT_WAIT: Micros = 10 * SECOND;
pub(crate) const JITTER: Micros = 30 * SECOND;

/// `SOON` in `quota/src/reserve_batcher/waiters.rs` and `MAX_CALLS` in `quota/src/reserve_batcher/batches.rs`.
pub(crate) const SOON: Micros = SECOND / 2;
pub(crate) const MAX_CALLS: usize = 32;

/// The longest wait behind an earlier caller: `target` in `quota/src/numbers.rs`.
pub(crate) const MAX_BEHIND: Micros = MAX_SLOT_WAIT / 4;

/// From when, and how often, the run checks for a standstill.
const WATCHED_FROM: Micros = 10 * SECOND;
const WATCHED_EVERY: Micros = SECOND / 10;

/// `MAX_SLEEP` in `quota/src/come_back.rs`.
const MAX_SLEEP: Micros = 60 * SECOND;

/// `DISPATCH`, `EARLY_PART` and `MAX_EARLY` in `quota/src/come_back.rs`, and `Backoff::default()` in `calls/src/failure/retry.rs`.
const EARLY: Micros = SECOND / 2;
const EARLY_PART: f64 = 0.16;
const MAX_EARLY: Micros = 10 * SECOND;
const BACKOFF_BASE: Micros = 10 * SECOND;
pub(crate) const BACKOFF_MAX: Micros = 60 * SECOND;
pub(crate) const MAX_QUOTA_WAIT: Micros = 300 * SECOND;

/// The first bound of the naive clients' back-off; it doubles up to [`BACKOFF_MAX`].
const NAIVE_BASE: Micros = SECOND;

/// Interactive and batch, as the scenarios with lanes order them.
pub(crate) const BATCH: usize = 0;
pub(crate) const INTERACTIVE: usize = 1;

/// An event in a run besides documents.
#[derive(Clone, Copy)]
pub(crate) enum Disturbance {
    Pause(Micros),
    /// Redis forgets everything; a worker may remember the plan.
    Flush {
        remembered: bool,
    },
    /// Redis is away for this long.
    Away(Micros),
    Return,
    /// An operator raises the limit, and the batch of tenant 1 is cancelled.
    Raise(u64),
}

/// One run of the simulation.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Length and the start of the steady state.
    pub(crate) end: Micros,
    pub(crate) steady: Micros,
    /// Clients with an endless backlog in lane [`BATCH`].
    pub(crate) workers: usize,
    /// Calls a second that arrive at random in lane [`INTERACTIVE`].
    pub(crate) interactive: f64,
    /// The part of documents whose client vanishes at its first refusal.
    pub(crate) vanish: f64,
    /// The part of settlements that never reach the store.
    pub(crate) lost: f64,
    /// Shortest and longest time from our admission to the provider's.
    pub(crate) skew: (Micros, Micros),
    pub(crate) disturbance: Option<(Micros, Disturbance)>,
    /// Callers in one process, which share script calls.
    pub(crate) in_process: usize,
    /// The tenant of each worker.
    pub(crate) tenant: fn(usize) -> u64,
    /// The longest time that a caller stays away with its ticket.
    pub(crate) longest_delay: Micros,
    pub(crate) seed: u64,
    /// Batches of this many documents, by their starts; empty for an endless backlog.
    pub(crate) batches: &'static [(Micros, usize)],
    /// How documents are made.
    pub(crate) draw: fn(&mut Chance) -> Document,
    /// Whether the provider's answers have its meter.
    pub(crate) headers: bool,
    /// Tokens of a mean call.
    pub(crate) mean: f64,
}

impl Plan {
    /// Endless batch work and nothing else.
    pub(crate) fn new(end: Micros, steady: Micros, workers: usize) -> Self {
        Self {
            end,
            steady,
            workers,
            interactive: 0.0,
            vanish: 0.0,
            lost: 0.0,
            skew: (0, 0),
            disturbance: None,
            in_process: 100,
            tenant: |_| 0,
            longest_delay: MAX_QUOTA_WAIT,
            seed: std::env::var("SIM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_120),
            batches: &[],
            draw: Document::draw,
            headers: false,
            mean: MEAN_INPUT + MEAN_OUTPUT,
        }
    }
}

enum Event {
    Ask(usize),
    Arrive(usize),
    Complete(usize),
    Interactive,
    Disturbance(Disturbance),
    Batch(usize),
    /// A plan is written.
    Watch,
}

struct Client {
    lane: usize,
    tenant: u64,
    /// Whether it takes the next document after this one.
    endless: bool,
    document: Document,
    vanishes: bool,
    since: Micros,
    /// When the present call of `admit` began; `None` after a return to the queue.
    admitting: Option<Micros>,
    attempt: u32,
    refusals: u32,
    ticket: Option<Ticket>,
    /// When it asks next, and whether it waits in place until then.
    asks: Micros,
    in_place: bool,
    /// Whether it was told that others come first.
    in_turn: bool,
    held: Option<Held>,
    /// The coming answer.
    told: Told,
    waiting: bool,
}

impl Client {
    /// Clients without a ticket come last, in order of arrival.
    fn turn(&self) -> (u64, Micros) {
        (self.ticket.map_or(u64::MAX, |ticket| ticket.position), self.since)
    }
}

/// Runs a fleet against a provider, with the limiter or, for comparison, without any.
pub(crate) fn run(
    plan: &Plan,
    provider: Box<dyn Provider>,
    limiter: Option<Box<dyn Limiter>>,
) -> Report {
    let chance = Chance::new(plan.seed);
    let report = Report::new(plan.steady, plan.end);
    let fleet = Fleet {
        plan,
        provider,
        limiter,
        chance,
        events: Events::new(),
        clients: Vec::new(),
        left: 0,
        idle: Vec::new(),
        report,
    };
    fleet.run()
}

struct Fleet<'a> {
    plan: &'a Plan,
    provider: Box<dyn Provider>,
    limiter: Option<Box<dyn Limiter>>,
    chance: Chance,
    events: Events<Event>,
    clients: Vec<Client>,
    /// Documents of the batches that are not started, and idle workers.
    left: usize,
    idle: Vec<usize>,
    report: Report,
}

impl Fleet<'_> {
    fn run(mut self) -> Report {
        for worker in 0..self.plan.workers {
            self.hire(0, BATCH, (self.plan.tenant)(worker), true);
            let start = self.chance.within(SECOND);
            self.clients[worker].since = start;
            if self.plan.batches.is_empty() {
                self.plan_ask(worker, start);
            } else {
                self.clients[worker].waiting = false;
                self.idle.push(worker);
            }
        }
        for (at, documents) in self.plan.batches {
            self.events.plan(*at, Event::Batch(*documents));
        }
        if self.plan.interactive > 0.0 {
            self.events.plan(0, Event::Interactive);
        }
        self.events.plan(WATCHED_FROM, Event::Watch);
        if let Some((at, disturbance)) = self.plan.disturbance {
            self.events.plan(at, Event::Disturbance(disturbance));
        }
        while let Some((now, event)) = self.events.next_before(self.plan.end) {
            match event {
                Event::Ask(client) => self.ask(now, client),
                Event::Arrive(client) => self.arrive(now, client),
                Event::Complete(client) => self.complete(now, client),
                Event::Interactive => self.interactive(now),
                Event::Disturbance(disturbance) => self.disturb(now, disturbance),
                Event::Watch => self.watch(now),
                Event::Batch(documents) => {
                    self.report.ended.push(self.report.finished);
                    self.left += documents;
                    for worker in std::mem::take(&mut self.idle) {
                        self.next_document(now, worker);
                    }
                }
            }
        }
        // Interactive calls that still wait have waited at least this long.
        for client in self.clients.iter().filter(|client| client.waiting && !client.endless) {
            self.report.waited(
                self.plan.end,
                client.lane,
                client.tenant,
                &client.document,
                client.since,
            );
        }
        self.report
    }

    fn hire(&mut self, now: Micros, lane: usize, tenant: u64, endless: bool) -> usize {
        let document = (self.plan.draw)(&mut self.chance);
        let vanishes = self.chance.part() < self.plan.vanish;
        self.clients.push(Client {
            lane,
            tenant,
            endless,
            document,
            vanishes,
            since: now,
            admitting: None,
            attempt: 0,
            refusals: 0,
            ticket: None,
            asks: now,
            in_place: false,
            in_turn: true,
            held: None,
            told: Told::default(),
            waiting: true,
        });
        self.clients.len() - 1
    }

    fn next_document(&mut self, now: Micros, at: usize) {
        if !self.clients[at].endless {
            self.clients[at].waiting = false;
            return;
        }
        if !self.plan.batches.is_empty() {
            if self.left == 0 {
                self.clients[at].waiting = false;
                return self.idle.push(at);
            }
            self.left -= 1;
        }
        let document = (self.plan.draw)(&mut self.chance);
        let vanishes = self.chance.part() < self.plan.vanish;
        let client = &mut self.clients[at];
        *client = Client {
            document,
            vanishes,
            since: now,
            admitting: None,
            attempt: client.attempt + 1,
            refusals: 0,
            ticket: None,
            asks: now,
            in_place: false,
            in_turn: true,
            held: None,
            told: Told::default(),
            waiting: true,
            ..*client
        };
        self.plan_ask(at, now);
    }

    fn ask(&mut self, now: Micros, at: usize) {
        if self.limiter.is_none() {
            return self.send(now, at);
        }
        let client = &mut self.clients[at];
        if client.asks != now || !client.waiting || client.held.is_some() {
            // It was woken earlier.
            return;
        }
        let is_new = client.admitting.is_none();
        client.admitting.get_or_insert(now);
        client.in_place = false;
        if let Some(due) = self.until_earlier(at).filter(|_| is_new) {
            self.clients[at].in_place = true;
            return self.plan_ask(at, due.min(now + MAX_BEHIND));
        }
        let asked = self.together(now, at);
        let call = |at: &usize| {
            let client = &self.clients[*at];
            Call {
                id: format!("{at}#{}", client.attempt),
                lane: client.lane,
                tenant: client.tenant,
                document: &client.document,
                ticket: client.ticket,
            }
        };
        let calls = asked.iter().map(call).collect();
        let Some(limiter) = &mut self.limiter else { return };
        let process = at / self.plan.in_process;
        let answers = limiter.reserve(now, process, calls);
        self.report.asked(now);
        for (at, answer) in asked.into_iter().zip(answers) {
            self.answered(now, at, answer);
        }
    }

    /// Clients that wait in place in the same process for the same lane and tenant, in the order of
    /// their turns.
    fn beside(&self, at: usize) -> Vec<usize> {
        let (own, in_process) = (&self.clients[at], self.plan.in_process);
        let from = at / in_process * in_process;
        let process = from..(from + in_process).min(self.clients.len());
        let waits = |other: &usize| {
            let client = &self.clients[*other];
            *other != at
                && client.in_place
                && client.waiting
                && (client.lane, client.tenant) == (own.lane, own.tenant)
        };
        let mut beside: Vec<usize> = process.filter(waits).collect();
        beside.sort_by_key(|at| self.clients[*at].turn());
        beside
    }

    /// As `Shared::wait_behind` in `quota/src/decide.rs`: when an earlier client asks.
    fn until_earlier(&self, at: usize) -> Option<Micros> {
        let first = &self.clients[*self.beside(at).first()?];
        (first.turn() < self.clients[at].turn()).then_some(first.asks)
    }

    /// The clients of a batch, including those due soon.
    fn together(&mut self, now: Micros, at: usize) -> Vec<usize> {
        let soon = |other: &usize| self.clients[*other].asks <= now + SOON;
        let beside = self.beside(at).into_iter().filter(soon).take(MAX_CALLS - 1);
        let mut asked: Vec<usize> = beside.chain([at]).collect();
        asked.sort_by_key(|at| self.clients[*at].turn());
        for at in &asked {
            self.clients[*at].in_place = false;
            // It does not ask again when it wakes.
            self.clients[*at].asks = 0;
        }
        asked
    }

    fn answered(&mut self, now: Micros, at: usize, answer: Answer) {
        let client = &mut self.clients[at];
        let started = client.admitting.unwrap_or(now);
        let (sleep, wait, back) = match answer {
            Answer::Granted(held) => {
                client.held = Some(held);
                return self.send(now, at);
            }
            Answer::Wait { wait, ticket, in_turn } => {
                (client.ticket, client.in_turn) = (Some(ticket), in_turn);
                (early(wait), wait, come_back(wait, self.plan.longest_delay))
            }
            Answer::Paused { wait, ticket } => {
                (client.ticket, client.in_turn) = (Some(ticket), false);
                let wait = wait + self.chance.within(JITTER);
                (wait, wait, wait.min(BACKOFF_MAX))
            }
        };
        if client.vanishes {
            return self.next_document(now, at);
        }
        if now - started + wait > MAX_SLOT_WAIT {
            client.admitting = None;
            client.attempt += 1;
            self.plan_ask(at, now + back);
        } else {
            client.in_place = true;
            self.plan_ask(at, now + sleep);
        }
    }

    fn plan_ask(&mut self, at: usize, when: Micros) {
        self.clients[at].asks = when;
        self.events.plan(when, Event::Ask(at));
    }

    /// As `Waiters::take_fitting` in `quota/src/reserve_batcher/waiters.rs`.
    fn wake(&mut self, now: Micros, room: Micros) {
        let Some(limiter) = &self.limiter else { return };
        let fits = |client: &Client| {
            let before = if client.in_turn { client.asks.saturating_sub(now) } else { 0 };
            before + limiter.pace_of(&client.document) <= room
        };
        let woken = |at: &usize| self.clients[*at].in_place && fits(&self.clients[*at]);
        let woken: Vec<usize> = (0..self.clients.len()).filter(woken).collect();
        woken.into_iter().for_each(|at| self.plan_ask(at, now));
    }

    fn send(&mut self, now: Micros, at: usize) {
        let (least, most) = self.plan.skew;
        let delay = least + self.chance.within(most - least);
        self.events.plan(now + delay, Event::Arrive(at));
        let client = &self.clients[at];
        if self.limiter.is_some() {
            self.report.waited(now, client.lane, client.tenant, &client.document, client.since);
        }
    }

    fn arrive(&mut self, now: Micros, at: usize) {
        let client = &mut self.clients[at];
        client.told.cached = self.provider.cached(&client.document);
        match self.provider.admit(now, &client.document) {
            Ok(()) => {
                client.waiting = false;
                if self.plan.headers {
                    client.told.meter = self.provider.meter_reading(now);
                }
                self.report.taken(now, client.lane, client.tenant, &client.document);
                if self.limiter.is_none() {
                    self.report.waited(
                        now,
                        client.lane,
                        client.tenant,
                        &client.document,
                        client.since,
                    );
                }
                self.events.plan(now + client.document.latency, Event::Complete(at));
            }
            Err(retry_after) => {
                self.report.refused(now);
                let (base, floor) = match (&mut self.limiter, client.held.take()) {
                    (Some(limiter), Some(held)) => {
                        limiter.refused(now, held, retry_after);
                        (BACKOFF_BASE, retry_after.min(BACKOFF_MAX))
                    }
                    _ => (NAIVE_BASE, 0),
                };
                let bound = (base << client.refusals.min(16)).min(BACKOFF_MAX);
                client.refusals += 1;
                client.attempt += 1;
                client.admitting = None;
                client.ticket = None;
                let delay = self.chance.within(bound).max(floor);
                self.plan_ask(at, now + delay);
            }
        }
    }

    fn complete(&mut self, now: Micros, at: usize) {
        let client = &mut self.clients[at];
        self.provider.complete(now, &client.document);
        let settled = client.held.take();
        if let (Some(limiter), Some(held)) = (&mut self.limiter, settled)
            && self.chance.part() >= self.plan.lost
        {
            let room = limiter.settle(now, held, &client.document, client.told);
            self.wake(now, room);
        }
        self.report.finished = now;
        self.next_document(now, at);
    }

    /// Whether a client waits although the provider would accept a mean call.
    fn watch(&mut self, now: Micros) {
        self.events.plan(now + WATCHED_EVERY, Event::Watch);
        let waits = |client: &Client| client.waiting && client.held.is_none();
        let idle = (self.left > 0 || self.clients.iter().any(waits))
            && self.provider.has(now, self.plan.mean);
        self.report.watched(now, idle);
    }

    fn interactive(&mut self, now: Micros) {
        let client = self.hire(now, INTERACTIVE, 0, false);
        self.plan_ask(client, now);
        let gap = self.chance.gap(self.plan.interactive);
        self.events.plan(now + gap, Event::Interactive);
    }

    fn disturb(&mut self, now: Micros, disturbance: Disturbance) {
        let Some(limiter) = &mut self.limiter else { return };
        match disturbance {
            Disturbance::Pause(length) => limiter.pause(now, length),
            Disturbance::Flush { remembered } => limiter.flush(now, remembered),
            Disturbance::Away(length) => {
                limiter.away(now, Some(self.clients.len().div_ceil(self.plan.in_process)));
                self.events.plan(now + length, Event::Disturbance(Disturbance::Return));
            }
            Disturbance::Return => limiter.away(now, None),
            Disturbance::Raise(limit) => {
                limiter.set_limit(now, limit);
                limiter.leave(now, BATCH, 1);
                for client in self.clients.iter_mut().filter(|client| client.tenant == 1) {
                    if client.waiting && client.held.is_none() {
                        client.waiting = false;
                    } else {
                        client.endless = false;
                    }
                }
            }
        }
    }
}

/// `in_place` in `quota/src/come_back.rs`.
pub(crate) fn early(wait: Micros) -> Micros {
    if wait > 2 * SECOND { ((wait as f64 * 0.95) as Micros).min(MAX_SLEEP) } else { wait }
}

/// `elsewhere` in `quota/src/come_back.rs`.
pub(crate) fn come_back(wait: Micros, longest: Micros) -> Micros {
    let early = EARLY + ((wait as f64 * EARLY_PART) as Micros).min(MAX_EARLY);
    wait.saturating_sub(early).clamp(SECOND, longest)
}
