//! Whether an answer satisfies the batch's JSON Schema.

mod expansion;

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

use self::expansion::Expansion;
use crate::failure::Failure;

/// Longest message about an answer, in characters: it may quote the answer.
const MAX_REASON_CHARS: usize = 200;

/// Maximum number of schemas that one value may be judged by, schemas behind references included.
const MAX_SCHEMAS: u64 = 100_000;

/// Number of schemas above which judging takes place in a process of its own.
const MAX_HARMLESS: u64 = 1_000;

/// Validates answers by a schema.
#[derive(Debug)]
pub struct SchemaValidator {
    pub(crate) schema: Value,
    validator: Validator,
    /// Whether the time of a check is always at most a small multiple of the answer's length.
    pub(crate) is_harmless: bool,
}

impl SchemaValidator {
    /// Compiles a schema.
    ///
    /// # Errors
    /// `InvalidInput` states its fault. Nothing is fetched: a reference to another document
    /// is an error.
    pub fn compile(schema: &Value) -> Result<Self, Failure> {
        let expansion = Expansion::measure(schema);
        if expansion.schemas > MAX_SCHEMAS {
            return Err(Failure::invalid_input(format!(
                "schema would judge one value by more than {MAX_SCHEMAS} schemas, because it refers to the same ones again and again; refer to each once"
            )));
        }
        if let Some(reference) = expansion.cycle {
            return Err(Failure::invalid_input(format!(
                "schema has references that lead only to each other, at \"{}\", so it checks nothing; let one of them lead to a schema",
                cut(reference)
            )));
        }
        let validator = jsonschema::validator_for(schema).map_err(|error| {
            Failure::invalid_input(format!(
                "schema is no JSON Schema that can be used, at \"{}\": {}",
                error.instance_path(),
                describe_fault(schema, &error)
            ))
        })?;
        let is_harmless = expansion.schemas <= MAX_HARMLESS
            && !expansion.is_open
            && !expansion.has_costly_pattern;
        Ok(Self { schema: schema.clone(), validator, is_harmless })
    }

    /// Checks an answer. The error states the fault and quotes nothing of the answer.
    pub(crate) fn check(&self, answer: &str) -> Result<(), String> {
        let value: Value =
            serde_json::from_str(answer).map_err(|error| format!("it is not JSON: {error}"))?;
        self.validator.validate(&value).map_err(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() {
                "at its top".to_owned()
            } else {
                format!("at {}", cut(&place))
            };
            format!("{place}: {}", cut(&error.masked().to_string()))
        })
    }
}

/// Describes why a schema cannot be used, with the remedy where the library gives none.
fn describe_fault(schema: &Value, error: &ValidationError<'_>) -> String {
    let (place, said) = (error.instance_path().to_string(), cut(&error.to_string()));
    let at = schema.pointer(&place);
    match (error.kind(), place.rsplit('/').next(), at) {
        (ValidationErrorKind::Referencing(_), ..) => {
            format!("{said}; only references within the schema (#/…) are followed")
        }
        (ValidationErrorKind::AnyOf { .. }, Some("type"), Some(given)) => format!(
            "type is {}; write array, boolean, integer, null, number, object or string, or a list of them",
            cut(&given.to_string())
        ),
        (_, Some("pattern"), Some(Value::String(_))) => {
            "the pattern is no regular expression, or is too large: shorten it, above all its repetitions".to_owned()
        }
        _ => said,
    }
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
        let validator = SchemaValidator::compile(&schema).unwrap();
        validator.check("{\"n\":1}").unwrap();
        for (answer, reason) in [
            ("{\"n\":\"secret words\"}", "at /n"),
            ("no JSON: secret", "not JSON"),
            ("[\"secret\"]", "at its top"),
        ] {
            let wrong = validator.check(answer).unwrap_err();
            assert!(wrong.contains(reason) && !wrong.contains("secret"), "{wrong}");
        }
        let deep = format!("{{\"{}\":1}}", "k".repeat(5_000));
        let narrow =
            SchemaValidator::compile(&json!({"additionalProperties":{"type":"string"}})).unwrap();
        assert!(narrow.check(&deep).unwrap_err().chars().count() < 3 * MAX_REASON_CHARS);
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
        let failure = SchemaValidator::compile(&doubling(45)).unwrap_err();
        assert!(failure.message.contains("refers to the same"), "{failure}");
        let validator = SchemaValidator::compile(&doubling(5)).unwrap();
        validator.check("7").unwrap();
        assert!(validator.is_harmless);
        // A tree whose nodes all have one schema refers to itself, and is accepted.
        let tree = json!({
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}},
            "required": ["n"],
        });
        let validator = SchemaValidator::compile(&tree).unwrap();
        validator.check(r#"{"n":1,"left":{"n":2},"right":{"n":3}}"#).unwrap();
        assert!(!validator.is_harmless, "an answer decides how often it is gone through");
        for (schema, is_harmless) in [
            (json!({"pattern": "^[A-Z]{2}\\d+$"}), true),
            (json!({"properties": {"pattern": {"type": "string"}}}), true),
            (json!({"pattern": "(?=a)b"}), false),
            (json!({"patternProperties": {"(a)\\1": {}}}), false),
            (json!({"$anchor": "a", "items": {"$ref": "#a"}}), false),
        ] {
            assert_eq!(
                SchemaValidator::compile(&schema).unwrap().is_harmless,
                is_harmless,
                "{schema}"
            );
        }
    }

    #[test]
    fn bad_schemas_are_refused_and_nothing_is_fetched() {
        for (bad, reason) in [
            (
                json!({"properties":{"n":{"type":"objct"}}}),
                "at \"/properties/n/type\": type is \"objct\"; write array",
            ),
            (json!({"$ref":"https://example.com/x.json"}), "example.com"),
            (json!({"$ref":"https://example.com/x.json"}), "only references within the schema"),
            (json!({"pattern":"((a{999}){999}){999}"}), "too large"),
            (
                json!({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}),
                "lead only to each other, at \"#/$defs/",
            ),
            (json!({"$ref":"#"}), "lead only to each other"),
        ] {
            let failure = SchemaValidator::compile(&bad).unwrap_err();
            assert!(
                failure.kind == FailureType::InvalidInput && failure.message.contains(reason),
                "{failure}"
            );
        }
    }
}
