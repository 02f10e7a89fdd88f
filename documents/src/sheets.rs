//! Spreadsheets: a heading for each sheet, a line for each row.

use std::{
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
};

use calamine::{Data, Ods, Reader as _, Sheets, Xls, Xlsb, Xlsx};

use crate::{
    compound,
    context::Context,
    format::Format,
    limits::{Deadline, Limits},
    package::Package,
    unreadable::Unreadable,
    xml,
};

/// Between the cells of a row.
const SEPARATOR: &str = " | ";

/// Values as they are stored, formulas as what they came to. Empty rows and columns are left out.
pub(crate) fn extract(
    bytes: &[u8],
    format: Format,
    context: &Context<'_>,
) -> Result<String, Unreadable> {
    let Context { limits, deadline, .. } = *context;
    if format != Format::Xls {
        let mut package = Package::open(bytes, format, limits)?;
        package.check()?;
        if format == Format::Ods
            && let Some(content) = package.read("content.xml")?
        {
            xml::check(&content, format)?;
        }
    } else if compound::has_endless_chain(bytes) {
        return Err(Unreadable::damaged(format, "a chain of its sectors leads back into itself"));
    }
    // Its parser believes the lengths and references of binary records.
    catch_unwind(AssertUnwindSafe(|| read(bytes, format, limits, deadline)))
        .unwrap_or_else(|_| Err(Unreadable::damaged(format, "its parser failed")))
}

fn read(
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    deadline: Deadline,
) -> Result<String, Unreadable> {
    let mut book = open(bytes, format).map_err(|error| {
        let reason = error.to_string();
        if reason.to_ascii_lowercase().contains("password") {
            Unreadable::Encrypted { format }
        } else {
            Unreadable::damaged(format, reason)
        }
    })?;
    let mut text = String::new();
    let mut fault = None;
    for name in book.sheet_names() {
        let mut cells = Cells::new(limits, deadline, text.len());
        match cells.read(&mut book, &name) {
            Ok(()) => {}
            Err(Fault::Document(unreadable)) => return Err(unreadable),
            // A sheet that is a chart has no cells.
            Err(Fault::Sheet(reason)) => {
                fault = Some(reason);
                continue;
            }
        }
        cells.write(&name, &mut text)?;
    }
    match fault {
        Some(fault) if text.is_empty() => Err(Unreadable::damaged(format, fault)),
        _ => Ok(text.trim_end().to_owned()),
    }
}

/// The cells of a sheet that hold something: an empty one costs nothing, wherever the last one is.
struct Cells<'a> {
    limits: &'a Limits,
    deadline: Deadline,
    /// Bytes of the text before, and of the cells.
    bytes: usize,
    /// Row, column, value.
    cells: Vec<(u32, u32, String)>,
}

/// What went wrong: with the whole document, or with one sheet of it.
enum Fault {
    Document(Unreadable),
    Sheet(String),
}

impl<'a> Cells<'a> {
    fn new(limits: &'a Limits, deadline: Deadline, bytes: usize) -> Self {
        Self { limits, deadline, bytes, cells: Vec::new() }
    }

