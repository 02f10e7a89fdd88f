//! A value that satisfies a simple JSON Schema, filled with sentences.

use serde_json::{Map, Number, Value, json};

/// Deeper schemas, recursive ones among them, end in null.
const DEEPEST: usize = 12;

/// A value for a schema: every property present, strings taken from the sentences in turn. A list
/// of things with an `id` has one for each of the named parts, with its name as id and strings from
/// its own sentences.
pub(crate) fn fill(
    schema: &Value,
    sentences: &[String],
    parts: Option<&[(String, Vec<String>)]>,
    hash: u64,
) -> Value {
    Filler { root: schema, sentences, parts, next: 0, hash }.value(schema, DEEPEST)
}

struct Filler<'a> {
    root: &'a Value,
    sentences: &'a [String],
    parts: Option<&'a [(String, Vec<String>)]>,
    next: usize,
    hash: u64,
}

impl<'a> Filler<'a> {
    fn value(&mut self, schema: &'a Value, depth: usize) -> Value {
        if depth == 0 {
            return Value::Null;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return target.map_or(Value::Null, |target| self.value(target, depth - 1));
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(choices) =
            schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.is_empty())
        {
            return choices[self.turn() % choices.len()].clone();
        }
        let mut choices = ["anyOf", "oneOf", "allOf"]
            .iter()
            .filter_map(|key| schema.get(key)?.as_array())
            .flatten();
        let choice = choices.find(|choice| kind(choice) != "null");
        if let Some(choice) = choice {
            return self.value(choice, depth - 1);
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => Value::String(self.string(schema)),
            "integer" => Value::from(within(schema, self.turn()).0),
            "number" => {
                Number::from_f64(within(schema, self.turn()).1).map_or(Value::Null, Value::Number)
            }
            "boolean" => Value::Bool(self.turn().is_multiple_of(2)),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut object = Map::new();
        for (name, property) in properties.into_iter().flatten() {
            object.insert(name.clone(), self.value(property, depth - 1));
        }
        for name in schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            object.entry(name).or_insert_with(|| json!("not stated"));
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &'a Value, depth: usize) -> Value {
        let bound = |key| schema.get(key).and_then(Value::as_u64);
        let length = 2
            .max(bound("minItems").unwrap_or(0))
            .min(bound("maxItems").unwrap_or(u64::MAX))
            .min(1_000);
        let Some(items) = schema.get("items") else { return json!([]) };
        if let Some(parts) = self.parts
            && items.pointer("/properties/id").is_some_and(|id| kind(id) == "string")
        {
            return parts
                .iter()
                .map(|(name, sentences)| self.part(items, depth, name, sentences))
                .collect();
        }
        (0..length).map(|_| self.value(items, depth - 1)).collect()
    }

    /// Of one of the parts, in which there are no others.
    fn part(&self, schema: &'a Value, depth: usize, name: &str, sentences: &'a [String]) -> Value {
        let mut own = Filler { sentences, parts: None, next: 0, ..*self };
        let mut part = own.value(schema, depth - 1);
        part["id"] = name.into();
        part
    }

    fn string(&mut self, schema: &Value) -> String {
        match schema.get("format").and_then(Value::as_str) {
            Some("date") => return "2026-01-31".into(),
            Some("date-time") => return "2026-01-31T12:00:00Z".into(),
            Some("email") => return "someone@example.com".into(),
            Some("uri") => return "https://example.com/".into(),
            _ => {}
        }
        let bound = |key| {
            schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok())
        };
        let sentence = self
            .sentences
            .get(self.next % self.sentences.len().max(1))
            .map_or("not stated", String::as_str);
        self.next += 1;
        let padding =
            bound("minLength").unwrap_or(0).min(10_000).saturating_sub(sentence.chars().count());
        let padded = sentence.chars().chain(std::iter::repeat_n('.', padding));
        padded.take(bound("maxLength").unwrap_or(usize::MAX)).collect()
    }

    // Any bits will do.
    const fn turn(&mut self) -> usize {
        self.hash = crate::rng::mix(self.hash);
        self.hash as usize >> 16
    }
}

/// The type, where there are several the first that is not null; guessed where there is none.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

/// A small number within the schema's bounds, whole and as a float.
// Numbers in schemas are small.
fn within(schema: &Value, turn: usize) -> (i64, f64) {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low.floor() + 1.0));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high.ceil() - 1.0));
    let low = low.unwrap_or_else(|| high.map_or(0.0, |high| high.min(0.0)));
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let wished = step.map_or_else(|| low + (turn % 10) as f64, |step| (low / step).ceil() * step);
    let number = wished.min(high.unwrap_or(f64::INFINITY));
    (number.ceil() as i64, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_schemas_are_satisfied() {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "maxLength": 5},
                "kind": {"enum": ["a", "b"]},
                "score": {"type": "integer", "minimum": 3, "maximum": 4},
                "part": {"type": "number", "minimum": 0, "maximum": 1},
                "sure": {"type": ["boolean", "null"]},
                "parties": {"type": "array", "items": {"$ref": "#/$defs/party"}, "minItems": 3},
                "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            },
            "required": ["title", "extra"],
            "$defs": {"party": {"type": "object", "properties": {"name": {"type": "string"}}}},
        });
        let value = fill(&schema, &["One sentence.".into(), "Another.".into()], None, 9);
        assert_eq!(value["title"].as_str().unwrap().len(), 5);
        assert!(["a", "b"].contains(&value["kind"].as_str().unwrap()));
        assert!((3..=4).contains(&value["score"].as_i64().unwrap()));
        assert!((0.0..=1.0).contains(&value["part"].as_f64().unwrap()));
        assert!(value["sure"].is_boolean() && value["either"].is_string());
        assert_eq!(value["parties"].as_array().unwrap().len(), 3);
        assert!(value["parties"][2]["name"].is_string());
        assert_eq!(value["extra"], "not stated");
    }

    #[test]
    fn named_parts_have_an_entry_each() {
        let item = json!({"type": "object", "properties": {"answer": {"type": "string"}, "id": {"type": "string"}}});
        let schema =
            json!({"type": "object", "properties": {"answers": {"type": "array", "items": item}}});
        let parts = [
            ("a-1".to_owned(), vec!["First.".to_owned()]),
            ("a-2".to_owned(), vec!["Second.".to_owned()]),
        ];
        let filled = fill(&schema, &["All.".into()], Some(&parts), 1);
        assert_eq!(
            filled,
            json!({"answers": [{"id": "a-1", "answer": "First."}, {"id": "a-2", "answer": "Second."}]})
        );
    }

    #[test]
    fn a_recursive_schema_ends() {
        let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert!(fill(&schema, &[], None, 1).is_object());
    }
}
