//! OpenAI's Chat Completions: the fields that every dialect has.

use chrono::Utc;
use serde_json::{Value, json};
use tidegate_providers::{Completion, Fields, Role, StopReason};

use crate::dialect::conversation::{
    Conversation, RefusedField, bound, check_fields, refused, text,
};

/// Reads a request. A field that is null or states the default is ignored.
pub(super) fn read(fields: &Fields) -> Result<Conversation, RefusedField> {
    let mut conversation = Conversation::default();
    for name in fields.names() {
        let value = fields.get(name).unwrap_or_default();
        match (name, &value) {
            ("model", _) | (_, Value::Null) => {}
            ("stream" | "store" | "logprobs", Value::Bool(false)) => {}
            ("n" | "top_p", Value::Number(number)) if number.as_f64() == Some(1.0) => {}
            ("frequency_penalty" | "presence_penalty", Value::Number(number))
                if number.as_f64() == Some(0.0) => {}
            ("messages", Value::Array(messages)) => {
                messages.iter().try_for_each(|message| read_message(&mut conversation, message))?;
            }
            ("max_tokens" | "max_completion_tokens", bounded) => {
                conversation.max_output_tokens = Some(bound(name, bounded)?);
            }
            ("temperature", Value::Number(_)) => conversation.temperature = Some(value),
            ("stop", Value::String(_)) => conversation.stop = Some(json!([value])),
            ("stop", Value::Array(_)) => conversation.stop = Some(value),
            ("response_format", format) => conversation.schema = schema(format)?,
            _ => return Err(refused(name, "is not translated")),
        }
    }
    Ok(conversation)
}

fn read_message(conversation: &mut Conversation, message: &Value) -> Result<(), RefusedField> {
    let Value::Object(fields) = message else {
        return Err(refused("messages", "must be objects"));
    };
    check_fields("messages", fields, &["role", "content", "refusal"])?;
    let text = text("messages.content", fields.get("content").unwrap_or(&Value::Null))?;
    match fields.get("role").and_then(Value::as_str) {
        Some("system" | "developer") if conversation.turns.is_empty() => {
            if !conversation.system.is_empty() {
                conversation.system.push_str("\n\n");
            }
            conversation.system.push_str(&text);
        }
        Some("user") => conversation.add_turn(Role::User, text),
        Some("assistant") => conversation.add_turn(Role::Assistant, text),
        _ => {
            return Err(refused(
                "messages.role",
                "must be user, assistant, or system at the beginning",
            ));
        }
    }
    Ok(())
}

fn schema(format: &Value) -> Result<Option<Value>, RefusedField> {
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_schema") => match format.pointer("/json_schema/schema") {
            Some(schema) => Ok(Some(schema.clone())),
            None => Err(refused("response_format", "has no schema")),
        },
        _ => Err(refused("response_format", "must be text or json_schema")),
    }
}

pub(super) fn answer(id: &str, model: &str, completion: &Completion) -> Value {
    let finish = match completion.stop_reason {
        StopReason::MaxTokens => "length",
        _ => "stop",
    };
    let usage = completion.usage.map(|usage| {
        json!({
            "prompt_tokens": usage.input(),
            "completion_tokens": usage.output,
            "total_tokens": usage.input() + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        })
    });
    json!({
        "id": format!("chatcmpl-{id}"),
        "object": "chat.completion",
        "created": Utc::now().timestamp(),
        "model": model,
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": completion.answer, "refusal": null},
            "logprobs": null,
            "finish_reason": finish,
        }],
        "usage": usage,
    })
}
