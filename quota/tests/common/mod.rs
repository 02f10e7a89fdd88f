//! A store of either kind on a clock that the test sets.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test binary uses its part of this module, and may stop at the first fault"
)]

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_quota::{
    Amounts, Charge, Decision, Dimension, Hold, Lanes, Limits, ModelQuota, Share, Store, Ticket,
    memory,
    numbers::Numbers,
    redis_store,
    store::{Ask, Settlement},
};
pub use tidegate_testkit::PATIENCE;
use tidegate_testkit::Redis;
use tidegate_types::Lane;

/// Some moment of 2026, in microseconds.
pub const START: u64 = 1_790_000_000_000_000;
pub const SECOND: u64 = 1_000_000;
pub const PAUSE_TTL: Duration = Duration::from_secs(300);

/// A store whose time the test sets.
pub struct Rig<S> {
    pub store: S,
    pub model: ModelQuota,
    pub set: Box<dyn Fn(u64) + Send + Sync>,
    pub now: AtomicU64,
    pub next: AtomicU64,
}

/// The limiter's numbers, as changed by `TIDEGATE_NUMBERS`, which `make mutate` sets.
pub fn numbers() -> Numbers {
    let mut numbers = Numbers::DEFAULT;
    for set in std::env::var("TIDEGATE_NUMBERS").iter().flat_map(|all| all.split_whitespace()) {
        let (name, value) = set.split_once('=').unwrap();
        assert!(numbers.set(name, value.parse().unwrap()), "there is no number {name}");
    }
    numbers
}

pub fn in_memory(model: ModelQuota) -> Rig<memory::Store> {
    let clock = Arc::new(AtomicU64::new(START));
    let store = memory::Store::with_clock(PAUSE_TTL, Arc::clone(&clock)).with_numbers(numbers());
    rig(store, model, Box::new(move |micros| clock.store(micros, Ordering::SeqCst)))
}

pub fn in_redis(model: ModelQuota, prefix: &str) -> Option<Rig<redis_store::Store>> {
    let url = &Redis::shared()?.url;
    let store = redis_store::Store::open_within(url, prefix, PAUSE_TTL, PATIENCE).unwrap();
    let clock = store.clone();
    let rig = rig(store, model, Box::new(move |micros| clock.set_test_clock(micros)));
    rig.at(START);
    Some(rig)
}

fn rig<S>(store: S, model: ModelQuota, set: Box<dyn Fn(u64) + Send + Sync>) -> Rig<S> {
    Rig { store, model, set, now: AtomicU64::new(START), next: AtomicU64::new(0) }
}

impl<S: Store> Rig<S> {
    pub fn at(&self, micros: u64) {
        self.now.store(micros, Ordering::SeqCst);
        (self.set)(micros);
    }

    pub fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    pub fn advance(&self, by: Duration) {
        self.at(self.now() + u64::try_from(by.as_micros()).unwrap());
    }

    /// A quota in which an empty call was answered an hour ago and nothing has happened since:
    /// estimates and waits are trusted. The time is START.
    pub async fn settled_down(&self) {
        for (at, id) in [(START - 3_600 * SECOND, "first"), (START, "last")] {
            self.at(at);
            self.reserve(&ask(id, Amounts::default())).await;
            let settlement = match id {
                "first" => Settlement::used(id, Amounts::default()),
                _ => Settlement::released(id),
            };
            self.store.settle(&self.model, &settlement).await.unwrap();
        }
    }

    /// Ends a call that used these input tokens.
    pub async fn used(&self, ask: &Ask, tokens: u64) {
        let settlement = Settlement::used(&ask.reservation, Amounts::call(tokens, 0));
        self.store.settle(&self.model, &settlement).await.unwrap();
    }

    pub fn ask(&self, tokens: u64) -> Ask {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        ask(format!("r{id}"), Amounts::call(tokens, 0))
    }

    pub async fn reserve(&self, ask: &Ask) -> Decision {
        self.store.reserve(&self.model, ask).await.unwrap().0
    }

    /// The wait, the hold, and the ticket of a refusal.
    pub async fn refused(&self, ask: &Ask) -> (Duration, Hold, Ticket) {
        match self.reserve(ask).await {
            Decision::Wait { wait, hold, ticket, .. } => (wait, hold, ticket),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}

pub fn ask(reservation: impl Into<String>, amounts: Amounts) -> Ask {
    Ask {
        reservation: reservation.into(),
        lane: 0,
        amounts,
        ticket: None,
        template: 0,
        curious: false,
        tenant: tidegate_types::Tenant::default(),
    }
}

pub fn limits(combined: u64) -> Limits {
    Limits {
        margin: 1.0,
        window: Duration::from_secs(60),
        burst: Some(Duration::from_secs(60)),
        ..Limits::default().with(Dimension::Combined, combined)
    }
}

pub fn model(limits: Limits) -> ModelQuota {
    model_with_lanes(limits, Lanes::single())
}

pub fn model_with_lanes(limits: Limits, lanes: Lanes) -> ModelQuota {
    ModelQuota::new("test:model".parse().unwrap(), limits, Charge::default(), Arc::new(lanes))
        .unwrap()
}

pub fn lanes(shares: &[(&str, f64, f64)]) -> Lanes {
    let lane = |(name, guaranteed, ceiling): &(&str, f64, f64)| {
        (Lane::new(*name).unwrap(), Share { guaranteed: *guaranteed, ceiling: *ceiling })
    };
    Lanes::new(shares.iter().map(lane).collect::<BTreeMap<_, _>>()).unwrap()
}

/// A store whose policy's runs may be frozen.
pub trait Freezes {
    fn freeze(&self, frozen: bool);
    async fn thaw(&self, model: &ModelQuota, killed: bool) -> Vec<bool>;
}

impl Freezes for memory::Store {
    fn freeze(&self, frozen: bool) {
        self.keep_tasks(frozen);
    }

    async fn thaw(&self, model: &ModelQuota, killed: bool) -> Vec<bool> {
        self.end_tasks(model, killed)
    }
}

impl Freezes for redis_store::Store {
    fn freeze(&self, frozen: bool) {
        self.keep_tasks(frozen);
    }

    async fn thaw(&self, model: &ModelQuota, killed: bool) -> Vec<bool> {
        self.end_tasks(model, killed).await.unwrap()
    }
}

/// Makes two tests of each promise: on the store in memory and on a real Redis, both with a settled
/// quota.
macro_rules! both_stores {
    ($($name:ident($model:expr);)+) => {
        mod memory {
            use super::*;
            $(#[tokio::test] async fn $name() {
                let rig = crate::common::in_memory($model);
                rig.settled_down().await;
                super::$name(&rig).await;
            })+
        }
        mod redis {
            use super::*;
            $(#[tokio::test] async fn $name() {
                let rig = crate::common::in_redis($model, &tidegate_testkit::unique("test"));
                if let Some(rig) = rig {
                    rig.settled_down().await;
                    super::$name(&rig).await;
                }
            })+
        }
    };
}
pub(crate) use both_stores;

/// A script's text as `lua/README.md` describes it, not as this crate joins and folds it.
pub fn joined(script: &str) -> String {
    let find = |all: &[(&str, &'static str)], name: &str| {
        all.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).unwrap()
    };
    let own = find(tidegate_lua::SCRIPTS, script);
    let named = own.lines().filter_map(|line| line.strip_prefix("--- @include \""));
    let parts = named.map(|name| find(tidegate_lua::PARTS, name.trim_end_matches('"')));
    parts.collect::<String>() + own
}
