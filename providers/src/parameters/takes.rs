//! The values that a parameter takes.

use serde_json::Value;

/// The values that a parameter takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Takes {
    /// A number between both bounds, inclusive.
    Number(f64, f64),
    /// A whole number between both bounds, inclusive.
    Whole(i64, i64),
    /// True or false.
    Flag,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One text, or up to this many.
    Texts(usize),
    /// An object, sent unchanged.
    Object,
}

impl Takes {
    /// Converts the value to the vendor's form; the error states the allowed values.
    pub(crate) fn read(self, value: &Value) -> Result<Value, String> {
        let fits = match self {
            Self::Number(least, most) => {
                value.as_f64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Whole(least, most) => {
                value.as_i64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Flag => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Texts(most) => match value {
                Value::String(text) if !text.is_empty() => {
                    return Ok(Value::Array(vec![value.clone()]));
                }
                Value::Array(texts) => {
                    (1..=most).contains(&texts.len())
                        && texts.iter().all(|text| text.as_str().is_some_and(|it| !it.is_empty()))
                }
                _ => false,
            },
            Self::Object => value.is_object(),
        };
        if fits { Ok(value.clone()) } else { Err(self.must_be()) }
    }

    /// The allowed values in words, after "must be".
    pub(crate) fn must_be(self) -> String {
        match self {
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::Whole(i64::MIN, _) => "a whole number".to_owned(),
            Self::Whole(least, i64::MAX) => format!("a whole number from {least}"),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Flag => "true or false".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                match words.split_last() {
                    Some((last, others)) if !others.is_empty() => {
                        format!("{} or {last}", others.join(", "))
                    }
                    _ => words.concat(),
                }
            }
            Self::Texts(usize::MAX) => "a text, or a list of them".to_owned(),
            Self::Texts(most) => format!("a text, or a list of 1 to {most}"),
            Self::Object => "an object".to_owned(),
        }
    }
}
