//! Converts an answer in the vendor's form back to the author's form.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::rules::WRAP;

/// The answer without the parts that the vendor's form added; `None` if nothing changes.
pub(super) fn restored(
    schema: &Value,
    answer: &str,
    wrapped: bool,
    all_required: bool,
) -> Option<String> {
    if !wrapped && !all_required {
        return None;
    }
    let mut value: Value = serde_json::from_str(answer).ok()?;
    let before = value.clone();
    if wrapped {
        value = value.as_object_mut().filter(|fields| fields.len() == 1)?.remove(WRAP)?;
    }
    if all_required {
        without_nulls(schema, schema, &mut value);
    }
    (value != before).then(|| value.to_string())
}

/// The contents of a code fence if it is the whole answer, or if it is the answer's only fence and
/// holds JSON.
///
/// Thoughts before it are left out: servers without a parser for them put them into the answer.
pub(super) fn without_fence(answer: &str) -> Option<String> {
    let thoughts = answer.trim_start().strip_prefix("<think>");
    if let Some((_, answer)) = thoughts.and_then(|thoughts| thoughts.split_once("</think>")) {
        return without_fence(answer).or_else(|| is_json(answer).then(|| answer.trim().to_owned()));
    }
    let whole = answer.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    if let Some(json) = whole.and_then(fenced) {
        return Some(json.to_owned());
    }
    // JSON may contain fences in its texts.
    if is_json(answer) {
        return None;
    }
    let parts: Vec<&str> = answer.splitn(4, "```").collect();
    let [_, inside, _] = parts.as_slice() else { return None };
    fenced(inside).filter(|json| is_json(json)).map(ToOwned::to_owned)
}

fn fenced(inside: &str) -> Option<&str> {
    let (first, rest) = inside.split_once('\n')?;
    let first = first.trim_end();
    (first.is_empty() || first.eq_ignore_ascii_case("json")).then(|| rest.trim())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Removes fields that are null only because the vendor's form required them.
fn without_nulls(root: &Value, schema: &Value, value: &mut Value) {
    let schema = resolved(root, schema);
    match value {
        Value::Array(items) => {
            if let Some(of) = schema.get("items") {
                items.iter_mut().for_each(|item| without_nulls(root, of, item));
            }
        }
        Value::Object(fields) => {
            if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                let required = schema.get("required").and_then(Value::as_array);
                let is_required =
                    |name: &String| required.is_some_and(|all| all.iter().any(|it| it == name));
                fields.retain(|name, value| match properties.get(name) {
                    Some(property) if value.is_null() && !is_required(name) => {
                        takes_null(root, property, 0)
                    }
                    _ => true,
                });
                for (name, value) in fields.iter_mut() {
                    if let Some(property) = properties.get(name) {
                        without_nulls(root, property, value);
                    }
                }
            }
        }
        _ => return,
    }
    let of = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    for part in of("allOf") {
        without_nulls(root, part, value);
    }
    for variant in of("anyOf").chain(of("oneOf")) {
        if fits(resolved(root, variant), schema, value) {
            without_nulls(root, variant, value);
        }
    }
}

/// Whether an object may match this variant of a schema: the two name all of its fields.
fn fits(variant: &Value, schema: &Value, value: &Value) -> bool {
    match (value.as_object(), variant.get("properties").and_then(Value::as_object)) {
        (Some(fields), Some(properties)) => fields
            .keys()
            .all(|name| properties.contains_key(name) || schema["properties"].get(name).is_some()),
        (None, None) => true,
        _ => variant.get("properties").is_none(),
    }
}

fn resolved<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..64 {
        let meant = schema.get("$ref").and_then(Value::as_str);
        let meant = meant.and_then(|name| root.pointer(name.strip_prefix('#')?));
        match meant {
            Some(meant) => schema = meant,
            None => break,
        }
    }
    schema
}

fn takes_null(root: &Value, schema: &Value, depth: usize) -> bool {
    let schema = resolved(root, schema);
    if depth > 16 || schema == &Value::Bool(true) {
        return true;
    }
    let named = |key: &str, word: &Value| match schema.get(key) {
        Some(Value::Array(words)) => words.contains(word),
        Some(one) => one == word,
        None => false,
    };
    let variants = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array());
    named("type", &"null".into())
        || named("enum", &Value::Null)
        || named("const", &Value::Null)
        || variants.flatten().any(|variant| takes_null(root, variant, depth + 1))
}
