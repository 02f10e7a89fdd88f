//! A result as a line of a part.

use bytes::Bytes;

use crate::{
    failure::Failure,
    output::result::DocumentResult,
    storage::{Location, Stamp},
};

/// A result as one line.
#[derive(Debug)]
pub(super) struct ResultLine {
    /// The line with its newline.
    pub json: Bytes,
    /// The parsed result.
    pub result: DocumentResult,
}

impl ResultLine {
    /// `None` for a line that is not a result.
    pub(super) fn parse(json: Bytes) -> Option<Self> {
        let result = serde_json::from_slice(&json).ok()?;
        Some(Self { json, result })
    }
}

/// Reads the result at a location and its object's stamp; `None` if there is no object, or another
/// program's.
pub(super) async fn read_line(location: Location) -> Result<Option<(ResultLine, Stamp)>, Failure> {
    let Some((bytes, stamp)) = location.read_stamped_if_there().await? else { return Ok(None) };
    let mut line: Vec<u8> =
        bytes.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    line.push(b'\n');
    Ok(ResultLine::parse(line.into()).map(|line| (line, stamp)))
}
