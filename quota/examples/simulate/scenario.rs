//! The scenarios, each a table with its bounds.

use std::sync::Arc;
use std::time::Duration;

use tidegate_quota::{
    Charge, Dimension, Lanes, Limits, ModelQuota, PerDimension, Share, numbers::Numbers,
};
use tidegate_testkit::Redis;
use tidegate_types::Lane;

use crate::{
    documents::{MEAN_INPUT, MEAN_OUTPUT},
    driver::Limiter,
    event::SECOND,
    fleet::{BATCH, Disturbance, INTERACTIVE, Plan, run},
    plot::Plots,
    provider::{Kind, Provider, Split, split},
    report::Report,
    stores::{Kept, Scripts, Twin, runtime},
    table::{Table, percent, seconds},
};

/// The limits of the scenarios, in tokens a minute.
pub(crate) const LARGE: u64 = 2_000_000;
const SMALL: u64 = 400_000;

/// The fleet of most scenarios.
pub(crate) const WORKERS: usize = 200;

/// The settings of a run.
pub(crate) struct Bench<'a> {
    pub(crate) server: &'a Redis,
    pub(crate) quick: bool,
    pub(crate) plots: Plots,
    pub(crate) kept: Keeper,
    /// For the table of rows: the seeds, a part of the names of its scenarios, the stores.
    pub(crate) seeds: u64,
    pub(crate) only: String,
    pub(crate) stores: Vec<String>,
}

/// The store of the quota.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keeper {
    /// The scripts on a real Redis.
    Scripts,
    /// Their twin in memory, perhaps with other numbers.
    Memory(Numbers),
}

/// Values of `--name=value`, in their order.
pub(crate) fn options(arguments: &[String], name: &str) -> Vec<String> {
    let prefix = format!("--{name}=");
    arguments.iter().filter_map(|it| it.strip_prefix(&prefix).map(str::to_owned)).collect()
}

impl Keeper {
    /// From `--store=name` and `--set=number=value`.
    pub(crate) fn from_arguments(arguments: &[String]) -> Result<Self, String> {
        let mut numbers = Numbers::DEFAULT;
        for set in options(arguments, "set") {
            let (name, value) = set.split_once('=').ok_or_else(|| format!("{set}: no value"))?;
            let value = value.parse().map_err(|error| format!("{set}: {error}"))?;
            if !numbers.set(name, value) {
                return Err(format!("there is no number {name}"));
            }
        }
        let usual = if numbers == Numbers::DEFAULT { "scripts" } else { "memory" };
        let store = options(arguments, "store").pop();
        Self::named(store.as_deref().unwrap_or(usual), numbers)
    }

    pub(crate) fn named(name: &str, numbers: Numbers) -> Result<Self, String> {
        match name {
            "scripts" => Ok(Self::Scripts),
            "memory" => Ok(Self::Memory(numbers)),
            _ => Err(format!("there is no store {name}; give scripts or memory")),
        }
    }

    pub(crate) fn numbers(self) -> Numbers {
        match self {
            Self::Scripts => Numbers::DEFAULT,
            Self::Memory(numbers) => numbers,
        }
    }
}

/// A scenario, by the name that selects it on the command line.
pub(crate) type Scenario = (&'static str, fn(&mut Bench<'_>) -> Table);

pub(crate) const ALL: [Scenario; 8] = [
    ("known-bucket", known_bucket),
    ("safe-preset", safe_preset),
    ("asks", asks),
    ("lanes", lanes),
    ("sizes", sizes),
    ("deaths", deaths),
    ("disturbances", disturbances),
    ("naive", naive),
];

impl Bench<'_> {
    /// 1,200 virtual seconds, of which the last 900 count; when quick 480, of which the last 300
    /// count.
    pub(crate) fn plan(&self, workers: usize) -> Plan {
        let (end, steady) = if self.quick { (480, 180) } else { (1_200, 300) };
        Plan::new(end * SECOND, steady * SECOND, workers)
    }

    fn limiter(&self, limits: Limits, charge: Charge, lanes: Lanes) -> Box<dyn Limiter> {
        let id = "simulated:model".parse().expect("a model id");
        let model = ModelQuota::new(id, limits, charge, Arc::new(lanes)).expect("good limits");
        let runtime = runtime();
        match self.kept {
            Keeper::Scripts => {
                let scripts = Scripts::new(self.server, &runtime);
                Box::new(Kept::new(runtime, scripts, model))
            }
            Keeper::Memory(numbers) => Box::new(Kept::new(runtime, Twin::new(numbers), model)),
        }
    }

    /// With a provider that has rules of its own.
    pub(crate) fn run_with(
        &self,
        plan: &Plan,
        provider: Box<dyn Provider>,
        limits: Limits,
        charge: Charge,
    ) -> Report {
        run(plan, provider, Some(self.limiter(limits, charge, Lanes::single())))
    }

    pub(crate) fn run(
        &self,
        plan: &Plan,
        provider: Box<dyn Provider>,
        limits: Limits,
        lanes: Lanes,
    ) -> Report {
        run(plan, provider, Some(self.limiter(limits, Charge::default(), lanes)))
    }
}

