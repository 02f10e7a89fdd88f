//! Tools that a call forces: the arguments are the answer, and what cannot be is refused.
#![allow(clippy::unwrap_used, reason = "a test stops at the first fault")]

mod common;

use common::{Stage, message};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]})
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn anthropics_tool_is_called_and_forced_with_care() {
    let stage = Stage::new("").await;
    let tool = json!({"name": "note", "description": "x", "input_schema": schema()});
    let forced = json!({"type": "tool", "name": "note"});
    let ask = |more: Value| with(message("The tide is high.", 2_000), &more);
    let called = ask(json!({"tools": [tool], "tool_choice": forced}));
    let reply = stage.anthropic(&called).await.unwrap().json();
    assert_eq!(
        (&reply["stop_reason"], &reply["content"][0]["name"]),
        (&json!("tool_use"), &json!("note"))
    );
    assert!(reply["content"][0]["input"]["summary"].as_str().unwrap().contains("tide"), "{reply}");
    let format = json!({"format": {"type": "json_schema", "schema": schema()}});
    for (body, said) in [
        (ask(json!({"tool_choice": forced})), "while providing `tools`"),
        (
            ask(json!({"tools": [tool], "tool_choice": {"type": "tool", "name": "other"}})),
            "'other' not found",
        ),
        (
            ask(json!({"tools": [{"name": "note", "input_schema": {"type": "array"}}]})),
            "should be 'object'",
        ),
        (
            ask(
                json!({"tools": [tool], "tool_choice": forced, "thinking": {"type": "enabled", "budget_tokens": 1_024}}),
            ),
            "Thinking may not",
        ),
        (
            ask(json!({"model": "claude-3-5-haiku-20241022", "output_config": format})),
            "does not support",
        ),
    ] {
        let reply = stage.anthropic(&body).await.unwrap();
        assert!(reply.status == 400 && reply.text.contains(said), "{said}: {}", reply.text);
    }
}

#[tokio::test]
async fn bedrocks_tool_is_called() {
    let stage = Stage::new("").await;
    let text = "<document>The tide is high.</document>";
    let ask = |more: Value| {
        with(json!({"messages": [{"role": "user", "content": [{"text": text}]}]}), &more)
    };
    let tools = json!([{"toolSpec": {"name": "note", "inputSchema": {"json": schema()}}}]);
    let config = |name: &str| json!({"toolConfig": {"tools": tools, "toolChoice": {"tool": {"name": name}}}});
    let reply = stage.bedrock("amazon.nova-pro-v1:0", &ask(config("note"))).await.unwrap().json();
    assert_eq!(reply["stopReason"], "tool_use");
    let call = &reply["output"]["message"]["content"][0]["toolUse"];
    assert!(call["name"] == "note" && call["input"]["summary"].is_string(), "{reply}");
    for (body, said) in [
        (ask(config("other")), "not in toolConfig.tools"),
        (ask(json!({"toolConfig": {"tools": []}})), "greater than or equal to 1"),
        (
            ask(
                json!({"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": schema().to_string()}}}}}),
            ),
            "doesn't support",
        ),
    ] {
        let reply = stage.bedrock("amazon.nova-pro-v1:0", &body).await.unwrap();
        assert!(reply.status == 400 && reply.text.contains(said), "{said}: {}", reply.text);
    }
}
