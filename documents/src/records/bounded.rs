//! Bounds for records: a longest record, and an end mark behind a CSV file.

use std::io::{self, Read};

use csv::ByteRecord;

use crate::unreadable::Unreadable;

/// Text added behind a CSV file. It is a row of its own, unless a quotation mark is still open;
/// then it is in the last field, which shows the fault.
const END_ROW: &[u8] = b"\n\0the end of the file\0\n";

/// Longest record in bytes. A longer one has an unclosed quotation mark, or is no JSON line.
pub(super) const MAX_RECORD_BYTES: u64 = 16 << 20;

/// A reader that fails at the bound of a record, and adds [`END_ROW`] behind the file.
#[derive(Debug)]
pub(super) struct Bounded<R> {
    inner: R,
    left: u64,
    end: &'static [u8],
}

impl<R> Bounded<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner, left: MAX_RECORD_BYTES, end: END_ROW }
    }

    /// Resets the bound at the beginning of a record.
    pub(super) const fn start_record(&mut self) {
        self.left = MAX_RECORD_BYTES;
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(record_too_long());
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = match self.inner.read(&mut buffer[..room])? {
            0 => self.end.read(buffer)?,
            read => read,
        };
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

pub(super) fn record_too_long() -> io::Error {
    let most = MAX_RECORD_BYTES >> 20;
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("a record has more than {most} MiB; is a quotation mark not closed?"),
    )
}

pub(super) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
    }
}

pub(super) fn is_end_row(row: &ByteRecord) -> bool {
    row.len() == 1 && row.get(0).is_some_and(|field| field == END_ROW.trim_ascii())
}

/// Returns whether a row continues behind the end of the file.
pub(super) fn is_unclosed(row: &ByteRecord) -> bool {
    !is_end_row(row) && row.as_slice().ends_with(END_ROW)
}

pub(super) fn unclosed_quote(line: u64) -> Unreadable {
    let reason = "a quotation mark is not closed up to the end of the file; what follows it may be further records".to_owned();
    Unreadable::BadRecord { line, reason }
}
