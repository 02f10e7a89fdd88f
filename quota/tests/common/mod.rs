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
    Amounts, Charge, Decision, Dimension, Lanes, Limits, ModelQuota, Share, Store, Ticket, memory,
    redis_store,
    store::{Ask, Hold},
};
pub use tidegate_testkit::PATIENCE;
use tidegate_testkit::Redis;
use tidegate_types::Lane;

/// Midnight of some day in 2026, in microseconds.
pub const START: u64 = 1_790_000_000_000_000;
pub const SECOND: u64 = 1_000_000;
pub const PAUSE_TTL: Duration = Duration::from_secs(300);

/// A store whose time the test sets.
pub struct Rig<S> {
    pub store: S,
    pub model: ModelQuota,
    set: Box<dyn Fn(u64) + Send + Sync>,
    now: AtomicU64,
    next: AtomicU64,
}

pub fn in_memory(model: ModelQuota) -> Rig<memory::Store> {
    let clock = Arc::new(AtomicU64::new(START));
    let store = memory::Store::with_clock(PAUSE_TTL, Arc::clone(&clock));
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

    pub fn ask(&self, tokens: u64) -> Ask {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        ask(format!("r{id}"), Amounts::call(tokens, 0))
    }

    pub async fn reserve(&self, ask: &Ask) -> Decision {
        self.store.reserve(&self.model, ask).await.unwrap().0
    }

    /// The wait, what holds it, and the ticket of a refusal.
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
        burst: Duration::from_secs(60),
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

/// Makes of each promise one test on the store in memory and one on a real Redis.
macro_rules! both_stores {
    ($($name:ident($model:expr);)+) => {
        mod memory {
            use super::*;
            $(#[tokio::test] async fn $name() { super::$name(&crate::common::in_memory($model)).await; })+
        }
        mod redis {
            use super::*;
            $(#[tokio::test] async fn $name() {
                if let Some(rig) = crate::common::in_redis($model, &tidegate_testkit::unique("test")) { super::$name(&rig).await; }
            })+
        }
    };
}
pub(crate) use both_stores;

/// A script's text as `lua/README.md` says it, and not as this crate joins and folds it.
pub fn joined(script: &str) -> String {
    let find = |all: &[(&str, &'static str)], name: &str| {
        all.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).unwrap()
    };
    let own = find(tidegate_lua::SCRIPTS, script);
    let named = own.lines().filter_map(|line| line.strip_prefix("--- @include \""));
    let parts = named.map(|name| find(tidegate_lua::PARTS, name.trim_end_matches('"')));
    parts.collect::<String>() + own
}
