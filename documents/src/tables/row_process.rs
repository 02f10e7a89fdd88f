//! Decoding of a table's rows in a child process, because a few bytes may become gigabytes.

use std::io;

use serde::{Deserialize, Serialize};

use super::rows::for_each_row;
use crate::{
    blocks::Blocks,
    confined,
    records::{Broken, Record, RecordFields, memory_of},
    unreadable::Unreadable,
};

/// Blocks that are kept. The columns are at different places in the file, and are read together.
const BLOCKS: usize = 12;

/// A request for rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RowRequest {
    /// Bytes of the file.
    pub size: u64,
    /// The column with a row's id.
    pub id: Option<String>,
    /// The column with its text.
    pub text: Option<String>,
    /// Number of rows to skip.
    pub skip: u64,
    /// Most rows that are returned.
    pub max_rows: usize,
    /// Bytes of rows from which no more rows are added.
    pub max_bytes: usize,
}

/// Bytes of memory of the rows' values from which no more rows are added. The process holds their text
/// beside them, and whoever asked holds the result as JSON and as rows.
const MAX_MEMORY: usize = 256 << 20;

/// Rows of a table.
#[derive(Debug, Serialize, Deserialize)]
pub struct DecodedRows {
    /// The rows, in order.
    pub rows: Vec<Result<Record, Unreadable>>,
    /// Whether a bound ended the rows; more may follow.
    pub more: bool,
}

/// Runs the child: decodes the rows and writes the result.
pub(crate) fn serve(request: &RowRequest) -> io::Result<()> {
    let blocks = Blocks::new(request.size, BLOCKS, confined::request_part);
    let result = match decode_rows(request, move |from| Ok(blocks.from(from))) {
        Ok(rows) => Ok(rows),
        Err(Broken::Io(error)) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
        Err(broken) => Err(broken.to_string()),
    };
    confined::write_result(&result)
}

/// Decodes rows in the calling process.
pub(crate) fn decode_rows<R: io::Read + 'static>(
    request: &RowRequest,
    open: impl Fn(u64) -> io::Result<R> + Send + Sync + 'static,
) -> Result<DecodedRows, Broken> {
    let RowRequest { size, skip, max_rows, max_bytes, .. } = *request;
    let fields = RecordFields { id: request.id.as_deref(), text: request.text.as_deref() };
    let (mut rows, mut bytes, mut memory) = (Vec::new(), 0_usize, 0_usize);
    let more = for_each_row(open, size, fields, skip, |row, weight| {
        bytes = bytes.saturating_add(weight);
        memory += row.as_ref().map_or(0, |row| memory_of(&row.json));
        rows.push(row);
        rows.len() < max_rows && bytes < max_bytes && memory < MAX_MEMORY
    })?
    .is_break();
    Ok(DecodedRows { rows, more })
}
