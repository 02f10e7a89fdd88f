//! A fault of the configuration: its place, what is wrong, and the remedy.

use std::fmt;

use figment::error::{Actual, Error, Kind};

/// One fault, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file or the environment variable.
    pub source: String,
    /// The key, as a dotted path; empty for the file as a whole.
    pub key: String,
    /// What is wrong and the remedy: the rest of the sentence.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

/// All faults of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one.
    pub faults: Vec<Fault>,
}

impl ConfigError {
    /// One fault. `key` is empty for a source as a whole.
    pub(super) fn new(source: impl Into<String>, key: String, what: impl Into<String>) -> Self {
        Self { faults: vec![Fault { source: source.into(), key, what: what.into() }] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.as_slice() {
            [fault] => write!(f, "the configuration cannot be used: {fault}"),
            faults => {
                write!(f, "the configuration cannot be used; {} faults:", faults.len())?;
                faults.iter().try_for_each(|fault| write!(f, "\n  - {fault}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// A dotted path; parts that are no bare TOML key are quoted.
pub(super) fn dotted_path<T: AsRef<str>>(path: &[T]) -> String {
    let bare = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let quoted = path
        .iter()
        .map(AsRef::as_ref)
        .map(|part| if bare(part) { part.to_owned() } else { format!("{part:?}") });
    quoted.collect::<Vec<_>>().join(".")
}

/// Describes a type error as the rest of a sentence.
pub(super) fn describe(error: &Error) -> String {
    match &error.kind {
        Kind::Message(text) if text.starts_with("is ") => text.clone(),
        Kind::Message(text) => format!("cannot be used: {}", text.trim_end()),
        Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
            let expected = expected.to_string();
            if expected.starts_with("struct ") || expected == "a map" {
                // The value may be a misplaced password: do not show it.
                return "is no section; write its keys below a header in brackets".to_owned();
            }
            format!("is {}; write {}", given(actual), plain(&expected))
        }
        Kind::UnknownField(_, known) => format!("is not known; {}", choices(known)),
        Kind::UnknownVariant(given, known) => {
            format!("is \"{}\"; write {}", given.escape_debug(), alternatives(known))
        }
        Kind::MissingField(name) => format!("lacks {name}; add it"),
        other => format!("cannot be used: {other}"),
    }
}

/// The value as it was written, if it is short.
fn given(actual: &Actual) -> String {
    match actual {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(value) => value.to_string(),
        Actual::Signed(value) => value.to_string(),
        Actual::Float(value) => value.to_string(),
        Actual::Char(value) => format!("\"{value}\""),
        Actual::Str(value) => format!("\"{}\"", value.escape_debug()),
        Actual::Map => "a section".to_owned(),
        Actual::Seq => "a list".to_owned(),
        other => other.to_string(),
    }
}

/// A plain word for serde's name of a type.
fn plain(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "a list, such as [\"…\"]",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        other => other,
    }
}

/// `"a", "b" or "c"`.
pub(super) fn alternatives(known: &[&str]) -> String {
    let quoted: Vec<String> = known.iter().map(|value| format!("\"{value}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing here; take it out".to_owned(),
    }
}

fn choices(known: &[&str]) -> String {
    match known {
        [] => "there is nothing to set here; take it out".to_owned(),
        [one] => format!("the only key here is {one}"),
        many => format!("the keys here are {}", many.join(", ")),
    }
}
