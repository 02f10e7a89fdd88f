//! The stores of the simulation: the scripts on a private Redis, and their twin in memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_quota::{
    Amounts, Change, Decision, Dimension, Error, Hold, ModelQuota, PerDimension, PerLimit, Store,
    Ticket,
    memory::{self, Remembered},
    numbers::Numbers,
    redis_store,
    store::{Ask, Expectation, Meter, Pause, ProviderSignal, Settlement, UsageSample},
};
use tidegate_testkit::Redis;
use tidegate_types::Tenant;
use tokio::runtime::Runtime;

use crate::{
    documents::{Document, MAX_OUTPUT},
    driver::{Answer, Call, Held, Limiter, Told},
    event::Micros,
};

/// Virtual time 0: midnight of some day in 2026, in microseconds.
const EPOCH: Micros = 1_790_000_000_000_000;

/// How often an answer lost on a busy machine is asked for again.
const TRIES: usize = 20;

const PAUSE_TTL: Duration = Duration::from_secs(300);

/// A store on virtual time.
pub(crate) trait Virtual {
    type Store: Store;

    /// The store, set to this time.
    fn at(&self, micros: Micros) -> &Self::Store;

    /// Loses everything; a worker may remember the plan.
    fn forget(&mut self, remembered: bool);

    /// Goes on from what a worker remembers, if the store does not do so by itself.
    fn restore(&self, _model: &ModelQuota, _seen: &Remembered) {}

    /// The state remembered by a worker that has just inspected the quota.
    fn remembered(&self, model: &ModelQuota) -> Option<Remembered>;

    /// The numbers in force.
    fn numbers(&self) -> Numbers {
        Numbers::DEFAULT
    }
}

/// The scripts on a real server.
pub(crate) struct Scripts {
    url: String,
    store: redis_store::Store,
    commands: redis::Connection,
}

/// The twin of the scripts.
pub(crate) struct Twin {
    store: memory::Store,
    clock: Arc<AtomicU64>,
    numbers: Numbers,
}

impl Twin {
    pub(crate) fn new(numbers: Numbers) -> Self {
        let clock = Arc::new(AtomicU64::new(EPOCH));
        let store = memory::Store::with_clock(PAUSE_TTL, Arc::clone(&clock));
        Self { store: store.with_numbers(numbers), clock, numbers }
    }
}

impl Scripts {
    /// A store on an empty server.
    pub(crate) fn new(server: &Redis, runtime: &Runtime) -> Self {
        let store = runtime.block_on(open(&server.url));
        let url = server.url.clone();
        let mut scripts = Self { url, store, commands: server.connection() };
        scripts.forget(true);
        scripts
    }
}

async fn open(url: &str) -> redis_store::Store {
    redis_store::Store::open(url, "simulation", PAUSE_TTL).expect("a store")
}

impl Virtual for Scripts {
    type Store = redis_store::Store;

    fn at(&self, micros: Micros) -> &Self::Store {
        self.store.set_test_clock(micros);
        &self.store
    }

    fn forget(&mut self, remembered: bool) {
        redis::cmd("FLUSHALL").exec(&mut self.commands).expect("FLUSHALL");
        if !remembered {
            self.store = runtime().block_on(open(&self.url));
        }
    }

    fn remembered(&self, model: &ModelQuota) -> Option<Remembered> {
        self.store.remembered(model)
    }
}

impl Virtual for Twin {
    type Store = memory::Store;

    fn at(&self, micros: Micros) -> &Self::Store {
        self.clock.store(micros, Ordering::SeqCst);
        &self.store
    }

    fn forget(&mut self, _remembered: bool) {
        let at = self.clock.load(Ordering::SeqCst);
        *self = Self::new(self.numbers);
        self.clock.store(at, Ordering::SeqCst);
    }

    fn restore(&self, model: &ModelQuota, seen: &Remembered) {
        self.store.begin(model, seen, 1);
    }

