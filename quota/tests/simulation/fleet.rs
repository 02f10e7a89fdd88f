//! A fleet in virtual time from a seed: its callers ask, call, wait and die, and faults happen.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tidegate_quota::{
    Amounts, Change, Charge, Decision, Dimension, Lanes, Limits, ModelQuota, PerDimension,
    PerLimit, Share, Snapshot, Store, Ticket, redis_store,
    store::{Ask, LimitChanges, Meter, Pause, ProviderSignal, Settled, Settlement, UsageSample},
};
use tidegate_testkit::Redis;
use tidegate_types::{Lane, Tenant};
use tokio::runtime::Runtime;

use crate::{
    clock::Expiry,
    documents::Chance,
    event::{Events, Micros, SECOND},
    fault::{Fault, Faults},
    witness::{self, Witness},
};

/// Virtual time 0: midnight of some day in 2026.
const EPOCH: Micros = 1_790_000_000_000_000;
const WINDOW: Micros = 60 * SECOND;
const PREFIX: &str = "simulation";
const STEM: &str = "simulation:v1:{simulated:model}";

const LIMIT: u64 = 100_000;
const PAUSE_TTL: Duration = Duration::from_secs(300);
/// A busy machine may answer late.
const PATIENCE: Duration = Duration::from_secs(30);
const CLIENTS: usize = 10;
const TENANTS: usize = 3;

enum Event {
    Ask(usize),
    End(usize),
    Strike,
    TakeOver,
    Thaw,
}

struct Client {
    lane: usize,
    tokens: u64,
    attempt: u32,
    ticket: Option<Ticket>,
    holds: Option<String>,
    done: bool,
}

