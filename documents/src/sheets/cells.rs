//! The cells of a sheet, and the formatting of their values.

use std::collections::{BTreeMap, HashSet};

use calamine::{Data, ExcelDateTime, ExcelDateTimeType};

use super::number_format::{NumberFormat, format_general};

use crate::{
    left_out::{Kind, Tally, count_characters},
    limits::{Deadline, Limits},
    links::Link,
    spaces::joined_lines,
    unreadable::Unreadable,
};

/// Separator between the cells of a row.
const SEPARATOR: &str = " | ";

/// The nonempty cells of a sheet. Empty ones take no memory, wherever the last cell is.
pub(super) struct Cells<'a> {
    limits: &'a Limits,
    deadline: Deadline,
    /// Bytes of the text before, and of the cells.
    bytes: usize,
    /// Row, column, value.
    cells: Vec<(u32, u32, String)>,
    /// Values of hidden cells.
    hidden: Vec<String>,
}

/// The day after 9999-12-31, the last date of a book.
const END_OF_DAYS: f64 = 2_958_466.0;

/// Row and column of the first cell of a range, and of the last one.
pub(super) type Range = ((u32, u32), (u32, u32));

/// A fault of the whole document, or of one sheet.
pub(super) enum Fault {
    Document(Unreadable),
    Sheet(String),
}

impl<'a> Cells<'a> {
    pub(super) fn new(limits: &'a Limits, deadline: Deadline, bytes: usize) -> Self {
        Self { limits, deadline, bytes, cells: Vec::new(), hidden: Vec::new() }
    }

    pub(super) fn add_text(
        &mut self,
        (row, column): (u32, u32),
        value: String,
    ) -> Result<(), Fault> {
        if value.is_empty() {
            return Ok(());
        }
        self.bytes += value.len() + SEPARATOR.len();
        self.check(self.bytes).map_err(Fault::Document)?;
        self.cells.push((row, column, value));
        Ok(())
    }

    /// Adds the value of a hidden cell.
    pub(super) fn hide(&mut self, value: String) -> Result<(), Fault> {
        if value.is_empty() {
            return Ok(());
        }
        self.bytes += value.len() + SEPARATOR.len();
        self.check(self.bytes).map_err(Fault::Document)?;
        self.hidden.push(value);
        Ok(())
    }

    /// Moves the cells at these places to the hidden values.
    pub(super) fn hide_at(&mut self, places: &HashSet<(u32, u32)>) {
        let hidden =
            self.cells.extract_if(.., |(row, column, _)| places.contains(&(*row, *column)));
        self.hidden.extend(hidden.map(|(_, _, value)| value));
    }

    /// Moves all cells of merged ranges but the first to the hidden values. Ranges do not overlap.
    pub(super) fn hide_covered(&mut self, mut merged: Vec<Range>) {
        if merged.is_empty() {
            return;
        }
        merged.sort_unstable();
        self.cells.sort_by_key(|(row, column, _)| (*row, *column));
        let mut next = merged.into_iter().peekable();
        // The ranges that begin above a row, by their first columns.
        let mut open: BTreeMap<u32, Range> = BTreeMap::new();
        let covered = self.cells.extract_if(.., |(row, column, _)| {
            while let Some(range) = next.next_if(|(first, _)| first.0 <= *row) {
                open.insert(range.0.1, range);
            }
            let found = open.range(..=*column).next_back();
            found.is_some_and(|(_, (first, last))| {
                *row <= last.0 && *column <= last.1 && (*row, *column) != *first
            })
        });
        self.hidden.extend(covered.map(|(_, _, value)| value));
    }

    /// Adds links: `address` returns the address of a cell.
    pub(super) fn add_links(&mut self, address: impl Fn((u32, u32)) -> Option<String>) {
        for (row, column, value) in &mut self.cells {
            let link = address((*row, *column)).and_then(|address| Link::to(&address));
            let Some(mut link) = link else { continue };
            let mut text = String::new();
            link.begin(&mut text);
            text.push_str(value);
            link.end(&mut text);
            *value = text;
        }
    }

    /// Counts the hidden values; of a hidden sheet, all. Returns their replacement in the text.
    pub(super) fn take_hidden(&mut self, is_whole: bool, sheet: &str, tally: &Tally) -> String {
        let mut values = std::mem::take(&mut self.hidden);
        if is_whole {
            values.extend(std::mem::take(&mut self.cells).into_iter().map(|(_, _, value)| value));
        }
        // Separators are not counted.
        let count: usize = values.iter().map(|value| count_characters(value)).sum();
        tally.add_in_part(Kind::HiddenText, count, sheet);
        tally.mark_only(&values.join(SEPARATOR))
    }

