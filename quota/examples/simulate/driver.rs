//! The only place that knows the limiter: a private Redis, the real scripts on virtual time, and
//! what a caller keeps.

use std::time::Duration;

use tidegate_quota::{
    Amounts, Change, Decision, Dimension, Error, ModelQuota, PerDimension, PerLimit, Store, Ticket,
    redis_store,
    store::{Ask, Expectation, Meter, Pause, ProviderSignal, Settlement, UsageSample},
};
use tidegate_testkit::Redis;
use tidegate_types::Tenant;
use tokio::runtime::Runtime;

use crate::{
    documents::{Document, MAX_OUTPUT},
    event::Micros,
};

/// Whether [`Call::tenant`] reaches the store.
pub(crate) const TENANTS: bool = true;

/// Virtual time 0: midnight of some day in 2026, in microseconds.
const EPOCH: Micros = 1_790_000_000_000_000;

/// The part of a call's bound on output that is held while nothing is known (`UNKNOWN_OUTPUT` in
/// `quota/src/quota.rs`).
const UNKNOWN_OUTPUT: u64 = 3;

/// An answer lost on a busy machine is asked for again so often.
const TRIES: usize = 20;

/// One call that wants to go.
pub(crate) struct Call<'a> {
    pub(crate) id: String,
    pub(crate) lane: usize,
    pub(crate) tenant: u64,
    pub(crate) document: &'a Document,
    pub(crate) ticket: Option<Ticket>,
}

/// The limiter's answer.
pub(crate) enum Answer {
    Granted(Held),
    Wait { wait: Micros, ticket: Ticket },
    Paused { wait: Micros, ticket: Option<Ticket> },
}

/// A reservation until it is settled.
pub(crate) struct Held {
    id: String,
}

/// One model's limiter, as a fleet of workers uses it.
pub(crate) struct Limiter {
    runtime: Runtime,
    store: redis_store::Store,
    commands: redis::Connection,
    model: ModelQuota,
    known: Option<Expectation>,
}

impl Limiter {
    /// Starts from an empty server.
    pub(crate) fn new(server: &Redis, model: ModelQuota) -> Self {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let store = runtime
            .block_on(async {
                redis_store::Store::open(&server.url, "simulation", Duration::from_secs(300))
            })
            .expect("a store");
        let commands = server.connection();
        let mut limiter = Self { runtime, store, commands, model, known: None };
        limiter.flush();
        limiter
    }

