//! Fields that the doors refuse or restrict, even within a dialect.

use serde_json::Value;
use tidegate_providers::Fields;

use super::RefusedField;

/// Fields that refer to objects of a provider account: other providers do not have them, and
/// another user of the account may own them.
const OF_AN_ACCOUNT: [&str; 3] = ["file_id", "previous_response_id", "conversation"];

/// The single provider of these models; `None` without models, or with several providers.
pub fn only_provider(models: &[String]) -> Option<&str> {
    let provider = |model: &'_ String| Some(model.split_once(':')?.0.to_owned());
    let first = models.first()?.split_once(':')?.0;
    let all = models.iter().all(|model| provider(model).as_deref() == Some(first));
    all.then_some(first)
}

/// Checks the request of a caller that may ask these models (all models if the list is empty). It
/// may refer to objects of an account only if all its models are of one provider.
///
/// # Errors
/// Names the field that is refused.
pub fn check(fields: &Fields, models: &[String]) -> Result<(), RefusedField> {
    check_background(fields)?;
    if only_provider(models).is_some() {
        return Ok(());
    }
    let found = fields.names().find_map(|top| account_field(top, &fields.get(top)?));
    match found {
        Some(name) => Err(RefusedField::new(
            name,
            "passes only with a key whose models are all of one provider, where it lies",
        )),
        None => Ok(()),
    }
}

/// Refuses a request whose answer would lie at the provider.
///
/// # Errors
/// `background` has a value other than `false` and `null`.
pub fn check_background(fields: &Fields) -> Result<(), RefusedField> {
    if is_off(fields.get("background").as_ref()) {
        return Ok(());
    }
    let what = "is refused: its answer would lie at the provider, where no turn is kept";
    Err(RefusedField::new("background", what))
}

/// Whether the value of a switch is absent, `null` or `false`.
pub fn is_off(value: Option<&Value>) -> bool {
    matches!(value, None | Some(Value::Null | Value::Bool(false)))
}

/// The name of a field of an account that has a value: this field, or one in it.
fn account_field(field: &str, value: &Value) -> Option<&'static str> {
    let name = OF_AN_ACCOUNT.into_iter().find(|name| *name == field && !value.is_null());
    name.or_else(|| match value {
        Value::Array(elements) => elements.iter().find_map(|it| account_field("", it)),
        Value::Object(fields) => fields.iter().find_map(|(field, it)| account_field(field, it)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_the_background_is_refused_in_every_spelling() {
        for (value, is_refused) in [
            ("true", true),
            (r#""true""#, true),
            ("1", true),
            ("{}", true),
            ("false", false),
            ("null", false),
        ] {
            let fields = Fields::read(format!("{{\"background\":{value}}}").as_bytes()).unwrap();
            let checked = check(&fields, &[]);
            assert_eq!(checked.is_err(), is_refused, "{value}");
            assert_eq!(check_background(&fields), checked, "{value}");
        }
        assert_eq!(check_background(&Fields::read(b"{}").unwrap()), Ok(()));
    }

    #[test]
    fn objects_of_an_account_are_found_at_any_depth() {
        let found = |text: &str| {
            let fields = Fields::read(text.as_bytes()).unwrap();
            fields.names().find_map(|top| account_field(top, &fields.get(top)?))
        };
        let previous = found(r#"{"previous_response_id":"r"}"#);
        assert_eq!(previous, Some("previous_response_id"));
        assert_eq!(found(r#"{"previous_response_id":null}"#), None);
        let deep = r#"{"messages":[{"content":[{"type":"file","file":{"file_id":"f"}}]}]}"#;
        assert_eq!(found(deep), Some("file_id"));
        assert_eq!(found(r#"{"messages":[{"content":"file_id"}]}"#), None);
    }
}