    fn remembered(&self, model: &ModelQuota) -> Option<Remembered> {
        Some(self.store.remembered(model))
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

/// A store, used by a fleet of workers.
pub(crate) struct Kept<S> {
    runtime: Runtime,
    store: S,
    model: ModelQuota,
    known: Option<Expectation>,
    /// The processes' own stores while Redis is away.
    alone: Vec<Twin>,
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

impl<S: Virtual> Kept<S> {
    pub(crate) fn new(runtime: Runtime, store: S, model: ModelQuota) -> Self {
        Self { runtime, store, model, known: None, alone: Vec::new() }
    }

    fn part(&self) -> ModelQuota {
        self.model.share(self.alone.len() as u64)
    }

    fn end(&mut self, now: Micros, alone: Option<usize>, settlement: Settlement) -> Micros {
        let settled = match alone.and_then(|process| self.alone.get(process)) {
            Some(twin) => {
                let settle = twin.at(EPOCH + now);
                let (part, runtime) = (self.part(), &self.runtime);
                // As `Shared::settle`: the provider's meter counts the whole quota.
                let meter = settlement.meter.share(self.alone.len() as u64);
                let settlement = Settlement { meter, ..settlement };
                Some(runtime.block_on(settle.settle(&part, &settlement)).expect("in memory"))
            }
            // A call that Redis does not settle stays charged.
            None if !self.alone.is_empty() => None,
            None => {
                Some(self.ask(now, async |store, model| store.settle(model, &settlement).await))
            }
        };
        let Some((_, known, room)) = settled else { return 0 };
        self.remember(known);
        micros(room)
    }

    /// As `Shared::amounts` in `quota/src/shared.rs`, for providers that count real output.
    fn amounts(&self, document: &Document) -> Amounts {
        let estimate = document.estimated_input;
        let (input, output) = match self.known {
            Some(known) => {
                let all = (estimate as f64 * known.input_ratio).ceil() as u64;
                let input = all.saturating_sub(known.cached).max(all.min(1));
                (input, known.output.min(MAX_OUTPUT))
            }
            None => {
                (estimate, (MAX_OUTPUT as f64 * self.store.numbers().unknown_output).ceil() as u64)
            }
        };
        self.model.amounts(input, output)
    }

    fn remember(&mut self, known: Option<Expectation>) {
        self.known = known.or(self.known);
    }

    fn ask<T>(
        &self,
        now: Micros,
        work: impl AsyncFn(&S::Store, &ModelQuota) -> Result<T, Error>,
    ) -> T {
        let store = self.store.at(EPOCH + now);
        for _ in 0..TRIES {
            match self.runtime.block_on(work(store, &self.model)) {
                Ok(answer) => return answer,
                Err(Error::Away(_)) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("Redis did not answer {TRIES} times");
    }
}

impl<S: Virtual> Limiter for Kept<S> {
    fn reserve(&mut self, now: Micros, process: usize, calls: Vec<Call<'_>>) -> Vec<Answer> {
        let ask = |call: Call<'_>| Ask {
            reservation: call.id,
            lane: call.lane,
            amounts: self.amounts(call.document),
            ticket: call.ticket,
            template: 0,
            curious: true,
            tenant: tenant(call.tenant),
        };
        let asks: Vec<Ask> = calls.into_iter().map(ask).collect();
        let alone = (process < self.alone.len()).then_some(process);
        let decisions = match alone {
            None => self.ask(now, async |store, model| store.reserve_all(model, &asks).await),
            Some(process) => {
                let store = self.alone[process].at(EPOCH + now);
                let part = self.part();
                let asked = store.reserve_all(&part, &asks);
                self.runtime.block_on(asked).expect("in memory")
            }
        };
        let answer = |(ask, (decision, known)): (Ask, (Decision, Option<Expectation>))| {
            self.remember(known);
            match decision {
                Decision::Granted => Answer::Granted(Held { id: ask.reservation, alone }),
                Decision::Wait { wait, ticket, hold, .. } => {
                    Answer::Wait { wait: micros(wait), ticket, in_turn: hold == Hold::Turn }
                }
                Decision::GateClosed { wait, ticket } => {
                    Answer::Paused { wait: micros(wait), ticket }
                }
                Decision::Exhausted { .. } => panic!("nothing here is counted by the day"),
                Decision::Never { .. } if alone.is_some() => {
                    // The call is larger than the process's share: it waits for Redis.
                    let ticket = ask.ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
                    Answer::Wait { wait: 4_000_000, ticket, in_turn: false }
                }
                Decision::Never { dimension, capacity } => {
                    panic!("a document exceeds the whole limit of {capacity} {dimension}")
                }
            }
        };
        asks.into_iter().zip(decisions).map(answer).collect()
    }

    /// As `Permit::settle`.
    fn settle(&mut self, now: Micros, held: Held, document: &Document, told: Told) -> Micros {
        let sample = UsageSample {
            estimated_input: document.estimated_input,
            input: document.input,
            output: document.output,
        };
        let used = self.model.amounts(document.input - told.cached, document.output);
        let cached = (!self.model.charge.cached_input).then_some(told.cached);
        let combined = told.meter.and(self.model.limits.per_minute.combined);
        let reset = told.meter.and_then(|(_, reset)| Some(Duration::from_micros(reset?)));
        let used_by_meter = told.meter.map(|(used, _)| used);
        let meter = Meter {
            used: PerDimension { combined: used_by_meter, ..PerDimension::default() },
            limits: PerDimension { combined, ..PerDimension::default() },
            resets: PerDimension { combined: reset, ..PerDimension::default() },
        };
        let settled = Settlement::used(held.id, used);
        self.end(now, held.alone, Settlement { sample: Some(sample), meter, cached, ..settled })
    }

    /// As `Permit::refused`: the provider answered 429.
    fn refused(&mut self, now: Micros, held: Held, retry: Micros) {
        let used = self.model.unused();
        let pause = Pause { length: Duration::from_micros(retry), reason: "429".to_owned() };
        let settled = Settlement {
            signal: ProviderSignal::RateLimited,
            pause: Some(pause),
            ..Settlement::used(held.id, used)
        };
        self.end(now, held.alone, settled);
    }

    /// `Limits::pace_of` in `quota/src/limits.rs`.
    fn pace_of(&self, document: &Document) -> Micros {
        let (limits, amounts) = (self.model.limits.effective(), self.amounts(document));
        let part = |it| amounts[it] as f64 / limits[it] as f64;
        let counted = Dimension::ALL.into_iter().filter(|it| limits[*it] > 0);
        let most = counted.map(part).fold(0.0, f64::max);
        (most * self.model.limits.window.as_micros() as f64) as Micros
    }

    fn pause(&mut self, now: Micros, length: Micros) {
        let pause = Pause { length: Duration::from_micros(length), reason: "operator".to_owned() };
        self.ask(now, async |store, model| store.pause(model, &pause).await);
    }

    fn resume(&mut self, now: Micros) {
        self.ask(now, async |store, model| store.resume(model).await);
    }

    fn set_limit(&mut self, now: Micros, combined: u64) {
        let window = PerDimension { combined: Change::Set(combined), ..PerDimension::default() };
        let changes = PerLimit { window, ..PerLimit::default() };
        self.ask(now, async |store, model| store.set_limits(model, &changes).await);
    }

    fn leave(&mut self, now: Micros, lane: usize, number: u64) {
        self.ask(now, async |store, model| store.leave(model, lane, &tenant(number)).await);
    }

    /// A worker inspects the quota every few seconds.
    fn flush(&mut self, now: Micros, remembered: bool) {
        self.ask(now, async |store, model| store.inspect(model).await);
        let seen = self.store.remembered(&self.model).filter(|_| remembered);
        self.store.forget(remembered);
        if let Some(seen) = seen {
            self.store.restore(&self.model, &seen);
        }
    }

    fn away(&mut self, now: Micros, processes: Option<usize>) {
        if let Some(processes) = processes {
            self.ask(now, async |store, model| store.inspect(model).await);
            let seen = self.store.remembered(&self.model);
            self.alone = (0..processes).map(|_| Twin::new(Numbers::DEFAULT)).collect();
            let part = self.part();
            for twin in &self.alone {
                if let Some(seen) = &seen {
                    twin.at(EPOCH + now).begin(&part, seen, processes as u64);
                }
            }
            return;
        }
        let part = self.part();
        for (process, twin) in std::mem::take(&mut self.alone).iter().enumerate() {
            let name = format!("alone-{process}-{now}");
            let store = twin.at(EPOCH + now);
            let (used, drawn) = (store.used_alone(&part), store.drawn_alone(&part));
            self.ask(now, async |store, model| store.charge(model, &name, 0, used, drawn).await);
        }
    }
}

fn tenant(number: u64) -> Tenant {
    Tenant::new(format!("tenant-{number}")).expect("a name")
}

fn micros(duration: Duration) -> Micros {
    duration.as_micros() as Micros
}
