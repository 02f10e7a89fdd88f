//! Files of records: each row of a CSV file, each line of a JSONL file is a document. They are read
//! one after the other, so that memory does not grow with the file.

use std::{
    borrow::Cow,
    io::{self, BufRead, BufReader, Cursor, Read},
};

use bytes::Bytes;
use csv::ByteRecord;
use encoding_rs::{Encoding, UTF_8};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{encoding, format::Format, unreadable::Unreadable};

/// Behind a CSV file: a row of its own, unless a quotation mark is open there, which would else take
/// all that follows it for one field, without a word.
const END: &[u8] = b"\n\0the end of the file\0\n";

/// A longer one is a quotation mark that is not closed, or no line of JSON.
const MAX_RECORD_BYTES: u64 = 16 << 20;

/// So much of a file tells its delimiter, and that it is text.
const HEAD_BYTES: u64 = 1 << 20;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// From the id's field, else the number of the record, counted from 1 and padded with zeros.
    pub id: String,
    /// It has no id of its own, but the number of its row.
    pub is_numbered: bool,
    /// The text's field alone, else all fields, one a line: `name: value`.
    pub text: String,
    /// All of it: a CSV file's row as an object of texts by the names of its columns.
    pub json: Value,
}

/// Which fields say what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordFields<'a> {
    /// The field that names a record.
    pub id: Option<&'a str>,
    /// The field that is its text.
    pub text: Option<&'a str>,
}

/// Between two records of a file: reading can go on here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Bytes before it; 0 is the beginning, before a CSV file's header.
    pub byte: u64,
    /// Lines before it.
    pub line: u64,
    /// Records before it, bad ones included.
    pub number: u64,
    /// The file's encoding, as soon as anything but ASCII has been seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

/// Why a file has no records, or no more.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// It cannot be read as such a file.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Its bytes cannot be had.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The records of a CSV or JSONL file, in order. A bad one is an error of its own, and the others go
/// on.
///
/// CSV has a header; its delimiter is whichever of `,` `;` tab and `|` the header holds most of, or
/// what a line `sep=;` before it says, as Excel writes it.
#[derive(Debug)]
pub struct Records<R> {
    rows: Rows<R>,
    id: Option<String>,
    text: Option<String>,
    /// What lies before the part that is read now.
    base: Position,
    /// Records read in it.
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
    /// 1 where lines end in two signs: the reader counts the second one with the line behind it.
    late: u64,
    id: Option<usize>,
    text: Option<usize>,
}

