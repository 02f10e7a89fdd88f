//! The texts of a prompt, so that a message that quotes them can be cut.

use serde_json::Value;

/// Length in characters from which a text is not a name of a vendor's.
const LONG: usize = 24;

/// Every text of a request that may be part of a prompt. A single short word outside the fields for
/// text is a name of the vendor's, such as a role; the model's name is left out too.
pub(crate) fn words(body: &[u8]) -> Vec<String> {
    let mut words = Vec::new();
    if let Ok(body) = serde_json::from_slice::<Value>(body) {
        visit("", &body, &mut words);
    }
    words
}

fn visit(name: &str, value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) if is_words(name, text) => words.push(text.clone()),
        Value::Array(elements) => elements.iter().for_each(|it| visit(name, it, words)),
        Value::Object(fields) => fields.iter().for_each(|(name, it)| visit(name, it, words)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_words(name: &str, text: &str) -> bool {
    let holds_words = ["content", "text", "input", "system", "instructions", "prompt", "output"];
    name != "model"
        && (holds_words.contains(&name)
            || text.len() >= LONG
            || text.contains(char::is_whitespace)
            || !text.is_ascii())
}
