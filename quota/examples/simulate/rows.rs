//! All scenarios in one table, as means over seeds, to see what a change moves.

use tidegate_quota::{Charge, Dimension, Lanes, Limits, PerDimension};

use crate::{
    documents::{Document, MEAN_INPUT, MEAN_OUTPUT},
    event::{Micros, SECOND},
    fleet::{Disturbance, INTERACTIVE, Plan},
    provider::{
        Caching, Changing, Kind, Lying, Phased, Provider, Ramping, Shallow, Shared, Spending,
        Split, split,
    },
    report::Report,
    scenario::{Bench, Keeper, LARGE, WORKERS, known, safe, two_lanes},
    table::{Table, percent, seconds},
};

/// The limit of the small scenarios, and tokens of `Document::alike`.
const SMALL: u64 = 400_000;
const ALIKE: f64 = 2_530.0;

const CHANGE: Micros = 600 * SECOND;

/// The results of a run.
struct Figures {
    /// The achieved part of what was possible.
    used: f64,
    refused: f64,
    calls: f64,
    asks: f64,
    wait: f64,
    stretch: f64,
}

/// One run with a seed.
type Run = dyn Fn(&Bench<'_>, u64) -> Figures;

/// A scenario: its name and its run.
struct Case {
    name: String,
    run: Box<Run>,
}

fn figures(report: &Report, used: f64) -> Figures {
    let (refused, calls) = report.refused_calls();
    Figures {
        used,
        refused: refused as f64,
        calls: calls as f64,
        asks: report.asks_per_admission(),
        wait: report.wait(0.99),
        stretch: report.longest_stretch as f64 / SECOND as f64,
    }
}

fn case(name: impl Into<String>, run: impl Fn(&Bench<'_>, u64) -> Figures + 'static) -> Case {
    Case { name: name.into(), run: Box::new(run) }
}

/// An endless backlog: use of `possible` tokens a minute.
fn endless(
    name: impl Into<String>,
    plan: Plan,
    provider: impl Fn() -> Box<dyn Provider> + 'static,
    limits: Limits,
    possible: u64,
) -> Case {
    case(name, move |bench, seed| {
        let report = bench.run(&Plan { seed, ..plan }, provider(), limits, Lanes::single());
        figures(&report, report.used(possible))
    })
}

/// A batch that ends: the least possible time over the time that it took.
fn batch(
    name: impl Into<String>,
    plan: Plan,
    provider: impl Fn() -> Box<dyn Provider> + 'static,
    limits: Limits,
    possible: f64,
) -> Case {
    case(name, move |bench, seed| {
        let report = bench.run(&Plan { seed, ..plan }, provider(), limits, Lanes::single());
        let took = report.finished.saturating_sub(SECOND) as f64 / SECOND as f64;
        figures(&report, possible / took)
    })
}

fn steady(workers: usize) -> Plan {
    Plan::new(1_200 * SECOND, 300 * SECOND, workers)
}

/// Documents of `Document::alike`, in one batch.
fn documents(batches: &'static [(Micros, usize)], headers: bool) -> Plan {
    Plan {
        batches,
        draw: Document::alike,
        mean: ALIKE,
        headers,
        ..Plan::new(2 * CHANGE, 0, WORKERS)
    }
}

pub(crate) fn learned(limit: u64) -> Limits {
    Limits::default().with(Dimension::Combined, limit)
}

/// A full bucket, its refill, and a long call.
fn possible(documents: f64, tokens: f64) -> f64 {
    (documents * tokens - SMALL as f64).max(0.0) / (SMALL as f64 / 60.0) + 16.0
}

fn old() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [Kind::Bucket60, Kind::Bucket5] {
        let name = format!("known bucket: {}", kind.name());
        cases.push(endless(
            name,
            steady(WORKERS),
            move || kind.provider(LARGE),
            known(LARGE),
            LARGE,
        ));
    }
    for limit in [LARGE, SMALL] {
        for kind in Kind::ALL {
            let name = format!("safe, {} k: {}", limit / 1_000, kind.name());
            let plan = Plan { skew: kind.skew(), ..steady(WORKERS) };
            if kind == Kind::Split {
                cases.push(case(name, move |bench, seed| {
                    let (input, output) = split(limit, 1.07);
                    let plan = Plan { seed, ..plan };
                    let provider = kind.provider(limit);
                    let report = bench.run(&plan, provider, safe(kind, limit), Lanes::single());
                    figures(&report, report.used_of(input, output))
                }));
            } else {
                cases.push(endless(
                    name,
                    plan,
                    move || kind.provider(limit),
                    safe(kind, limit),
                    limit,
                ));
            }
        }
    }
    for workers in [200, 5_000] {
        cases.push(case(format!("two dimensions, {workers} waiters"), move |bench, seed| {
            let (input, output) = split(LARGE, 1.0);
            let limits = Limits { per_minute: PerDimension::default(), ..known(LARGE) }
                .with(Dimension::Input, input)
                .with(Dimension::Output, output);
            let plan = Plan { seed, ..steady(workers) };
            let report =
                bench.run(&plan, Box::new(Split::new(input, output)), limits, Lanes::single());
            figures(&report, report.used_of(input, output))
        }));
    }
    let name = "one dimension, 5000 waiters";
    let provider = || Kind::Bucket60.provider(LARGE);
    cases.push(endless(name, steady(5_000), provider, known(LARGE), LARGE));
    for offered in [0.15, 0.28, 0.45] {
        let name = format!("interactive offers {}: its waits", percent(offered));
        cases.push(case(name, move |bench, seed| {
            let interactive = offered * LARGE as f64 / (MEAN_INPUT + MEAN_OUTPUT) / 60.0;
            let plan = Plan { interactive, seed, ..steady(WORKERS) };
            let report =
                bench.run(&plan, Kind::Bucket60.provider(LARGE), known(LARGE), two_lanes());
            Figures {
                wait: report.wait_in(INTERACTIVE, 0.99),
                ..figures(&report, report.used(LARGE))
            }
        }));
    }
    let name = "big documents at 400 k: their waits";
    cases.push(case(name, |bench, seed| {
        let plan = Plan { seed, ..steady(WORKERS) };
        let report =
            bench.run(&plan, Kind::Bucket60.provider(SMALL), known(SMALL), Lanes::single());
        Figures { wait: report.wait_of_big(0.99), ..figures(&report, report.used(SMALL)) }
    }));
    for (name, vanish, lost) in
        [("20 % of refused clients die", 0.2, 0.0), ("20 % of settlements lost", 0.0, 0.2)]
    {
        let plan = Plan { vanish, lost, ..steady(WORKERS) };
        cases.push(endless(name, plan, provider, known(LARGE), LARGE));
    }
    for kind in [Kind::Bucket60, Kind::Bucket5, Kind::StrictLog] {
        for (what, disturbance, from) in [
            ("pause of 60 s", Disturbance::Pause(60 * SECOND), CHANGE + 60 * SECOND),
            ("FLUSHALL, remembered", Disturbance::Flush { remembered: true }, CHANGE),
            ("FLUSHALL, forgotten", Disturbance::Flush { remembered: false }, CHANGE),
        ] {
            let plan = Plan {
                end: from + 120 * SECOND,
                steady: from,
                disturbance: Some((CHANGE, disturbance)),
                ..steady(WORKERS)
            };
            let name = format!("{what}: {}", kind.name());
            let provider = move || kind.provider(LARGE);
            cases.push(endless(name, plan, provider, safe(kind, LARGE), LARGE));
        }
    }
    for (kind, headers) in [
        (Kind::Bucket60, true),
        (Kind::Bucket60, false),
        (Kind::Bucket5, false),
        (Kind::FixedMinute, true),
        (Kind::StrictLog, true),
        (Kind::StrictLog, false),
        (Kind::BucketSkewed, true),
        (Kind::ChargesLate, true),
    ] {
        let told = if headers { "headers" } else { "tells nothing" };
        for (batches, count) in [(&[(SECOND, 100)], 100.0), (&[(SECOND, 700)], 700.0)] {
            let name = format!("{count} documents: {}, {told}", kind.name());
            let plan = Plan { skew: kind.skew(), ..documents(batches, headers) };
            let provider = move || kind.provider(SMALL);
            cases.push(batch(name, plan, provider, learned(SMALL), possible(count, ALIKE)));
        }
    }
    for (what, at, part, configured, real) in [
        ("limit cut to 40 %", CHANGE, 0.4, SMALL, SMALL * 2 / 5),
        ("limit a third too high", 0, 1.0, SMALL * 4 / 3, SMALL),
    ] {
        for headers in [false, true] {
            let told = if headers { "headers say otherwise" } else { "tells nothing" };
            let plan = Plan {
                draw: Document::alike,
                mean: ALIKE,
                headers,
                ..Plan::new(2 * CHANGE, CHANGE, WORKERS)
            };
            let provider = move || Box::new(Changing::new(SMALL, at, part)) as Box<dyn Provider>;
            let name = format!("{what}, {told}");
            cases.push(endless(name, plan, provider, learned(configured), real));
        }
    }
    for (name, limits) in [("safe", learned(LARGE)), ("known bucket", known(LARGE))] {
        cases.push(case(format!("limit on growth, {name}"), move |bench, seed| {
            const QUARTER: Micros = 900 * SECOND;
            let floor = LARGE / 4;
            let plan = Plan { seed, ..Plan::new(4 * QUARTER, 60 * SECOND, WORKERS) };
            let provider = Box::new(Ramping::new(LARGE, floor));
            let report = bench.run(&plan, provider, limits, Lanes::single());
            let part = |quarter: u64| {
                let allowed = floor as f64 * 1.5_f64.powi(quarter as i32) * 15.0;
                let from = quarter * QUARTER;
                report.tokens_between(from.max(60 * SECOND), from + QUARTER) as f64 / allowed
            };
            figures(&report, (0..4).map(part).sum::<f64>() / 4.0)
        }));
    }
    for part in [0.8, 0.5, 0.2] {
        let plan = Plan::new(4_800 * SECOND, 1_200 * SECOND, WORKERS);
        let most = (LARGE as f64 * part * 10.0) as u64;
        let provider = move || Box::new(Spending::new(LARGE, most)) as Box<dyn Provider>;
        let possible = (LARGE as f64 * part) as u64;
        let name = format!("ten minutes let {} through", percent(part));
        cases.push(endless(name, plan, provider, learned(LARGE), possible));
    }
    let plan = Plan {
        disturbance: Some((CHANGE, Disturbance::Raise(LARGE))),
        tenant: |worker| worker as u64 % 2,
        ..Plan::new(CHANGE + 480 * SECOND, CHANGE + 60 * SECOND, 5_000)
    };
    let provider = || Box::new(Changing::new(LARGE / 4, CHANGE, 4.0)) as Box<dyn Provider>;
    let name = "limit raised fourfold, from a minute after";
    cases.push(endless(name, plan, provider, known(LARGE / 4), LARGE));
    cases.push(case("cached prompts, 320 documents", |bench, seed| {
        const LIMIT: u64 = 100_000;
        let limits = Limits { per_minute: PerDimension::default(), ..known(LIMIT) }
            .with(Dimension::Input, LIMIT);
        let charge = Charge { cached_input: false, ..Charge::default() };
        let batches: &'static [(Micros, usize)] = &[(SECOND, 320)];
        let plan =
            Plan { batches, draw: Document::prefixed, seed, ..Plan::new(CHANGE, 0, WORKERS) };
        let report = bench.run_with(&plan, Box::new(Caching::new(LIMIT)), limits, charge);
        let least = (320.0 * 1_500.0 + 3_175.0 - LIMIT as f64) / (LIMIT as f64 / 60.0) + 10.0;
        let took = report.finished.saturating_sub(SECOND) as f64 / SECOND as f64;
        figures(&report, least / took)
    }));
    cases
}

fn new() -> Vec<Case> {
    let mut cases = Vec::new();
    for (what, draw) in [
        ("three times", Document::thrice as fn(&mut _) -> _),
        ("a third of", Document::third as fn(&mut _) -> _),
    ] {
        for headers in [true, false] {
            let told = if headers { "headers" } else { "tells nothing" };
            let plan = Plan { draw, ..documents(&[(SECOND, 300)], headers) };
            let name = format!("tokens {what} the estimate, 300 documents, {told}");
            let provider = || Kind::Bucket60.provider(SMALL);
            cases.push(batch(name, plan, provider, learned(SMALL), possible(300.0, ALIKE)));
        }
    }
    for depth in [2.0, 5.0, 20.0] {
        for (batches, count) in [(&[(SECOND, 100)], 100.0), (&[(SECOND, 700)], 700.0)] {
            let name = format!("{count} documents: bucket of {depth} s, headers of the minute");
            let provider = move || Box::new(Shallow::new(SMALL, depth)) as Box<dyn Provider>;
            let least = (count * ALIKE / (SMALL as f64 / 60.0) - depth).max(0.0) + 16.0;
            cases.push(batch(name, documents(batches, true), provider, learned(SMALL), least));
        }
    }
    for (meter, new, headers) in [
        ("bucket, headers", Shared::bucket as fn(u64, f64) -> Shared, true),
        ("bucket, tells nothing", Shared::bucket, false),
        ("fixed minute, headers", Shared::fixed, true),
        ("strict log, headers", Shared::window, true),
    ] {
        for (name, part) in [("half", 0.5), ("four fifths", 0.8)] {
            let plan = Plan { draw: Document::alike, mean: ALIKE, headers, ..steady(WORKERS) };
            let provider = move || Box::new(new(SMALL, part)) as Box<dyn Provider>;
            let name = format!("account {name} used by others who come and go: {meter}");
            // The others are active in ten of the fifteen minutes.
            let left = (SMALL as f64 * (1.0 - part * 2.0 / 3.0)) as u64;
            cases.push(endless(name, plan, provider, learned(SMALL), left));
        }
    }
    for (what, part) in [("20 % less", 0.8), ("20 % more", 1.2)] {
        let plan = Plan { draw: Document::alike, mean: ALIKE, headers: true, ..steady(WORKERS) };
        let provider =
            move || Box::new(Lying::new(Kind::Bucket60.provider(SMALL), part)) as Box<dyn Provider>;
        let name = format!("headers tell of {what} use than there is");
        cases.push(endless(name, plan, provider, learned(SMALL), SMALL));
    }
    let plan =
        Plan { draw: Document::alike, mean: ALIKE, in_process: 20, headers: true, ..steady(240) };
    let provider = || Kind::Bucket60.provider(60_000);
    cases.push(endless("twelve workers at 60 k", plan, provider, learned(60_000), 60_000));
    for (what, limits) in [("safe", learned(LARGE)), ("known bucket", known(LARGE))] {
        for away in [1, 2, 5, 10, 60] {
            let away = away * SECOND;
            let plan = Plan {
                end: CHANGE + away + 5 * SECOND,
                steady: CHANGE,
                disturbance: Some((CHANGE, Disturbance::Away(away))),
                headers: true,
                ..steady(WORKERS)
            };
            let name = format!("Redis away for {} s, {what}", away / SECOND);
            let provider = || Kind::Bucket60.provider(LARGE);
            cases.push(endless(name, plan, provider, limits, LARGE));
        }
    }
    let provider = || Box::new(Phased::new(LARGE, 37.0)) as Box<dyn Provider>;
    let name = "fixed minute of unknown phase";
    cases.push(endless(name, steady(WORKERS), provider, learned(LARGE), LARGE));
    cases
}

/// Mean figures of a case over seeds.
fn mean(bench: &Bench<'_>, case: &Case, seeds: u64) -> Figures {
    let mut sum =
        Figures { used: 0.0, refused: 0.0, calls: 0.0, asks: 0.0, wait: 0.0, stretch: 0.0 };
    for seed in 1..=seeds {
        let figures = (case.run)(bench, seed);
        sum.used += figures.used;
        sum.refused += figures.refused;
        sum.calls += figures.calls;
        sum.asks += figures.asks;
        sum.wait += figures.wait;
        sum.stretch = sum.stretch.max(figures.stretch);
    }
    let seeds = seeds as f64;
    sum.used /= seeds;
    sum.asks /= seeds;
    sum.wait /= seeds;
    sum
}

pub(crate) fn rows(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Every row",
        "Means of the seeds; the longest stretch without a start, while documents waited and the provider would have admitted a \
         mean call, is the longest of all seeds. Use is of what was possible: of the limit, or of the shortest time.",
        &[
            "scenario",
            "store",
            "use",
            "refused",
            "of calls",
            "asks",
            "wait p99 s",
            "longest stretch s",
        ],
    );
    let numbers = bench.kept.numbers();
    let (seeds, only, stores) = (bench.seeds, bench.only.clone(), bench.stores.clone());
    for case in old().iter().chain(&new()).filter(|case| case.name.contains(&only)) {
        for store in &stores {
            let Ok(kept) = Keeper::named(store, numbers) else { continue };
            bench.kept = kept;
            let mean = mean(bench, case, seeds);
            let row = [
                case.name.clone(),
                store.clone(),
                percent(mean.used),
                format!("{:.1}", mean.refused / seeds as f64),
                percent(mean.refused / mean.calls.max(1.0)),
                format!("{:.1}", mean.asks),
                seconds(mean.wait),
                format!("{:.1}", mean.stretch),
            ];
            eprintln!("{}", row.join(" | "));
            table.row(row);
        }
    }
    table
}
