//! `docs/limiter.md` describes the limiter: its table of numbers is written from the struct, and it
//! names every hold and every reason of a plan.
//!
//! `TIDEGATE_WRITE_DOCS=1 cargo test --offline -p tidegate-quota --test numbers` writes the table.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first fault")]

use std::fmt::Write as _;

use tidegate_quota::{Dimension, Hold, numbers::Numbers, plan::Why};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/limiter.md");
const TITLE: &str = "\n## Numbers\n\n";

fn table() -> String {
    let mut table = "| number | value | why |\n|---|---|---|\n".to_owned();
    for (name, value, unit, why) in Numbers::ALL {
        // Seconds are easier to read.
        let (value, unit) = match unit.strip_prefix("µs") {
            Some(rest) => (value / 1e6, format!("s{rest}")),
            None => (*value, (*unit).to_owned()),
        };
        writeln!(table, "| `{name}` | {value} {unit} | {why} |").unwrap();
    }
    table
}

#[test]
fn the_page_has_every_number() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (text, _) = page.split_once(TITLE).unwrap();
    let expected = format!("{text}{TITLE}{}", table());
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &expected).unwrap();
    }
    assert!(
        std::fs::read_to_string(PAGE).unwrap() == expected,
        "docs/limiter.md is not what quota/src/numbers.rs says; write it anew: TIDEGATE_WRITE_DOCS=1 cargo test -p tidegate-quota --test numbers"
    );
}

/// The next reason; a new one does not compile until it is added here.
fn next(why: Why) -> Option<Why> {
    Some(match why {
        Why::Configured => Why::Set,
        Why::Set => Why::Stated,
        Why::Stated => Why::Refused,
        Why::Refused => Why::First,
        Why::First => Why::Unproven,
        Why::Unproven => Why::Explored,
        Why::Explored => Why::TooDeep,
        Why::TooDeep => Why::Full,
        Why::Full => Why::Strict,
        Why::Strict => Why::Even,
        Why::Even => return None,
    })
}

#[test]
fn the_page_has_every_reason_of_a_plan_and_every_hold() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut why = Some(Why::Configured);
    while let Some(reason) = why {
        assert!(page.contains(&format!("{reason}")), "{reason}");
        why = next(reason);
    }
    let levels = Dimension::ALL.map(Hold::Level);
    let others = [Hold::InFlight, Hold::Turn, Hold::Lane, Hold::Probe, Hold::Gate];
    for hold in levels.into_iter().chain(others) {
        assert!(page.contains(&format!("`{}`", hold.name())), "{hold}");
    }
}
