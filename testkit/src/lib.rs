//! The services that tests need: a real Redis and a real Temporal dev server; and the table of
//! [replies](ReplyRow) of real providers.
//!
//! It is a dev-dependency alone and depends on none of our crates: a library whose tests used a
//! crate that depends on this library would have all of its types twice. For the same reason it
//! does not use the embedded stack of the program (`src/devstack`), which stays with the program,
//! with tests of its own: it reports a server's last words, offers the web UI and runs inside a
//! runtime, where a test wants a server that may stand in a `static` and outlive any runtime.
//!
//! Nothing is left running after a test process, however it ended: see [`Redis`] and [`Temporal`],
//! both of which hang on a pipe.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "only tests call this, and a test may stop at the first fault"
)]

mod processor;
mod redis;
mod replies;
mod server;
mod temporal;

use std::{
    path::Path,
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, UNIX_EPOCH},
};

pub use self::{
    processor::processor_time,
    redis::Redis,
    replies::{Expected, ReplyRow},
    temporal::Temporal,
};

/// How long a test waits for an answer of Redis: a busy machine may be late by more than a worker
/// would bear.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Says on stderr that something is missing and a test is skipped.
///
/// # Panics
/// With `TIDEGATE_REQUIRE_SERVICES=1`, as in `make test`: there a test without its services has
/// failed.
pub fn skip(what_is_missing: &str) {
    let required = std::env::var_os("TIDEGATE_REQUIRE_SERVICES").is_some_and(|value| value == "1");
    assert!(!required, "required by TIDEGATE_REQUIRE_SERVICES: {what_is_missing}");
    eprintln!("SKIPPED: {what_is_missing}");
}

fn sdks_are_left_out() -> bool {
    let left_out = std::env::var_os("TIDEGATE_SDKS").is_some_and(|value| value == "no");
    if left_out {
        eprintln!("SKIPPED: TIDEGATE_SDKS=no leaves the vendors' SDKs out");
    }
    left_out
}

/// A Python that has the vendors' own SDKs, which `scripts/setup.sh --sdks` fetches into
/// `.tools/sdks`; `None`, with a line on stderr, if they are missing, or `TIDEGATE_SDKS=no`
/// leaves them out.
///
/// # Panics
/// As [`skip`] does, where they are not.
pub fn python_with_sdks() -> Option<process::Command> {
    if sdks_are_left_out() {
        return None;
    }
    let sdks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/sdks");
    let Ok(python) = std::fs::read_to_string(sdks.join("python")) else {
        skip(
            "the vendors' SDKs are not there: scripts/setup.sh --sdks fetches them, TIDEGATE_SDKS=no leaves them out",
        );
        return None;
    };
    let mut command = process::Command::new(python.trim());
    command.env("PYTHONPATH", sdks).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// The folder of the vendors' own SDKs for node, which `scripts/setup.sh --sdks` fetches into
/// `.tools/node` where there is an npm; `None`, with a line on stderr, if they are missing, or
/// `TIDEGATE_SDKS=no` leaves them out.
pub fn node_sdks() -> Option<std::path::PathBuf> {
    if sdks_are_left_out() {
        return None;
    }
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/node/node_modules");
    if modules.join("openai").exists() {
        return Some(modules);
    }
    eprintln!(
        "SKIPPED: the vendors' SDKs for node are not there: scripts/setup.sh --sdks fetches them"
    );
    None
}

/// A name that no other test has used, in this process or another: for key prefixes, task queues,
/// workflow ids and namespaces.
pub fn unique(kind: &str) -> String {
    static STARTED: std::sync::OnceLock<u128> = std::sync::OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let started = STARTED.get_or_init(|| UNIX_EPOCH.elapsed().unwrap().as_micros());
    format!("{kind}-{started}-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
