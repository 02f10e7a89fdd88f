//! JSON, one value a line.

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

/// Values as lines.
///
/// # Errors
/// `InvalidInput`; none in practice.
pub(crate) fn written<T: Serialize>(
    values: impl IntoIterator<Item = T>,
) -> Result<Vec<u8>, Failure> {
    let mut lines = Vec::new();
    for value in values {
        serde_json::to_writer(&mut lines, &value)
            .map_err(|error| Failure::invalid_input(error.to_string()))?;
        lines.push(b'\n');
    }
    Ok(lines)
}
