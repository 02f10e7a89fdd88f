//! Fields of a call that vendors refuse, by their documentation.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Reply, Stage};
use serde_json::{Value, json};

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn claude(model: &str, more: Value) -> Value {
    let mut body = common::message("The tide is high.", 4_000);
    body["model"] = model.into();
    with(body, more)
}

fn gpt(model: &str, more: Value) -> Value {
    let messages = json!([{"role": "user", "content": "<document>The tide is high.</document>"}]);
    with(json!({"model": model, "messages": messages}), more)
}

/// Taken, or refused in these words.
fn judged(reply: &Reply, expected: Option<&str>, of: &str) {
    match expected {
        None => assert_eq!(reply.status, 200, "{of}: {}", reply.text),
        Some(why) => {
            assert!(reply.status == 400 && reply.text.contains(why), "{of}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn anthropic_refuses_sampling_and_thinking_by_model() {
    let stage = Stage::new("").await;
    let budget = json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}});
    let adaptive = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}});
    let off = json!({"thinking": {"type": "disabled"}});
    let strict = |schema: Value| json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}});
    #[rustfmt::skip]
    let cases = [
        ("claude-haiku-4-5", json!({"temperature": 0.5}), None),
        ("claude-haiku-4-5", json!({"temperature": 1.5}), Some("range")),
        ("claude-sonnet-5-5", json!({"temperature": 0.5}), Some("deprecated for this model")),
        ("claude-sonnet-5-5", json!({"temperatur": 0.5}), Some("Extra inputs are not permitted")),
        ("claude-haiku-4-5", budget.clone(), None),
        ("claude-haiku-4-5", with(budget.clone(), json!({"temperature": 0})), Some("may only be set to 1")),
        ("claude-haiku-4-5", json!({"thinking": {"type": "enabled", "budget_tokens": 4_000}}), Some("greater than")),
        ("claude-sonnet-5-5", budget, Some("thinking.type.adaptive")),
        ("claude-sonnet-5-5", adaptive.clone(), None),
        ("claude-sonnet-4-5", adaptive, Some("not supported")),
        ("claude-sonnet-5-5", off.clone(), None),
        ("claude-fable-5", off, Some("not supported")),
        ("claude-sonnet-5-5", strict(json!({"type": "object", "properties": {}})), Some("additionalProperties")),
        ("claude-sonnet-5-5", strict(json!({"type": "integer", "minimum": 1})), Some("'minimum' is not supported")),
    ];
    for (model, more, expected) in cases {
        let reply = stage.anthropic(&claude(model, more.clone())).await.unwrap();
        judged(&reply, expected, &format!("{model} {more}"));
    }
}

#[tokio::test]
async fn openai_refuses_by_model_and_leaves_other_servers_alone() {
    let stage = Stage::new("").await;
    let strict = |schema: Value| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}}});
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let text = json!({"type": "string", "minLength": 1});
    let bounded = json!({"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": false});
    #[rustfmt::skip]
    let cases = [
        ("gpt-4o", json!({"temperature": 0, "seed": 1}), None),
        ("gpt-4o", json!({"reasoning_effort": "low"}), Some("not supported")),
        ("gpt-4o", json!({"top_k": 3}), Some("Unrecognized request argument supplied: top_k")),
        ("llama-4", json!({"top_k": 3}), None),
        ("llama-4", json!({"temperature": 3}), Some("temperature")),
        ("gpt-5-mini", json!({"temperature": 0}), Some("not supported with this model")),
        ("gpt-5-mini", json!({"reasoning_effort": "none"}), Some("does not support 'none'")),
        ("gpt-5.4", json!({"temperature": 0, "reasoning_effort": "none"}), None),
        ("gpt-6-luna", json!({"temperature": 0}), Some("not supported with this model")),
        ("o3", json!({"stop": ["x"]}), Some("'stop'")),
        ("gpt-4o", strict(open.clone()), Some("'additionalProperties' is required")),
        ("gpt-4o", strict(bounded), Some("'minLength' is not permitted")),
        ("gpt-4o", strict(json!({"type": "array", "items": {"type": "string"}})), Some("type: ")),
        ("llama-4", strict(open), None),
    ];
    for (model, more, expected) in cases {
        let reply = stage.openai(&gpt(model, more.clone())).await.unwrap();
        judged(&reply, expected, &format!("{model} {more}"));
    }
    let newer = json!({"model": "gpt-5.4", "input": "x", "seed": 1});
    let reply = stage.responses(&newer).await.unwrap();
    assert!(
        reply.status == 400 && reply.text.contains("Unknown parameter: 'seed'"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn gemini_and_bedrock_refuse_what_they_do_not_know() {
    let stage = Stage::new("").await;
    let body = |config: Value| json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": config});
    #[rustfmt::skip]
    let cases = [
        ("gemini-2.5-flash", json!({"temperature": 0, "thinkingConfig": {"thinkingBudget": 0}}), None),
        ("gemini-2.5-pro", json!({"thinkingConfig": {"thinkingBudget": 0}}), Some("only works in thinking mode")),
        ("gemini-2.5-flash", json!({"thinkingConfig": {"thinkingLevel": "LOW"}}), Some("not supported")),
        ("gemini-3.8-flash", json!({"thinkingConfig": {"thinkingLevel": "LOW"}}), None),
        ("gemini-3.8-flash", json!({"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 1}}), Some("only set only one")),
        ("gemini-3.8-flash", json!({"verbosity": "low"}), Some("Unknown name")),
    ];
    for (model, config, expected) in cases {
        let reply = stage.gemini(model, &body(config.clone())).await.unwrap();
        match expected {
            None => assert_eq!(reply.status, 200, "{model} {config}: {}", reply.text),
            Some(why) => {
                assert!(
                    reply.status == 400 && reply.text.contains(why),
                    "{model} {config}: {}",
                    reply.text
                );
            }
        }
    }
    let converse = |more: Value| {
        with(json!({"messages": [{"role": "user", "content": [{"text": "x"}]}]}), more)
    };
    #[rustfmt::skip]
    let cases = [
        ("amazon.nova-pro-v1:0", json!({"inferenceConfig": {"temperature": 0.5}, "serviceTier": {"type": "flex"}}), None),
        ("amazon.nova-pro-v1:0", json!({"inferenceConfig": {"topK": 5}}), Some("extraneous key [topK]")),
        ("amazon.nova-pro-v1:0", json!({"serviceTier": {"type": "best"}}), Some("enum value set")),
        ("anthropic.claude-sonnet-5-5-v1:0", json!({"inferenceConfig": {"temperature": 0.5}}), Some("deprecated for this model")),
    ];
    for (model, more, expected) in cases {
        let reply = stage.bedrock(model, &converse(more.clone())).await.unwrap();
        judged(&reply, expected, &format!("{model} {more}"));
    }
}