/// One run.
pub(crate) struct Fleet<'a> {
    runtime: Runtime,
    store: redis_store::Store,
    connection: redis::Connection,
    model: ModelQuota,
    faults: Faults<'a>,
    chance: Chance,
    events: Events<Event>,
    clients: Vec<Client>,
    expiry: Expiry,
    witness: Witness,
    now: Micros,
    /// How far the server's clock has been set back.
    behind: Micros,
    /// Until then faults happen; after it no new caller comes, and each waiting caller must be
    /// admitted.
    faults_end: Micros,
    replica: Vec<(String, Vec<u8>)>,
    /// The largest limits ever in force.
    deepest: PerDimension<f64>,
    steps: u64,
    admitted: u64,
    happened: HashMap<&'static str, u64>,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(server: &Redis, seed: u64, faults: &'a [Fault], windows: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let open =
            async { redis_store::Store::open_within(&server.url, PREFIX, PAUSE_TTL, PATIENCE) };
        let store = runtime.block_on(open).unwrap();
        let mut connection = server.connection();
        redis::cmd("FLUSHALL").exec(&mut connection).unwrap();
        let mut chance = Chance::new(seed);
        let model = model(&mut chance);
        let clients = (0..CLIENTS).map(|at| Client {
            lane: usize::from(at % 4 == 0),
            tokens: 0,
            attempt: 0,
            ticket: None,
            holds: None,
            done: false,
        });
        Self {
            runtime,
            store,
            connection,
            model,
            faults: Faults(faults),
            clients: clients.collect(),
            chance,
            events: Events::new(),
            expiry: Expiry::default(),
            witness: Witness::default(),
            now: 0,
            behind: 0,
            faults_end: windows * WINDOW,
            replica: Vec::new(),
            deepest: PerDimension::default(),
            steps: 0,
            admitted: 0,
            happened: HashMap::new(),
        }
    }

    /// Runs to the end and returns what happened.
    pub(crate) fn run(mut self) -> String {
        for client in 0..self.clients.len() {
            self.next_document(client);
            let start = self.chance.within(SECOND);
            self.events.plan(start, Event::Ask(client));
        }
        self.events.plan(WINDOW, Event::Strike);
        // Enough for all waits: a window each for a few calls, a gate, a debt of a window.
        let end = self.faults_end + 20 * WINDOW;
        while let Some((at, event)) = self.events.next_before(end) {
            self.now = self.now.max(at);
            match event {
                Event::Ask(client) => self.ask(client),
                Event::End(client) => self.end(client),
                Event::Strike => self.strike(),
                Event::TakeOver => self.take_over(),
                Event::Thaw => self.thaw(),
            }
        }
        let waiting = self.clients.iter().filter(|client| !client.done).count();
        assert_eq!(waiting, 0, "callers still wait 20 windows after the last fault");
        format!("{} steps, {} admitted, {:?}", self.steps, self.admitted, self.happened)
    }

    fn next_document(&mut self, at: usize) {
        let tokens = 500 + (self.chance.part().powi(3) * 20_000.0) as u64;
        let client = &mut self.clients[at];
        client.tokens = tokens;
        client.attempt += 1;
        client.ticket = None;
        client.holds = None;
    }

    fn ask(&mut self, at: usize) {
        let client = &self.clients[at];
        let amounts = Amounts::call(client.tokens, client.tokens / 10);
        let ask = Ask {
            reservation: format!("{at}#{}", client.attempt),
            lane: client.lane,
            amounts,
            ticket: client.ticket,
            template: 0,
            curious: true,
            tenant: tenant_of(at % TENANTS),
        };
        let mut decision = self.reserve(&ask);
        if decision == Decision::Granted {
            // A bucket may be drained while it refills, and may have been deeper.
            let seen = self.seen();
            let limits = PerDimension::from_fn(|it| {
                let Some(plan) = seen.get(it).plan else { return 0.0 };
                self.deepest[it] = self.deepest[it].max(plan.most);
                let window = plan.window.value;
                if window.is_finite() { window } else { 2.0 * self.deepest[it] }
            });
            self.witness.admit(self.now, WINDOW, &ask.reservation, amounts, &limits);
            self.admitted += 1;
            if self.faults.strikes(Fault::LostReply, &mut self.chance) {
                decision = self.reserve(&ask);
                assert_eq!(decision, Decision::Granted, "asked again after a lost reply");
            }
        }
        let jitter = self.chance.within(SECOND);
        match decision {
            Decision::Granted => {
                self.clients[at].holds = Some(ask.reservation);
                // Some calls outlive the window.
                let long = self.chance.part() < 0.02;
                let latency = self.chance.within(if long { 4 * WINDOW } else { 20 * SECOND });
                self.events.plan(self.now + SECOND + latency, Event::End(at));
            }
            Decision::Wait { wait, ticket, .. } => {
                self.clients[at].ticket = Some(ticket);
                let wait = wait.as_micros() as Micros;
                assert!(wait < 60 * WINDOW, "told to wait {} s", wait / SECOND);
                // As a worker does: early if the wait is long.
                let early = if wait > 2 * SECOND { wait / 20 * 17 } else { wait };
                self.events.plan(self.now + early, Event::Ask(at));
            }
            Decision::GateClosed { wait, ticket } => {
                self.clients[at].ticket = Some(ticket);
                self.events.plan(self.now + wait.as_micros() as Micros + jitter, Event::Ask(at));
            }
            other => panic!("{at} with {amounts:?} of {:?}: {other:?}", self.model.limits),
        }
    }

    fn end(&mut self, at: usize) {
        let Some(id) = self.clients[at].holds.take() else { return };
        if !self.faults.strikes(Fault::LostSettlement, &mut self.chance) {
            let settlement = self.settlement(at, id);
            self.settle(&settlement);
            if self.faults.strikes(Fault::LostReply, &mut self.chance) {
                self.settle(&settlement);
            }
        }
        if self.now >= self.faults_end {
            self.clients[at].done = true;
            return;
        }
        self.next_document(at);
        self.events.plan(self.now, Event::Ask(at));
    }

    fn settlement(&mut self, at: usize, id: String) -> Settlement {
        let tokens = self.clients[at].tokens;
        // One in fifty is far off its estimate; most use a little less or more.
        let part = if self.chance.part() < 0.02 { 3.0 } else { 0.6 + 0.5 * self.chance.part() };
        let (input, output) = ((tokens as f64 * part) as u64, self.chance.within(tokens / 5 + 1));
        let mut settlement = Settlement {
            sample: Some(UsageSample { estimated_input: tokens, input, output }),
            ..Settlement::used(id, Amounts::call(input, output))
        };
        if self.faults.strikes(Fault::Refusal, &mut self.chance) {
            let length = Duration::from_micros(self.chance.within(30 * SECOND));
            settlement.used = Some(Amounts { requests: 1, ..Amounts::default() });
            settlement.sample = None;
            settlement.signal = if self.chance.part() < 0.7 {
                settlement.pause = Some(Pause { length, reason: "429".to_owned() });
                ProviderSignal::RateLimited
            } else {
                ProviderSignal::Overloaded
            };
        } else if self.chance.part() < 0.02 {
            (settlement.used, settlement.sample) = (None, None);
        }
        if self.faults.strikes(Fault::Headers, &mut self.chance) {
            let used = Some(self.chance.within(LIMIT));
            let limit = Some(LIMIT / 2 + self.chance.within(LIMIT));
            settlement.meter = Meter {
                used: PerDimension { combined: used, ..PerDimension::default() },
                limits: PerDimension { combined: limit, ..PerDimension::default() },
                ..Meter::default()
            };
        }
        settlement
    }

    fn settle(&mut self, settlement: &Settlement) {
        let id = &settlement.reservation;
        let held = self.witness.holds(id, WINDOW, self.now);
        let settled = self.step(async |store, model| store.settle(model, settlement).await).0;
        match (settled, settlement.used) {
            // Sent again, it changes nothing.
            (Settled::Before, _) => {}
            (Settled::Done, used) if held => self.witness.settle(id, used),
            (Settled::Done, Some(used)) => {
                let late = Amounts {
                    output: used.output,
                    combined: used.combined.saturating_sub(used.input),
                    ..Amounts::default()
                };
                self.witness.late(self.now, id, late);
            }
            _ => {}
        }
    }

    /// A fault hits the whole fleet.
    fn strike(&mut self) {
        if self.now >= self.faults_end {
            return;
        }
        let next = 30 * SECOND + self.chance.within(3 * WINDOW);
        let Some(fault) = self.faults.of_the_fleet(&mut self.chance) else { return };
        *self.happened.entry(name(fault)).or_default() += 1;
        match fault {
            Fault::Silence | Fault::Kill => {
                let busy: Vec<usize> =
                    (0..CLIENTS).filter(|at| self.clients[*at].holds.is_some()).collect();
                for at in busy {
                    if fault == Fault::Silence {
                        self.end(at);
                    } else {
                        // The attempt is lost; the document asks again without a ticket.
                        let client = &mut self.clients[at];
                        client.holds = None;
                        client.attempt += 1;
                        self.events.plan(self.now, Event::Ask(at));
                    }
                }
                // Everything planned in this time happens after it.
                self.now += 3 * WINDOW + self.chance.within(9 * WINDOW);
            }
            Fault::Flush => {
                redis::cmd("FLUSHALL").exec(&mut self.connection).unwrap();
                self.expiry = Expiry::default();
                self.witness.forget(self.now);
            }
            Fault::Eviction => {
                let part = self.chance.part();
                if let Some(key) = self.expiry.some_key(part).cloned() {
                    redis::cmd("DEL").arg(&key).exec(&mut self.connection).unwrap();
                    self.expiry.forget(&key);
                    self.witness.forget(self.now);
                }
            }
            Fault::Failover => {
                self.replica = self.expiry.dump(&mut self.connection);
                let lost = self.chance.within(10 * SECOND);
                self.events.plan(self.now + lost, Event::TakeOver);
            }
            Fault::Clock => {
                self.behind += SECOND + self.chance.within(10 * WINDOW);
                self.witness.forget(self.now);
            }
            Fault::Cancellation => self.cancel(),
            Fault::Limit => {
                let limit = LIMIT / 2 + self.chance.within(2 * LIMIT);
                let change =
                    if self.chance.part() < 0.3 { Change::Clear } else { Change::Set(limit) };
                self.set_limit(change);
            }
            Fault::Policy => {
                self.store.keep_tasks(true);
                let late = self.chance.within(20 * SECOND);
                self.events.plan(self.now + late, Event::Thaw);
            }
            Fault::Pause => {
                let length = Duration::from_micros(self.chance.within(2 * WINDOW));
                let pause = Pause { length, reason: "operator".to_owned() };
                self.step(async |store, model| store.pause(model, &pause).await);
            }
            _ => {}
        }
        self.events.plan(self.now + next, Event::Strike);
    }

    /// Half of the waiting callers, or all of a tenant, start again without a ticket. The limiter
    /// is told only of a tenant whose batch was cancelled.
    fn cancel(&mut self) {
        let tenant =
            (self.chance.part() < 0.5).then(|| self.chance.within(TENANTS as u64) as usize);
        for (at, client) in self.clients.iter_mut().enumerate() {
            let goes = match tenant {
                Some(tenant) => at % TENANTS == tenant,
                None => self.chance.part() < 0.5,
            };
            if goes && client.ticket.is_some() {
                (client.ticket, client.attempt) = (None, client.attempt + 1);
            }
        }
        let Some(tenant) = tenant.map(tenant_of) else { return };
        for lane in 0..2 {
            self.step(async |store, model| store.leave(model, lane, &tenant).await);
        }
    }

    fn take_over(&mut self) {
        let replica = std::mem::take(&mut self.replica);
        self.expiry.restore(&mut self.connection, &replica);
        self.witness.forget(self.now);
    }

    /// Frozen programs finish what they were about to do, or are killed.
    fn thaw(&mut self) {
        let killed = self.chance.part() < 0.5;
        self.store.keep_tasks(false);
        self.step(async |store, model| store.end_tasks(model, killed).await);
    }

    fn set_limit(&mut self, combined: Change) {
        let window = PerDimension { combined, ..PerDimension::default() };
        let changes: LimitChanges = PerLimit { window, ..PerLimit::default() };
        self.step(async |store, model| store.set_limits(model, &changes).await);
    }

    fn reserve(&mut self, ask: &Ask) -> Decision {
        self.step(async |store, model| store.reserve(model, ask).await).0
    }

    fn seen(&mut self) -> Snapshot {
        let (store, model) = (&self.store, &self.model);
        self.runtime.block_on(store.inspect(model)).unwrap()
    }

    /// Asks the limiter once, and then checks every invariant.
    fn step<T>(
        &mut self,
        work: impl AsyncFn(&redis_store::Store, &ModelQuota) -> Result<T, tidegate_quota::Error>,
    ) -> T {
        self.steps += 1;
        self.expiry.advance(&mut self.connection, self.now);
        self.store.set_test_clock(EPOCH + self.now - self.behind);
        let answer = self.runtime.block_on(work(&self.store, &self.model));
        let answer = answer.unwrap_or_else(|error| panic!("at {} s: {error}", self.now / SECOND));
        let seen = self.seen();
        witness::check(&mut self.connection, STEM, &seen);
        self.expiry.record(&mut self.connection, PREFIX);
        answer
    }
}