    /// One question about calls of a lane and tenant.
    pub(crate) fn reserve(&mut self, now: Micros, calls: Vec<Call<'_>>) -> Vec<Answer> {
        let ask = |call: Call<'_>| Ask {
            reservation: call.id,
            lane: call.lane,
            amounts: self.amounts(call.document),
            ticket: call.ticket,
            template: 0,
            curious: true,
            tenant: Tenant::new(format!("tenant-{}", call.tenant)).expect("a name"),
        };
        let asks: Vec<Ask> = calls.into_iter().map(ask).collect();
        let decisions = self.at(now, async |store, model| store.reserve_all(model, &asks).await);
        let answer = |(ask, (decision, known)): (Ask, (Decision, Option<Expectation>))| {
            self.remember(known);
            match decision {
                Decision::Granted => Answer::Granted(Held { id: ask.reservation }),
                Decision::Wait { wait, ticket, .. } => Answer::Wait { wait: micros(wait), ticket },
                Decision::Paused { wait, ticket } => Answer::Paused { wait: micros(wait), ticket },
                Decision::Exhausted { .. } => panic!("nothing here is counted by the day"),
                Decision::Never { dimension, capacity } => {
                    panic!("a document exceeds the whole limit of {capacity} {dimension}")
                }
            }
        };
        asks.into_iter().zip(decisions).map(answer).collect()
    }

    /// As `Permit::settle`.
    pub(crate) fn settle(
        &mut self,
        now: Micros,
        held: Held,
        document: &Document,
        told: Option<(u64, Option<Micros>)>,
        cached: u64,
    ) -> Micros {
        let sample = UsageSample {
            estimated_input: document.estimated_input,
            input: document.input,
            output: document.output,
        };
        let used = self.model.amounts(document.input - cached, document.output);
        let cached = (!self.model.charge.cached_input).then_some(cached);
        let combined = told.and(self.model.limits.per_minute.combined);
        let reset = told.and_then(|(_, reset)| Some(Duration::from_micros(reset?)));
        let meter = Meter {
            used: PerDimension { combined: told.map(|(used, _)| used), ..PerDimension::default() },
            limits: PerDimension { combined, ..PerDimension::default() },
            resets: PerDimension { combined: reset, ..PerDimension::default() },
        };
        let settled = Settlement::used(held.id, used);
        self.end(now, Settlement { sample: Some(sample), meter, cached, ..settled })
    }

    /// `Limits::pace_of` in `quota/src/limits.rs`.
    pub(crate) fn pace_of(&self, document: &Document) -> Micros {
        let (limits, amounts) = (self.model.limits.effective(), self.amounts(document));
        let part = |it| amounts[it] as f64 / limits[it] as f64;
        let counted = Dimension::ALL.into_iter().filter(|it| limits[*it] > 0);
        let most = counted.map(part).fold(0.0, f64::max);
        (most * self.model.limits.window.as_micros() as f64) as Micros
    }

    /// As `Permit::refused`: the provider answered 429.
    pub(crate) fn refused(&mut self, now: Micros, held: Held, pause: Micros) {
        let used = self.model.unused();
        let pause = Pause { length: Duration::from_micros(pause), reason: "429".to_owned() };
        self.end(
            now,
            Settlement {
                signal: ProviderSignal::Refused,
                pause: Some(pause),
                ..Settlement::used(held.id, used)
            },
        );
    }

    /// An operator closes the gate.
    pub(crate) fn pause(&mut self, now: Micros, length: Micros) {
        let pause = Pause { length: Duration::from_micros(length), reason: "operator".to_owned() };
        self.at(now, async |store, model| store.pause(model, &pause).await);
    }

    /// An operator sets the limit on tokens.
    pub(crate) fn set_limit(&mut self, now: Micros, combined: u64) {
        let window = PerDimension { combined: Change::Set(combined), ..PerDimension::default() };
        let changes = PerLimit { window, ..PerLimit::default() };
        self.at(now, async |store, model| store.set_limits(model, &changes).await);
    }

    /// The callers of a tenant come no more.
    pub(crate) fn leave(&mut self, now: Micros, lane: usize, tenant: u64) {
        let tenant = Tenant::new(format!("tenant-{tenant}")).expect("a name");
        self.at(now, async |store, model| store.leave(model, lane, &tenant).await);
    }

    /// Redis loses everything.
    pub(crate) fn flush(&mut self) {
        redis::cmd("FLUSHALL").exec(&mut self.commands).expect("FLUSHALL");
    }

    /// How much may go at once then.
    fn end(&mut self, now: Micros, settlement: Settlement) -> Micros {
        let settle = async |store: &redis_store::Store, model: &ModelQuota| {
            store.settle(model, &settlement).await
        };
        let (_, known, room) = self.at(now, settle);
        self.remember(known);
        micros(room)
    }

    /// As `Shared::amounts` in `quota/src/quota.rs`, for providers that count real output.
    fn amounts(&self, document: &Document) -> Amounts {
        let estimate = document.estimated_input;
        let (input, output) = match self.known {
            Some(known) => {
                let all = (estimate as f64 * known.input_ratio).ceil() as u64;
                let input = all.saturating_sub(known.cached).max(all.min(1));
                (input, known.output.min(MAX_OUTPUT))
            }
            None => (estimate, MAX_OUTPUT.div_ceil(UNKNOWN_OUTPUT)),
        };
        self.model.amounts(input, output)
    }

    fn remember(&mut self, known: Option<Expectation>) {
        self.known = known.or(self.known);
    }

    fn at<T>(
        &self,
        now: Micros,
        work: impl AsyncFn(&redis_store::Store, &ModelQuota) -> Result<T, Error>,
    ) -> T {
        self.store.set_test_clock(EPOCH + now);
        for _ in 0..TRIES {
            match self.runtime.block_on(work(&self.store, &self.model)) {
                Ok(answer) => return answer,
                Err(Error::Away(_)) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("Redis did not answer {TRIES} times");
    }
}

fn micros(duration: Duration) -> Micros {
    duration.as_micros() as Micros
}
