use serde_json::json;

use super::*;
use crate::{
    body::{placed, written},
    call::Request,
    dialect::Dialect,
    testing::REQUEST,
    vendor::{Api, Vendor},
};

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

const RESPONSES: Dialect = Dialect { vendor: Vendor::OPENAI, api: Api::Responses };

const fn dialect(vendor: Vendor) -> Dialect {
    Dialect { vendor, api: Api::ChatCompletions }
}

/// The fields that are sent in addition to the question.
fn sent(
    dialect: Dialect,
    model: &str,
    effort: Option<Effort>,
    given: &Value,
) -> Result<Value, String> {
    let fields = dialect.check(model, effort, &object(given), None)?;
    let parameters = Parameters { effort, fields: Some(&fields) };
    let request = Request { model, parameters, max_output_tokens: 9_000, ..REQUEST };
    placed(dialect, &request).map_err(|error| error.message)
}

#[test]
fn each_vendor_has_them_in_its_own_place() {
    let given = json!({"temperature":0.2,"top_p":0.9,"stop":"END"});
    #[rustfmt::skip]
    let cases = [
        (dialect(Vendor::ANTHROPIC), "claude-sonnet-4-20250514", None, given.clone(), json!({"temperature":0.2,"top_p":0.9,"stop_sequences":["END"]})),
        (dialect(Vendor::OPENAI), "gpt-4o", None, json!({"seed":7,"stop":["a","b"],"service_tier":"flex"}), json!({"seed":7,"stop":["a","b"],"service_tier":"flex"})),
        (dialect(Vendor::OPENAI), "gpt-5.4", Some(Effort::None), json!({"temperature":0}), json!({"temperature":0,"reasoning_effort":"none"})),
        (RESPONSES, "gpt-6-luna", Some(Effort::Low), json!({"verbosity":"low"}), json!({"text":{"verbosity":"low"},"reasoning":{"effort":"low"}})),
        (dialect(Vendor::GEMINI), "gemini-3.8-flash", Some(Effort::Medium), given.clone(),
            json!({"generationConfig":{"temperature":0.2,"topP":0.9,"stopSequences":["END"],"thinkingConfig":{"thinkingLevel":"MEDIUM"}}})),
        (dialect(Vendor::GEMINI), "gemini-2.5-flash", Some(Effort::None), json!({"service_tier":"flex"}),
            json!({"generationConfig":{"thinkingConfig":{"thinkingBudget":0}},"serviceTier":"flex"})),
        (dialect(Vendor::BEDROCK), "eu.anthropic.claude-sonnet-5-5", Some(Effort::None), json!({}), json!({"additionalModelRequestFields":{"thinking":{"type":"disabled"}}})),
        (dialect(Vendor::ANTHROPIC), "claude-sonnet-5-5", Some(Effort::High), json!({}), json!({"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}})),
        // Half of the room is left for the answer.
        (dialect(Vendor::ANTHROPIC), "claude-haiku-4-5", Some(Effort::High), json!({}), json!({"thinking":{"type":"enabled","budget_tokens":4_500}})),
        (dialect(Vendor::ANTHROPIC), "claude-haiku-4-5", None, json!({"thinking_budget":2_000}), json!({"thinking":{"type":"enabled","budget_tokens":2_000}})),
        // By the vendor's own name; and a field that no table knows.
        (dialect(Vendor::GEMINI), "gemini-2.5-pro", None, json!({"topK":3}), json!({"generationConfig":{"topK":3}})),
        (dialect(Vendor::OPENAI), "gpt-4o", None, json!({"allow_unknown":true,"new":{"a":1}}), json!({"new":{"a":1}})),
        (dialect(Vendor::BEDROCK), "mistral.large", None, json!({"allow_unknown":true,"safe":1}), json!({"additionalModelRequestFields":{"safe":1}})),
    ];
    for (dialect, model, effort, given, expected) in cases {
        assert_eq!(sent(dialect, model, effort, &given).as_ref(), Ok(&expected), "{model} {given}");
    }
}

#[test]
fn unsupported_parameters_are_refused_with_a_sentence() {
    let (low, none) = (Some(Effort::Low), Some(Effort::None));
    #[rustfmt::skip]
    let cases = [
        (dialect(Vendor::OPENAI), "gpt-4o", None, json!({"temperatur":1}), "temperatur is not known at openai; known are temperature, top_p"),
        (dialect(Vendor::OPENAI), "gpt-4o", None, json!({"temperature":"hot"}), "temperature must be a number from 0 to 2"),
        (dialect(Vendor::OPENAI), "gpt-4o", None, json!({"stop":["1","2","3","4","5"]}), "stop must be a text, or a list of 1 to 4"),
        (dialect(Vendor::OPENAI), "gpt-4o", None, json!({"max_tokens":3,"allow_unknown":true}), "max_tokens is written by tidegate itself"),
        (dialect(Vendor::OPENAI), "gpt-4o", low, json!({}), "effort \"low\" cannot be given: this model does not reason"),
        (dialect(Vendor::OPENAI), "o3", None, json!({"temperature":0}), "models that reason refuse it"),
        (dialect(Vendor::OPENAI), "gpt-6-luna", None, json!({"temperature":0}), "add effort \"none\""),
        (RESPONSES, "gpt-4o", None, json!({"seed":1}), "seed is not known at openai"),
        (dialect(Vendor::ANTHROPIC), "claude-sonnet-5-5", None, json!({"temperature":0}), "this model refuses sampling parameters"),
        (dialect(Vendor::ANTHROPIC), "claude-haiku-4-5", None, json!({"temperature":0.2,"top_p":0.9}), "not take it together with temperature"),
        (dialect(Vendor::BEDROCK), "anthropic.claude-opus-4-1-20250805-v1:0", None, json!({"temperature":0.2,"top_p":0.9}), "leave out one of them"),
        (dialect(Vendor::ANTHROPIC), "claude-haiku-4-5", low, json!({"temperature":0}), "does not go together with thinking"),
        (dialect(Vendor::ANTHROPIC), "claude-haiku-4-5", low, json!({"thinking_budget":2000}), "give only one of effort and thinking_budget"),
        (dialect(Vendor::ANTHROPIC), "claude-sonnet-5", None, json!({"thinking_budget":2000}), "write effort instead"),
        (dialect(Vendor::ANTHROPIC), "claude-fable-5", none, json!({}), "always thinks; \"low\" is the least"),
        (dialect(Vendor::ANTHROPIC), "claude-haiku-4-5", None, json!({"stop":"a","stop_sequences":["b"]}), "stop is given twice"),
        (dialect(Vendor::GEMINI), "gemini-3.8-flash", none, json!({}), "always thinks"),
        (dialect(Vendor::GEMINI), "gemini-3.8-flash", None, json!({"thinking_budget":5}), "write effort instead"),
        (dialect(Vendor::GEMINI), "gemini-2.5-pro", None, json!({"thinking_budget":0}), "128 is the least"),
        (dialect(Vendor::BEDROCK), "eu.anthropic.claude-opus-5-v1:0", None, json!({"temperature":1}), "refuses sampling"),
        (dialect(Vendor::BEDROCK), "amazon.nova-pro-v1:0", low, json!({}), "how this model is told is not known"),
        (dialect(Vendor::OPENAI), "gpt-4o", None, json!({"allow_unknown":1}), "allow_unknown must be true or false"),
    ];
    for (dialect, model, effort, given, expected) in cases {
        let why = sent(dialect, model, effort, &given).unwrap_err();
        assert!(why.contains(expected), "{model} {given}: {why}");
    }
    let room = dialect(Vendor::ANTHROPIC).check("claude-haiku-4-5", low, &Map::new(), Some(2_000));
    assert!(room.unwrap_err().contains("at least 2048"));
}

#[test]
fn a_request_without_them_is_what_it_was() {
    let body = json!({"model": "m", "nested": {"a": 1}});
    let plain = written(dialect(Vendor::OPENAI), body.clone(), &REQUEST).unwrap();
    assert_eq!(plain, serde_json::to_vec(&body).unwrap());
    let fields = object(&json!({"nested": {"b": 2}}));
    let parameters = Parameters { effort: None, fields: Some(&fields) };
    let merged =
        written(dialect(Vendor::OPENAI), body, &Request { parameters, ..REQUEST }).unwrap();
    let merged: Value = serde_json::from_slice(&merged).unwrap();
    assert_eq!(merged, json!({"model": "m", "nested": {"a": 1, "b": 2}}));
}
