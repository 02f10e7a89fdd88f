//! The limiter's next form, in memory: a mechanism that keeps a plan, and a policy that makes it.
//!
//! * `mechanism`, `queue`, `log`: what is atomic, and becomes Lua
//! * `plan`: what may go, and why
//! * `policy`: what is known of a provider, and what it comes to; `one`, `candidates`: its variants
//! * `expect`: what calls really use
//! * `numbers`: every number of all that
//! * `store`: the simulation's driver of them

mod candidates;
mod expect;
mod log;
mod mechanism;
pub(crate) mod meter;
pub(crate) mod numbers;
mod one;
mod plan;
pub(crate) mod policy;
mod queue;
mod store;

pub(crate) use store::{Fleet, Variant};

use std::{fmt::Write, time::Instant};

use numbers::Numbers;
use policy::{Configured, Knowledge};

/// The numbers, and what a run of each variant's policy costs.
pub(crate) fn account() -> String {
    let mut text = "| number | value | unit | variant | why |\n|---|---|---|---|---|\n".to_owned();
    for (name, value, [variant, unit, why]) in Numbers::ALL {
        let _ = writeln!(text, "| `{name}` | {value} | {unit} | {variant} | {why} |");
    }
    let numbers = Numbers::default();
    let most = tidegate_quota::PerDimension::from_fn(|_| Some(1e6));
    let configured = Configured { most, window: 60.5, kept: 0.972, bucket: false, burst: None };
    let reading = log::Reading::example();
    for variant in [Variant::Candidates, Variant::One] {
        const RUNS: u32 = 10_000;
        let mut knowledge = Knowledge::new(variant);
        let bytes = knowledge.bytes();
        let started = Instant::now();
        for _ in 0..RUNS {
            knowledge = knowledge.run(&reading, &configured, &numbers).knowledge;
        }
        let took = started.elapsed() / RUNS;
        let _ = writeln!(
            text,
            "\n{variant:?}: {bytes} bytes of knowledge for four dimensions, {:.1} µs a run with {} observations",
            took.as_secs_f64() * 1e6,
            reading.log.observations.len()
        );
    }
    text
}

#[cfg(test)]
mod tests;
