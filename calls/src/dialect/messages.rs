//! Anthropic's Messages: the fields that every dialect has.

use serde_json::{Value, json};
use tidegate_providers::{Completion, Fields, Role, StopReason};

use super::conversation::{Conversation, bound, refused, text};
use super::refused::Refused;

/// Reads a request. A field that is null or states the default is ignored.
pub(super) fn read(fields: &Fields) -> Result<Conversation, Refused> {
    let mut said = Conversation::default();
    for name in fields.names() {
        let value = fields.get(name).unwrap_or_default();
        match (name, &value) {
            ("model", _) | (_, Value::Null) | ("stream", Value::Bool(false)) => {}
            ("messages", Value::Array(messages)) => {
                messages.iter().try_for_each(|message| read_message(&mut said, message))?;
            }
            ("system", system) => said.system = text("system", system)?,
            ("max_tokens", bounded) => said.max_output_tokens = Some(bound(name, bounded)?),
            ("temperature", Value::Number(_)) => said.temperature = Some(value),
            ("stop_sequences", Value::Array(_)) => said.stop = Some(value),
            ("output_config", Value::Object(config)) => {
                let other = config.keys().find(|name| *name != "format");
                if let Some(other) = other {
                    return Err(refused(&format!("output_config.{other}"), "is not translated"));
                }
                said.schema = config.get("format").map(schema).transpose()?;
            }
            _ => return Err(refused(name, "is not translated")),
        }
    }
    Ok(said)
}

fn read_message(said: &mut Conversation, message: &Value) -> Result<(), Refused> {
    let text = text("messages.content", message.get("content").unwrap_or(&Value::Null))?;
    match message.get("role").and_then(Value::as_str) {
        Some("user") => said.says(Role::User, text),
        Some("assistant") => said.says(Role::Assistant, text),
        _ => return Err(refused("messages.role", "must be user or assistant")),
    }
    Ok(())
}

fn schema(format: &Value) -> Result<Value, Refused> {
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
