//! Which schemas vendors take, from their pages on structured outputs (November 2026):
//! developers.openai.com/api/docs/guides/structured-outputs#supported-schemas,
//! platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations.

use serde_json::Value;

use crate::problem::Problem;

const OPENAI_DEPTH: usize = 10;

const OPENAI_REFUSED: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "minProperties",
    "maxProperties",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "minLength",
    "maxLength",
    "prefixItems",
    "default",
];

const ANTHROPIC_REFUSED: &[&str] = &[
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "contains",
    "uniqueItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "prefixItems",
];

/// Refuses what OpenAI's strict mode refuses.
pub(crate) fn openai(schema: &Value) -> Result<(), Problem> {
    let refused = |why: String| {
        Problem::invalid(format!("Invalid schema for response_format 'answer': {why}"), "schema")
    };
    if schema.get("type") != Some(&Value::from("object")) {
        return Err(refused("schema must be a JSON Schema of 'type: \"object\"'.".to_owned()));
    }
    walk(schema, 0, &mut |node, depth| {
        if let Some(key) = OPENAI_REFUSED.iter().find(|key| node.get(**key).is_some()) {
            return Err(refused(format!("'{key}' is not permitted.")));
        }
        if node.get("type") != Some(&Value::from("object")) {
            return Ok(());
        }
        if depth > OPENAI_DEPTH {
            return Err(refused(format!(
                "{depth} levels of nesting exceeds limit of {OPENAI_DEPTH}."
            )));
        }
        if node.get("additionalProperties") != Some(&Value::Bool(false)) {
            let why = "'additionalProperties' is required to be supplied and to be false.";
            return Err(refused(why.to_owned()));
        }
        let required: Vec<&str> = texts(node.get("required"));
        let missing = names(node).find(|name| !required.contains(name));
        missing.map_or(Ok(()), |name| {
            Err(refused(format!(
                "'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'."
            )))
        })
    })
}

/// Refuses what Anthropic's structured outputs refuse.
pub(crate) fn anthropic(schema: &Value) -> Result<(), Problem> {
    let refused =
        |why: String| Problem::invalid(format!("output_config.format.schema: {why}"), "schema");
    let mut optional = 0;
    walk(schema, 0, &mut |node, _| {
        if let Some(key) = ANTHROPIC_REFUSED.iter().find(|key| node.get(**key).is_some()) {
            return Err(refused(format!("property '{key}' is not supported")));
        }
        if node.get("minItems").and_then(Value::as_u64).is_some_and(|least| least > 1) {
            return Err(refused(
                "'minItems' values other than 0 or 1 are not supported".to_owned(),
            ));
        }
        if node.get("type") == Some(&Value::from("object")) {
            if node.get("additionalProperties") != Some(&Value::Bool(false)) {
                let why =
                    "For 'object' type, 'additionalProperties' must be explicitly set to false";
                return Err(refused(why.to_owned()));
            }
            let required: Vec<&str> = texts(node.get("required"));
            optional += names(node).filter(|name| !required.contains(name)).count();
        }
        Ok(())
    })?;
    if optional > 24 {
        return Err(refused("Schemas contains too many optional parameters".to_owned()));
    }
    Ok(())
}

fn names(node: &Value) -> impl Iterator<Item = &str> {
    let properties = node.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.as_str())
}

fn texts(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Every schema inside one, with how many objects it is in.
fn walk(
    node: &Value,
    depth: usize,
    see: &mut impl FnMut(&Value, usize) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let depth = depth + usize::from(node.get("type") == Some(&Value::from("object")));
    see(node, depth)?;
    for key in ["properties", "$defs"] {
        let inner = node.get(key).and_then(Value::as_object);
        inner.into_iter().flatten().try_for_each(|(_, inner)| walk(inner, depth, see))?;
    }
    for key in ["anyOf", "allOf"] {
        let inner = node.get(key).and_then(Value::as_array);
        inner.into_iter().flatten().try_for_each(|inner| walk(inner, depth, see))?;
    }
    node.get("items").map_or(Ok(()), |items| walk(items, depth, see))
}
