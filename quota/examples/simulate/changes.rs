//! Scenarios with changes while a fleet works: limits, caches, chance.

use std::time::Duration;

use tidegate_quota::{Charge, Dimension, Lanes, Limits};

use crate::{
    documents::{Document, MEAN_INPUT, MEAN_OUTPUT},
    event::{Micros, SECOND},
    fleet::{Disturbance, INTERACTIVE, Plan},
    provider::{Caching, Changing, Kind, Ramping, Spending},
    report::Report,
    scenario::{Bench, LARGE, Scenario, WORKERS, known, two_lanes},
    table::{Table, percent, seconds},
};

pub(crate) const ALL: [Scenario; 6] = [
    ("interactive", interactive),
    ("wrong", wrong),
    ("ramp", ramp),
    ("spending", spending),
    ("raised", raised),
    ("cached", cached),
];

/// When limits change.
const CHANGE: Micros = 600 * SECOND;

fn interactive(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Interactive over ten seeds",
        "As in Lanes: batch saturates, interactive calls with 30 % guaranteed offer 15 %. Known bucket, 2 M tokens a minute.",
        &["seed", "use", "429s", "interactive p99 s", "longest s"],
    );
    let seeds = if bench.quick { 2 } else { 10 };
    let interactive = 0.15 * LARGE as f64 / (MEAN_INPUT + MEAN_OUTPUT) / 60.0;
    let mut worst = 0.0_f64;
    for seed in 1..=seeds {
        let plan = Plan { interactive, seed, ..bench.plan(WORKERS) };
        let report = bench.run(&plan, Kind::Bucket60.provider(LARGE), known(LARGE), two_lanes());
        let p99 = report.wait_in(INTERACTIVE, 0.99);
        worst = worst.max(p99);
        table.row([
            seed.to_string(),
            percent(report.used(LARGE)),
            report.refusals().to_string(),
            seconds(p99),
            seconds(report.wait_in(INTERACTIVE, 1.0)),
        ]);
    }
    table.check(worst <= 1.0, format!("interactive wait p99 {} s ≤ 1 s in each", seconds(worst)));
    table
}

fn calls(report: &Report) -> usize {
    report.refused_calls().1
}

fn wrong(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Limits that are wrong",
        "A bucket 60 s deep, 200 workers, 400 k tokens a minute of documents of 2,530 tokens. It is cut to 40 % \
         after ten minutes and nobody says so; or the configured limit is a third more than there is. Without headers, and with \
         such as tell the wrong limit with every answer.",
        &["what", "calls", "429s", "refused", "use in the last ten minutes"],
    );
    const LIMIT: u64 = 400_000;
    let safe = Limits::default();
    let cases = [
        ("cut to 40 %", CHANGE, 0.4, LIMIT, LIMIT * 2 / 5, 0.01),
        ("a third too high", 0, 1.0, LIMIT * 4 / 3, LIMIT, 0.03),
    ];
    let cases = cases.into_iter().flat_map(|case| [(case, false), (case, true)]);
    for ((what, at, part, configured, real, most), headers) in cases {
        let plan =
            Plan { draw: Document::alike, headers, ..Plan::new(2 * CHANGE, CHANGE, WORKERS) };
        let provider = Changing::new(LIMIT, at, part);
        let what = format!("{what}{}", if headers { ", and headers say otherwise" } else { "" });
        let limits = safe.with(Dimension::Combined, configured);
        let report = bench.run(&plan, Box::new(provider), limits, Lanes::single());
        let part = report.refused_calls().0 as f64 / calls(&report).max(1) as f64;
        table.row([
            what.clone(),
            calls(&report).to_string(),
            report.refused_calls().0.to_string(),
            percent(part),
            percent(report.used(real)),
        ]);
        table.check(part <= most, format!("{what}: {} refused ≤ {}", percent(part), percent(most)));
    }
    table
}

fn ramp(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "A limit on growth",
        "2 M tokens a minute, but whoever has more than 500 k in a minute may grow by half in a quarter of an hour, and is refused \
         for five seconds else: 500 k, then 750 k, and so on. 200 workers with an endless backlog; headers, where there are any, \
         tell of the minute alone.",
        &[
            "preset",
            "headers",
            "calls",
            "429s",
            "refused",
            "use of what is allowed",
            "in the second quarter",
            "third",
            "fourth",
        ],
    );
    const FLOOR: u64 = LARGE / 4;
    const QUARTER: Micros = 900 * SECOND;
    let quarters = if bench.quick { 2 } else { 4 };
    let safe = Limits::default().with(Dimension::Combined, LARGE);
    let cases = [
        ("safe", safe, false),
        ("known bucket", known(LARGE), false),
        ("known bucket", known(LARGE), true),
    ];
    for (preset, limits, headers) in cases {
        let plan = Plan { headers, ..Plan::new(quarters * QUARTER, 60 * SECOND, WORKERS) };
        let report =
            bench.run(&plan, Box::new(Ramping::new(LARGE, FLOOR)), limits, Lanes::single());
        let part = report.refused_calls().0 as f64 / calls(&report).max(1) as f64;
        let used = |quarter: u64| {
            let allowed = FLOOR as f64 * 1.5_f64.powi(quarter as i32) * 15.0;
            let from = quarter * QUARTER;
            report.tokens_between(from.max(60 * SECOND), from + QUARTER) as f64 / allowed
        };
        let mut row = vec![
            preset.to_owned(),
            if headers { "yes" } else { "no" }.to_owned(),
            calls(&report).to_string(),
            report.refused_calls().0.to_string(),
            percent(part),
        ];
        row.extend((0..4).map(|it| if it < quarters { percent(used(it)) } else { "-".to_owned() }));
        table.row(row);
        table.check(part <= 0.03, format!("{preset}: {} refused ≤ 3 %", percent(part)));
    }
    table
}

