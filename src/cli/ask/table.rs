//! A prompt for each row of a table, and the table with the answers.

use std::{
    collections::HashSet,
    io::{self, BufRead, BufReader, Cursor, Read, Write},
    thread,
};

use anyhow::Context;
use csv::{ByteRecord, ReaderBuilder, StringRecord, Terminator, Writer, WriterBuilder};
use serde_json::Value;
use tidegate_activities::document::ask::template::RowPrompt;
use tidegate_documents::records::detect_delimiter;
use tokio::sync::mpsc;

use super::question::{Output, Question, answer, unless_closed};
use crate::cli::exit::usage;

/// The byte-order mark by which Excel marks and recognizes UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The added columns.
#[derive(Debug, Clone)]
pub(super) struct Added {
    /// The column of the answers.
    pub(super) answer: String,
    /// The column of failure messages, if wanted.
    pub(super) error: Option<String>,
}

impl Added {
    fn columns(&self) -> impl Iterator<Item = &str> {
        [Some(self.answer.as_str()), self.error.as_deref()].into_iter().flatten()
    }
}

type Rows = mpsc::Receiver<anyhow::Result<Question<StringRecord>>>;

/// Reads the table's head, then its rows in a thread that ends with this process.
pub(super) fn read_rows<R: Read + Send + 'static, W: Write>(
    input: R,
    output: W,
    prompt: String,
    added: Added,
) -> anyhow::Result<(Rows, Table<W>)> {
    let (form, input) = Form::detect(input)?;
    let mut reader =
        ReaderBuilder::new().delimiter(form.delimiter).flexible(true).from_reader(input);
    let head = reader.headers().context("the head of the table cannot be read")?.clone();
    if head.iter().all(str::is_empty) {
        return Err(usage("stdin holds no table: its first line must name the columns"));
    }
    let columns: Vec<&str> = head.iter().collect();
    if let Some(column) = added.columns().find(|column| columns.contains(column)) {
        return Err(usage(format!(
            "the table has a column \"{column}\" already; name another with --column (--error-column)"
        )));
    }
    if let Some(column) = repeated_name(&columns) {
        return Err(usage(format!(
            "the table has two columns \"{column}\"; rename one of them in its first line"
        )));
    }
    let prompt = RowPrompt::new(prompt, &columns).map_err(usage)?;
    let table = Table::begin(output, &form, &head, added)?;
    let (sender, rows) = mpsc::channel(64);
    thread::spawn(move || {
        for (number, row) in (1..).zip(reader.into_byte_records()) {
            let row = row.with_context(|| format!("row {number} of the table cannot be read"));
            let asked = row.map(|row| {
                let (row, fault) = read_row(row, head.len());
                let filled = || prompt.fill(head.iter().zip(&row));
                let prompt = fault.map_or_else(filled, Err);
                Question { number, context: row, prompt }
            });
            if sender.blocking_send(asked).is_err() {
                return;
            }
        }
    });
    Ok((rows, table))
}

/// The first name of two columns. Columns without a name cannot be asked for.
fn repeated_name<'a>(columns: &[&'a str]) -> Option<&'a str> {
    let mut seen = HashSet::new();
    columns.iter().copied().find(|name| !name.is_empty() && !seen.insert(*name))
}

/// Reads a row of a table with this many columns, and the fault that keeps it from being asked about.
/// A short row is filled up with empty cells.
fn read_row(row: ByteRecord, columns: usize) -> (StringRecord, Option<String>) {
    let cells = row.len();
    let (mut row, mut fault) = match StringRecord::from_byte_record(row) {
        Ok(row) => (row, None),
        Err(error) => {
            let row = StringRecord::from_byte_record_lossy(error.into_byte_record());
            (row, Some("the row is not UTF-8".to_owned()))
        }
    };
    if cells != columns {
        let what = format!("the row has {cells} cells, and the table {columns} columns");
        fault = fault.or(Some(what));
    }
    for _ in cells..columns {
        row.push_field("");
    }
    (row, fault)
}

/// The format of the input table, which the output repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    delimiter: u8,
    has_bom: bool,
    has_crlf: bool,
}

impl Form {
    /// Detects the format from the table's first line.
    fn detect<R: Read>(input: R) -> anyhow::Result<(Self, impl Read)> {
        let mut input = BufReader::new(input);
        let mut first = Vec::new();
        input.read_until(b'\n', &mut first).context("stdin cannot be read")?;
        let form = Self {
            delimiter: detect_delimiter(&first),
            has_bom: first.starts_with(BOM),
            has_crlf: first.ends_with(b"\r\n"),
        };
        Ok((form, Cursor::new(first).chain(input)))
    }
}

/// Writes the table with the added columns.
#[derive(Debug)]
pub(super) struct Table<W: Write> {
    writer: Writer<W>,
    has_errors: bool,
    /// The number of columns before the added ones.
    columns: usize,
}

