//! How much workers take from their task queue, with the real controller (`quota/src/intake.rs`).

use std::sync::Arc;

use tidegate_quota::{Charge, Lanes, Limits, ModelQuota, numbers::Numbers};

use crate::{
    driver::Limiter,
    event::{Micros, SECOND},
    rows::learned,
    scenario::{Bench, known},
    stores::{Kept, Twin, runtime},
    table::{Table, percent},
    workers::{Figures, Plan, run},
};

const MINUTE: Micros = 60 * SECOND;
const END: Micros = 20 * MINUTE;
const LARGE: u64 = 400_000;
const SMALL: u64 = 60_000;
const TINY: u64 = 6_000;

/// Tokens of a call of `Document::alike`.
const CALL: u64 = 2_530;

/// Delay from a document's start to its first ask.
const READS: Micros = 30_000;

/// When an operator closes the gate for ten minutes, and opens it.
const CLOSED: (Micros, Micros, Micros) = (10 * MINUTE, 10 * MINUTE, 12 * MINUTE);

/// A scenario, and the bounds on deferrals a document and on questions an admission.
struct Case {
    name: &'static str,
    /// Tokens a minute of each model.
    limits: &'static [u64],
    /// For a known bucket, or for a provider without a meter.
    of: fn(u64) -> Limits,
    workers: usize,
    batches: usize,
    /// Documents that a batch has in flight, if set.
    stated: Option<usize>,
    reads: Micros,
    gate: Option<(Micros, Micros, Micros)>,
    deferrals: f64,
    questions: f64,
}

const CASE: Case = Case {
    name: "nothing stated, full bucket: two workers at 400 k",
    limits: &[LARGE],
    of: known,
    workers: 2,
    batches: 1,
    stated: None,
    reads: READS,
    gate: None,
    deferrals: 0.1,
    questions: 1.3,
};

/// Bounds on questions above the usual one. Of twelve workers each has one document that waits: its
/// ticket and its turn are two questions, and turns that move are more. A question is for one
/// tenant, so four batches share few.
const TWELVE: f64 = 3.5;
const FOUR: f64 = 3.1;

const CASES: [Case; 11] = [
    CASE,
    Case { name: "400 in flight stated", stated: Some(400), deferrals: 0.3, ..CASE },
    Case {
        name: "twelve workers at 60 k",
        limits: &[SMALL],
        workers: 12,
        deferrals: 0.3,
        questions: TWELVE,
        ..CASE
    },
    Case {
        name: "twelve workers at 60 k, 400 in flight stated",
        limits: &[SMALL],
        workers: 12,
        stated: Some(400),
        deferrals: 0.3,
        questions: TWELVE,
        ..CASE
    },
    Case { name: "four batches at once", batches: 4, deferrals: 0.3, questions: FOUR, ..CASE },
    Case {
        name: "a document is read for 2 s",
        reads: 2 * SECOND,
        deferrals: 0.3,
        questions: 1.6,
        ..CASE
    },
    Case {
        name: "a gate closes for ten minutes and is opened after two",
        gate: Some(CLOSED),
        deferrals: 0.3,
        ..CASE
    },
    Case {
        name: "a model at 6 k beside one at 400 k",
        limits: &[LARGE, TINY],
        deferrals: 0.3,
        questions: 1.5,
        ..CASE
    },
    Case {
        name: "twelve workers: a model at 6 k beside one at 60 k",
        limits: &[SMALL, TINY],
        workers: 12,
        deferrals: 0.3,
        questions: TWELVE,
        ..CASE
    },
    Case {
        name: "the provider tells nothing: two workers at 400 k",
        of: learned,
        deferrals: 0.3,
        questions: 1.5,
        ..CASE
    },
    Case {
        name: "the provider tells nothing: four batches at once",
        of: learned,
        batches: 4,
        deferrals: 0.3,
        questions: FOUR,
        ..CASE
    },
];

/// Bounds: documents taken for each that the quota admits, and the longest time from the opening of
/// a gate to the next call.
const STARTED: f64 = 1.3;
const REOPENED: f64 = 5.0;

impl Case {
    fn run(&self, numbers: &Numbers, seed: u64) -> Figures {
        // What a minute admits, and what a full bucket admits at once.
        let window = |limit: &u64| self.stated.unwrap_or((2 * limit / CALL) as usize).max(1);
        let plan = Plan {
            end: END,
            workers: self.workers,
            batches: self.batches,
            windows: self.limits.iter().map(window).collect(),
            reads: self.reads,
            gate: self.gate,
            seed,
        };
        let quota = |limit: &u64| {
            let id = format!("simulated:at-{limit}").parse().expect("a model id");
            let lanes = Arc::new(Lanes::single());
            let model = ModelQuota::new(id, (self.of)(*limit), Charge::default(), lanes)
                .expect("good limits");
            Box::new(Kept::new(runtime(), Twin::new(*numbers), model)) as Box<dyn Limiter>
        };
        run(&plan, numbers, self.limits.iter().map(quota).collect())
    }

