//! Whether an answer satisfies the batch's JSON Schema.

use jsonschema::Validator;
use serde_json::Value;

use super::expansion;
use crate::failure::Failure;

/// Longest part of a message that says what is wrong: it may quote the answer.
const MAX_REASON_CHARS: usize = 200;

/// Schemas that one value is judged by at most, those that they refer to among them.
const MAX_SCHEMAS: u64 = 100_000;

/// Reads a schema.
///
/// # Errors
/// `InvalidInput` says what is wrong with it. Nothing is fetched: a reference to another document
/// is an error.
pub fn compile(schema: &Value) -> Result<Validator, Failure> {
    if expansion::of(schema) > MAX_SCHEMAS {
        return Err(Failure::invalid_input(format!(
            "schema would judge one value by more than {MAX_SCHEMAS} schemas, because it refers to the same ones again and again; refer to each once"
        )));
    }
    jsonschema::validator_for(schema).map_err(|error| {
        Failure::invalid_input(format!(
            "schema is no JSON Schema that can be used, at \"{}\": {}",
            error.instance_path(),
            cut(&error.to_string())
        ))
    })
}

/// What is wrong with an answer, if anything is. Quotes nothing of it.
pub(crate) fn valid(validator: &Validator, answer: &str) -> Result<(), String> {
    let value: Value =
        serde_json::from_str(answer).map_err(|error| format!("it is not JSON: {error}"))?;
    validator.validate(&value).map_err(|error| {
        let place = error.instance_path().to_string();
        let place =
            if place.is_empty() { "at its top".to_owned() } else { format!("at {}", cut(&place)) };
        format!("{place}: {}", cut(&error.masked().to_string()))
    })
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::json;
    use tidegate_workflows::contract::FailureType;

    use super::*;
    #[test]
    fn what_is_wrong_is_said_without_quoting_the_answer() {
        let schema =
            json!({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]});
        let validator = compile(&schema).unwrap();
        valid(&validator, "{\"n\":1}").unwrap();
        for (answer, reason) in [
            ("{\"n\":\"secret words\"}", "at /n"),
            ("no JSON: secret", "not JSON"),
            ("[\"secret\"]", "at its top"),
        ] {
            let wrong = valid(&validator, answer).unwrap_err();
            assert!(wrong.contains(reason) && !wrong.contains("secret"), "{wrong}");
        }
        let deep = format!("{{\"{}\":1}}", "k".repeat(5_000));
        let narrow = compile(&json!({"additionalProperties":{"type":"string"}})).unwrap();
        assert!(valid(&narrow, &deep).unwrap_err().chars().count() < 3 * MAX_REASON_CHARS);
    }

    #[test]
    fn a_schema_that_refers_to_the_same_again_and_again_is_refused() {
        let doubling = |length: usize| {
            let link = |at: usize| match at {
                0 => json!({"type": "integer"}),
                at => {
                    let to = format!("#/$defs/d{}", at - 1);
                    json!({"allOf": [{"$ref": to}, {"$ref": to}]})
                }
            };
            let defs: serde_json::Map<_, _> =
                (0..=length).map(|at| (format!("d{at}"), link(at))).collect();
            json!({"$ref": format!("#/$defs/d{length}"), "$defs": defs})
        };
        let failure = compile(&doubling(45)).unwrap_err();
        assert!(failure.message.contains("refers to the same"), "{failure}");
        valid(&compile(&doubling(5)).unwrap(), "7").unwrap();
        // A tree of one kind of node refers to itself, and is no such thing.
        let tree = json!({
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}},
            "required": ["n"],
        });
        valid(&compile(&tree).unwrap(), r#"{"n":1,"left":{"n":2},"right":{"n":3}}"#).unwrap();
    }

    #[test]
    fn bad_schemas_are_refused_and_nothing_is_fetched() {
        for (bad, reason) in [
            (json!({"type":"objct"}), "objct"),
            (json!({"$ref":"https://example.com/x.json"}), "example.com"),
        ] {
            let failure = compile(&bad).unwrap_err();
            assert!(
                failure.kind == FailureType::InvalidInput && failure.message.contains(reason),
                "{failure}"
            );
        }
    }
}