impl Records<Cursor<Bytes>> {
    /// From a position on, of a file that is in memory, whatever its encoding. Positions are of its
    /// text, and lead nowhere in the file itself.
    ///
    /// # Errors
    /// [`Unreadable`] when the file is no text, or of another format.
    pub fn of_bytes(
        bytes: &[u8],
        format: Format,
        fields: RecordFields<'_>,
        at: Position,
    ) -> Result<Self, Unreadable> {
        let head = usize::try_from(HEAD_BYTES).unwrap_or(usize::MAX).min(bytes.len());
        check(&bytes[..head])?;
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
    /// From a position on, of a file that `open` opens at a byte. Its encoding is told by the first
    /// record that is not in ASCII; UTF-16 is not read in this way.
    ///
    /// # Errors
    /// [`Broken`] when the file is no text, or of another format, or cannot be read.
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
        check(&head)?;
        let mark = match Encoding::for_bom(&head) {
            None if head.contains(&0) => return Err(wide(&head).into()),
            None => 0,
            Some((encoding, mark)) if encoding == UTF_8 => {
                records.encoding = Some(UTF_8);
                mark
            }
            Some(_) => return Err(wide(&head).into()),
        };
        let mark = u64::try_from(mark).unwrap_or_default();
        if format == Format::Jsonl {
            records.base.byte = mark;
            records.rows = Rows::Jsonl { reader: BufReader::new(open(mark)?), byte: 0, line: 0 };
            return Ok(records);
        }
        let text = head.get(usize::try_from(mark).unwrap_or_default()..).unwrap_or_default();
        let separator = separator(text);
        let (delimiter, before) = separator.unwrap_or_else(|| (delimiter(text), 0));
        let mark = mark + before;
        let lines_before = u64::from(before > 0);
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let late = u64::from(lines.next().is_some_and(|line| line.ends_with(b"\r\n")));
        let reader = |from: R| {
            csv::ReaderBuilder::new()
                .delimiter(delimiter)
                .flexible(true)
                .has_headers(false)
                .from_reader(Bounded { inner: from, left: MAX_RECORD_BYTES, end: END })
        };
        let (mut first, mut header) = (reader(open(mark)?), ByteRecord::new());
        first.read_byte_record(&mut header).map_err(of_csv)?;
        let is_empty = is_end(&header);
        if is_cut(&header) {
            let line = header.position().map_or(1, csv::Position::line);
            return Err(unclosed(lines_before + line).into());
        }
        let names: Vec<String> = header.iter().map(|name| records.decoded(&header, name)).collect();
        let place = |name: Option<&str>| match name {
            None => Ok(None),
            // Without a header there are no rows either.
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
        let columns = Columns { names, late, id, text };
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

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// When the bytes cannot be had, or a record has no end.
    pub fn read_next(&mut self) -> io::Result<Option<Result<Record, Unreadable>>> {
        let number = self.base.number + self.read + 1;
        // Taken out, because decoding learns the encoding.
        let Self { rows, base, .. } = self;
        match rows {
            Rows::Csv { reader, columns, row } => {
                reader.get_mut().left = MAX_RECORD_BYTES;
                let mut next = std::mem::take(row);
                if !reader.read_byte_record(&mut next).map_err(of_csv)? || is_end(&next) {
                    return Ok(None);
                }
                let line = next.position().map_or(1, csv::Position::line);
                let line = base.line + line + columns.late;
                self.read += 1;
                let record = match is_cut(&next) {
                    true => Err(unclosed(line)),
                    false => self.csv_row(&next, line, number),
                };
                if let Rows::Csv { row, .. } = &mut self.rows {
                    *row = next;
                }
                Ok(Some(record))
            }
            Rows::Jsonl { reader, byte, line } => loop {
                let mut bytes = Vec::new();
                let taken = reader.by_ref().take(MAX_RECORD_BYTES).read_until(b'\n', &mut bytes)?;
                if taken == 0 {
                    return Ok(None);
                }
                if bytes.last() != Some(&b'\n') && bytes.len() as u64 == MAX_RECORD_BYTES {
                    return Err(endless());
                }
                *byte += taken as u64;
                *line += 1;
                let at = base.line + *line;
                if bytes.trim_ascii().is_empty() {
                    continue;
                }
                self.read += 1;
                let text = decoded(&mut self.encoding, &bytes, &bytes);
                let (id, body) = (self.id.as_deref(), self.text.as_deref());
                return Ok(Some(json_line(text.trim_end(), at, number, id, body)));
            },
        }
    }

    /// Behind the record that was read last; one byte behind the file's end, where its last line has
    /// none.
    #[must_use]
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

    fn decoded(&mut self, record: &ByteRecord, field: &[u8]) -> String {
        decoded(&mut self.encoding, record.as_slice(), field)
    }

    fn csv_row(&mut self, row: &ByteRecord, line: u64, number: u64) -> Result<Record, Unreadable> {
        let values: Vec<String> = row.iter().map(|field| self.decoded(row, field)).collect();
        let Rows::Csv { columns: Columns { names, id, text, .. }, .. } = &self.rows else {
            return Err(Unreadable::Empty);
        };
        if values.len() != names.len() {
            let reason = format!("it has {} fields, the header {}", values.len(), names.len());
            return Err(Unreadable::BadRecord { line, reason });
        }
        let field = |place: &usize| values.get(*place).cloned().unwrap_or_default();
        let all = || {
            let fields = names.iter().zip(&values);
            fields.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
        };
        let named = id.as_ref().map(field).filter(|id| !id.trim().is_empty());
        let (is_numbered, id) = (named.is_none(), named.unwrap_or_else(|| numbered(number)));
        let text = text.as_ref().map_or_else(all, field);
        let mut json = Map::new();
        for (place, (name, value)) in names.iter().zip(values).enumerate() {
            // Of columns with one name, none is left out.
            let name = match json.contains_key(name) {
                true => format!("{name}#{place}"),
                false => name.clone(),
            };
            json.insert(name, Value::from(value));
        }
        Ok(Record { id, is_numbered, text, json: Value::Object(json) })
    }
}

/// The first record outside of ASCII tells the encoding of all of them.
fn decoded(known: &mut Option<&'static Encoding>, record: &[u8], field: &[u8]) -> String {
    if known.is_none() && !record.is_ascii() {
        *known = Some(encoding::of(record));
    }
    let (text, _) = known.unwrap_or(UTF_8).decode_without_bom_handling(field);
    text.into_owned()
}

fn delimiter(text: &[u8]) -> u8 {
    let header = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |delimiter: &u8| header.iter().filter(|byte| *byte == delimiter).count();
    let delimiters = b",;\t|".iter().copied();
    delimiters.max_by_key(|delimiter| (count(delimiter), *delimiter == b',')).unwrap_or(b',')
}

/// The delimiter that a first line says, and the bytes of that line.
fn separator(text: &[u8]) -> Option<(u8, u64)> {
    let line = text.split_inclusive(|byte| *byte == b'\n').next()?;
    let said = line.strip_suffix(b"\n").unwrap_or(line);
    let said = said.strip_suffix(b"\r").unwrap_or(said);
    let said = said.strip_prefix(b"\"").and_then(|said| said.strip_suffix(b"\"")).unwrap_or(said);
    let (name, delimiter) = said.split_at_checked(4)?;
    let [delimiter @ (b'\t' | b'!'..=b'~')] = *delimiter else { return None };
    let is_said = name.eq_ignore_ascii_case(b"sep=") && delimiter != b'"';
    is_said.then_some((delimiter, line.len() as u64))
}

/// What has a mark of another format is no file of records, whatever its name says.
fn check(head: &[u8]) -> Result<(), Unreadable> {
    match Format::of(head, "records.csv") {
        // A field may speak of one.
        Ok(Format::Pdf) if !head.trim_ascii_start().starts_with(b"%PDF-") => Ok(()),
        Ok(Format::Csv) => Ok(()),
        // Its head alone was looked at.
        Ok(format) | Err(Unreadable::Damaged { format, .. } | Unreadable::Encrypted { format }) => {
            Err(Unreadable::OtherFormat { format })
        }
        // A header of plain letters may begin as other formats do.
        Err(Unreadable::Unsupported { .. }) if is_plain(head) => Ok(()),
        Err(other) => Err(other),
    }
}

/// Text without control characters but for tabs and line ends.
fn is_plain(head: &[u8]) -> bool {
    let control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    !head.iter().any(control)
}

/// What is no text in a byte for each letter of the alphabet.
fn wide(head: &[u8]) -> Unreadable {
    match encoding::decode(&head[..head.len() & !1]) {
        Ok(_) => Unreadable::Unsupported {
            what: "a large file of records in UTF-16; save it in UTF-8".into(),
        },
        Err(unreadable) => unreadable,
    }
}

fn endless() -> io::Error {
    let most = MAX_RECORD_BYTES >> 20;
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("a record has more than {most} MiB; is a quotation mark not closed?"),
    )
}

fn of_csv(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
    }
}

