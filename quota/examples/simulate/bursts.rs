//! Batches that end: their duration, and the gain from a provider's full bucket.

use std::time::Duration;

use tidegate_quota::{Dimension, Lanes, Limits};

use crate::{
    documents::Document,
    event::{Micros, SECOND},
    fleet::Plan,
    provider::Kind,
    scenario::Bench,
    table::{Table, seconds},
};

const LIMIT: u64 = 400_000;

/// Slots of both workers together.
const SLOTS: usize = 200;

/// The second batch begins when the first is long over.
const SECOND_BATCH: Micros = 600 * SECOND;

/// Tokens of one document in the mean, as `Document::alike` makes them.
const MEAN: f64 = 1_950.0 + 580.0;

fn limits(fixed: bool, token_bucket: bool) -> Limits {
    let limits = Limits {
        burst: fixed.then_some(Duration::from_secs(1)),
        token_bucket,
        ..Limits::default().with(Dimension::Combined, LIMIT)
    };
    if token_bucket {
        return Limits { margin: 1.0, window: Duration::from_secs(60), ..limits };
    }
    limits
}

/// The least time in which a full bucket and its refill suffice for these documents.
fn least(documents: usize) -> f64 {
    (documents as f64 * MEAN - LIMIT as f64).max(0.0) / (LIMIT as f64 / 60.0)
}

pub(crate) fn bursts(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "Batches that end",
        "400 k tokens a minute, 200 slots, documents of 2,530 tokens whose calls take ten seconds (1 s and 15 ms a token, a third \
         more or less); a second batch ten minutes after the first. `even` is a burst of 1 s that does not grow, `learned` one that \
         does, `bucket` a limit that is configured as a token bucket's.",
        &[
            "provider",
            "headers",
            "burst",
            "documents",
            "first s",
            "second s",
            "429s first",
            "429s second",
            "asks per admission",
        ],
    );
    let batches: [(usize, &'static [(Micros, usize)]); 2] = [
        (100, &[(SECOND, 100), (SECOND_BATCH, 100)]),
        (700, &[(SECOND, 700), (SECOND_BATCH, 700)]),
    ];
    let cases = [
        (Kind::Bucket60, true, "even"),
        (Kind::Bucket60, true, "learned"),
        (Kind::Bucket60, true, "bucket"),
        (Kind::Bucket60, false, "even"),
        (Kind::Bucket60, false, "learned"),
        (Kind::Bucket60, false, "bucket"),
        (Kind::Bucket5, false, "learned"),
        (Kind::FixedMinute, true, "learned"),
        (Kind::FixedMinute, false, "learned"),
        (Kind::StrictLog, true, "learned"),
        (Kind::StrictLog, false, "learned"),
        (Kind::BucketSkewed, true, "learned"),
        (Kind::ChargesLate, true, "learned"),
    ];
    for (kind, headers, burst) in cases {
        if bench.quick && (burst == "even" || !headers || kind.skew().1 > 0) {
            continue;
        }
        for (documents, batches) in batches {
            let plan = Plan {
                batches,
                draw: Document::alike,
                headers,
                skew: kind.skew(),
                ..Plan::new(2 * SECOND_BATCH, 0, SLOTS)
            };
            let limits = limits(burst == "even", burst == "bucket");
            let report = bench.run(&plan, kind.provider(LIMIT), limits, Lanes::single());
            let took =
                |finished: Micros, begun| finished.saturating_sub(begun) as f64 / SECOND as f64;
            let one = took(report.ended[1], SECOND);
            let two = took(report.finished, SECOND_BATCH);
            let early = report.refusals_between(0, SECOND_BATCH);
            let late = report.refusals_between(SECOND_BATCH, 2 * SECOND_BATCH);
            table.row([
                kind.name().to_owned(),
                if headers { "yes" } else { "no" }.to_owned(),
                burst.to_owned(),
                documents.to_string(),
                seconds(one),
                seconds(two),
                early.to_string(),
                late.to_string(),
                format!("{:.1}", report.asks_per_admission()),
            ]);
            if burst == "even" {
                continue;
            }
            let what = format!("{}, {burst}, {documents} documents", kind.name());
            let shallow = kind == Kind::Bucket5;
            let most = if shallow { documents / 100 } else { 0 };
            table.check(early <= most, format!("{what}: {early} refusals, {most} allowed"));
            table.check(late == 0, format!("{what}: {late} refusals in the second batch"));
            // The longest call takes 16 s.
            if documents == 100 && (headers || burst == "bucket") {
                table
                    .check(one <= 20.0, format!("{what}: {} s ≤ longest call + 4 s", seconds(one)));
            }
            if documents == 700 && kind == Kind::Bucket60 && (headers || burst == "bucket") {
                let most = 1.05 * least(documents) + 16.0;
                table.check(one <= most, format!("{what}: {} s ≤ {most:.0} s", seconds(one)));
            }
        }
    }
    table
}