    fn check(&self, bytes: usize) -> Result<(), Unreadable> {
        self.limits.take_text(bytes)?;
        if self.deadline.has_passed() {
            return Err(Unreadable::TooSlow(self.limits.time));
        }
        Ok(())
    }

    /// Writes a line for each nonempty row, with a cell for each nonempty column; then
    /// `texts_after_cells`.
    pub(super) fn write(
        mut self,
        name: &str,
        texts_after_cells: &[String],
        text: &mut String,
    ) -> Result<(), Unreadable> {
        if self.cells.is_empty() && texts_after_cells.is_empty() {
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
        for words in texts_after_cells {
            text.push_str(&format!("\n{words}\n"));
        }
        self.check(text.len())
    }
}

/// Formats a number as a cell with this format code.
pub(super) fn format_by_code(number: f64, code: &str, is_1904: bool) -> String {
    format_number(number, &NumberFormat::parse(code), is_1904)
}

/// Formats a number.
pub(super) fn format_number(number: f64, format: &NumberFormat, is_1904: bool) -> String {
    if let Some(time) = format.time_for(number) {
        return format_number(number, time, is_1904);
    }
    let (kind, decimals) = match format {
        // Programs show no date for such a number either.
        NumberFormat::Date(..) if !(0.0..END_OF_DAYS).contains(&number) => {
            return format_general(number);
        }
        // The day before the first one has no date of its own, except from 1904 on.
        NumberFormat::Date(decimals, true) if (0.0..1.0).contains(&number) => {
            let time = format_number(number, &NumberFormat::Date(*decimals, false), is_1904);
            let day = if is_1904 { "1904-01-01" } else { "1900-01-00" };
            return if number == 0.0 { day.to_owned() } else { format!("{day} {time}") };
        }
        NumberFormat::Date(decimals, _) => (ExcelDateTimeType::DateTime, *decimals),
        NumberFormat::Duration(decimals) => (ExcelDateTimeType::TimeDelta, *decimals),
        format => return format.format_number(number).unwrap_or_else(|| format_general(number)),
    };
    let text = display_value(&Data::DateTime(ExcelDateTime::new(number, kind, is_1904)));
    if decimals == 0 || !number.is_finite() {
        return text;
    }
    // Seconds with decimals, rounded as a whole so that none becomes 60.
    let scale = 10_f64.powi(i32::try_from(decimals).unwrap_or(3));
    let seconds = (number.abs() * 86_400.0 * scale).round() / scale;
    let whole = match kind {
        ExcelDateTimeType::TimeDelta => display_value(&Data::DateTime(ExcelDateTime::new(
            seconds.floor().copysign(number) / 86_400.0,
            kind,
            is_1904,
        ))),
        // A quarter of a second, so that binary rounding does not lose one.
        _ => display_value(&Data::DateTime(ExcelDateTime::new(
            (seconds.floor() + 0.25) / 86_400.0,
            kind,
            is_1904,
        ))),
    };
    let fraction = format!("{:.*}", decimals, seconds - seconds.floor());
    format!("{whole}{}", fraction.trim_start_matches('0'))
}

/// Formats a value on one line.
pub(super) fn display_value(value: &Data) -> String {
    match value {
        Data::DateTime(moment) if moment.is_duration() => format_duration(moment.as_f64()),
        Data::DateTime(moment) => {
            let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
            let time = format!("{hour:02}:{minute:02}:{second:02}");
            // The first day is 1; a smaller value is a time of day without a date.
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
        Data::DurationIso(time) => format_iso_duration(time).unwrap_or_else(|| time.clone()),
        Data::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        other => joined_lines(&other.to_string()),
    }
}

/// Formats a duration of ISO 8601, as in `OpenDocument`: `PT08H05M00S`. It may also be a time of
/// day.
fn format_iso_duration(time: &str) -> Option<String> {
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
            // Months and years have no fixed length.
            _ => return None,
        };
        seconds += number.replace(',', ".").parse::<f64>().ok()? * unit;
        rest = after.get(1..)?;
    }
    Some(format_duration(sign * seconds / 86_400.0))
}

/// Formats a duration, given in days, in hours, minutes and seconds.
fn format_duration(days: f64) -> String {
    let seconds = (days.abs() * 86_400.0).round();
    if !(0.0..1e15).contains(&seconds) {
        return days.to_string();
    }
    // Checked above.
    let seconds = seconds as u64;
    let sign = if days < 0.0 && seconds > 0 { "-" } else { "" };
    format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