/// The preset for a known bucket.
pub(crate) fn known(limit: u64) -> Limits {
    Limits {
        margin: 1.0,
        window: Duration::from_secs(60),
        token_bucket: true,
        ..Limits::default().with(Dimension::Combined, limit)
    }
}

/// The safe preset for this provider.
pub(crate) fn safe(kind: Kind, limit: u64) -> Limits {
    if kind == Kind::Split {
        let (input, output) = split(limit, 1.07);
        return Limits::default().with(Dimension::Input, input).with(Dimension::Output, output);
    }
    Limits::default().with(Dimension::Combined, limit)
}

fn used(kind: Kind, report: &Report, limit: u64) -> f64 {
    if kind == Kind::Split {
        let (input, output) = split(limit, 1.07);
        return report.used_of(input, output);
    }
    report.used(limit)
}

fn known_bucket(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "A known bucket",
        "Margin 1.00 over 60 s, 200 workers with an endless backlog, 2 M tokens a minute.",
        &["provider", "use", "429s", "asks per admission", "wait p50 s", "wait p99 s"],
    );
    for kind in [Kind::Bucket60, Kind::Bucket5] {
        let report =
            bench.run(&bench.plan(WORKERS), kind.provider(LARGE), known(LARGE), Lanes::single());
        let part = report.used(LARGE);
        table.row([
            kind.name().to_owned(),
            percent(part),
            report.refusals().to_string(),
            format!("{:.1}", report.asks_per_admission()),
            seconds(report.wait(0.5)),
            seconds(report.wait(0.99)),
        ]);
        table.check(part >= 0.99, format!("{}: use {} ≥ 99 %", kind.name(), percent(part)));
        // A provider that is no such bucket shows so by its first refusals.
        let most = if kind == Kind::Bucket5 { 5 } else { 0 };
        table.check(
            report.refusals() <= most,
            format!("{}: {} refusals, {most} allowed", kind.name(), report.refusals()),
        );
        if kind == Kind::Bucket60 {
            bench.plots.using("limiter, bucket 60 s deep", &report, LARGE);
        }
    }
    table
}

fn safe_preset(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "The safe preset",
        "Margin 0.98 over 60.5 s, 200 workers with an endless backlog: 97.2 % are attainable. At 400 k tokens a minute a single \
         document is up to 15 % of the limit; no bound is set there.",
        &["provider", "limit", "use", "429s", "asks per admission", "wait p99 s"],
    );
    let limits: &[u64] = if bench.quick { &[LARGE] } else { &[LARGE, SMALL] };
    for &limit in limits {
        for kind in Kind::ALL {
            let plan = Plan { skew: kind.skew(), ..bench.plan(WORKERS) };
            let report = bench.run(&plan, kind.provider(limit), safe(kind, limit), Lanes::single());
            let part = used(kind, &report, limit);
            table.row([
                kind.name().to_owned(),
                format!("{} k", limit / 1_000),
                percent(part),
                report.refusals().to_string(),
                format!("{:.1}", report.asks_per_admission()),
                seconds(report.wait(0.99)),
            ]);
            if limit == LARGE {
                table.check(
                    part >= 0.965,
                    format!("{}: use {} ≥ 96.5 %", kind.name(), percent(part)),
                );
                table.check(
                    report.refusals() == 0,
                    format!("{}: {} refusals, none allowed", kind.name(), report.refusals()),
                );
            }
        }
    }
    table
}

