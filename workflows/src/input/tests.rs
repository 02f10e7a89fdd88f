use std::collections::BTreeSet;

use proptest::prelude::*;

use serde_json::{Map, json};
use temporalio_common::protos::temporal::api::common::v1::Payload;
use tidegate_types::{Effort, Lane};

use super::*;
use crate::{
    contract::{Deadline, LongHow, OnCut, Pack, Records},
    payload::{continue_with, continued},
};

/// Ten years less a second, in seconds.
const MAX_SPAN: u64 = 10 * 365 * 86_400 - 1;

fn raw(encoding: &str, data: &[u8]) -> RawValue {
    let metadata = [("encoding".to_owned(), encoding.as_bytes().to_vec())].into_iter().collect();
    RawValue::new(vec![Payload { metadata, data: data.to_vec(), ..Payload::default() }])
}

fn parsed(value: &Value) -> Result<Batch, String> {
    parse(&raw("json/plain", value.to_string().as_bytes()))
}

fn with(field: &str, value: Value) -> Value {
    let mut batch = json!({"source":"file:///in/","output":"file:///out/","instructions":"Summarise.","model":"anthropic:claude-sonnet-5"});
    batch[field] = value;
    batch
}

#[test]
fn the_least_input_gets_the_documented_defaults() {
    let batch = parsed(&with("lane", Value::Null)).unwrap();
    assert_eq!(batch.job.source, Source::Prefix("file:///in/".to_owned()));
    assert_eq!((batch.job.lane.as_str(), batch.job.tenant.as_str()), ("batch", "default"));
    assert_eq!(
        (batch.job.max_output_tokens, batch.max_in_flight, batch.job.retry_budget),
        (1_024, None, None)
    );
    assert_eq!(batch.job.on_cut, OnCut::Raise);
    assert!(batch.job.default_output && batch.job.likely_output_tokens() == 1_024);
    let stated = parsed(&with("max_output_tokens", json!(8_000))).unwrap().job;
    assert!(!stated.default_output && stated.likely_output_tokens() == 8_000);
    assert_eq!(
        parsed(&with("max_in_flight", json!(100_000))).unwrap().max_in_flight,
        Some(100_000)
    );
}

/// Also a field that is added later, until it is said to apply.
#[test]
fn requests_that_are_sent_as_they_are_take_no_field_about_documents() {
    let requests = |field: &str, value: Value| {
        let mut batch = json!({"source": "file:///in.jsonl", "output": "file:///out/",
            "lines": {"endpoint": "/v1/chat/completions"}, "model": "openai:m"});
        batch[field] = value;
        parsed(&batch)
    };
    for (field, value) in [
        ("instructions", json!("Sum up.")),
        ("template", json!(true)),
        ("evidence", json!(true)),
        ("checks", json!([{"name": "said", "expression": "answer != ''"}])),
        ("mode", json!("economy")),
        ("results", json!("parquet")),
        ("sample", json!(3)),
    ] {
        let why = requests(field, value).unwrap_err();
        assert!(why.contains(&format!("and {field} would say something else")), "{why}");
    }
    for (field, value) in [
        ("mode", json!("direct")),
        ("results", json!("jsonl")),
        ("deadline", json!("2026-12-01T08:00:00Z")),
        ("budget_usd", json!(5)),
        ("per_document", json!(false)),
        ("template", Value::Null),
    ] {
        requests(field, value).unwrap();
    }
}

#[test]
fn economy_deadlines_and_packs() {
    let job = |field: &str, value: Value| parsed(&with(field, value)).unwrap().job;
    assert_eq!(job("mode", json!("economy")).mode, Some(Mode::Economy));
    assert_eq!(job("mode", json!("direct")).mode, Some(Mode::Direct));
    assert_eq!(
        job("deadline", json!("2026-12-01T08:00:00Z")).deadline,
        Some(Deadline::At(1_796_112_000))
    );
    assert_eq!(job("deadline", json!("1h 30m")).deadline, Some(Deadline::Within(5_400)));
    let mut direct = with("deadline", json!("6h"));
    direct["mode"] = json!("direct");
    assert_eq!(parsed(&direct).unwrap().job.deadline, None, "direct excludes a deadline");
    assert_eq!(
        (job("pack", json!(true)).pack, job("pack", json!(7)).pack),
        (Some(Pack::Fitting), Some(Pack::Of(7)))
    );
    assert_eq!(job("pack", json!(false)).pack, None);
    let mut both = with("mode", json!("economy"));
    both["pack"] = json!(5);
    assert!(parsed(&both).unwrap_err().contains("leave out pack"));
}

