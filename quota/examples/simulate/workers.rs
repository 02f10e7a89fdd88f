//! Workers that take documents from one task queue as [`Intake`] allows, in virtual time.

mod waiting;

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use tidegate_quota::{
    Ticket,
    intake::{Intake, QueuedAttempt},
    numbers::Numbers,
};
use tidegate_types::{Lane, ModelId};

use crate::{
    documents::{Chance, Document},
    driver::{Held, Limiter, Told},
    event::{Events, Micros, SECOND},
    fleet::MAX_SLOT_WAIT,
};

/// The most slots of a worker's lane, and `POLLS` in `src/worker/slots.rs`.
const SLOTS: usize = 100;
const POLLS: usize = 5;

/// Delays: from a poll, or the document that it waits for, to the document's start; and from a
/// document's end to the next of its batch in the task queue.
const DISPATCH: (Micros, Micros) = (20_000, 50_000);
const NEXT: (Micros, Micros) = (50_000, 200_000);

/// `EVERY` in `quota/src/operator_holds.rs`.
const NEWS: Micros = 2 * SECOND;

/// Held slots are sampled in the run's last part.
const SPREAD: Micros = 600 * SECOND;

/// How often a gate that an operator holds is closed again: `close_again` in
/// `quota/src/operator_actions.rs`.
const AGAIN: Micros = 100 * SECOND;

/// One run.
pub(crate) struct Plan {
    pub(crate) end: Micros,
    pub(crate) workers: usize,
    /// Batches, each of its own tenant, with the documents of each model that each has in flight.
    pub(crate) batches: usize,
    pub(crate) windows: Vec<usize>,
    /// Delay from a document's start to its first ask.
    pub(crate) reads: Micros,
    /// When an operator closes the gate, for how long, and when it is opened.
    pub(crate) gate: Option<(Micros, Micros, Micros)>,
    pub(crate) seed: u64,
}

/// The results of a run.
#[derive(Default)]
pub(crate) struct Figures {
    /// Documents taken; of these, those that came back, and those that waited too long without
    /// keeping watch.
    pub(crate) taken: u64,
    pub(crate) beyond: u64,
    pub(crate) deferred: u64,
    pub(crate) questions: u64,
    pub(crate) admitted: u64,
    /// Tokens of admitted calls, by model.
    pub(crate) tokens: Vec<u64>,
    /// Slots held by the fleet, in each second of the last ten minutes.
    pub(crate) held: Vec<usize>,
    /// From the opening of the gate to the next call.
    pub(crate) reopened: Option<Micros>,
}

thread_local! {
    static NOW: Cell<Micros> = const { Cell::new(0) };
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn clock() -> Instant {
    *START + Duration::from_micros(NOW.get())
}

enum Event {
    /// A worker checks whether to take one more.
    Look(usize),
    Started(usize, usize),
    Ask(usize),
    Complete(usize),
    Queued(usize),
    Pause(Micros),
    Resume,
    News(usize),
    Sample,
}

/// A document's stage.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// In the task queue, asleep, on its way or done: it does not ask.
    Away,
    /// It asks, or waits in place.
    Admission,
    /// It keeps watch, and asks again at this time.
    Watch,
    Calling,
}

struct Task {
    model: usize,
    batch: usize,
    document: Document,
    ticket: Option<Ticket>,
    attempt: u32,
    worker: usize,
    at: At,
    /// Times: taken, start of the present `admit`, start of its watch, next ask.
    taken: Micros,
    admitting: Option<Micros>,
    watching: Option<Micros>,
    asks: Micros,
    in_place: bool,
    /// Whether it was told that others come first.
    in_turn: bool,
    /// Whether it has a place in the waiting room.
    waits: bool,
    place: Option<QueuedAttempt>,
    held: Option<Held>,
}

struct Worker {
    intake: Arc<Intake>,
    /// Open polls, and documents in slots.
    polls: usize,
    tasks: BTreeSet<usize>,
    /// When it checks next.
    looks: Micros,
}

impl Worker {
    /// Slots held.
    fn held(&self) -> usize {
        self.polls + self.tasks.len()
    }
}

/// Runs workers against quotas, one for each model.
pub(crate) fn run(plan: &Plan, numbers: &Numbers, quotas: Vec<Box<dyn Limiter>>) -> Figures {
    let intake =
        || Arc::new(Intake::with_clock(Duration::from_micros(MAX_SLOT_WAIT), numbers, clock));
    let worker = |_| Worker { intake: intake(), polls: 0, tasks: BTreeSet::new(), looks: 0 };
    let model = |at| format!("simulated:{at}").parse().expect("a model id");
    let fleet = Fleet {
        plan,
        models: (0..quotas.len()).map(model).collect(),
        lane: Lane::default(),
        figures: Figures { tokens: vec![0; quotas.len()], ..Figures::default() },
        quotas,
        workers: (0..plan.workers).map(worker).collect(),
        tasks: Vec::new(),
        backlog: VecDeque::new(),
        polls: VecDeque::new(),
        watches: BTreeMap::new(),
        events: Events::new(),
        chance: Chance::new(plan.seed),
    };
    fleet.run()
}