    fn read(&mut self, book: &mut Sheets<Cursor<&[u8]>>, name: &str) -> Result<(), Fault> {
        fn of_sheet(error: impl ToString) -> Fault {
            Fault::Sheet(error.to_string())
        }
        // The usual way is a table from the first to the last cell, which may be far apart.
        match book {
            Sheets::Xlsx(book) => {
                let mut cells = book.worksheet_cells_reader(name).map_err(of_sheet)?;
                while let Some(cell) = cells.next_cell().map_err(of_sheet)? {
                    self.add(cell.get_position(), &cell.get_value().clone().into())?;
                }
            }
            Sheets::Xlsb(book) => {
                let mut cells = book.worksheet_cells_reader(name).map_err(of_sheet)?;
                while let Some(cell) = cells.next_cell().map_err(of_sheet)? {
                    self.add(cell.get_position(), &cell.get_value().clone().into())?;
                }
            }
            // Rows and columns of the older format are few; the other's reader leaves out what is
            // repeated for nothing.
            book => {
                let range = book.worksheet_range(name).map_err(of_sheet)?;
                for (row, column, value) in range.used_cells() {
                    self.add((as_u32(row), as_u32(column)), value)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, (row, column): (u32, u32), value: &Data) -> Result<(), Fault> {
        let value = shown(value);
        if value.is_empty() {
            return Ok(());
        }
        self.bytes += value.len() + SEPARATOR.len();
        self.check(self.bytes).map_err(Fault::Document)?;
        self.cells.push((row, column, value));
        Ok(())
    }

    fn check(&self, bytes: usize) -> Result<(), Unreadable> {
        if bytes > self.limits.text_bytes {
            return Err(Unreadable::TooLarge {
                what: "text".into(),
                size: bytes as u64,
                most: self.limits.text_bytes as u64,
            });
        }
        if self.deadline.has_passed() {
            return Err(Unreadable::TooSlow(self.limits.time));
        }
        Ok(())
    }

    /// A line for each row that holds something, with a place for each such column.
    fn write(mut self, name: &str, text: &mut String) -> Result<(), Unreadable> {
        if self.cells.is_empty() {
            return Ok(());
        }
        self.cells.sort_by_key(|(row, column, _)| (*row, *column));
        let mut columns: Vec<u32> = self.cells.iter().map(|(_, column, _)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&format!("## {name}\n\n"));
        for row in self.cells.chunk_by(|one, next| one.0 == next.0) {
            let mut at = 0;
            for (_, column, value) in row {
                let place = columns.binary_search(column).unwrap_or_default();
                while at < place {
                    text.push_str(SEPARATOR);
                    at += 1;
                }
                text.push_str(value);
            }
            text.push('\n');
            self.check(text.len())?;
        }
        Ok(())
    }
}

fn as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Opens a book as what it is; guessing would lose the reason why it cannot be opened.
fn open(bytes: &[u8], format: Format) -> Result<Sheets<Cursor<&[u8]>>, calamine::Error> {
    let file = Cursor::new(bytes);
    Ok(match format {
        Format::Xls => Sheets::Xls(Xls::new(file)?),
        Format::Ods => Sheets::Ods(Ods::new(file)?),
        _ if is_binary(bytes) => Sheets::Xlsb(Xlsb::new(file)?),
        _ => Sheets::Xlsx(Xlsx::new(file)?),
    })
}

/// Whether the parts of a newer book are binary.
fn is_binary(bytes: &[u8]) -> bool {
    zip::ZipArchive::new(Cursor::new(bytes))
        .is_ok_and(|archive| archive.index_for_name("xl/workbook.bin").is_some())
}

/// A value as a person would write it, on one line.
fn shown(value: &Data) -> String {
    match value {
        Data::DateTime(moment) if moment.is_duration() => duration(moment.as_f64()),
        Data::DateTime(moment) => {
            let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
            let time = format!("{hour:02}:{minute:02}:{second:02}");
            // Days are counted from 1: before that, there is a time of day and no date.
            if (0.0..1.0).contains(&moment.as_f64()) {
                return time;
            }
            let date = format!("{year:04}-{month:02}-{day:02}");
            if (hour, minute, second) == (0, 0, 0) { date } else { format!("{date} {time}") }
        }
        Data::DateTimeIso(moment) => {
            let moment = moment.replacen('T', " ", 1);
            moment.strip_suffix(" 00:00:00").map(str::to_owned).unwrap_or(moment)
        }
        Data::DurationIso(time) => iso_duration(time).unwrap_or_else(|| time.clone()),
        Data::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        other => other.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// The same of one that is written as ISO 8601 has it, as open documents do: `PT08H05M00S`, which is a
/// time of day, too.
fn iso_duration(time: &str) -> Option<String> {
    let (sign, time) = time.strip_prefix('-').map_or((1.0, time), |time| (-1.0, time));
    let (mut seconds, mut rest) = (0.0, time.strip_prefix('P')?);
    let mut is_time = false;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (rest, is_time) = (after, true);
            continue;
        }
        let (number, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let unit = match (after.as_bytes().first()?, is_time) {
            (b'D', false) => 86_400.0,
            (b'H', true) => 3_600.0,
            (b'M', true) => 60.0,
            (b'S', true) => 1.0,
            // Months and years have no length of their own.
            _ => return None,
        };
        seconds += number.replace(',', ".").parse::<f64>().ok()? * unit;
        rest = after.get(1..)?;
    }
    Some(duration(sign * seconds / 86_400.0))
}

/// A time that something takes, in hours, minutes and seconds.
fn duration(days: f64) -> String {
    let seconds = (days.abs() * 86_400.0).round();
    if !(0.0..1e15).contains(&seconds) {
        return days.to_string();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let seconds = seconds as u64;
    let sign = if days < 0.0 && seconds > 0 { "-" } else { "" };
    format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
