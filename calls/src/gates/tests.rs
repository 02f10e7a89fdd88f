#![allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]

use std::time::Duration;

use tidegate_providers::{Charged, Error, Kind};
use tidegate_quota::{Options, Request};

use super::*;
use crate::{budget::Budgets, keys::KeyNow};

/// Gates that hold calls for a refused key, an account and a name in doubt, and a provider that is
/// down. Each lets one call test it.
struct Met {
    gates: Gates,
    attempt: Attempt,
    model: ModelId,
    budget: CallBudget,
    start: Instant,
}

fn error(kind: Kind, status: u16) -> Error {
    Error { kind, status: Some(status), ..Error::no_reply("no".to_owned(), Charged::No) }
}

impl Met {
    fn nothing() -> Self {
        let quota = Quota::in_memory([], Options::default());
        let (attempt, model) = (Attempt::alone("r".to_owned()), "a:b".parse().unwrap());
        let request = Request::new(model, "r");
        let budget = Arc::<Budgets>::default().call_budget(&attempt, &request, None).unwrap();
        let gates = Gates::new(quota, CancellationToken::new());
        Self { gates, attempt, model: request.model, budget, start: Instant::now() }
    }

    fn all() -> Self {
        let met = Self::nothing();
        let Self { gates, model, start, .. } = &met;
        let refused = error(Kind::Unauthorized, 401);
        let _ = gates.keys.refused(model, "r", &refused, KeyNow::TheSame(None), *start);
        let _ =
            gates.unknown_models.refused(model, "r", &error(Kind::UnknownModel, 404), 1, *start);
        let _ = gates.accounts.doubts.refused((model, None), "pay", *start);
        met.falls_over();
        met
    }

    /// Makes calls for five documents in a row fail.
    fn falls_over(&self) {
        for document in ["1", "2", "3", "4", "5"] {
            let way = self.gates.health.enter(&self.model, self.start).unwrap();
            way.failed(&error(Kind::Overloaded, 503), document, self.start);
        }
    }

    fn asking(&self, seconds: u64) -> CheckedCall<'_> {
        let now = self.start + Duration::from_secs(seconds);
        CheckedCall { attempt: &self.attempt, model: &self.model, now }
    }

    fn checked(&self, seconds: u64) -> Result<(), &'static str> {
        self.gates.check(self.asking(seconds), &self.budget).map_err(|held| held.gate)
    }

    fn entered(&self, seconds: u64) -> Result<Passed, &'static str> {
        self.gates.enter(self.asking(seconds), &self.budget).map_err(|held| held.gate)
    }
}

/// Seconds after which every test is due: pauses last two seconds, the circuit's five.
const LATER: u64 = 6;

#[test]
fn they_are_looked_at_in_the_order_of_the_table() {
    let met = Met::nothing();
    let listed: Vec<_> = met.gates.list(Some(&met.budget)).iter().map(|it| it.name()).collect();
    let table = include_str!("../gates.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
    let table: Vec<_> = table.filter_map(|row| row.split('`').next()).collect();
    let results_is_handed_in: Vec<_> = table.into_iter().filter(|it| *it != "results").collect();
    assert_eq!([listed, vec!["quota", "budget"]].concat(), results_is_handed_in);
}

#[test]
fn the_first_run_takes_nothing_and_the_second_what_one_call_alone_may_have() {
    let met = Met::all();
    assert_eq!(met.checked(0), Err("key"));
    assert_eq!(met.attempt.counts().deferrals, 1, "it keeps its turn");
    for _ in 0..3 {
        assert_eq!(met.checked(LATER), Ok(()));
    }
    let passed = met.entered(LATER).unwrap();
    assert_eq!(met.checked(LATER), Err("key"), "the others wait for what it finds out");
    assert_eq!(met.entered(LATER).unwrap_err(), "key");
    drop(passed);
    let passed = met.entered(LATER).unwrap();
    let circuit = passed.leave();
    assert_eq!(met.checked(LATER), Err("key"), "it has left: what it took is used up");
    met.gates.keys.accepted(&met.model);
    assert_eq!(met.checked(LATER), Err("name"));
    met.gates.unknown_models.answered(&met.model, met.start);
    assert_eq!(met.checked(LATER), Err("account"));
    met.gates.accounts.doubts.answered(&met.model, met.start);
    assert_eq!(met.checked(LATER), Err("circuit"));
    circuit.unwrap().succeeded();
    assert_eq!(met.checked(LATER), Ok(()));
}

#[test]
fn a_later_gate_that_holds_the_call_returns_what_was_taken() {
    let met = Met::all();
    let finds_out = met.gates.health.enter(&met.model, met.asking(LATER).now).unwrap();
    assert_eq!(met.entered(LATER).unwrap_err(), "circuit");
    assert_eq!(met.checked(LATER), Err("circuit"), "key, name and account were given back");
    drop(finds_out);
    drop(met.entered(LATER).unwrap());
}

#[test]
fn a_change_during_the_wait_holds_the_call() {
    let met = Met::nothing();
    assert_eq!(met.checked(0), Ok(()));
    met.falls_over();
    assert_eq!(met.entered(0).unwrap_err(), "circuit");
}

#[test]
fn gates_of_a_batch_hold_every_model_and_gates_of_a_model_every_batch() {
    let met = Met::all();
    assert!(met.gates.of_batch(met.asking(0)).is_ok() && !met.gates.let_ask(met.asking(0)));
    let stopping = Met::nothing();
    stopping.gates.worker.0.cancel();
    let held = stopping.gates.of_batch(stopping.asking(0)).unwrap_err();
    assert_eq!((held.gate, stopping.attempt.counts().deferrals), ("worker", 0));
    assert!(stopping.gates.let_ask(stopping.asking(0)));
}
