//! The limiter's real scripts, on a real Redis, against models of providers, in virtual time.
//!
//! ```text
//! cargo run --release -p tidegate-quota --example simulate -- [--quick] [--write] [--store=name]
//!     [--set=number=value …] [scenario …]
//! cargo run --release -p tidegate-quota --example simulate -- rows [--seeds=10] [--only=part of a name]
//!     [--stores=scripts,memory] [--set=number=value …]
//! ```
//!
//! Prints a table for each scenario and ends with exit code 1 if one misses a bound. The same seed
//! gives the same figures on every machine. `--quick` simulates less; `--write` draws
//! `docs/simulation.svg`.
//!
//! The second command runs all rows that a change of the limiter may move. It is separate because
//! ten seeds take an hour; the first one runs only `controller` of them. In memory, numbers can be
//! set (`quota/src/numbers.rs`).
//!
//! * `driver`: the interface to a limiter; `stores`: the scripts and their twin behind it
//! * `rows`: every row, as means of seeds
//! * `provider`: nine models of how providers count, independent of the limiter
//! * `documents`, `event`: the documents, and virtual time
//! * `fleet`: clients that ask, wait, call, come back, or die
//! * `workers`: workers that take documents from a task queue; `controller`: their results
//! * `scenario`, `bursts`, `changes`, `tenants`: scenarios and their bounds
//! * `report`, `table`, `plot`: measurements and their output

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a simulation may stop at the first fault and talks to people"
)]

mod bursts;
mod changes;
mod controller;
mod documents;
mod driver;
mod event;
mod fleet;
mod meter;
mod plot;
mod provider;
mod report;
mod rows;
mod scenario;
mod stores;
mod table;
mod tenants;
mod workers;

use std::{fs, path::Path, process::ExitCode, time::Instant};

use scenario::{Bench, Keeper, Scenario, options};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let names: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let all: Vec<Scenario> = scenario::ALL
        .into_iter()
        .chain([("bursts", bursts::bursts as fn(&mut Bench<'_>) -> _)])
        .chain(changes::ALL)
        .chain([
            ("tenants", tenants::tenants as fn(&mut Bench<'_>) -> _),
            ("rows", rows::rows as fn(&mut Bench<'_>) -> _),
            ("controller", controller::controller as fn(&mut Bench<'_>) -> _),
        ])
        .collect();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|(known, _)| known == **name)) {
        let known: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "there is no scenario \"{unknown}\"; give one of {}, or none for all",
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    if flag("--write") && (flag("--quick") || !names.is_empty()) {
        eprintln!("--write wants the whole simulation; leave out --quick and the scenarios' names");
        return ExitCode::from(2);
    }
    let kept = match Keeper::from_arguments(&arguments) {
        Ok(kept) => kept,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let Some(server) = tidegate_testkit::Redis::start() else { return ExitCode::FAILURE };
    let number = |name| options(&arguments, name).pop();
    let mut bench = Bench {
        server: &server,
        quick: flag("--quick"),
        plots: plot::Plots::default(),
        kept,
        seeds: number("seeds").and_then(|it| it.parse().ok()).unwrap_or(1),
        only: number("only").unwrap_or_default(),
        stores: number("stores")
            .unwrap_or_else(|| "memory".to_owned())
            .split(',')
            .map(str::to_owned)
            .collect(),
    };
    let mut tables = Vec::new();
    for (name, scenario) in all {
        let wanted = names.iter().any(|wanted| *wanted == name);
        if !wanted && (!names.is_empty() || ["rows", "controller"].contains(&name)) {
            continue;
        }
        let started = Instant::now();
        let table = scenario(&mut bench);
        println!("{table}");
        eprintln!("{name}: {:.0} s", started.elapsed().as_secs_f64());
        tables.push(table);
    }
    let missed: usize = tables.iter().map(table::Table::missed).sum();
    if flag("--write") {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/simulation.svg");
        fs::write(file, bench.plots.svg()).expect("docs/simulation.svg can be written");
    }
    if missed > 0 {
        eprintln!("{missed} bounds are missed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
