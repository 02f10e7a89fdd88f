//! A request in the terms that all dialects share.

use serde_json::{Map, Value};
use tidegate_providers::{Role, Turn};

/// A request in no particular dialect.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) system: String,
    pub(super) turns: Vec<Turn>,
    pub(super) max_output_tokens: Option<u32>,
    pub(super) schema: Option<Value>,
    pub(super) temperature: Option<Value>,
    pub(super) stop: Option<Value>,
}

impl Conversation {
    /// Adds a turn. Two turns in a row of one speaker become one.
    pub(super) fn add_turn(&mut self, role: Role, text: String) {
        match self.turns.last_mut() {
            Some(last) if last.role == role => {
                last.text.push_str("\n\n");
                last.text.push_str(&text);
            }
            _ => self.turns.push(Turn { role, text }),
        }
    }

    pub(super) fn check(&self) -> Result<(), RefusedField> {
        let is_users = |turn: Option<&Turn>| turn.is_some_and(|turn| turn.role == Role::User);
        if is_users(self.turns.first()) && is_users(self.turns.last()) {
            return Ok(());
        }
        Err(refused("messages", "must begin and end with the user's"))
    }
}

/// The error for a field that a model of another dialect cannot take.
pub(super) fn refused(field: &str, why: &str) -> RefusedField {
    RefusedField::new(field, &format!("{why}: the model speaks another dialect"))
}

/// Fields of a text. `cache_control` is a request to the vendor's cache and does not change the answer:
/// it is ignored.
const FIELDS_OF_TEXT: [&str; 3] = ["type", "text", "cache_control"];

/// Refuses an object within `field` that has a field with a value beside these.
pub(super) fn check_fields(
    field: &str,
    object: &Map<String, Value>,
    known: &[&str],
) -> Result<(), RefusedField> {
    let is_other =
        |(name, value): &(&String, &Value)| !known.contains(&name.as_str()) && !value.is_null();
    match object.iter().find(is_other) {
        Some((name, _)) => Err(refused(&format!("{field}.{name}"), "is not translated")),
        None => Ok(()),
    }
}

/// The text of a message: a string, or parts that are texts.
pub(super) fn text(field: &str, content: &Value) -> Result<String, RefusedField> {
    let part = |part: &Value| match (part, part.get("type"), part.get("text")) {
        (Value::Object(fields), Some(Value::String(kind)), Some(Value::String(text)))
            if kind == "text" =>
        {
            check_fields(field, fields, &FIELDS_OF_TEXT)?;
            Ok(text.clone())
        }
        _ => Err(refused(field, "may hold texts alone")),
    };
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            Ok(parts.iter().map(part).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        _ => Err(refused(field, "may hold texts alone")),
    }
}

pub(super) fn bound(field: &str, value: &Value) -> Result<u32, RefusedField> {
    let bound = value.as_u64().and_then(|bound| u32::try_from(bound).ok()).filter(|it| *it > 0);
    bound.ok_or_else(|| RefusedField::new(field, "must be a whole number above 0"))
}

/// A refused field of a request, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct RefusedField {
    /// Its name.
    pub field: String,
    /// The fault; quotes nothing of the field's value.
    pub why: String,
}

impl RefusedField {
    /// Refuses `field` for the reason `why`.
    pub fn new(field: &str, why: &str) -> Self {
        Self { field: field.to_owned(), why: why.to_owned() }
    }
}