    /// Means over this many seeds.
    fn mean(&self, numbers: &Numbers, seeds: u64) -> Means {
        let mut means = Means::default();
        for seed in 1..=seeds {
            let figures = self.run(numbers, seed);
            let admitted = figures.admitted as f64;
            let part = 1.0 / seeds as f64;
            means.deferrals += part * figures.deferred as f64 / admitted;
            means.questions += part * figures.questions as f64 / admitted;
            // Everything that a full bucket and its refill give.
            let minutes = (END + MINUTE) as f64 / MINUTE as f64;
            means.used.resize(self.limits.len(), 0.0);
            for (at, used) in means.used.iter_mut().enumerate() {
                *used += part * figures.tokens[at] as f64 / self.limits[at] as f64 / minutes;
            }
            let taken = figures.taken as f64;
            means.started += part * taken / (taken - figures.beyond as f64);
            let mut held = figures.held;
            held.sort_unstable();
            means.low += part * held[held.len() / 10] as f64;
            means.high += part * held[held.len() * 9 / 10] as f64;
            let reopened = figures.reopened.unwrap_or_default() as f64 / SECOND as f64;
            means.reopened = means.reopened.max(reopened);
        }
        means
    }
}

#[derive(Default)]
struct Means {
    deferrals: f64,
    questions: f64,
    /// Figures of each model.
    used: Vec<f64>,
    started: f64,
    low: f64,
    high: f64,
    /// The longest wait, in seconds.
    reopened: f64,
}

impl Means {
    /// Each bound: whether it holds, and its text.
    fn checks(&self, case: &Case) -> Vec<(bool, String)> {
        let Case { name, deferrals, questions, gate, .. } = case;
        let mut checks = vec![
            (
                self.deferrals <= *deferrals,
                format!("{name}: {:.2} deferrals a document, at most {deferrals}", self.deferrals),
            ),
            (
                self.questions <= *questions,
                format!(
                    "{name}: {:.2} questions an admission, at most {questions}",
                    self.questions
                ),
            ),
            (
                self.started <= STARTED,
                format!(
                    "{name}: {:.2} started for each signalled, at most {STARTED}",
                    self.started
                ),
            ),
        ];
        if gate.is_some() {
            let what =
                format!("{name}: next call after {:.1} s, at most {REOPENED}", self.reopened);
            checks.push((self.reopened > 0.0 && self.reopened <= REOPENED, what));
        }
        checks
    }
}

pub(crate) fn controller(bench: &mut Bench<'_>) -> Table {
    let mut table = Table::new(
        "The controller",
        "Means of the seeds; twenty minutes, 2,530 tokens a call, in flight what a minute and a full bucket take. Started for each \
         signalled: documents that workers took, for each of them that was admitted within 10 s or kept watch. Slots: the 10th and \
         the 90th percentile of all that the fleet held in each second of the last ten minutes. The next call: after the gate was \
         opened, the longest of all seeds.",
        &[
            "scenario",
            "deferrals a document",
            "questions an admission",
            "use",
            "started for each signalled",
            "slots held",
            "next call s",
        ],
    );
    let (numbers, seeds, only) = (bench.kept.numbers(), bench.seeds, bench.only.clone());
    for case in CASES.iter().filter(|case| case.name.contains(&only)) {
        let means = case.mean(&numbers, seeds);
        let row = [
            case.name.to_owned(),
            format!("{:.3}", means.deferrals),
            format!("{:.2}", means.questions),
            means.used.iter().map(|used| percent(*used)).collect::<Vec<_>>().join(" and "),
            format!("{:.2}", means.started),
            format!("{:.0} to {:.0}", means.low, means.high),
            if case.gate.is_some() { format!("{:.1}", means.reopened) } else { String::new() },
        ];
        eprintln!("{}", row.join(" | "));
        table.row(row);
        for (kept, what) in means.checks(case) {
            table.check(kept, what);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_what_the_quota_admits_soon() {
        for case in &CASES {
            for (kept, what) in case.mean(&Numbers::DEFAULT, 1).checks(case) {
                assert!(kept, "{what}");
            }
        }
    }
}