fn is_end(row: &ByteRecord) -> bool {
    row.len() == 1 && row.get(0).is_some_and(|field| field == END.trim_ascii())
}

/// It goes on behind the end of the file.
fn is_cut(row: &ByteRecord) -> bool {
    !is_end(row) && row.as_slice().ends_with(END)
}

fn unclosed(line: u64) -> Unreadable {
    let reason = "a quotation mark is not closed up to the end of the file; what follows it may be further records".to_owned();
    Unreadable::BadRecord { line, reason }
}

/// Ends a record that has no end, and the file.
#[derive(Debug)]
struct Bounded<R> {
    inner: R,
    left: u64,
    end: &'static [u8],
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(endless());
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

fn json_line(
    line: &str,
    at: u64,
    number: u64,
    id: Option<&str>,
    text: Option<&str>,
) -> Result<Record, Unreadable> {
    let bad = |reason: String| Unreadable::BadRecord { line: at, reason };
    // The parser saw one line alone: its "line 1" is none of the file's.
    let no_json = |error: serde_json::Error| {
        let why = error.to_string().replace(" at line 1 column ", " at column ");
        bad(format!("no JSON: {why}"))
    };
    let value = serde_json::from_str(line).map_err(no_json)?;
    record(value, at, number, RecordFields { id, text })
}

/// A value as a record. `at` is its line, or its row.
pub(crate) fn record(
    value: Value,
    at: u64,
    number: u64,
    fields: RecordFields<'_>,
) -> Result<Record, Unreadable> {
    let RecordFields { id, text } = fields;
    let bad = |reason: String| Unreadable::BadRecord { line: at, reason };
    let field = |name: &str| value.get(name).filter(|value| !value.is_null()).map(shown);
    let named = id.and_then(field).filter(|id| !id.trim().is_empty());
    let is_numbered = named.is_none();
    let id = named.map_or_else(|| numbered(number), Cow::into_owned);
    let text = match text {
        Some(name) => {
            field(name).ok_or_else(|| bad(format!("it has no field \"{name}\"")))?.into_owned()
        }
        None => match &value {
            Value::Object(all) => all
                .iter()
                .map(|(name, value)| format!("{name}: {}", shown(value)))
                .collect::<Vec<_>>()
                .join("\n"),
            other => shown(other).into_owned(),
        },
    };
    Ok(Record { id, is_numbered, text, json: value })
}

fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Padded, so that records are ordered as they stand.
fn numbered(number: u64) -> String {
    format!("{number:07}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        text: &str,
        format: Format,
        fields: RecordFields<'_>,
    ) -> Vec<Result<(String, String), String>> {
        let mut records =
            Records::of_bytes(text.as_bytes(), format, fields, Position::default()).unwrap();
        std::iter::from_fn(|| records.read_next().unwrap())
            .map(|record| record.map(|r| (r.id, r.text)).map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn rows() {
        let text = "name;note\nAnna;\"two\nlines\"\nBert;x;y\nCara;last";
        let rows = read(text, Format::Csv, RecordFields::default());
        let record = |id: &str, text: &str| Ok((id.to_owned(), text.to_owned()));
        assert_eq!(rows[0], record("0000001", "name: Anna\nnote: two\nlines"));
        assert_eq!(rows[1], Err("line 4 is no record: it has 3 fields, the header 2".to_owned()));
        let fields = RecordFields { id: Some("name"), text: Some("note") };
        assert_eq!(read(text, Format::Csv, fields)[2], record("Cara", "last"));
        let fields = RecordFields { id: Some("nom"), text: None };
        let error = Records::of_bytes(text.as_bytes(), Format::Csv, fields, Position::default())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the CSV is damaged: it has no column \"nom\"; its columns are name, note"
        );
        assert!(read("", Format::Csv, fields).is_empty(), "an empty file has no rows");
    }

    /// The line is no header, and rows stand in the lines that they stand in.
    #[test]
    fn a_first_line_may_say_the_delimiter() {
        for (line, rest) in [
            ("sep=;\r\n", "a;b,c\r\n1;2\r\n3\r\n"),
            ("SEP=|\n", "a|b,c\n1|2\n3\n"),
            ("\u{feff}\"sep=\t\"\n", "a\tb,c\n1\t2\n3\n"),
        ] {
            let text = format!("{line}{rest}");
            let rows = read(&text, Format::Csv, RecordFields { id: Some("a"), text: None });
            assert_eq!(rows[0], Ok(("1".to_owned(), "a: 1\nb,c: 2".to_owned())), "{text}");
            assert!(rows[1].as_ref().unwrap_err().starts_with("line 4 is no record"), "{rows:?}");
            let (fields, bytes) = (RecordFields::default(), text.as_bytes());
            let at = |at| Records::of_bytes(bytes, Format::Csv, fields, at).unwrap();
            let mut first = at(Position::default());
            first.read_next().unwrap().unwrap().unwrap();
            let mut second = at(first.position());
            assert_eq!(second.read_next().unwrap(), first.read_next().unwrap());
        }
        for other in ["sep=\n1\n", "sep=;;\n1\n", "sep;x\n1;2\n"] {
            let rows = read(other, Format::Csv, RecordFields::default());
            assert_eq!(rows.len(), 1, "{other}: {rows:?}");
        }
    }

    #[test]
    fn the_content_decides_what_a_file_is() {
        let fields = RecordFields::default();
        let told = |bytes: &[u8], format| {
            Records::of_bytes(bytes, format, fields, Position::default()).unwrap_err().to_string()
        };
        let pdf = b"%PDF-1.4\n1 0 obj\n<< >>\nendobj\n";
        assert!(
            told(pdf, Format::Csv).starts_with("by its content this is a file of the format PDF")
        );
        // A header may begin with the letters that mark another format.
        for header in ["PAR1,PAR2", "RIFF,x", "GIF8,x", "ID3,x"] {
            let rows = read(&format!("{header}\n1,2\n"), Format::Csv, fields);
            assert!(rows.len() == 1 && rows[0].is_ok(), "{header}: {rows:?}");
        }
        let open = |from: u64| {
            Ok(&b"PK\x03\x04\x14\0\x06\0xl/workbook.xml"[usize::try_from(from).unwrap()..])
        };
        let sheets = Records::open(open, Format::Jsonl, fields, Position::default()).unwrap_err();
        assert!(sheets.to_string().contains("format XLSX, and not one of records"), "{sheets}");
        let rows = read("a,b\n1,%PDF-1.4\n", Format::Csv, fields);
        assert!(rows.len() == 1 && rows[0].is_ok(), "{rows:?}");
    }

    /// What stands behind it would else be one field with it, and nobody would miss the rows.
    #[test]
    fn a_quotation_mark_that_is_never_closed_is_told() {
        let told = |text: &str| {
            let rows = read(text, Format::Csv, RecordFields::default());
            rows.last().unwrap().as_ref().unwrap_err().clone()
        };
        for open in ["2,\"open\n3,c\n", "\"2,b", "2,\"", "2,\"a \"\" b\n"] {
            let error = told(&format!("id,text\n1,a\n{open}"));
            assert!(error.starts_with("line 3 is no record: a quotation mark"), "{open}: {error}");
        }
        for closed in ["2,\"b\n\n\"", "2,5\" wide", "2,\"\"\n", "2,b\n\n", "2,\"a \"\" b\""] {
            let rows =
                read(&format!("id,text\n1,a\n{closed}"), Format::Csv, RecordFields::default());
            assert!(rows.len() == 2 && rows.iter().all(Result::is_ok), "{closed}: {rows:?}");
        }
        let fields = RecordFields::default();
        let header =
            Records::of_bytes(b"id,\"text\n1,a\n", Format::Csv, fields, Position::default());
        assert!(header.unwrap_err().to_string().contains("line 1 is no record: a quotation mark"));
    }

    #[test]
    fn lines() {
        let text =
            "{\"id\":7,\"body\":\"Ebb\"}\n\nnonsense\n{\"body\":\"Flow\",\"n\":[1]}\n\"bare\"";
        let lines = read(text, Format::Jsonl, RecordFields { id: Some("id"), text: Some("body") });
        assert_eq!(lines[0], Ok(("7".to_owned(), "Ebb".to_owned())));
        assert!(lines[1].as_ref().unwrap_err().starts_with("line 3 is no record: no JSON: "));
        assert!(!lines[1].as_ref().unwrap_err().contains("line 1"), "{:?}", lines[1]);
        assert_eq!(lines[2], Ok(("0000003".to_owned(), "Flow".to_owned())));
        assert!(lines[3].as_ref().unwrap_err().contains("no field \"body\""));
        let whole = read(text, Format::Jsonl, RecordFields::default());
        assert_eq!(
            (&whole[2].as_ref().unwrap().1, &whole[3].as_ref().unwrap().1),
            (&"body: Flow\nn: [1]".to_owned(), &"bare".to_owned())
        );
    }

    /// A file is opened anew behind each record, and nothing is missing or twice.
    #[test]
    fn reading_goes_on_anywhere() {
        let csv = "\u{feff}name;note\nAnna;\"two\nlines\"\nBert;x;y\n\nCara;größer\nDora;fünf\n";
        let json = "{\"a\":1}\n\n{\"a\":\"ü\"}\nno\n{\"a\":3}";
        let latin: Vec<u8> = csv.chars().skip(1).map(|c| c as u8).collect();
        let cases = [
            (csv.as_bytes(), Format::Csv, 4),
            (csv.trim_end().as_bytes(), Format::Csv, 4),
            (&latin, Format::Csv, 4),
            (json.as_bytes(), Format::Jsonl, 4),
        ];
        for (bytes, format, count) in cases {
            let open = |from: u64| Ok(&bytes[usize::try_from(from).unwrap().min(bytes.len())..]);
            let fields = RecordFields::default();
            let at = |at: Position| Records::open(open, format, fields, at).unwrap();
            let mut whole = at(Position::default());
            let all: Vec<_> = std::iter::from_fn(|| whole.read_next().unwrap()).collect();
            assert_eq!(all.len(), count);
            let mut position = Position::default();
            for record in &all {
                let mut records = at(position);
                assert_eq!(records.read_next().unwrap().as_ref(), Some(record));
                position = records.position();
                let stored = serde_json::to_string(&position).unwrap();
                position = serde_json::from_str(&stored).unwrap();
            }
            assert_eq!(at(position).read_next().unwrap(), None);
            if format == Format::Csv {
                assert_eq!(all[2].as_ref().unwrap().text, "name: Cara\nnote: größer");
                assert_eq!(
                    all[1].as_ref().unwrap_err().to_string(),
                    "line 4 is no record: it has 3 fields, the header 2"
                );
            }
        }
    }

    /// Of a gigabyte without an end, no more is read than a record may have.
    #[test]
    fn a_record_without_an_end_costs_no_more_than_its_bound() {
        for (head, format) in [("a,b\n\"open", Format::Csv), ("\"open", Format::Jsonl)] {
            let open = |from: u64| {
                let head = Cursor::new(head.as_bytes().to_vec()).take(u64::MAX);
                assert_eq!(from, 0);
                Ok(head.chain(io::repeat(b'x').take(1 << 30)))
            };
            let mut records =
                Records::open(open, format, RecordFields::default(), Position::default()).unwrap();
            let error = records.read_next().unwrap_err();
            assert!(error.to_string().contains("more than 16 MiB"), "{error}");
        }
        let wide: Vec<u8> = "a,b\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let open = |from: u64| Ok(&wide[usize::try_from(from).unwrap()..]);
        let fields = RecordFields::default();
        let refused = Records::open(open, Format::Csv, fields, Position::default()).unwrap_err();
        assert!(refused.to_string().contains("save it in UTF-8"), "{refused}");
        let mut whole = Records::of_bytes(&wide, Format::Csv, fields, Position::default()).unwrap();
        assert_eq!(whole.read_next().unwrap().unwrap().unwrap().text, "a: 1\nb: 2");
    }
}
