//! Fields of a call that vendors refuse, each written from its own documentation. Models
//! are known by their names; a name that no vendor has refuses nothing.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
pub(crate) mod gemini;
pub(crate) mod openai;

use serde_json::{Map, Value};

/// The fields of an object; none, where it is no object.
fn fields(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// The first field that is not known.
fn unknown<'a>(value: Option<&'a Value>, known: &[&str]) -> Option<&'a str> {
    fields(value).map(|(name, _)| name.as_str()).find(|name| !known.contains(name))
}

/// A number outside its range, or no number; null is absent.
fn is_outside(body: &Value, name: &str, least: f64, most: f64) -> bool {
    let given = body.get(name).filter(|value| !value.is_null());
    given.is_some_and(|value| value.as_f64().is_none_or(|number| !(least..=most).contains(&number)))
}

/// The version in a model's name behind a word, in tenths: `claude-opus-4-7` is 47, `gpt-5.4` is
/// 54, `gemini-3-pro` is 30.
fn version(model: &str, word: &str) -> Option<u32> {
    let rest = model.rsplit_once(word)?.1;
    let mut numbers = rest
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| (1..=2).contains(&digits.len()))
        .map(|digits| digits.parse::<u32>().unwrap_or(0));
    let major = numbers.next()?;
    Some(major * 10 + numbers.next().unwrap_or(0).min(9))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_are_read_from_names() {
        for (model, word, expected) in [
            ("claude-sonnet-4-5-20250929", "claude", Some(45)),
            ("claude-3-7-sonnet-20250219", "claude", Some(37)),
            ("eu.anthropic.claude-opus-5", "claude", Some(50)),
            ("gpt-5.4-mini", "gpt-", Some(54)),
            ("gemini-2.5-pro", "gemini-", Some(25)),
            ("claude", "claude", None),
            ("llama", "gpt-", None),
        ] {
            assert_eq!(version(model, word), expected, "{model}");
        }
    }
}
