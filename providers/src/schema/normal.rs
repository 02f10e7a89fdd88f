//! Reduces an ordinary schema to the part that a vendor follows.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    circle::refers_to_itself,
    rules::{Rules, WRAP},
};

/// Maximum depth that is followed; a deeper schema refers to itself.
const MAX_DEPTH: usize = 64;

/// Most schemas of the vendor's form. The vendors take at most 5,000 properties; references with
/// more beside them are written out, which can double the number at each step.
const MAX_NODES: usize = 100_000;

/// Bytes of texts, such as descriptions and names in an `enum`, that count as a schema: where variants
/// share them, each has its own copy.
const BYTES_OF_NODE: usize = 64;

/// Keywords that only narrow the allowed values: the caller's own check covers them.
const ANNOTATIONS: [&str; 13] = [
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "description",
    "title",
    "nullable",
];

/// Keywords that hold for each of the variants beside them.
const SHARED: [&str; 6] =
    ["properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems"];

/// The schema in the vendor's form, and whether the answer is in a field of it; or the reason why
/// it cannot be expressed.
pub(super) fn normal(rules: &Rules, schema: &Value) -> Result<(Value, bool), String> {
    let mut work = Work { rules, root: schema, nodes: 0, properties: 0, optional: 0 };
    let mut top = work.node(schema, "", 0, 0)?;
    let mut definitions = Map::new();
    for (name, definition) in work.definitions() {
        let place = format!("/$defs/{name}");
        definitions.insert(name.clone(), work.node(definition, &place, 0, 0)?);
    }
    if !rules.recursion && refers_to_itself(&definitions) {
        return Err("it refers to itself".to_owned());
    }
    work.check_size()?;
    let wrapped = rules.object_root && top.get("type") != Some(&json!("object"));
    if wrapped {
        if mentions_root(&top) || definitions.values().any(mentions_root) {
            return Err("it refers to itself at the top, where it is no object".to_owned());
        }
        top = json!({"type": "object", "properties": {WRAP: top}, "required": [WRAP],
            "additionalProperties": false});
    }
    if !definitions.is_empty() {
        top["$defs"] = Value::Object(definitions);
    }
    Ok((top, wrapped))
}

fn mentions_root(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("$ref") == Some(&json!("#")) || fields.values().any(mentions_root)
        }
        Value::Array(values) => values.iter().any(mentions_root),
        _ => false,
    }
}

struct Work<'a> {
    rules: &'a Rules,
    root: &'a Value,
    nodes: usize,
    properties: usize,
    optional: usize,
}

impl<'a> Work<'a> {
    fn definitions(&self) -> Vec<(&'a String, &'a Value)> {
        ["$defs", "definitions"]
            .iter()
            .filter_map(|name| self.root.get(*name)?.as_object())
            .flatten()
            .collect()
    }

    fn check_size(&self) -> Result<(), String> {
        if self.properties > self.rules.properties {
            return Err(format!("it has more than {} properties", self.rules.properties));
        }
        if self.optional > self.rules.optional {
            let most = self.rules.optional;
            return Err(format!("it has more than {most} properties that are not required"));
        }
        Ok(())
    }

