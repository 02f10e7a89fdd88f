//! JSON as an object of one value, or as one value a line.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_documents::records::check_values;

use crate::failure::Failure;

/// Removes the byte order mark with which some editors begin UTF-8 files.
pub(crate) fn unmarked(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// The lines that are not empty, with their newlines; they share the memory of `whole`.
pub(crate) fn lines(whole: &Bytes) -> impl Iterator<Item = Bytes> {
    whole
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| whole.slice_ref(line))
}

/// Parses an object from a line that a person wrote. `what` names its kind, such as "a row".
/// Refuses a list, which serde would read into a struct by the order of its values.
///
/// # Errors
/// A sentence that quotes no value, also for a line of too many values to be held in memory.
pub(crate) fn object<'a, T: Deserialize<'a>>(line: &'a [u8], what: &str) -> Result<T, String> {
    match other(line) {
        Some(kind) => Err(format!("it is {kind}; {what} is an object")),
        None => {
            check_values(line)?;
            // The parser sees a single line, so its "line 1" is not the line in the file.
            let no_json = |error: serde_json::Error| {
                error.to_string().replace(" at line 1 column ", " at column ")
            };
            serde_json::from_slice(line).map_err(no_json)
        }
    }
}

/// Parses the objects that a person wrote, one a line; each comes with the number of its line, from
/// 1. Empty lines are passed over. `what` as in [`object`].
pub(crate) fn objects<'a, T: Deserialize<'a>>(
    text: &'a [u8],
    what: &str,
) -> impl Iterator<Item = (u64, Result<T, String>)> {
    (1..)
        .zip(unmarked(text).split(|byte| *byte == b'\n'))
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(move |(number, line)| (number, object(line, what)))
}

/// The JSON kind of a line that does not begin like an object.
pub(crate) fn other(line: &[u8]) -> Option<&'static str> {
    match line.trim_ascii().first()? {
        b'[' => Some("an array"),
        b'"' => Some("a text"),
        b'-' | b'0'..=b'9' => Some("a number"),
        _ => None,
    }
}

/// A value as JSON.
///
/// # Errors
/// `InvalidInput`; does not occur in practice.
pub(crate) fn json(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(unwritable)
}

/// A value as JSON for people.
///
/// # Errors
/// The errors of [`json`].
pub(crate) fn pretty(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec_pretty(value).map_err(unwritable)
}

/// Values as lines.
///
/// # Errors
/// `InvalidInput`; does not occur in practice.
pub(crate) fn written<T: Serialize>(
    values: impl IntoIterator<Item = T>,
) -> Result<Vec<u8>, Failure> {
    let mut lines = Vec::new();
    for value in values {
        serde_json::to_writer(&mut lines, &value).map_err(unwritable)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::invalid_input(error.to_string())
}
