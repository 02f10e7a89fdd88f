//! The limiter in virtual time under faults: the real scripts on a real Redis, a clock that the
//! simulation moves, keys that expire by that clock, and faults drawn from a seed. After every step
//! the invariants of `witness` must hold, and in the end each waiting caller must be admitted.
//!
//! `cargo test -p tidegate-quota --test simulation` runs a fixed set of seeds, `make simulate` a
//! thousand; `TIDEGATE_SEED=7` runs one again, step by step the same.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a simulation may stop at the first fault, and its figures are small"
)]

mod clock;
#[expect(dead_code, reason = "only its seeded chance is needed here")]
#[path = "../../examples/simulate/documents.rs"]
mod documents;
#[path = "../../examples/simulate/event.rs"]
mod event;
mod fault;
mod fleet;
mod witness;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use fault::Fault;
use fleet::Fleet;
use tidegate_testkit::Redis;

/// Seeds with all faults for the normal test run.
const SEEDS: u64 = 4;

/// Runs one seed and returns what broke, if anything.
fn run(server: &Redis, seed: u64, faults: &[Fault], windows: u64) -> Result<String, String> {
    let answer = catch_unwind(AssertUnwindSafe(|| Fleet::new(server, seed, faults, windows).run()));
    answer.map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map_or("a panic", |text| text).to_owned(),
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?} and not a number")))
}

#[test]
fn every_invariant_holds_under_every_fault() {
    let Some(server) = Redis::start() else { return };
    let seeds = match (number("TIDEGATE_SEED"), number("TIDEGATE_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(SEEDS),
    };
    let started = Instant::now();
    for seed in seeds.clone() {
        match run(&server, seed, &Fault::ALL, 20) {
            Ok(told) if seeds.end - seeds.start == 1 => println!("seed {seed}: {told}"),
            Ok(_) => {}
            Err(broken) => panic!(
                "seed {seed}: {broken}\nTIDEGATE_SEED={seed} cargo test -p tidegate-quota --test simulation runs it again"
            ),
        }
    }
    println!("{} seeds in {:.1} s", seeds.end - seeds.start, started.elapsed().as_secs_f64());
}

/// Each fault alone, so that a failure has a name.
#[test]
fn every_fault_alone_breaks_nothing() {
    let Some(server) = Redis::start() else { return };
    let mut broken = Vec::new();
    for (seed, fault) in (1_000..).zip(Fault::ALL) {
        if let Err(what) = run(&server, seed, &[fault], 8) {
            broken.push(format!("{fault:?} (seed {seed}): {what}"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
