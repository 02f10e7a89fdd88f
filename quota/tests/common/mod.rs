//! A private Redis, and a store of either kind on a clock that the test sets.

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
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_quota::{
    Amounts, Charge, Decision, Lanes, Limits, ModelQuota, Share, Store, Ticket, memory,
    redis_store,
    store::{Ask, Binding},
};
use tidegate_types::Lane;

/// Midnight of some day in 2026, in microseconds.
pub const START: u64 = 1_790_000_000_000_000;
pub const SECOND: u64 = 1_000_000;
pub const PAUSE_TTL: Duration = Duration::from_secs(300);

/// A Redis server that ends with the value.
pub struct Server {
    child: Child,
    pub url: String,
    _folder: tempfile::TempDir,
}

impl Server {
    /// `None`, said aloud, where no server is installed; a failure when
    /// `TIDEGATE_REQUIRE_SERVICES=1`.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for program in ["redis-server", "valkey-server"] {
            let child = Command::new(program)
                .args([
                    "--port",
                    &port.to_string(),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ])
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .spawn();
            if let Ok(child) = child {
                let server =
                    Self { child, url: format!("redis://127.0.0.1:{port}"), _folder: folder };
                server.wait_until_ready();
                return Some(server);
            }
        }
        eprintln!(
            "SKIPPED: neither redis-server nor valkey-server is on the PATH; install one, or run `make setup`"
        );
        assert!(
            std::env::var_os("TIDEGATE_REQUIRE_SERVICES").is_none_or(|value| value != "1"),
            "a Redis server is required"
        );
        None
    }

    fn wait_until_ready(&self) {
        let client = redis::Client::open(self.url.as_str()).unwrap();
        for _ in 0..500 {
            if client
                .get_connection()
                .and_then(|mut connection| redis::cmd("PING").query::<String>(&mut connection))
                .is_ok()
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("Redis did not answer on {}", self.url);
    }

    pub fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url.as_str()).unwrap().get_connection().unwrap()
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One server for all tests of a binary; each test takes a key prefix of its own.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER
        .get_or_init(|| {
            let server = Server::start()?;
            // A static is never dropped, so a watcher ends the server when the test process is
            // gone.
            let script = format!(
                "while kill -0 {} 2>/dev/null; do sleep 1; done; kill {}",
                std::process::id(),
                server.child.id()
            );
            let _ = Command::new("sh")
                .args(["-c", &script])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            Some(server)
        })
        .as_ref()
}

pub fn unique_prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

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
    let store = redis_store::Store::open(&server()?.url, prefix, PAUSE_TTL).unwrap();
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
        ask(format!("r{id}"), Amounts([1, tokens, 0, tokens]))
    }

    pub async fn reserve(&self, ask: &Ask) -> Decision {
        self.store.reserve(&self.model, ask).await.unwrap().0
    }

    /// The wait, what binds, and the ticket of a refusal.
    pub async fn refused(&self, ask: &Ask) -> (Duration, Binding, Ticket) {
        match self.reserve(ask).await {
            Decision::Wait { wait, binding, ticket, .. } => (wait, binding, ticket),
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
        combined: Some(combined),
        margin: 1.0,
        window: Duration::from_secs(60),
        burst: Duration::from_secs(60),
        ..Limits::default()
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
                if let Some(rig) = crate::common::in_redis($model, &crate::common::unique_prefix()) { super::$name(&rig).await; }
            })+
        }
    };
}
pub(crate) use both_stores;