fn tenant_of(number: usize) -> Tenant {
    Tenant::new(format!("tenant-{number}")).unwrap()
}

fn name(fault: Fault) -> &'static str {
    match fault {
        Fault::Silence => "silence",
        Fault::Kill => "kill",
        Fault::Flush => "flush",
        Fault::Eviction => "eviction",
        Fault::Cancellation => "cancellation",
        Fault::Limit => "limit",
        Fault::Pause => "pause",
        Fault::Failover => "failover",
        Fault::Policy => "policy",
        Fault::Clock => "clock",
        _ => "other",
    }
}

/// Two lanes and a limit on tokens; by chance also a limit on requests or on calls at once, a
/// learned burst, and a known bucket.
fn model(chance: &mut Chance) -> ModelQuota {
    let lane =
        |name: &str, guaranteed| (Lane::new(name).unwrap(), Share { guaranteed, ceiling: 1.0 });
    let lanes = Lanes::new([lane("batch", 0.7), lane("interactive", 0.3)].into()).unwrap();
    let mut limits = Limits {
        margin: 1.0,
        window: Duration::from_micros(WINDOW),
        ..Limits::default().with(Dimension::Combined, LIMIT)
    };
    if chance.part() < 0.5 {
        limits = limits.with(Dimension::Requests, 30);
    }
    if chance.part() < 0.5 {
        limits.concurrent = Some(6);
    }
    let learned = chance.part();
    limits.burst = (learned >= 0.7).then_some(Duration::from_secs(1));
    limits.token_bucket = learned < 0.3;
    let id = "simulated:model".parse().unwrap();
    ModelQuota::new(id, limits, Charge::default(), Arc::new(lanes)).unwrap()
}
