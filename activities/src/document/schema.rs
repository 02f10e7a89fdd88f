//! Whether an answer satisfies the batch's JSON Schema.

use jsonschema::Validator;
use serde_json::Value;

use crate::failure::Failure;

/// Longest part of a message that says what is wrong: it may quote the answer.
const MAX_REASON_CHARS: usize = 200;

/// Reads a schema.
///
/// # Errors
/// `InvalidInput` says what is wrong with it. Nothing is fetched: a reference to another document
/// is an error.
pub fn compile(schema: &Value) -> Result<Validator, Failure> {
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
