//! A result as a line of a part.

use bytes::Bytes;

use crate::{
    failure::Failure,
    output::result::DocumentResult,
    storage::{Location, Stamp},
};

/// A result as one line.
#[derive(Debug)]
pub(super) struct Line {
    /// With its newline.
    pub json: Bytes,
    /// The same, read.
    pub result: DocumentResult,
}

impl Line {
    /// `None` for what is no result.
    pub(super) fn of(json: Bytes) -> Option<Self> {
        let result = serde_json::from_slice(&json).ok()?;
        Some(Self { json, result })
    }
}

/// The result that lies there, if one does, and the stamp of its object: not another program's
/// object of the same name.
pub(super) async fn read_line(location: Location) -> Result<Option<(Line, Stamp)>, Failure> {
    let Some((bytes, stamp)) = location.read_stamped_if_there().await? else { return Ok(None) };
    let mut line: Vec<u8> =
        bytes.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    line.push(b'\n');
    Ok(Line::of(line.into()).map(|line| (line, stamp)))
}
