//! Halves and doubles each number of the limiter, and prints which test notices.
//!
//! ```text
//! cargo run --release -p tidegate-quota --example mutate -- [name of a number …]
//! ```
//!
//! First the tests run that take numbers from `TIDEGATE_NUMBERS`: those of the policy and of the
//! controller, and the promises of the mechanism in memory. If none of them fails, the simulated
//! rows run, as means of two seeds. A row notices if its use falls by a point, its refusals rise by
//! 0.2 % of the calls, its asks for each admission double, or its longest standstill grows by half.
//! Exits with code 1 if a change goes unnoticed.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "a tool of this workspace, which talks to people and may stop at the first fault"
)]

use std::{
    collections::BTreeMap,
    process::{Command, ExitCode},
};

use tidegate_quota::numbers::Numbers;

/// One row of the simulation.
struct Row {
    used: f64,
    /// In per cent of the calls.
    refused: f64,
    asks: f64,
    stretch: f64,
}

fn main() -> ExitCode {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let tests = [
        built(&["test", "--lib"], "policy::"),
        built(&["test", "--lib"], "intake::"),
        built(&["test", "--test", "conformance"], "memory::"),
    ];
    let mut base = None;
    let mut unnoticed = 0;
    println!("| number | value | halved, noticed by | doubled, noticed by |\n|---|---|---|---|");
    for (name, value, ..) in Numbers::ALL {
        if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
            continue;
        }
        let noticed = [value / 2.0, value * 2.0].map(|value| {
            let set = format!("{name}={value}");
            let failed: Vec<String> =
                tests.iter().flat_map(|(program, part)| failed(program, part, &set)).collect();
            let by = failed.first().cloned().or_else(|| {
                let base = base.get_or_insert_with(|| rows(None));
                differs(base, &rows(Some(&set)))
            });
            let more = failed.len().saturating_sub(1);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            by.map(|by| by + &more)
        });
        unnoticed += noticed.iter().filter(|by| by.is_none()).count();
        let [halved, doubled] = noticed.map(|by| by.unwrap_or_else(|| "NOTHING".to_owned()));
        println!("| `{name}` | {value} | {halved} | {doubled} |");
    }
    if unnoticed > 0 {
        eprintln!("{unnoticed} changes are noticed by nothing");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn cargo() -> Command {
    Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// A test program, and the part of it that is run.
fn built(arguments: &[&str], part: &'static str) -> (String, &'static str) {
    let mut build = cargo();
    build.args(arguments).args(["-p", "tidegate-quota", "--no-run", "--message-format=json"]);
    let output = build.output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut programs = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(rest.split_once('"')?.0.to_owned())
    });
    (programs.next_back().expect("the tests are built"), part)
}

/// The tests that fail with a number.
fn failed(program: &str, part: &str, set: &str) -> Vec<String> {
    let mut run = Command::new(program);
    run.arg(part).env("TIDEGATE_NUMBERS", set).env("RUST_BACKTRACE", "0");
    run.current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = run.output().expect("the tests run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.strip_suffix(" ... FAILED"));
    names.filter_map(|name| name.strip_prefix("test ")).map(|name| format!("`{name}`")).collect()
}

/// Every row of the simulation, with a number that is set.
fn rows(set: Option<&str>) -> BTreeMap<String, Row> {
    let mut run = cargo();
    run.args([
        "run",
        "--release",
        "--quiet",
        "-p",
        "tidegate-quota",
        "--example",
        "simulate",
        "--",
    ]);
    run.args(["rows", "--seeds=2", "--stores=memory"]);
    run.args(set.map(|set| format!("--set={set}")));
    let output = run.output().expect("the simulation runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<(String, Row)> {
    let cells: Vec<&str> = line.split(" | ").collect();
    let [name, _, used, _, refused, asks, _, stretch] = cells[..] else { return None };
    let number = |cell: &str| cell.trim_end_matches([' ', '%', 's']).parse::<f64>().ok();
    let row = Row {
        used: number(used)?,
        refused: number(refused)?,
        asks: number(asks)?,
        stretch: number(stretch)?,
    };
    Some((name.to_owned(), row))
}

/// The row that got worst, and its figure.
fn differs(base: &BTreeMap<String, Row>, changed: &BTreeMap<String, Row>) -> Option<String> {
    let mut worst: Option<(f64, String)> = None;
    for (name, was) in base {
        let Some(is) = changed.get(name) else { return Some(format!("row \"{name}\": no end")) };
        // Each change as a part of what is allowed.
        let each = [
            (was.used - is.used, format!("use {} % and not {} %", is.used, was.used)),
            (
                (is.refused - was.refused) / 0.2,
                format!("{} % refused and not {} %", is.refused, was.refused),
            ),
            (is.asks / was.asks / 2.0, format!("{} questions and not {}", is.asks, was.asks)),
            (
                is.stretch / was.stretch.max(2.0) / 1.5,
                format!("a stretch of {} s and not {} s", is.stretch, was.stretch),
            ),
        ];
        for (much, what) in each {
            if much > 1.0 && worst.as_ref().is_none_or(|(most, _)| much > *most) {
                worst = Some((much, format!("row \"{name}\": {what}")));
            }
        }
    }
    worst.map(|(_, what)| what)
}
