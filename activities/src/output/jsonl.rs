//! JSON: an object of one value, or a value a line.

use bytes::Bytes;
use serde::Serialize;

use crate::failure::Failure;

/// The lines of a whole that are not empty, with their newlines; they share its memory.
pub(crate) fn lines(whole: &Bytes) -> impl Iterator<Item = Bytes> {
    whole
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| whole.slice_ref(line))
}

/// A value.
///
/// # Errors
/// `InvalidInput`; none in practice.
pub(crate) fn json(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(unwritable)
}

/// A value for people.
///
/// # Errors
/// As [`json`].
pub(crate) fn pretty(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec_pretty(value).map_err(unwritable)
}

/// Values as lines.
///
/// # Errors
/// `InvalidInput`; none in practice.
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
