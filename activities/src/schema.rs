//! Whether an answer satisfies the batch's JSON Schema.

mod expansion;

use jsonschema::{PatternOptions, ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

use crate::{failure::Failure, schema::expansion::Expansion};

/// Longest message about an answer, in characters: it may quote the answer.
const MAX_REASON_CHARS: usize = 200;

/// Maximum number of steps to judge one value by: of schemas, schemas behind references included, of
/// places in patterns, and of values in an `enum` of other values than texts. So many places take up
/// to 100 MB when they are compiled.
const MAX_STEPS: u64 = 100_000;

/// Number of steps above which judging takes place in a process of its own.
const MAX_HARMLESS: u64 = 1_000;

/// Maximum bytes of one compiled pattern; the engine's default.
const MAX_PATTERN_BYTES: usize = 10 << 20;

/// Maximum bytes that a pattern remembers while it is tried, in each thread. The engine's default of
/// 2 MiB would be 600 MiB for three hundred patterns; with less it is slower at the worst.
const MAX_PATTERN_CACHE: usize = 256 << 10;

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
        if expansion.steps > MAX_STEPS {
            return Err(Failure::invalid_input(format!(
                "schema would judge one value by more than {MAX_STEPS} schemas, places of patterns and values of an enum, because it is too large or refers to the same schemas again and again; refer to each once, and shorten the repetitions of patterns and the enums"
            )));
        }
        if let Some(reference) = expansion.cycle {
            return Err(Failure::invalid_input(format!(
                "schema has references that lead only to each other, at \"{}\", so it checks nothing; let one of them lead to a schema",
                cut(reference)
            )));
        }
        let patterns = PatternOptions::fancy_regex()
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_CACHE);
        let compiler = jsonschema::options().with_pattern_options(patterns);
        let validator = compiler.build(schema).map_err(|error| {
            Failure::invalid_input(format!(
                "schema is no JSON Schema that can be used, at \"{}\": {}",
                error.instance_path(),
                describe_fault(schema, &error)
            ))
        })?;
        let is_harmless =
            expansion.steps <= MAX_HARMLESS && !expansion.is_open && !expansion.has_costly_pattern;
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
        assert!(failure.message.contains("refers to the same schemas"), "{failure}");
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
        // At each level, the variants are judged again to find what they cover.
        let nested = |depth: usize, what: &str| {
            let leaf = json!({"properties": {"a": {}}});
            (0..depth).fold(leaf, |inner, _| json!({"anyOf": [inner], what: false}))
        };
        for what in ["unevaluatedProperties", "unevaluatedItems"] {
            let failure = SchemaValidator::compile(&nested(25, what)).unwrap_err();
            assert!(failure.message.contains("more than 100000 schemas"), "{failure}");
            assert!(SchemaValidator::compile(&nested(3, what)).unwrap().is_harmless);
        }
        let texts: Vec<_> = (0..5_000).map(|at| json!(format!("x{at}"))).collect();
        let objects: Vec<_> = (0..5_000).map(|at| json!({"a": at})).collect();
        for (schema, is_harmless) in [
            (json!({"pattern": "^[A-Z]{2}\\d+$"}), true),
            (json!({"properties": {"pattern": {"type": "string"}}}), true),
            (json!({"pattern": "(?=a)b"}), false),
            (json!({"patternProperties": {"(a)\\1": {}}}), false),
            (json!({"$anchor": "a", "items": {"$ref": "#a"}}), false),
            (json!({"pattern": "^[\\w.-]{1,64}@\\w{1,200}$"}), true),
            (json!({"pattern": "[ab]*a[ab]{3000}c"}), false),
            (json!({"items": {"enum": texts}}), true),
            (json!({"items": {"enum": objects}}), false),
        ] {
            assert_eq!(
                SchemaValidator::compile(&schema).unwrap().is_harmless,
                is_harmless,
                "{schema}"
            );
        }
    }

    /// Compiled, these patterns would take 6.6 GB.
    #[test]
    fn a_schema_of_many_large_patterns_is_refused() {
        let patterns = |count: usize| -> Vec<_> {
            let pattern = |at: usize| json!({"pattern": format!("(?:a{{50}}){{{}}}", 2_000 + at)});
            (0..count).map(pattern).collect()
        };
        for schema in [
            json!({"allOf": patterns(900)}),
            json!({"patternProperties": {"(?:a{50}){2000}": {"maxLength": 1}}}),
        ] {
            let failure = SchemaValidator::compile(&schema).unwrap_err();
            assert_eq!(failure.kind, FailureType::InvalidInput);
            assert!(failure.message.contains("places of patterns"), "{failure}");
        }
        let names = json!({"additionalProperties": {"pattern": "^[\\p{L} .'-]{1,100}$"}});
        SchemaValidator::compile(&names).unwrap().check(r#"{"a":"Anna Berg"}"#).unwrap();
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
            (json!({"pattern":"(\\p{L}{900})"}), "too large"),
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
