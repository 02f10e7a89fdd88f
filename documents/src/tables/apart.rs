//! Decoding of a table's rows in a child process, because a few bytes may become gigabytes.

use std::io;

use serde::{Deserialize, Serialize};

use super::rows;
use crate::{
    blocks::Blocks,
    confined,
    records::{Broken, Record, RecordFields},
    unreadable::Unreadable,
};

/// Blocks that are kept. The columns are at different places in the file, and are read together.
const BLOCKS: usize = 12;

/// A request for rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    /// Bytes of the file.
    pub size: u64,
    /// The column with a row's id.
    pub id: Option<String>,
    /// The column with its text.
    pub text: Option<String>,
    /// Number of rows to skip.
    pub before: u64,
    /// Most rows, and the number of bytes from which no more rows are added.
    pub most: (usize, usize),
}

pub(crate) type Rows = Vec<Result<Record, Unreadable>>;

/// Runs the child: decodes the rows and writes the result.
pub(crate) fn serve(wanted: &Wanted) -> io::Result<()> {
    let blocks = Blocks::new(wanted.size, BLOCKS, confined::ask);
    let said = match decoded(wanted, move |from| Ok(blocks.from(from))) {
        Ok(rows) => Ok(rows),
        Err(Broken::Io(error)) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
        Err(broken) => Err(broken.to_string()),
    };
    confined::say(&serde_json::to_vec(&said)?)
}

/// Decodes rows in the calling process.
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
