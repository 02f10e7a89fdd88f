//! Converts an answer in the vendor's form back to the author's form.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::rules::WRAP;

/// Most schemas within each other: twice the depth of the deepest answer that is read.
const MAX_DEPTH: u32 = 256;

/// Most steps in all: some for each value of the largest answer, and well below a second.
const MAX_STEPS: u32 = 1_000_000;

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
        Nulls { root: schema, steps_left: MAX_STEPS }.remove(schema, &mut value, 0);
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
///
/// A schema may lead to itself without a step into the answer, and to itself several times. So both the depth
/// and the steps in all are bounded; beyond that, nulls stay, and the caller judges the answer.
struct Nulls<'a> {
    root: &'a Value,
    steps_left: u32,
}

impl Nulls<'_> {
    fn take_step(&mut self, depth: u32) -> bool {
        self.take_steps(1, depth)
    }

    fn take_steps(&mut self, steps: usize, depth: u32) -> bool {
        let may = depth <= MAX_DEPTH && self.steps_left > 0;
        self.steps_left = self.steps_left.saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
        may
    }

    fn remove(&mut self, schema: &Value, value: &mut Value, depth: u32) {
        let schema = resolved(self.root, schema);
        if !self.take_step(depth) {
            return;
        }
        match value {
            Value::Array(items) => {
                if let Some(of) = schema.get("items") {
                    items.iter_mut().for_each(|item| self.remove(of, item, depth + 1));
                }
            }
            Value::Object(fields) => {
                if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                    let required = schema.get("required").and_then(Value::as_array);
                    let required = required.into_iter().flatten().filter_map(Value::as_str);
                    let required: HashSet<&str> = required.collect();
                    if !self.take_steps(fields.len() + required.len(), depth) {
                        return;
                    }
                    let is_required = |name: &String| required.contains(name.as_str());
                    fields.retain(|name, value| match properties.get(name) {
                        Some(property) if value.is_null() && !is_required(name) => {
                            self.takes_null(property, depth + 1)
                        }
                        _ => true,
                    });
                    for (name, value) in fields.iter_mut() {
                        if let Some(property) = properties.get(name) {
                            self.remove(property, value, depth + 1);
                        }
                    }
                }
            }
            _ => return,
        }
        let of = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        for part in of("allOf") {
            self.remove(part, value, depth + 1);
        }
        for variant in of("anyOf").chain(of("oneOf")) {
            let fields = value.as_object().map_or(0, Map::len);
            if self.take_steps(1 + fields, depth)
                && fits(resolved(self.root, variant), schema, value)
            {
                self.remove(variant, value, depth + 1);
            }
        }
    }

    fn takes_null(&mut self, schema: &Value, depth: u32) -> bool {
        let schema = resolved(self.root, schema);
        if !self.take_step(depth) || schema == &Value::Bool(true) {
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
            || variants.flatten().any(|variant| self.takes_null(variant, depth + 1))
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