fn spending(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "A limit over ten minutes that is not configured",
        "2 M tokens a minute are configured, and the provider has them; but in any ten minutes it lets through only a part of what \
         that would be, as Gemini's limits on spending do, and then refuses for a minute at a time. 200 workers with an endless \
         backlog, no headers; use from the twentieth minute on, of what ten minutes allow.",
        &["ten minutes' part", "calls", "429s", "refused", "use of what is allowed"],
    );
    let minutes = if bench.quick { 40 } else { 80 };
    let limits = Limits::default().with(Dimension::Combined, LARGE);
    for part in [0.8, 0.5, 0.2] {
        let most = (LARGE as f64 * part * 10.0) as u64;
        let plan = Plan::new(minutes * 60 * SECOND, 1_200 * SECOND, WORKERS);
        let report =
            bench.run(&plan, Box::new(Spending::new(LARGE, most)), limits, Lanes::single());
        let refused = report.refused_calls().0 as f64 / calls(&report).max(1) as f64;
        table.row([
            percent(part),
            calls(&report).to_string(),
            report.refused_calls().0.to_string(),
            percent(refused),
            percent(report.used((LARGE as f64 * part) as u64)),
        ]);
        table.check(
            refused <= 0.03,
            format!("{}: {} refused ≤ 3 %", percent(part), percent(refused)),
        );
    }
    table
}

fn raised(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "A limit that is raised",
        "500 k tokens a minute with 5,000 callers that wait, of two batches; after ten minutes an operator sets 2 M, and one of \
         the batches is cancelled. Callers sleep for five minutes at most, and nothing wakes them.",
        &["longest sleep s", "use in minute 1", "2", "3", "5", "7", "429s", "asks per admission"],
    );
    const BEFORE: u64 = LARGE / 4;
    for longest in [300, 60] {
        let plan = Plan {
            longest_delay: longest * SECOND,
            disturbance: Some((CHANGE, Disturbance::Raise(LARGE))),
            tenant: |worker| worker as u64 % 2,
            ..Plan::new(CHANGE + 480 * SECOND, CHANGE + 60 * SECOND, 5_000)
        };
        let provider = Box::new(Changing::new(BEFORE, CHANGE, 4.0));
        let report = bench.run(&plan, provider, known(BEFORE), Lanes::single());
        let minute = |minute: u64| {
            let from = CHANGE + (minute - 1) * 60 * SECOND;
            report.tokens_between(from, from + 60 * SECOND) as f64 / LARGE as f64
        };
        let mut row = vec![longest.to_string()];
        row.extend([1, 2, 3, 5, 7].map(|it| percent(minute(it))));
        row.extend([report.refusals().to_string(), format!("{:.1}", report.asks_per_admission())]);
        table.row(row);
        table.check(
            minute(2) >= 0.95,
            format!("{longest} s: use {} ≥ 95 % after a minute", percent(minute(2))),
        );
    }
    table
}

fn cached(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Cached prompts",
        "Instructions of 3,175 tokens before documents of 1,500: after the first answer the provider reads them from its cache and \
         counts the rest. 100 k input tokens a minute, known bucket. 320 documents, and an endless backlog.",
        &["documents", "seconds", "at the limit", "use", "429s"],
    );
    const LIMIT: u64 = 100_000;
    const EACH: f64 = 1_500.0;
    let limits = Limits {
        margin: 1.0,
        window: Duration::from_secs(60),
        token_bucket: true,
        ..Limits::default().with(Dimension::Input, LIMIT)
    };
    let charge = Charge { cached_input: false, ..Charge::default() };
    let run = |plan: &Plan| bench.run_with(plan, Box::new(Caching::new(LIMIT)), limits, charge);
    let batch: &'static [(Micros, usize)] = &[(SECOND, 320)];
    let plan = Plan { batches: batch, draw: Document::prefixed, ..Plan::new(CHANGE, 0, WORKERS) };
    let report = run(&plan);
    let took = (report.finished - SECOND) as f64 / SECOND as f64;
    // The bound: a full bucket, then the refill until the last admission, and its call.
    let least = (320.0 * EACH + 3_175.0 - LIMIT as f64) / (LIMIT as f64 / 60.0) + 10.0;
    table.row([
        "320".to_owned(),
        seconds(took),
        seconds(least),
        percent(least / took),
        report.refusals().to_string(),
    ]);
    table.check(least / took >= 0.9, format!("320 documents at {} ≥ 90 %", percent(least / took)));
    let plan = Plan { draw: Document::prefixed, ..Plan::new(2 * CHANGE, CHANGE / 2, WORKERS) };
    let report = run(&plan);
    let part = report.used_input(3_175, LIMIT);
    table.row([
        "endless".to_owned(),
        "-".to_owned(),
        "-".to_owned(),
        percent(part),
        report.refusals().to_string(),
    ]);
    table.check(part >= 0.9, format!("endless: use {} ≥ 90 %", percent(part)));
    table
}
