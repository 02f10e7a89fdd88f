use serde_json::{Value, json};
use tidegate_providers::Fields;

use super::{conversation::Conversation, *};

fn fields(body: &Value) -> Fields {
    Fields::read(body.to_string().as_bytes()).unwrap()
}

fn param(result: Result<Conversation, RefusedField>) -> String {
    let response = result.err().unwrap();
    response.field
}

#[test]
fn fields_of_every_dialect_are_read_from_both() {
    let schema = json!({"type": "object"});
    let of_openai = chat::read(&fields(&json!({
        "model": "m", "temperature": 0.5, "stop": "END", "max_completion_tokens": 9, "stream": false,
        "seed": null, "n": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0.0, "logprobs": false,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": "Yes"},
            {"role": "user", "content": "And?"},
        ],
    })));
    let of_anthropic = messages::read(&fields(&json!({
        "model": "m", "temperature": 0.5, "stop_sequences": ["END"], "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "messages": [
            {"role": "user", "content": "One\ntwo"},
            {"role": "assistant", "content": [{"type": "text", "text": "Yes", "citations": null}]},
            {"role": "user", "content": "And?"},
        ],
    })));
    for conversation in [of_openai, of_anthropic] {
        let conversation = conversation.ok().unwrap();
        assert!(conversation.check().is_ok());
        assert_eq!(conversation.system, "Be brief.");
        let texts: Vec<&str> = conversation.turns.iter().map(|turn| turn.text.as_str()).collect();
        assert_eq!(texts, ["One\ntwo", "Yes", "And?"]);
        assert_eq!(
            (conversation.max_output_tokens, conversation.schema),
            (Some(9), Some(schema.clone()))
        );
        assert_eq!(
            (conversation.temperature, conversation.stop),
            (Some(json!(0.5)), Some(json!(["END"])))
        );
    }
}

#[test]
fn everything_else_is_refused_by_its_name() {
    let picture = json!([{"type": "image_url", "image_url": {"url": "https://x"}}]);
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    #[rustfmt::skip]
    let cases = [
        (json!({"tools": []}),                                            "tools"),
        (json!({"stream": true}),                                         "stream"),
        (json!({"n": 2}),                                                 "n"),
        (json!({"top_p": 0.9}),                                           "top_p"),
        (json!({"presence_penalty": 0.5}),                                "presence_penalty"),
        (json!({"seed": 1}),                                              "seed"),
        (json!({"response_format": {"type": "json_object"}}),             "response_format"),
        (json!({"messages": user(picture)}),                              "messages.content"),
        (json!({"messages": [{"role": "tool", "content": "x"}]}),         "messages.role"),
        (json!({"messages": [{"role": "user", "content": "x", "name": "y"}]}), "messages.name"),
        (json!({"max_tokens": 0}),                                        "max_tokens"),
        (json!({"messages": user(json!([{"type": "text", "text": "x", "annotations": []}]))}), "messages.content.annotations"),
        (json!({"messages": ["x"]}),                                      "messages"),
    ];
    for (body, expected) in cases {
        assert_eq!(param(chat::read(&fields(&body))), expected, "{body}");
    }
    for (body, expected) in [
        (json!({"thinking": {"type": "enabled"}}), "thinking"),
        (json!({"output_config": {"effort": "low"}}), "output_config.effort"),
        (json!({"system": [{"type": "text"}]}), "system"),
        (json!({"top_k": 5}), "top_k"),
        (json!({"messages": user(json!("x"))}), "max_tokens"),
        (json!({"messages": ["x"]}), "messages"),
        (json!({"messages": [{"role": "user", "content": "x", "name": "y"}]}), "messages.name"),
        (
            json!({"messages": user(json!([{"type": "text", "text": "x", "citations": [1]}]))}),
            "messages.content.citations",
        ),
        (json!({"system": [{"type": "text", "text": "x", "y": 1}]}), "system.y"),
    ] {
        assert_eq!(param(messages::read(&fields(&body))), expected, "{body}");
    }
    let last = chat::read(&fields(&json!({"messages": [
        {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]})));
    assert!(last.ok().unwrap().check().is_err(), "nothing is asked");
}