struct Fleet<'a> {
    plan: &'a Plan,
    quotas: Vec<Box<dyn Limiter>>,
    models: Vec<ModelId>,
    lane: Lane,
    workers: Vec<Worker>,
    tasks: Vec<Task>,
    /// The task queue: documents, or open polls.
    backlog: VecDeque<usize>,
    polls: VecDeque<usize>,
    /// The document that keeps watch, for each worker and model.
    watches: BTreeMap<(usize, usize), usize>,
    events: Events<Event>,
    chance: Chance,
    figures: Figures,
}

impl Fleet<'_> {
    fn run(mut self) -> Figures {
        NOW.set(0);
        let most = self.plan.windows.iter().copied().max().unwrap_or_default();
        for place in 0..most {
            for model in 0..self.models.len() {
                for batch in (0..self.plan.batches).filter(|_| place < self.plan.windows[model]) {
                    self.next_of(0, batch, model);
                }
            }
        }
        (0..self.workers.len()).for_each(|worker| self.events.plan(0, Event::Look(worker)));
        if let Some((at, length, opens)) = self.plan.gate {
            for closes in (at..opens).step_by(AGAIN as usize) {
                self.events.plan(closes, Event::Pause(at + length - closes));
            }
            self.events.plan(opens, Event::Resume);
        }
        self.events.plan(self.plan.end - SPREAD, Event::Sample);
        while let Some((now, event)) = self.events.next_before(self.plan.end) {
            NOW.set(now);
            match event {
                Event::Look(worker) => self.check_worker(now, worker),
                Event::Started(worker, task) => self.started(now, worker, task),
                Event::Ask(task) => self.ask(now, task),
                Event::Complete(task) => self.complete(now, task),
                Event::Queued(task) => {
                    self.backlog.push_back(task);
                    self.dispatch(now);
                }
                Event::Pause(length) => {
                    self.quotas.iter_mut().for_each(|quota| quota.pause(now, length));
                }
                Event::Resume => {
                    self.quotas.iter_mut().for_each(|quota| quota.resume(now));
                    for worker in 0..self.workers.len() {
                        let hears = self.chance.within(NEWS);
                        self.events.plan(now + hears, Event::News(worker));
                    }
                }
                Event::News(worker) => self.news(now, worker),
                Event::Sample => {
                    self.figures.held.push(self.workers.iter().map(Worker::held).sum());
                    self.events.plan(now + SECOND, Event::Sample);
                }
            }
        }
        self.figures
    }

    fn between(&mut self, (least, most): (Micros, Micros)) -> Micros {
        least + self.chance.within(most - least)
    }

    /// Adds a batch's next document for a model to the task queue.
    fn next_of(&mut self, now: Micros, batch: usize, model: usize) {
        let task = self.tasks.len();
        let document = Document::alike(&mut self.chance);
        self.tasks.push(Task {
            model,
            batch,
            document,
            ticket: None,
            attempt: 0,
            worker: 0,
            at: At::Away,
            taken: 0,
            admitting: None,
            watching: None,
            asks: 0,
            in_place: false,
            in_turn: true,
            waits: false,
            place: None,
            held: None,
        });
        let comes = now + self.between(NEXT);
        self.events.plan(comes, Event::Queued(task));
    }

    /// As `LaneSlots::reserve_slot` in `src/worker/supplier.rs`.
    fn check_worker(&mut self, now: Micros, at: usize) {
        let live = self.workers.len() as u64;
        let worker = &mut self.workers[at];
        while worker.polls < POLLS && worker.held() < SLOTS {
            let wait = worker.intake.until_next(&self.lane, worker.held(), live);
            if !wait.is_zero() {
                let looks = now + (wait.as_micros() as Micros).max(1);
                if worker.looks <= now || worker.looks > looks {
                    worker.looks = looks;
                    self.events.plan(looks, Event::Look(at));
                }
                break;
            }
            worker.polls += 1;
            self.polls.push_back(at);
        }
        self.dispatch(now);
    }

    fn dispatch(&mut self, now: Micros) {
        while !self.polls.is_empty() && !self.backlog.is_empty() {
            let (Some(worker), Some(task)) = (self.polls.pop_front(), self.backlog.pop_front())
            else {
                return;
            };
            let starts = now + self.between(DISPATCH);
            self.events.plan(starts, Event::Started(worker, task));
        }
    }

    fn started(&mut self, now: Micros, worker: usize, at: usize) {
        self.workers[worker].polls -= 1;
        self.workers[worker].tasks.insert(at);
        self.figures.taken += 1;
        let task = &mut self.tasks[at];
        (task.worker, task.taken, task.at) = (worker, now, At::Admission);
        (task.admitting, task.watching, task.waits) = (None, None, false);
        task.in_turn = true;
        self.plan_ask(at, now + self.plan.reads);
        self.check_worker(now, worker);
    }

    fn complete(&mut self, now: Micros, at: usize) {
        let task = &mut self.tasks[at];
        let (worker, model, batch) = (task.worker, task.model, task.batch);
        let held = task.held.take();
        (task.at, task.place) = (At::Away, None);
        self.workers[worker].tasks.remove(&at);
        if let Some(held) = held {
            let document = self.tasks[at].document;
            let room = self.quotas[model].settle(now, held, &document, Told::default());
            self.wake(now, worker, model, room);
        }
        self.next_of(now, batch, model);
        self.check_worker(now, worker);
    }
}