impl<W: Write> Table<W> {
    fn begin(
        mut output: W,
        form: &Form,
        head: &StringRecord,
        added: Added,
    ) -> anyhow::Result<Self> {
        if form.has_bom {
            output.write_all(BOM).context("writing to stdout")?;
        }
        let terminator = if form.has_crlf { Terminator::CRLF } else { Terminator::Any(b'\n') };
        let writer = WriterBuilder::new()
            .delimiter(form.delimiter)
            .terminator(terminator)
            .flexible(true)
            .from_writer(output);
        let (has_errors, columns) = (added.error.is_some(), head.len());
        let mut table = Self { writer, has_errors, columns };
        table.row(head.iter().chain(added.columns()))?;
        Ok(table)
    }

    /// Writes a row. Returns false if the reader has closed the pipe.
    fn row<'a>(&mut self, cells: impl Iterator<Item = &'a str>) -> anyhow::Result<bool> {
        let written = self.writer.write_record(cells).map_err(io::Error::from);
        unless_closed(written.and_then(|()| self.writer.flush()))
    }
}

impl<W: Write> Output for Table<W> {
    type Context = StringRecord;

    const UNIT: &'static str = "row";

    fn write(
        &mut self,
        _number: u64,
        row: StringRecord,
        outcome: Result<Value, String>,
    ) -> anyhow::Result<bool> {
        let (answer, error) = match &outcome {
            Ok(outcome) => (answer(outcome), ""),
            Err(why) => ("", why.as_str()),
        };
        let more = [Some(answer), self.has_errors.then_some(error)];
        // Cells without a column stay behind the added ones.
        let (own, rest) = (row.iter().take(self.columns), row.iter().skip(self.columns));
        self.row(own.chain(more.into_iter().flatten()).chain(rest))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The table with each prompt as its answer; rows without a city fail.
    fn answered(table: &'static str, error: Option<&str>) -> anyhow::Result<String> {
        answered_bytes(table.as_bytes(), error)
    }

    fn answered_bytes(table: &'static [u8], error: Option<&str>) -> anyhow::Result<String> {
        let added = Added { answer: "answer".to_owned(), error: error.map(str::to_owned) };
        let (mut rows, mut table) = read_rows(table, Vec::new(), "<{{ city }}>".to_owned(), added)?;
        while let Some(asked) = rows.blocking_recv() {
            let Question { number, context, prompt } = asked?;
            let failed = context[0].is_empty().then(|| "no, \"none\"".to_owned());
            let outcome = prompt.map(|prompt| json!({ "answer": prompt }));
            let outcome = failed.map_or(outcome, Err);
            assert!(table.write(number, context, outcome)?);
        }
        Ok(String::from_utf8(table.writer.into_inner().unwrap())?)
    }

    #[test]
    fn the_table_keeps_its_rows_its_quoting_and_its_form() {
        let plain = "city,note\nHusum,\"a, \"\"b\"\"\nc\"\n,none\n";
        let told = "city,note,answer\nHusum,\"a, \"\"b\"\"\nc\",<Husum>\n,none,\n";
        assert_eq!(answered(plain, None).unwrap(), told);
        let with_errors = "city,note,answer,why\nHusum,\"a, \"\"b\"\"\nc\",<Husum>,\n,none,,\"no, \"\"none\"\"\"\n";
        assert_eq!(answered(plain, Some("why")).unwrap(), with_errors);
        let excel = "\u{feff}city;note\r\n\"Hu;sum\";x\r\n";
        let told = "\u{feff}city;note;answer\r\n\"Hu;sum\";x;\"<Hu;sum>\"\r\n";
        assert_eq!(answered(excel, None).unwrap(), told);
        assert_eq!(answered("city,note\n", None).unwrap(), "city,note,answer\n");
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        let refused = |table, error| answered(table, error).unwrap_err().to_string();
        assert!(refused("", None).contains("holds no table"));
        assert!(refused("city,answer\n", None).contains("column \"answer\" already"));
        assert!(refused("city,why\n", Some("why")).contains("column \"why\" already"));
        assert!(refused("town\nx\n", None).contains("no column \"city\""));
        assert!(refused("city,note,city\n", None).contains("two columns \"city\""));
    }

    #[test]
    fn a_faulty_row_fails_alone() {
        let told = "city,note,answer,why\n\
                    x,,,\"the row has 1 cells, and the table 2 columns\"\n\
                    y,a,,\"the row has 3 cells, and the table 2 columns\",b\n\
                    Gr\u{fffd}n,a,,the row is not UTF-8\n\
                    z,a,<z>,\n";
        let table = b"city,note\nx\ny,a,b\nGr\xfcn,a\nz,a\n";
        assert_eq!(answered_bytes(table, Some("why")).unwrap(), told);
        assert_eq!(answered("city,,\nx,1,2\n", None).unwrap(), "city,,,answer\nx,1,2,<x>\n");
    }
}
