//! The rows of a table, decoded in a process of their own: a few bytes of it may become gigabytes.

use std::io;

use serde::{Deserialize, Serialize};

use super::rows;
use crate::{
    blocks::Blocks,
    confined,
    records::{Broken, Record, RecordFields},
    unreadable::Unreadable,
};

/// Blocks that are kept: columns lie apart, and are read side by side.
const BLOCKS: usize = 12;

/// Which rows are wanted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    /// Bytes of the file.
    pub size: u64,
    /// The column that names a row.
    pub id: Option<String>,
    /// The column that is its text.
    pub text: Option<String>,
    /// So many rows have been had.
    pub before: u64,
    /// No more rows than these, and no more once they have this many bytes.
    pub most: (usize, usize),
}

pub(crate) type Rows = Vec<Result<Record, Unreadable>>;

/// The process's side.
pub(crate) fn serve(wanted: &Wanted) -> io::Result<()> {
    let blocks = Blocks::new(wanted.size, BLOCKS, confined::ask);
    let said = match decoded(wanted, move |from| Ok(blocks.from(from))) {
        Ok(rows) => Ok(rows),
        Err(Broken::Io(error)) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
        Err(broken) => Err(broken.to_string()),
    };
    confined::say(&serde_json::to_vec(&said)?)
}

/// In whichever process this is.
pub(crate) fn decoded<R: io::Read + 'static>(
    wanted: &Wanted,
    open: impl Fn(u64) -> io::Result<R> + Send + Sync + 'static,
) -> Result<Rows, Broken> {
    let Wanted { size, before, most, .. } = *wanted;
    let fields = RecordFields { id: wanted.id.as_deref(), text: wanted.text.as_deref() };
    let (mut decoded, mut bytes) = (Rows::new(), 0_usize);
    rows(open, size, fields, before, |row, weight| {
        bytes = bytes.saturating_add(weight);
        decoded.push(row);
        decoded.len() < most.0 && bytes < most.1
    })?;
    Ok(decoded)
}