#[test]
fn checks_are_named_each_and_say_one_thing() {
    let one = json!({"name": "total", "expression": "answer.total > 0"});
    let judge = json!({"name": "all", "judge": {"model": "a:b", "instructions": "Is it right?"}});
    let job = parsed(&with("checks", json!([one, judge]))).unwrap().job;
    assert_eq!((job.checks.len(), job.escalate), (2, false));
    assert_eq!(serde_json::to_value(&job.checks).unwrap(), json!([one, judge]));
    let route = |more: Value| {
        let mut batch = with("checks", json!([one]));
        batch["model"] = Value::Null;
        batch["route"] = json!("up");
        batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parsed(&batch)
    };
    assert!(route(json!({"escalate": true})).unwrap().job.escalate);
    let mut quoted = with("checks", json!([{"name": "evidence"}]));
    quoted["evidence"] = json!(true);
    assert!(parsed(&quoted).is_ok());
    let checks = |list: Value| parsed(&with("checks", list)).unwrap_err();
    for (refused, part) in [
        (checks(json!([])), "checks is an empty list"),
        (checks(json!("total")), "checks must be a list of checks"),
        (checks(json!([{"name": "a"}])), "checks[0] \"a\": give an expression or a judge"),
        (checks(json!([{"name": "evidence"}])), "checks[0] \"evidence\": quotes are not asked for"),
        (checks(json!([one, one])), "checks[1]: \"total\" is there twice"),
        (checks(json!([{"name": " ", "expression": "x"}])), "checks[0]: name must be"),
        (checks(json!([{"name": "a", "expression": " "}])), "expression is empty"),
        (checks(json!([{"name": "a", "expresion": "x"}])), "checks [0]: unknown field `expresion`"),
        (
            checks(json!([{"name": "a", "judge": {"model": "b", "instructions": "x"}}])),
            "checks [0]",
        ),
        (route(json!({"pack": 5})).unwrap_err(), "leave out pack"),
        (route(json!({"long": "map_reduce"})).unwrap_err(), "leave out long"),
        (route(json!({"mode": "economy"})).unwrap_err(), "leave out mode"),
        (route(json!({"escalate": true, "checks": null})).unwrap_err(), "of no use without checks"),
        (parsed(&with("escalate", json!(true))).unwrap_err(), "of no use without route"),
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

#[test]
#[rustfmt::skip]
fn every_fault_has_its_sentence() {
    let cases = [
        (json!(null),                               "the input must be a JSON object, not null"),
        (json!([1]),                                "the input must be a JSON object, not a list"),
        (with("souce", json!("x")),                 "unknown field \"souce\"; did you mean \"source\"?"),
        (with("temperature", json!(1)),             "unknown field \"temperature\". The fields are source, documents"),
        (with("source", Value::Null),               "say where the documents are"),
        (with("documents", json!(["file:///a"])),   "give only one of source, documents"),
        (with("source", json!(7)),                  "source must be a text, not a number"),
        (with("output", Value::Null),               "output is missing"),
        (with("instructions", json!("  \n")),       "instructions is empty"),
        (with("instructions", json!(["x"])),        "instructions must be a text, not a list"),
        (with("model", Value::Null),                "model is missing"),
        (with("model", json!("claude")),            "write it as provider:model"),
        (with("replace", json!("yes")),             "replace must be true or false, not \"yes\""),
        (with("long", json!("whole")),              "long must be \"map_reduce\" or \"per_chunk\", not \"whole\""),
        (with("chunk_tokens", json!(9_000)),        "of no use without long"),
        (with("mode", json!("cheap")),              "mode must be \"direct\" or, for half the price within a day, \"economy\", not \"cheap\""),
        (with("deadline", json!("tomorrow")),       "deadline must be a time such as \"2026-12-01T08:00:00Z\" or a span such as \"12h\", not \"tomorrow\""),
        (with("deadline", json!(9)),                "or a span such as \"12h\", not 9"),
        (with("deadline", json!("300000000000years")), "deadline must be a time"),
        (with("deadline", json!("0s")),             "deadline must be a time"),
        (with("pack", json!(1)),                    "pack must be true, or the number of documents in one call, from 2 to 50, not 1"),
        (with("pack", json!("many")),               "from 2 to 50, not \"many\""),
        (with("records", json!(7)),                 "records must be true, or say which fields to take"),
        (with("records", json!({"name": "x"})),     "unknown field `name`"),
        (with("attach", json!("pdf")),              "attach must be \"native\", \"auto\" or \"text\", not \"pdf\""),
        (with("route", json!("default")),           "give only one of model, route"),
        (with("documents", json!("file:///a")),     "documents must be a list of URIs, such as [\"file:///data/a.txt\"]"),
        (with("model", json!(7)),                   "model must be a text such as anthropic:claude-sonnet-5, not a number"),
        (with("lane", json!("a b")),                "lane \"a b\" is not usable"),
        (with("tenant", json!("")),                 "tenant \"\" is not usable: it is empty"),
        (with("max_output_tokens", json!(0)),       "max_output_tokens must be a whole number from 1 to 1000000, not 0"),
        (with("max_output_tokens", json!("many")),  "not \"many\""),
        (with("max_in_flight", json!(-1)),          "max_in_flight must be a whole number from 1"),
        (with("retry_budget", json!(1.5)),          "retry_budget must be a whole number at least 0, not 1.5"),
        (with("budget_usd", json!(0)),              "budget_usd must be a number of US dollars above 0, at most 1e12, not 0"),
        (with("budget_usd", json!("2")),            "budget_usd must be a number of US dollars above 0, at most 1e12, not \"2\""),
        (with("budget_usd", json!(1e308)),          "budget_usd must be a number of US dollars above 0, at most 1e12, not "),
        (with("results", json!("csv")),            "results must be \"jsonl\" or \"parquet\", not \"csv\""),
        (with("on_cut", json!("rise")),            "on_cut must be \"raise\", \"keep\" or \"fail\", not \"rise\""),
        (with("sample", json!(0)),                   "sample must be a whole number from 1"),
        (with("parameters", json!(0.5)),           "parameters must be an object with fields of the request, such as {\"temperature\": 0}, not 0.5"),
        (with("effort", json!("max")),              "effort must be \"none\", \"low\", \"medium\" or \"high\", not \"max\""),
        (with("schema", json!("object")),           "schema must be a JSON Schema object, not a text"),
    ];
    for (input, expected) in cases {
        let message = parsed(&input).unwrap_err();
        assert!(message.contains(expected), "{input}: {message}");
    }
    let no_source = |value| { let mut batch = with("documents", value); batch["source"] = Value::Null; batch };
    assert!(parsed(&no_source(json!([]))).unwrap_err().contains("empty list"));
    assert!(parsed(&no_source(json!(["a", 3]))).unwrap_err().contains("documents[1]"));
}

#[test]
fn invalid_json_has_an_error_sentence() {
    assert!(parse(&RawValue::new(Vec::new())).unwrap_err().contains("not nothing; for example"));
    assert!(parse(&raw("binary/null", b"")).unwrap_err().contains("came as \"binary/null\""));
    assert!(parse(&raw("json/plain", b"{oops")).unwrap_err().contains("the input is not JSON"));
    let long = with(&"x".repeat(1_000_000), json!(1));
    assert!(parsed(&long).unwrap_err().len() < 600);
    let two = RawValue::new(vec![Payload::default(), Payload::default()]);
    assert!(parse(&two).unwrap_err().contains("not 2 values"));
}

/// The command line's input is read with the same meaning.
#[test]
fn an_input_that_is_built_is_read_as_it_was() {
    let mut input = BatchInput {
        source: Some("file:///in/".to_owned()),
        output: "file:///out/".to_owned(),
        instructions: "Summarise.".to_owned(),
        model: Some("a:b".parse().unwrap()),
        lane: Some(Lane::new("standard").unwrap()),
        max_output_tokens: Some(7),
        schema: Some(Map::new()),
        parameters: Some(Map::from_iter([("seed".to_owned(), json!(7))])),
        effort: Some(Effort::None),
        sample: Some(20),
        retry_budget: Some(0),
        budget_usd: Some(2.5),
        long: Some(LongHow::PerChunk),
        chunk_tokens: Some(9_000),
        records: Some(Records { id: Some("n".to_owned()), text: None }),
        attach: Some(Attach::Text),
        mode: Some(Mode::Direct),
        ..BatchInput::default()
    };
    for (pack, deadline) in [
        (Pack::Fitting, Deadline::At(1_796_112_000)),
        (Pack::Of(7), Deadline::Within(5_400)),
        (Pack::Of(50), Deadline::Within(MAX_SPAN)),
    ] {
        (input.pack, input.deadline) = (Some(pack), Some(deadline));
        let json = input.to_json().unwrap();
        assert_eq!(serde_json::from_value::<BatchInput>(json.clone()).unwrap(), input, "{json}");
        let job = parsed(&json).unwrap().job;
        assert_eq!((job.pack, job.max_output_tokens), (Some(pack), 7), "{json}");
    }
}

#[test]
fn a_continued_state_is_read_back_unchanged() {
    let mut input = with("retry_budget", json!(7));
    input["budget_usd"] = json!(2.5);
    let batch = parsed(&input).unwrap();
    assert_eq!((batch.job.retry_budget, batch.job.budget_usd), (Some(7), Some(2.5)));
    let raw = continue_with(&batch.job).unwrap();
    assert_eq!(continued::<Job>(&raw), Some(batch.job));
    assert_eq!(continued::<Job>(&RawValue::new(Vec::new())), None);
}

#[test]
fn every_field_has_its_row() {
    let rows = FIELDS.iter().filter(|field| !field.name.contains('.'));
    let rows: BTreeSet<&str> = rows.map(|field| field.name).collect();
    let fields = names::field_names::<BatchInput>().iter().copied().collect();
    assert_eq!(rows, fields);
    for flag in FIELDS.iter().filter_map(|field| field.flag) {
        let others = flag.required_unless.into_iter().flatten().copied();
        for other in others.chain(flag.requires).chain(flag.excludes) {
            assert!(rows.contains(other), "{other}");
        }
    }
}

proptest! {
    #[test]
    fn no_input_panics(data in proptest::collection::vec(any::<u8>(), 0..200), field in 0..names::field_names::<BatchInput>().len(), text in ".{0,20}", number in any::<i64>()) {
        let _ = parse(&raw("json/plain", &data));
        let field = names::field_names::<BatchInput>()[field];
        let _ = parsed(&with(field, json!(text)));
        let _ = parsed(&with(field, json!(number)));
        let _ = parsed(&with(&text, json!([number])));
    }
}
