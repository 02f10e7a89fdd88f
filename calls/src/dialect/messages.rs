//! Anthropic's Messages: the fields that every dialect has.

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
            ("model", _) | (_, Value::Null) | ("stream", Value::Bool(false)) => {}
            ("messages", Value::Array(messages)) => {
                messages.iter().try_for_each(|message| read_message(&mut conversation, message))?;
            }
            ("system", system) => conversation.system = text("system", system)?,
            ("max_tokens", bounded) => conversation.max_output_tokens = Some(bound(name, bounded)?),
            ("temperature", Value::Number(_)) => conversation.temperature = Some(value),
            ("stop_sequences", Value::Array(_)) => conversation.stop = Some(value),
            ("output_config", Value::Object(config)) => {
                let other = config.keys().find(|name| *name != "format");
                if let Some(other) = other {
                    return Err(refused(&format!("output_config.{other}"), "is not translated"));
                }
                conversation.schema = config.get("format").map(schema).transpose()?;
            }
            _ => return Err(refused(name, "is not translated")),
        }
    }
    // Anthropic's API refuses such a request, too.
    if conversation.max_output_tokens.is_none() {
        return Err(RefusedField::new("max_tokens", "is missing"));
    }
    Ok(conversation)
}

fn read_message(conversation: &mut Conversation, message: &Value) -> Result<(), RefusedField> {
    let Value::Object(fields) = message else {
        return Err(refused("messages", "must be objects"));
    };
    check_fields("messages", fields, &["role", "content"])?;
    let text = text("messages.content", fields.get("content").unwrap_or(&Value::Null))?;
    match fields.get("role").and_then(Value::as_str) {
        Some("user") => conversation.add_turn(Role::User, text),
        Some("assistant") => conversation.add_turn(Role::Assistant, text),
        _ => return Err(refused("messages.role", "must be user or assistant")),
    }
    Ok(())
}

fn schema(format: &Value) -> Result<Value, RefusedField> {
    let is_schema = format.get("type").and_then(Value::as_str) == Some("json_schema");
    let schema = format.get("schema").filter(|_| is_schema);
    schema.cloned().ok_or_else(|| refused("output_config.format", "must be a json_schema"))
}

pub(super) fn answer(id: &str, model: &str, completion: &Completion) -> Value {
    let usage = completion.usage.unwrap_or_default();
    let stop = match &completion.stop_reason {
        StopReason::Other(_) => StopReason::EndTurn,
        known => known.clone(),
    };
    json!({
        "id": format!("msg_{id}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": completion.answer}],
        "stop_reason": stop.as_str(),
        "stop_sequence": null,
        "usage": {
            "input_tokens": usage.uncached_input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        },
    })
}