    /// `steps` bounds the work, `depth` counts objects within objects.
    fn node(
        &mut self,
        schema: &Value,
        place: &str,
        steps: usize,
        depth: usize,
    ) -> Result<Value, String> {
        let at = if place.is_empty() { "at its top" } else { place };
        if steps > MAX_DEPTH {
            return Err(format!("it is too deep ({at})"));
        }
        self.nodes += 1 + schema.as_object().map_or(0, text_bytes) / BYTES_OF_NODE;
        if self.nodes > MAX_NODES {
            return Err(format!("it is made of more than {MAX_NODES} schemas"));
        }
        let Some(fields) = schema.as_object() else {
            return Err(format!("{at} takes anything"));
        };
        if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
            return self.reference(name, fields, place, steps, depth);
        }
        if let Some(parts) = fields.get("allOf").and_then(Value::as_array) {
            let merged = self.all_of(fields, parts, at)?;
            return self.node(&merged, place, steps + 1, depth);
        }
        let mut said = Map::new();
        if let Some(values) = literals(fields) {
            if !values.iter().all(|value| !value.is_object() && !value.is_array()) {
                return Err(format!("{at} lists values that are no plain ones"));
            }
            said.insert("enum".to_owned(), Value::Array(values));
            if let Some(kind @ Value::String(_)) = fields.get("type") {
                said.insert("type".to_owned(), kind.clone());
            }
            return Ok(self.described(said, fields, &["enum", "const", "type"]));
        }
        if let Some(kinds) = fields.get("type").and_then(Value::as_array) {
            return self.kinds(fields, kinds, place, steps, depth);
        }
        let choices = ["anyOf", "oneOf"].iter().find_map(|name| fields.get(*name)?.as_array());
        if let Some(choices) = choices
            && choices.iter().any(says_what_it_is)
        {
            let shared = fields.iter().filter(|(key, _)| SHARED.contains(&key.as_str()));
            let shared: Map<_, _> =
                shared.map(|(key, value)| (key.clone(), value.clone())).collect();
            let mut variants = Vec::with_capacity(choices.len());
            for (number, choice) in choices.iter().enumerate() {
                let mut choice = with_kind(choice, fields.get("type"));
                if !shared.is_empty() {
                    choice = Cow::Owned(json!({"allOf": [choice, shared]}));
                }
                let place = format!("{place}/anyOf/{number}");
                variants.push(self.node(&choice, &place, steps + 1, depth)?);
            }
            said.insert("anyOf".to_owned(), Value::Array(variants));
            let done = [&["anyOf", "oneOf", "type"], &SHARED[..]].concat();
            return Ok(self.described(said, fields, &done));
        }
        match kind(fields) {
            Some("object") => self.object(fields, place, steps, depth),
            Some("array") => self.array(fields, place, steps, depth),
            Some(kind) => {
                said.insert("type".to_owned(), kind.into());
                Ok(self.described(said, fields, &["type"]))
            }
            None => Err(format!("{at} does not say its type")),
        }
    }

    fn reference(
        &mut self,
        name: &str,
        fields: &Map<String, Value>,
        place: &str,
        steps: usize,
        depth: usize,
    ) -> Result<Value, String> {
        let Some(pointer) = name.strip_prefix('#') else {
            return Err(format!("it refers to {name}, which is elsewhere"));
        };
        let meant = self.root.pointer(pointer);
        let meant = meant.ok_or_else(|| format!("it refers to {name}, which is not there"))?;
        let alone = fields.keys().all(|key| key == "$ref" || ANNOTATIONS.contains(&key.as_str()));
        let definition = pointer
            .strip_prefix("/$defs/")
            .or_else(|| pointer.strip_prefix("/definitions/"))
            .filter(|name| !name.contains('/'));
        let is_top = place.is_empty();
        match (alone, definition) {
            (true, Some(name)) if !is_top => Ok(json!({"$ref": format!("#/$defs/{name}")})),
            (true, None) if pointer.is_empty() && !is_top && self.rules.recursion => {
                Ok(json!({"$ref": "#"}))
            }
            _ if pointer.is_empty() => Err("it refers to itself".to_owned()),
            _ => {
                let mut merged = meant.as_object().cloned().unwrap_or_default();
                let beside = fields.iter().filter(|(key, _)| *key != "$ref");
                merged.extend(beside.map(|(key, value)| (key.clone(), value.clone())));
                self.node(&Value::Object(merged), place, steps + 1, depth)
            }
        }
    }

    /// Merges all parts: the union of their properties and requirements.
    fn all_of(
        &self,
        fields: &Map<String, Value>,
        parts: &[Value],
        at: &str,
    ) -> Result<Value, String> {
        let mut merged = fields.clone();
        merged.remove("allOf");
        for part in parts {
            let mut part = part;
            for _ in 0..MAX_DEPTH {
                let Some(name) = part.get("$ref").and_then(Value::as_str) else { break };
                let meant = name.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                part = meant.ok_or_else(|| format!("it refers to {name}, which is not there"))?;
            }
            let Some(part) = part.as_object() else { continue };
            for (key, value) in part {
                match (merged.get_mut(key), value) {
                    (None, _) => {
                        merged.insert(key.clone(), value.clone());
                    }
                    (Some(Value::Object(ours)), Value::Object(theirs)) if key == "properties" => {
                        for (name, property) in theirs {
                            ours.entry(name.clone()).or_insert_with(|| property.clone());
                        }
                    }
                    (Some(Value::Array(ours)), Value::Array(theirs)) if key == "required" => {
                        ours.extend(theirs.iter().cloned());
                    }
                    (Some(ours), theirs) if key == "type" && ours != theirs => {
                        return Err(format!("{at} is of two types at once"));
                    }
                    // The caller checks the narrower of the two.
                    (Some(_), _) => {}
                }
            }
        }
        Ok(Value::Object(merged))
    }

    fn kinds(
        &mut self,
        fields: &Map<String, Value>,
        kinds: &[Value],
        place: &str,
        steps: usize,
        depth: usize,
    ) -> Result<Value, String> {
        let mut variants = Vec::with_capacity(kinds.len());
        for kind in kinds {
            let variant = if kind.as_str() == Some("null") {
                json!({"type": "null"})
            } else {
                let mut of_kind = fields.clone();
                of_kind.insert("type".to_owned(), kind.clone());
                self.node(&Value::Object(of_kind), place, steps + 1, depth)?
            };
            variants.push(variant);
        }
        match variants.len() {
            1 => Ok(variants.remove(0)),
            _ => Ok(json!({"anyOf": variants})),
        }
    }

    fn object(
        &mut self,
        fields: &Map<String, Value>,
        place: &str,
        steps: usize,
        depth: usize,
    ) -> Result<Value, String> {
        let at = if place.is_empty() { "at its top" } else { place };
        if depth >= self.rules.depth {
            return Err(format!("it nests more than {} objects ({at})", self.rules.depth));
        }
        let nothing = Map::new();
        let properties = fields.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
        let further = fields.get("additionalProperties");
        let has_further = further.is_some_and(Value::is_object);
        let is_map = has_further || fields.contains_key("patternProperties");
        let is_open = properties.is_empty() && further != Some(&Value::Bool(false));
        if self.rules.closed && (is_map || is_open) {
            return Err(format!("{at} is an object with any names"));
        }
        let required: Vec<&str> = fields
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some(name) = required.iter().find(|name| !properties.contains_key(**name))
            && self.rules.closed
        {
            return Err(format!("{at} requires {name}, and does not say what it is"));
        }
        let (mut said, mut wanted) = (Map::new(), Vec::new());
        let mut of_properties = Map::new();
        for (name, property) in properties {
            let place = format!("{place}/properties/{name}");
            let node = self.node(property, &place, steps + 1, depth + 1)?;
            let is_required = required.contains(&name.as_str());
            self.properties += 1;
            self.optional += usize::from(!is_required);
            let node = if self.rules.all_required && !is_required { nullable(node) } else { node };
            if self.rules.all_required || is_required {
                wanted.push(Value::from(name.as_str()));
            }
            of_properties.insert(name.clone(), node);
        }
        said.insert("type".to_owned(), "object".into());
        said.insert("properties".to_owned(), Value::Object(of_properties));
        said.insert("required".to_owned(), Value::Array(wanted));
        if self.rules.closed {
            said.insert("additionalProperties".to_owned(), Value::Bool(false));
        } else if let Some(further) = further {
            let further = match further {
                Value::Object(_) => {
                    let place = format!("{place}/additionalProperties");
                    self.node(further, &place, steps + 1, depth + 1)?
                }
                other => other.clone(),
            };
            said.insert("additionalProperties".to_owned(), further);
        }
        let known =
            ["type", "properties", "required", "additionalProperties", "$defs", "definitions"];
        Ok(self.described(said, fields, &known))
    }

    fn array(
        &mut self,
        fields: &Map<String, Value>,
        place: &str,
        steps: usize,
        depth: usize,
    ) -> Result<Value, String> {
        let at = if place.is_empty() { "at its top" } else { place };
        let mut said = Map::from_iter([("type".to_owned(), "array".into())]);
        let tuple = fields.get("prefixItems").and_then(Value::as_array);
        if let Some(tuple) = tuple {
            if !self.rules.keywords.contains(&"prefixItems") {
                return Err(format!("{at} is a list with a type for each place"));
            }
            let mut items = Vec::with_capacity(tuple.len());
            for (number, item) in tuple.iter().enumerate() {
                let place = format!("{place}/prefixItems/{number}");
                items.push(self.node(item, &place, steps + 1, depth)?);
            }
            said.insert("prefixItems".to_owned(), Value::Array(items));
        }
        match fields.get("items") {
            Some(items @ Value::Object(_)) => {
                let items = self.node(items, &format!("{place}/items"), steps + 1, depth)?;
                said.insert("items".to_owned(), items);
            }
            Some(Value::Bool(false)) if tuple.is_some() => {
                said.insert("items".to_owned(), Value::Bool(false));
            }
            _ if tuple.is_some() => {}
            _ => return Err(format!("{at} is a list that does not say of what")),
        }
        Ok(self.described(said, fields, &["type", "items", "prefixItems"]))
    }

    /// Adds the keywords that the vendor knows, and a description of the others.
    fn described(
        &self,
        mut said: Map<String, Value>,
        fields: &Map<String, Value>,
        done: &[&str],
    ) -> Value {
        let mut left_out = Vec::new();
        for (key, value) in fields {
            let key = key.as_str();
            let known = self.rules.keywords.contains(&key)
                && !(key == "minItems"
                    && value.as_u64().is_none_or(|least| least > self.rules.min_items_at_most));
            let format = key == "format"
                && value.as_str().is_some_and(|format| self.rules.formats.contains(&format));
            if done.contains(&key) || key == "$defs" || key == "definitions" {
            } else if known || format || matches!(key, "title") {
                said.insert(key.to_owned(), value.clone());
            } else if !ANNOTATIONS.contains(&key) {
                left_out.push(format!("{key}: {value}"));
            }
        }
        let told = fields.get("description").and_then(Value::as_str).unwrap_or_default();
        let more = if left_out.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", left_out.join(", "))
        };
        let description = [told, more.as_str()].into_iter().filter(|text| !text.is_empty());
        let description = description.collect::<Vec<_>>().join("\n\n");
        if !description.is_empty() {
            said.insert("description".to_owned(), description.into());
        }
        Value::Object(said)
    }
}

