//! Files of records: each row of a CSV file and each line of a JSONL file is a document. Records
//! are read one after the other, so memory does not grow with the file.

mod bounded;
mod head;
pub(crate) mod record;
pub(crate) mod weight;

use std::io::{self, BufRead, BufReader, Cursor, Read};

use bytes::Bytes;
use csv::ByteRecord;
use encoding_rs::{Encoding, UTF_8};
use serde::{Deserialize, Serialize};

use self::{
    bounded::{Bounded, MAX_RECORD_BYTES},
    head::HEAD_BYTES,
};
pub use self::{
    head::detect_delimiter,
    record::{Record, RecordFields},
    weight::{check_values, memory_of},
};
use crate::{encoding, format::Format, unreadable::Unreadable};

/// A position between two records, at which reading can go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Bytes before it. At 0, before a CSV file's header.
    pub byte: u64,
    /// Lines before it.
    pub line: u64,
    /// Records before it, including bad ones.
    pub number: u64,
    /// The encoding of the file, once a record outside of ASCII has been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

/// The reason why a file has no records, or no more of them.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The file is not a readable file of records.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Its bytes cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The records of a CSV or JSONL file, in order. A bad record is an error of its own; the following
/// records are still read.
///
/// CSV has a header. The delimiter is the most frequent of `,` `;` tab and `|` in the header, or
/// the one in a line `sep=;` before it, as Excel writes it.
#[derive(Debug)]
pub struct Records<R> {
    rows: Rows<R>,
    id: Option<String>,
    text: Option<String>,
    /// The position at which reading began.
    base: Position,
    /// Records read since then.
    read: u64,
    encoding: Option<&'static Encoding>,
}

#[derive(Debug)]
enum Rows<R> {
    Csv { reader: csv::Reader<Bounded<R>>, columns: Columns, row: ByteRecord },
    Jsonl { reader: BufReader<R>, byte: u64, line: u64 },
}

#[derive(Debug)]
struct Columns {
    names: Vec<String>,
    /// 1 if lines end in CR LF: the CSV reader counts the LF with the next line.
    crlf_line_offset: u64,
    id: Option<usize>,
    text: Option<usize>,
}

impl Records<Cursor<Bytes>> {
    /// Reads a file in memory in any encoding, from a position on. Positions count in the decoded
    /// text, not in the file.
    ///
    /// # Errors
    /// [`Unreadable`] if the file is no text or has another format.
    pub fn of_bytes(
        bytes: &[u8],
        format: Format,
        fields: RecordFields<'_>,
        at: Position,
    ) -> Result<Self, Unreadable> {
        let head = usize::try_from(HEAD_BYTES).unwrap_or(usize::MAX).min(bytes.len());
        head::check_format(&bytes[..head])?;
        let text = Bytes::from(encoding::decode(bytes)?.into_owned());
        let at = Position { encoding: Some(UTF_8.name().to_owned()), ..at };
        let open = |from: u64| {
            let from = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
            Ok(Cursor::new(text.slice(from..)))
        };
        Self::open(open, format, fields, at).map_err(|broken| match broken {
            Broken::Unreadable(unreadable) => unreadable,
            Broken::Io(error) => Unreadable::damaged(format, error),
        })
    }
}

impl<R: Read> Records<R> {
    /// Reads a file from a position on. `open` opens it at a byte. The first record outside of
    /// ASCII determines the encoding. UTF-16 is not supported here.
    ///
    /// # Errors
    /// [`Broken`] if the file is no text, has another format, or cannot be read.
    pub fn open(
        mut open: impl FnMut(u64) -> io::Result<R>,
        format: Format,
        fields: RecordFields<'_>,
        at: Position,
    ) -> Result<Self, Broken> {
        let encoding = at.encoding.as_ref().and_then(|name| Encoding::for_label(name.as_bytes()));
        let mut records = Self {
            rows: Rows::Jsonl { reader: BufReader::new(open(at.byte)?), byte: 0, line: 0 },
            id: fields.id.map(str::to_owned),
            text: fields.text.map(str::to_owned),
            base: at,
            read: 0,
            encoding,
        };
        if format != Format::Csv && format != Format::Jsonl {
            let what = "no file of records (CSV or JSONL)".into();
            return Err(Unreadable::Unsupported { what }.into());
        }
        if format == Format::Jsonl && records.base.byte > 0 {
            return Ok(records);
        }
        let mut head = Vec::new();
        open(0)?.take(HEAD_BYTES).read_to_end(&mut head)?;
        head::check_format(&head)?;
        let mark = match Encoding::for_bom(&head) {
            None if head.contains(&0) => return Err(head::not_utf8_error(&head).into()),
            None => 0,
            Some((encoding, mark)) if encoding == UTF_8 => {
                records.encoding = Some(UTF_8);
                mark
            }
            Some(_) => return Err(head::not_utf8_error(&head).into()),
        };
        let mark = u64::try_from(mark).unwrap_or_default();
        if format == Format::Jsonl {
            records.base.byte = mark;
            records.rows = Rows::Jsonl { reader: BufReader::new(open(mark)?), byte: 0, line: 0 };
            return Ok(records);
        }
        let text = head.get(usize::try_from(mark).unwrap_or_default()..).unwrap_or_default();
        let separator = head::read_sep_line(text);
        let (delimiter, before) = separator.unwrap_or_else(|| (head::detect_delimiter(text), 0));
        let mark = mark + before;
        let lines_before = u64::from(before > 0);
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let crlf_line_offset = u64::from(lines.next().is_some_and(|line| line.ends_with(b"\r\n")));
        let reader = |from: R| {
            csv::ReaderBuilder::new()
                .delimiter(delimiter)
                .flexible(true)
                .has_headers(false)
                .from_reader(Bounded::new(from))
        };
        let (mut first, mut header) = (reader(open(mark)?), ByteRecord::new());
        first.read_byte_record(&mut header).map_err(bounded::io_error)?;
        let is_empty = bounded::is_end_row(&header);
        if bounded::is_unclosed(&header) {
            let line = header.position().map_or(1, csv::Position::line);
            return Err(bounded::unclosed_quote(lines_before + line).into());
        }
        if header.len() > record::MAX_COLUMNS {
            let (has, most) = (header.len(), record::MAX_COLUMNS);
            let reason = format!("its header has {has} columns; at most {most} are read");
            return Err(Unreadable::damaged(Format::Csv, reason).into());
        }
        if header.as_slice().len() > record::MAX_NAMES {
            let (has, most) = (header.as_slice().len(), record::MAX_NAMES);
            let reason = format!("its columns' names have {has} bytes; at most {most} are read");
            return Err(Unreadable::damaged(Format::Csv, reason).into());
        }
        let decode = |name| decode_field(&mut records.encoding, header.as_slice(), name);
        let names: Vec<String> = header.iter().map(decode).collect();
        let place = |name: Option<&str>| match name {
            None => Ok(None),
            // A file without a header has no rows.
            Some(_) if is_empty => Ok(None),
            Some(name) => {
                let found = names.iter().position(|known| known.trim() == name);
                found.map(Some).ok_or_else(|| {
                    let names = names.join(", ");
                    let reason = format!("it has no column \"{name}\"; its columns are {names}");
                    Unreadable::damaged(Format::Csv, reason)
                })
            }
        };
        let (id, text) = (place(fields.id)?, place(fields.text)?);
        let columns = Columns { names, crlf_line_offset, id, text };
        let reader = match records.base.byte {
            0 => {
                (records.base.byte, records.base.line) = (mark, lines_before);
                first
            }
            from => reader(open(from)?),
        };
        records.rows = Rows::Csv { reader, columns, row: ByteRecord::new() };
        Ok(records)
    }