fn asks(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Asks per admission",
        "Known bucket, 2 M tokens a minute; with two dimensions, input and output limits bind in turn. A caller comes back when \
         its ticket says, or after at most five minutes (`gate.max-quota-wait`): 5,000 callers wait for a \
         quarter of an hour. A hundred callers are one process, which asks about those together that wait in it.",
        &[
            "waiters",
            "dimensions that bind",
            "longest delay",
            "asks per admission",
            "use",
            "429s",
            "wait p99 s",
        ],
    );
    let fleets: &[usize] = if bench.quick { &[200] } else { &[200, 5_000] };
    for &workers in fleets {
        for (longest_delay, delay) in [(3_600 * SECOND, "as told"), (300 * SECOND, "5 min")] {
            let plan = Plan { longest_delay, ..bench.plan(workers) };
            let told = delay == "as told";
            let report =
                bench.run(&plan, Kind::Bucket60.provider(LARGE), known(LARGE), Lanes::single());
            asks_row(
                &mut table,
                workers,
                (1, delay),
                &report,
                report.used(LARGE),
                told.then_some(6.0),
            );
            let (input, output) = split(LARGE, 1.0);
            let limits = Limits { per_minute: PerDimension::default(), ..known(LARGE) }
                .with(Dimension::Input, input)
                .with(Dimension::Output, output);
            let report =
                bench.run(&plan, Box::new(Split::new(input, output)), limits, Lanes::single());
            asks_row(
                &mut table,
                workers,
                (2, delay),
                &report,
                report.used_of(input, output),
                told.then_some(10.0),
            );
        }
    }
    table
}

fn asks_row(
    table: &mut Table,
    workers: usize,
    (dimensions, delay): (u64, &str),
    report: &Report,
    used: f64,
    bound: Option<f64>,
) {
    let asks = report.asks_per_admission();
    table.row([
        workers.to_string(),
        dimensions.to_string(),
        delay.to_owned(),
        format!("{asks:.1}"),
        percent(used),
        report.refusals().to_string(),
        seconds(report.wait(0.99)),
    ]);
    if let Some(bound) = bound {
        table.check(
            asks <= bound,
            format!("{workers} waiters, {dimensions} binding: {asks:.1} asks ≤ {bound}"),
        );
    }
}

pub(crate) fn two_lanes() -> Lanes {
    let lane = |name: &str, guaranteed| {
        (Lane::new(name).expect("a lane"), Share { guaranteed, ceiling: 1.0 })
    };
    let lanes =
        Lanes::new([lane("batch", 0.7), lane("interactive", 0.3)].into()).expect("two lanes");
    debug_assert_eq!(lanes.index(&Lane::new("batch").expect("a lane")), Some(BATCH));
    lanes
}

fn lanes(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Lanes",
        "Batch saturates; interactive calls arrive by chance and have 30 % guaranteed. Known bucket, 2 M tokens a minute.",
        &[
            "interactive offered",
            "use",
            "429s",
            "interactive p50 s",
            "p95 s",
            "p99 s",
            "batch p99 s",
            "asks per admission",
        ],
    );
    let offers: &[f64] = if bench.quick { &[0.15] } else { &[0.15, 0.0, 0.28, 0.45] };
    for &offered in offers {
        let interactive = offered * LARGE as f64 / (MEAN_INPUT + MEAN_OUTPUT) / 60.0;
        let plan = Plan { interactive, ..bench.plan(WORKERS) };
        let report = bench.run(&plan, Kind::Bucket60.provider(LARGE), known(LARGE), two_lanes());
        let (part, p99) = (report.used(LARGE), report.wait_in(INTERACTIVE, 0.99));
        table.row([
            percent(offered),
            percent(part),
            report.refusals().to_string(),
            seconds(report.wait_in(INTERACTIVE, 0.5)),
            seconds(report.wait_in(INTERACTIVE, 0.95)),
            seconds(p99),
            seconds(report.wait_in(BATCH, 0.99)),
            format!("{:.1}", report.asks_per_admission()),
        ]);
        if offered == 0.15 {
            table.check(
                p99 <= 1.0,
                format!("interactive wait p99 {} s ≤ 1 s at 15 % offered", seconds(p99)),
            );
            table.check(part >= 0.96, format!("use {} ≥ 96 % at 15 % offered", percent(part)));
            bench.plots.waiting("batch", &report, BATCH);
            bench.plots.waiting("interactive, 15 % offered", &report, INTERACTIVE);
        }
    }
    table
}

fn sizes(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Fairness of size",
        "Known bucket, 200 workers with an endless backlog; big documents have more than 20,000 tokens.",
        &["limit", "all p50 s", "all p99 s", "big p50 s", "big p99 s", "big / all p99"],
    );
    let limits: &[u64] = if bench.quick { &[LARGE] } else { &[LARGE, SMALL] };
    for &limit in limits {
        let report = bench.run(
            &bench.plan(WORKERS),
            Kind::Bucket60.provider(limit),
            known(limit),
            Lanes::single(),
        );
        let ratio = report.wait_of_big(0.99) / report.wait(0.99);
        table.row([
            format!("{} k", limit / 1_000),
            seconds(report.wait(0.5)),
            seconds(report.wait(0.99)),
            seconds(report.wait_of_big(0.5)),
            seconds(report.wait_of_big(0.99)),
            format!("{ratio:.2}"),
        ]);
        table.check(
            ratio <= 1.5,
            format!("{} k: big documents' p99 is {ratio:.2} ≤ 1.5 times everyone's", limit / 1_000),
        );
    }
    table
}

