use std::{sync::Arc, time::Duration};

use serde_json::json;
use tidegate_calls::health::RecentCalls;
use tidegate_quota::{Charge, Dimension, Lanes, Limits, snapshot::DimensionSnapshot};
use tidegate_workflows::contract::Totals;

use super::*;

#[test]
fn the_gravest_cause_is_given() {
    let limits = Limits::default().with(Dimension::Combined, 1_000);
    let model = ModelQuota::new(
        "a:b".parse().unwrap(),
        limits,
        Charge::default(),
        Arc::new(Lanes::single()),
    )
    .unwrap();
    let class = read_class(&json!({ "model": "a:b", "lane": "interactive" }), &Config::default());
    let held = OperatorHolds::default();
    assert_eq!(class.lane.as_str(), "interactive");
    let turn = Waits { turn: 7, binding: Some(WaitsFor::Tokens), ..Waits::default() };
    let mut snapshot = Snapshot { factor: 1.0, ..Snapshot::default() };
    let why = |waits: &Waits, snapshot: &Snapshot| {
        find_cause(&class, waits, None, None, (Some((&model, snapshot)), &held, None, &[])).sentence
    };
    assert_eq!(why(&turn, &snapshot), "it waits for quota: tokens");
    let unwritten = Waits { unwritten: 2, turn: 5, ..Waits::default() };
    assert!(why(&unwritten, &snapshot).starts_with("results cannot be written; until they can"));
    let slot = Waits { slot: 3, ..Waits::default() };
    assert!(why(&slot, &snapshot).contains("raise worker.max-concurrent-documents"));
    let until = std::time::SystemTime::now() + Duration::from_secs(50);
    let unheard =
        Waits { working: 40, unheard: 40, unheard_until: Some(until), slot: 3, ..Waits::default() };
    assert!(
        why(&unheard, &snapshot).starts_with(
            "40 documents are with a worker that reports no more; they start elsewhere"
        ),
        "{}",
        why(&unheard, &snapshot)
    );
    (snapshot.pause, snapshot.reason) = (Duration::from_secs(60), "holiday".to_owned());
    assert_eq!(
        why(&turn, &snapshot),
        "it waits for the gate: paused for 1m 0s: holiday; `tidegate resume a:b` opens it now"
    );
    assert_eq!(super::held(&model, &snapshot, &held), None, "it opens by itself");
    let mut held = held.clone();
    held.models.insert("a:b".parse().unwrap(), "holiday".to_owned());
    let by_hand =
        find_cause(&class, &turn, None, None, (Some((&model, &snapshot)), &held, None, &[]));
    assert!(by_hand.sentence.contains("the gate: paused until it is resumed: holiday;"));
    assert_eq!(super::held(&model, &snapshot, &held), Some(by_hand.sentence));
    let finish = FailingStep {
        what: "its results cannot be put together",
        why: "Transient: no space left on device".to_owned(),
        next: None,
    };
    let ended = Waits { step: Some(finish), ..Waits::default() };
    let cause = find_cause(&class, &ended, None, None, (None, &held, None, &[]));
    assert!(cause.stands && cause.sentence.contains("put together: Transient: no space left"));
    let totals = Totals { in_flight: 40, ..Totals::default() };
    let progress = Progress { totals, ..Progress::default() };
    let waiting = |waits: &Waits| {
        find_cause(
            &class,
            waits,
            Some(&progress),
            None,
            (Some((&model, &snapshot)), &held, None, &[]),
        )
        .sentence
    };
    assert!(
        waiting(&Waits::default())
            .starts_with("the provider works on 40 documents in its batch API")
    );
    assert!(waiting(&turn).contains("it waits for the gate"), "not while documents wait here");
    assert_eq!(
        find_cause(
            &class,
            &turn,
            None,
            Some("no worker".into()),
            (Some((&model, &snapshot)), &held, None, &[])
        ),
        Cause::stands("no worker")
    );
}

