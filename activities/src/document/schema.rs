//! Whether an answer satisfies the batch's JSON Schema.

use jsonschema::Validator;
use serde_json::Value;
use tidegate_providers::StopReason;

use crate::{call::attempt::Attempt, failure::Failure};

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

/// Checks an answer. The model gets a second chance, because it may keep to the schema the next
/// time; no third.
///
/// # Errors
/// `InvalidOutput`.
pub fn check(
    validator: &Validator,
    answer: &str,
    stop_reason: &StopReason,
    attempt: &Attempt,
) -> Result<(), Failure> {
    let Err(reason) = valid(validator, answer) else { return Ok(()) };
    if *stop_reason == StopReason::MaxTokens {
        return Err(Failure::cut_output(&reason));
    }
    Err(Failure::invalid_output(&reason, attempt.invalid_output()))
}

/// What is wrong with an answer, if anything is. Quotes nothing of it.
pub(crate) fn valid(validator: &Validator, answer: &str) -> Result<(), String> {
    let value: Value =
        serde_json::from_str(answer).map_err(|error| format!("it is not JSON: {error}"))?;
    validator.validate(&value).map_err(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "at its top".to_owned() } else { format!("at {place}") };
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
    use crate::call::attempt::AttemptState;

    fn attempt() -> Attempt {
        Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default())
    }

    #[test]
    fn a_wrong_answer_has_one_more_chance() {
        let validator = compile(
            &json!({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}),
        )
        .unwrap();
        let end = StopReason::EndTurn;
        check(&validator, "{\"n\":1}", &end, &attempt()).unwrap();
        let attempt = attempt();
        for (answer, reason, again) in
            [("{\"n\":\"secret words\"}", "at /n", true), ("no JSON", "not JSON", false)]
        {
            let failure = check(&validator, answer, &end, &attempt).unwrap_err();
            assert_eq!((failure.kind, failure.is_retried()), (FailureType::InvalidOutput, again));
            assert!(
                failure.message.contains(reason) && !failure.message.contains("secret"),
                "{failure}"
            );
        }
    }

    #[test]
    fn a_cut_answer_would_be_cut_again() {
        let validator = compile(&json!({"type":"object"})).unwrap();
        let failure = check(&validator, "{\"n\":", &StopReason::MaxTokens, &attempt()).unwrap_err();
        assert!(
            !failure.is_retried() && failure.message.contains("raise max_output_tokens"),
            "{failure}"
        );
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