fn deaths(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Silent deaths",
        "Known bucket, 2 M tokens a minute, 200 workers. A client that dies was refused once and never comes back with its \
         ticket; its worker takes another document. A lost settlement never reaches the store.",
        &["what", "part", "use", "429s", "asks per admission", "wait p99 s"],
    );
    let cases: &[(&str, f64, f64, Option<f64>)] = if bench.quick {
        &[("refused clients die", 0.20, 0.0, Some(0.90))]
    } else {
        &[
            ("nothing", 0.0, 0.0, None),
            ("refused clients die", 0.05, 0.0, None),
            ("refused clients die", 0.20, 0.0, Some(0.90)),
            ("settlements lost", 0.0, 0.05, None),
            ("settlements lost", 0.0, 0.20, None),
        ]
    };
    for &(what, vanish, lost, bound) in cases {
        let plan = Plan { vanish, lost, ..bench.plan(WORKERS) };
        let report =
            bench.run(&plan, Kind::Bucket60.provider(LARGE), known(LARGE), Lanes::single());
        let part = report.used(LARGE);
        table.row([
            what.to_owned(),
            percent(vanish + lost),
            percent(part),
            report.refusals().to_string(),
            format!("{:.1}", report.asks_per_admission()),
            seconds(report.wait(0.99)),
        ]);
        if let Some(bound) = bound {
            table.check(
                part >= bound,
                format!(
                    "{} of {what}: use {} ≥ {}",
                    percent(vanish + lost),
                    percent(part),
                    percent(bound)
                ),
            );
        }
    }
    table
}

fn disturbances(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "A pause, and a Redis that forgets",
        "A pause of 60 s or FLUSHALL at 600 s (quick: 240 s), 200 workers, 2 M tokens a minute; refusals in the two minutes after \
         the disturbance or the end of the pause.",
        &["what", "preset", "provider", "429s after", "429s in all", "use in the 2 min after"],
    );
    let at = if bench.quick { 240 } else { 600 } * SECOND;
    let pause = 60 * SECOND;
    for (what, disturbance, from) in [
        ("pause of 60 s", Disturbance::Pause(pause), at + pause),
        ("FLUSHALL", Disturbance::Flush { remembered: true }, at),
    ] {
        for kind in [Kind::Bucket60, Kind::Bucket5, Kind::StrictLog] {
            let plan = Plan {
                end: from + 120 * SECOND,
                steady: from,
                disturbance: Some((at, disturbance)),
                ..bench.plan(WORKERS)
            };
            let report = bench.run(&plan, kind.provider(LARGE), safe(kind, LARGE), Lanes::single());
            table.row([
                what.to_owned(),
                "safe".to_owned(),
                kind.name().to_owned(),
                report.refusals_between(at, plan.end).to_string(),
                report.refusals().to_string(),
                percent(report.used(LARGE)),
            ]);
        }
    }
    table
}

fn naive(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Without a limiter",
        "For comparison: the same 200 workers send at once and back off after a 429, with full jitter from 1 s, doubling to 60 s.",
        &["provider", "use", "calls refused", "wait p50 s", "wait p99 s", "big documents' p99 s"],
    );
    let kinds: &[Kind] = if bench.quick { &[Kind::Bucket60, Kind::StrictLog] } else { &Kind::ALL };
    for &kind in kinds {
        let plan = Plan { skew: kind.skew(), ..bench.plan(WORKERS) };
        let report = run(&plan, kind.provider(LARGE), None);
        table.row([
            kind.name().to_owned(),
            percent(used(kind, &report, LARGE)),
            percent(report.refused_part()),
            seconds(report.wait(0.5)),
            seconds(report.wait(0.99)),
            seconds(report.wait_of_big(0.99)),
        ]);
        if kind == Kind::Bucket60 {
            bench.plots.using("back-off only, bucket 60 s deep", &report, LARGE);
        }
        if kind == Kind::StrictLog {
            bench.plots.using("back-off only, strict log", &report, LARGE);
        }
    }
    table
}