/// Bytes of the texts that a schema has itself, apart from those of schemas in it.
fn text_bytes(fields: &Map<String, Value>) -> usize {
    let texts = |value: &Value| match value {
        Value::Array(values) => values.iter().map(|it| 32 + it.as_str().map_or(0, str::len)).sum(),
        value => value.as_str().map_or(0, str::len),
    };
    fields.values().map(texts).sum()
}

fn literals(fields: &Map<String, Value>) -> Option<Vec<Value>> {
    let only = || Some(vec![fields.get("const")?.clone()]);
    fields.get("enum").and_then(Value::as_array).filter(|it| !it.is_empty()).cloned().or_else(only)
}

/// Whether a variant states more than a condition on its siblings, such as required fields.
fn says_what_it_is(variant: &Value) -> bool {
    let told = ["type", "$ref", "enum", "const", "properties", "items", "anyOf", "oneOf", "allOf"];
    told.iter().any(|key| variant.get(*key).is_some())
}

fn with_kind<'v>(variant: &'v Value, kind: Option<&Value>) -> Cow<'v, Value> {
    match (variant.as_object(), kind) {
        (Some(fields), Some(kind))
            if !fields.contains_key("type") && !fields.contains_key("$ref") =>
        {
            let mut fields = fields.clone();
            fields.insert("type".to_owned(), kind.clone());
            Cow::Owned(Value::Object(fields))
        }
        _ => Cow::Borrowed(variant),
    }
}

/// The type, or the type that the other keywords imply.
fn kind(fields: &Map<String, Value>) -> Option<&str> {
    let said = fields.get("type").and_then(Value::as_str);
    let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
    said.or_else(|| has(&["properties", "additionalProperties"]).then_some("object"))
        .or_else(|| has(&["items", "prefixItems", "minItems"]).then_some("array"))
        .or_else(|| has(&["pattern", "minLength", "maxLength", "format"]).then_some("string"))
        .or_else(|| has(&["minimum", "maximum", "multipleOf"]).then_some("number"))
}

/// The node, or null.
fn nullable(node: Value) -> Value {
    let nothing = json!({"type": "null"});
    match node.get("anyOf").and_then(Value::as_array) {
        Some(variants) if variants.contains(&nothing) => node,
        Some(variants) => {
            let variants = variants.iter().cloned().chain([nothing]).collect();
            let mut node = node;
            node["anyOf"] = variants;
            node
        }
        None if node.get("type") == Some(&Value::from("null")) => node,
        None => json!({"anyOf": [node, nothing]}),
    }
}