    /// Reads the next record. Returns `None` at the end of the file.
    ///
    /// # Errors
    /// If the bytes cannot be read, or a record is longer than 16 MiB.
    pub fn read_next(&mut self) -> io::Result<Option<Result<Record, Unreadable>>> {
        let number = self.base.number + self.read + 1;
        let Self { rows, base, encoding, .. } = self;
        match rows {
            Rows::Csv { reader, columns, row } => {
                reader.get_mut().start_record();
                if !reader.read_byte_record(row).map_err(bounded::io_error)?
                    || bounded::is_end_row(row)
                {
                    return Ok(None);
                }
                let line = row.position().map_or(1, csv::Position::line);
                let line = base.line + line + columns.crlf_line_offset;
                self.read += 1;
                if bounded::is_unclosed(row) {
                    return Ok(Some(Err(bounded::unclosed_quote(line))));
                }
                let Columns { names, id, text, .. } = columns;
                if row.len() != names.len() {
                    let reason = format!("it has {} fields, the header {}", row.len(), names.len());
                    return Ok(Some(Err(Unreadable::BadRecord { line, reason })));
                }
                let values = row.iter().map(|field| decode_field(encoding, row.as_slice(), field));
                Ok(Some(Ok(record::record_of_row(names, values.collect(), (*id, *text), number))))
            }
            Rows::Jsonl { reader, byte, line } => loop {
                let mut bytes = Vec::new();
                let taken = reader.by_ref().take(MAX_RECORD_BYTES).read_until(b'\n', &mut bytes)?;
                if taken == 0 {
                    return Ok(None);
                }
                if bytes.last() != Some(&b'\n') && bytes.len() as u64 == MAX_RECORD_BYTES {
                    return Err(bounded::record_too_long());
                }
                *byte += taken as u64;
                *line += 1;
                let at = base.line + *line;
                if bytes.trim_ascii().is_empty() {
                    continue;
                }
                self.read += 1;
                let text = decode_field(encoding, &bytes, &bytes);
                let (id, body) = (self.id.as_deref(), self.text.as_deref());
                return Ok(Some(record::parse_line(text.trim_end(), at, number, id, body)));
            },
        }
    }

    /// Returns the position behind the last record read. If the last line of a CSV file has no line
    /// end, it is one byte behind the end of the file.
    pub fn position(&self) -> Position {
        let (byte, line) = match &self.rows {
            Rows::Csv { reader, .. } => {
                (reader.position().byte(), reader.position().line().saturating_sub(1))
            }
            Rows::Jsonl { byte, line, .. } => (*byte, *line),
        };
        Position {
            byte: self.base.byte + byte,
            line: self.base.line + line,
            number: self.base.number + self.read,
            encoding: self.encoding.map(|encoding| encoding.name().to_owned()),
        }
    }
}

/// Decodes a field. The first record outside of ASCII determines the encoding of all records that
/// are not UTF-8.
fn decode_field(known: &mut Option<&'static Encoding>, record: &[u8], field: &[u8]) -> String {
    if known.is_none() && !record.is_ascii() {
        *known = Some(encoding::detect_encoding(record));
    }
    let is_utf_8 = std::str::from_utf8(record).is_ok();
    let encoding = known.filter(|_| !is_utf_8).unwrap_or(UTF_8);
    let (text, _) = encoding.decode_without_bom_handling(field);
    text.into_owned()
}

#[cfg(test)]
mod tests;
