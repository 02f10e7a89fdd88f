//! Tenants inside a lane.

use tidegate_quota::Lanes;

use crate::{
    fleet::Plan,
    provider::Kind,
    scenario::{Bench, known},
    table::{Table, percent},
};

const LIMIT: u64 = 2_000_000;

/// One tenant has 200 workers and the other 20, all with an endless backlog, at a fifth of the
/// usual limit: at 400 k tokens a minute 15 calls are in flight, so both tenants wait all the time.
pub(crate) fn tenants(bench: &mut Bench<'_>) -> Table {
    let limit = LIMIT / 5;
    let mut table = Table::new(
        "Tenants in a lane",
        "Known bucket, 400 k tokens a minute; one tenant has ten times the other's demand, and both are backlogged.",
        &["tenant", "workers", "part of the tokens"],
    );
    let plan = Plan { tenant: |worker| if worker < 200 { 1 } else { 2 }, ..bench.plan(220) };
    let report = bench.run(&plan, Kind::Bucket60.provider(limit), known(limit), Lanes::single());
    let sum: u64 = report.tenants().values().sum();
    for (tenant, workers) in [(1, 200), (2, 20)] {
        let part = report.tenants().get(&tenant).copied().unwrap_or(0) as f64 / sum.max(1) as f64;
        table.row([tenant.to_string(), workers.to_string(), percent(part)]);
        table.check(
            (part - 0.5).abs() <= 0.1,
            format!("tenant {tenant} gets {}, about half", percent(part)),
        );
    }
    table
}