#[test]
fn what_a_bound_on_output_costs_is_part_of_the_cause() {
    let limits = Limits::default().with(Dimension::Combined, 2_000_000);
    let lanes = Arc::new(Lanes::single());
    let model =
        ModelQuota::new("openai:m".parse().unwrap(), limits, Charge::CAUTIOUS, lanes).unwrap();
    let class = read_class(&json!({ "model": "openai:m" }), &Config::default());
    let held = OperatorHolds::default();
    let turn = Waits { turn: 7, binding: Some(WaitsFor::Tokens), ..Waits::default() };
    let of = |used, held| DimensionSnapshot { used, held, ..DimensionSnapshot::default() };
    let mut snapshot = Snapshot { factor: 1.0, ..Snapshot::default() };
    snapshot.dimensions.requests = of(60, 0);
    snapshot.dimensions.input = of(60 * 1_400, 0);
    snapshot.dimensions.output = of(60 * 200, 0);
    snapshot.dimensions.combined = DimensionSnapshot { limit: 2_000_000, ..of(60 * 10_000, 0) };
    let cause =
        find_cause(&class, &turn, None, None, (Some((&model, &snapshot)), &held, None, &[]));
    for part in ["it waits for quota: tokens", "; max_output_tokens is taken to count", "= 640"] {
        assert!(cause.sentence.contains(part), "{}", cause.sentence);
    }
}

#[test]
fn a_limit_that_refusals_have_cut_is_told_where_it_binds() {
    let (model, class) = model();
    let held = OperatorHolds::default();
    let turn = Waits { turn: 7, binding: Some(WaitsFor::Tokens), ..Waits::default() };
    let mut snapshot = Snapshot::default();
    snapshot.dimensions.combined =
        DimensionSnapshot { limit: 60, used: 60, ..DimensionSnapshot::default() };
    for (factor, is_told) in [(0.06, true), (0.98, false)] {
        snapshot.factor = factor;
        let seen = (Some((&model, &snapshot)), &held, None, &[][..]);
        let sentence = find_cause(&class, &turn, None, None, seen).sentence;
        assert!(sentence.starts_with("it waits for quota: "), "{sentence}");
        let told = "; refusals have cut the limit to 6.0 %; 2.5 % of the limit come back every two minutes";
        assert_eq!(sentence.contains(told), is_told, "{sentence}");
    }
}

#[test]
fn an_operators_pause_is_not_explained_by_an_earlier_refusal() {
    let (model, class) = model();
    let calls =
        RecentCalls { kind: "RateLimited".to_owned(), status: Some(429), ..RecentCalls::default() };
    let calls = [(model.id.clone(), calls)].into();
    let cards = [("w".to_owned(), WorkerStatus { calls, ..WorkerStatus::default() })];
    let troubles = [Trouble::from_cards(&cards, &model.id).unwrap()];
    let turn = Waits { turn: 7, binding: Some(WaitsFor::Gate), ..Waits::default() };
    for (reason, is_told) in [("maintenance", false), (RATE_LIMITED, true)] {
        let (pause, reason) = (Duration::from_secs(12), reason.to_owned());
        let snapshot = Snapshot { factor: 1.0, pause, reason, ..Snapshot::default() };
        let seen = (Some((&model, &snapshot)), &OperatorHolds::default(), None, &troubles[..]);
        let sentence = find_cause(&class, &turn, None, None, seen).sentence;
        assert_eq!(sentence.contains("RateLimited (429)"), is_told, "{sentence}");
    }
}

#[test]
fn a_run_that_continued_as_new_has_its_class_too() {
    let class = read_class(
        &json!({ "continued": { "job": { "model": "a:b", "lane": "standard", "tenant": "x" } } }),
        &Config::default(),
    );
    assert_eq!(
        (class.models[0].as_str(), class.lane.as_str(), class.tenant.as_str()),
        ("a:b", "standard", "x")
    );
}

#[test]
fn a_pools_name_stands_for_its_members() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    let member = |name: &str| {
        format!("[[providers.openai.pool]]\nname = \"{name}\"\napi-key-env = \"KEY_{name}\"\n")
    };
    let text = format!("{}{}[models.\"openai:m\"]\nrpm = 10\n", member("a"), member("b"));
    std::fs::write(&file, text).unwrap();
    let config = Config::from_layers(Some(&file), []).unwrap();
    let models = read_class(&json!({ "model": "openai:m" }), &config).models;
    let names: Vec<&str> = models.iter().map(ModelId::as_str).collect();
    assert_eq!(names, ["openai/a:m", "openai/b:m"]);
}

fn model() -> (ModelQuota, Class) {
    let limits = Limits::default().with(Dimension::Combined, 1_000);
    let (charge, lanes) = (Charge::default(), Arc::new(Lanes::single()));
    let model = ModelQuota::new("a:b".parse().unwrap(), limits, charge, lanes).unwrap();
    (model, read_class(&json!({ "model": "a:b" }), &Config::default()))
}

fn cause(waits: &Waits) -> Cause {
    let (model, class) = model();
    let open = Snapshot { factor: 1.0, ..Snapshot::default() };
    let quota = Some((&model, &open));
    find_cause(&class, waits, None, None, (quota, &OperatorHolds::default(), None, &[]))
}

fn why(waits: &Waits) -> String {
    cause(waits).sentence
}

/// Adds half a second, so that the number of whole seconds stays while the test runs.
fn seconds(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_millis(seconds * 1_000 + 400)
}

#[test]
fn documents_of_a_dead_worker_are_the_cause_where_they_are_most() {
    let gone = Waits { gone: 8, given_up: Some(seconds(23)), working: 3, ..Waits::default() };
    assert_eq!(
        why(&gone),
        "8 documents were with a worker that is gone; they begin again within 24s"
    );
    let one = Waits { gone: 1, given_up: Some(seconds(23)), ..Waits::default() };
    assert!(why(&one).starts_with("1 document was with a worker that is gone; it begins again"));
    let few = Waits { working: 9, ..gone };
    assert_eq!(why(&few), "it waits for the provider's answers, and for no quota");
}

#[test]
fn behind_a_gate_that_is_open_again_documents_have_a_time() {
    let turn = Waits { turn: 7, binding: Some(WaitsFor::Gate), ..Waits::default() };
    let alike = Waits { next: Some((seconds(12), seconds(12))), ..turn.clone() };
    assert_eq!(why(&alike), "the gate is open; its documents come back in 12s");
    let spread = Waits { next: Some((seconds(12), seconds(40))), ..turn };
    assert!(why(&spread).ends_with("come back the first in 12s, the last in 40s"));
}

#[test]
fn one_that_timed_out_is_told_with_its_time() {
    let of = |kind: &str, documents| Waits {
        backing_off: [(kind.to_owned(), documents)].into(),
        again: [(kind.to_owned(), seconds(13))].into(),
        words: [(kind.to_owned(), "the worker was not heard of in time".to_owned())].into(),
        ..Waits::default()
    };
    assert_eq!(
        why(&of("Timeout", 1)),
        "1 document backs off after Timeout: the worker was not heard of in time; it is tried again in 13s; the workers' logs say more"
    );
    assert!(why(&of("Timeout", 2)).starts_with("2 documents back off after Timeout: "));
    assert!(why(&of("Transient", 2)).contains("; next: check that the workers reach"));
    assert!(cause(&of("Transient", 2)).fails);
    let few = Waits { working: 9, ..of("Transient", 2) };
    assert!(!cause(&few).fails, "most documents with workers are asked");
}

#[test]
fn a_pause_counts_one_as_one() {
    let one = Waits { working: 1, paused: 1, ..Waits::default() };
    assert_eq!(
        paused(&one, "p1"),
        "it is paused: 1 call is under way and ends, 1 document is handed out and waits; `temporal workflow signal --workflow-id p1 --name resume` lets it go on"
    );
    assert!(
        paused(&Waits::default(), "p1").contains("0 calls are under way and end, 0 documents are")
    );
}
