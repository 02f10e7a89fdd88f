//! Converts letters with positions into text in reading order.
//!
//! * [`words`]: letters that touch form words; [`rows`]: words on one baseline form rows
//! * [`ruling`], [`grids`], [`ruled`]: drawn lines form cells, and cells form tables
//! * [`gutters`], [`blocks`], [`groups`], [`aligned`]: aligned cells form tables without drawn lines
//! * [`upright`]: letters below each other that are read downwards
//! * [`overlays`]: large letters across the lines of others are separated from them
//! * [`asides`]: notes in small letters beside the text are separated from it
//! * [`numbered`]: line numbers are separated from the text
//! * [`columns`]: other rows with a common gutter form columns of text
//! * [`lines`], [`scripts`], [`bidi`], [`hyphens`]: the words of a row form a line, and lines paragraphs

mod aligned;
mod asides;
mod bidi;
mod blocks;
mod columns;
mod grids;
mod groups;
mod gutters;
mod hyphens;
mod lines;
mod numbered;
mod overlays;
mod rows;
mod ruled;
mod ruling;
mod scripts;
mod upright;
mod words;

use std::collections::BTreeMap;

pub(super) use self::bidi::is_rtl;
use self::{
    aligned::Table,
    gutters::RowBudget,
    lines::{Line, insert_note, line_of_row, write_paragraphs},
    rows::{Row, group_into_rows},
    ruling::Ruling,
    words::{Word, join_letters},
};
use super::{glyph::Glyph, page_budget::PageBudget, rules::Rules};

/// Pages with more rows are not searched for columns and tables.
const MAX_ROWS: usize = 3_000;
/// Deepest nesting of columns.
const MAX_DEPTH: usize = 6;
/// Most rows of a small table.
const FEW: usize = 6;
/// Most lines above a table that may seem to belong to its columns.
const LINES_ABOVE: usize = 3;

/// Returns the text of a page. Letters that run in another direction come after the others.
///
/// Unwinds where the page takes more than a page [may](super::page_budget).
pub(super) fn page_text(glyphs: &[Glyph], rules: &Rules, budget: &PageBudget) -> String {
    let mut text = String::new();
    let mut by_turn: BTreeMap<(bool, u16), Vec<&Glyph>> = BTreeMap::new();
    for glyph in glyphs {
        // Slanted text comes last: it lies over the other words.
        by_turn.entry((glyph.turn % 900 != 0, glyph.turn)).or_default().push(glyph);
    }
    for ((is_slanted, turn), glyphs) in by_turn {
        let upright = if turn == 0 { upright::as_vertical_text(&glyphs) } else { None };
        let turn = if upright.is_some() { 900 } else { turn };
        let words = match &upright {
            Some(upright) => join_letters(upright.iter()),
            None => join_letters(glyphs.into_iter()),
        };
        if words.is_empty() {
            continue;
        }
        let ruling = if is_slanted { Ruling::default() } else { Ruling::from_rules(rules, turn) };
        let (words, overlays) = overlays::split_overlays(words);
        let words = ruled::replace_tables(words, &ruling);
        let (words, asides) = asides::split_asides(words, budget);
        // Lower numbers belong to tables with drawn lines.
        let tables = ruling.level.len() + ruling.upright.len();
        let mut reader =
            Reader { ruling, budget: RowBudget::new(budget), lines: Vec::new(), tables };
        let mut rows = group_into_rows(words);
        let numbers = numbered::take_line_numbers(&mut rows);
        reader.read(&rows, 0);
        for aside in asides {
            insert_note(&mut reader.lines, lines_of_words(aside.words), aside.y);
        }
        let part = write_paragraphs(&reader.lines);
        let part = numbers.map_or_else(|| part.clone(), |numbers| format!("{part}\n\n{numbers}"));
        let overlays = lines_of_words(overlays);
        for part in [part, write_paragraphs(&overlays)].iter().filter(|part| !part.is_empty()) {
            text.push_str(if text.is_empty() { "" } else { "\n\n" });
            text.push_str(part);
        }
    }
    text
}

/// Returns the lines of words without columns and tables.
fn lines_of_words(words: Vec<Word>) -> Vec<Line> {
    let rows = group_into_rows(words);
    (0..rows.len()).filter_map(|at| line_of_row(&rows, at)).collect()
}

/// Puts rows into reading order.
struct Reader<'p> {
    ruling: Ruling,
    budget: RowBudget<'p>,
    lines: Vec<Line>,
    /// Number of the next table.
    tables: usize,
}

impl Reader<'_> {
    fn read(&mut self, rows: &[Row], depth: usize) {
        let finds_tables = depth < MAX_DEPTH && rows.len() <= MAX_ROWS;
        let starts = if finds_tables { columns::starts(rows) } else { Vec::new() };
        let left = rows.iter().map(Row::left).fold(f64::INFINITY, f64::min);
        let ends = rows.iter().flat_map(|row| &row.words).map(|word| word.x.1);
        let bounds = (left, ends.fold(f64::NEG_INFINITY, f64::max));
        let mut at = 0;
        while let Some(rest) = rows.get(at..).filter(|rest| !rest.is_empty()) {
            let remaining = RemainingRows {
                rows: rest,
                bounds,
                number: self.tables,
                ruling: &self.ruling,
                budget: &self.budget,
            };
            let columns = columns::find(rest, &starts, &self.budget);
            let table = if finds_tables { remaining.table(0) } else { None };
            let above =
                if finds_tables { remaining.rows_above(table.as_ref(), columns) } else { 0 };
            if above > 0 {
                self.lines.extend((at..at + above).filter_map(|at| line_of_row(rows, at)));
                at += above;
                continue;
            }
            if let Some(table) = table.filter(|table| !remaining.is_column_head(table, columns)) {
                self.lines.extend(table.lines);
                self.tables += 1;
                at += table.rows;
                continue;
            }
            let Some((count, x)) = columns else {
                self.lines.extend(line_of_row(rows, at));
                at += 1;
                continue;
            };
            let words = rest.iter().take(count).flat_map(|row| &row.words).cloned();
            let (right, left): (Vec<_>, Vec<_>) = words.partition(|word| word.x.0 >= x);
            self.read(&self::group_into_rows(left), depth + 1);
            self.read(&self::group_into_rows(right), depth + 1);
            at += count;
        }
    }
}

/// Rows that are still to be read.
struct RemainingRows<'a> {
    rows: &'a [Row],
    /// Left and right end of all rows of the page.
    bounds: (f64, f64),
    /// Number of the next table.
    number: usize,
    ruling: &'a Ruling,
    budget: &'a RowBudget<'a>,
}

impl RemainingRows<'_> {
    /// Returns the table that begins at a row.
    fn table(&self, at: usize) -> Option<Table> {
        aligned::find(self.rows.get(at..)?, self.bounds, self.ruling, self.number, self.budget)
    }

    /// Returns how many of the first rows stand above a table and only seem to belong to its columns.
    fn rows_above(&self, table: Option<&Table>, columns: Option<(usize, f64)>) -> usize {
        if let Some(table) = table {
            // A heading over several columns hides that there are several.
            let below = self.table(1).filter(|below| below.columns > table.columns);
            return usize::from(below.is_some_and(|below| below.rows + 1 >= table.rows));
        }
        let head =
            gutters::find(self.rows, self.bounds, self.budget).is_none_or(|(count, _)| count <= 2);
        let count = columns.map_or(0, |(count, _)| count);
        let is_above = |above: &usize| {
            let mut rows = self.rows.iter().take(*above);
            (head && *above == 1) || rows.all(|row| row.gaps().next().is_none())
        };
        let is_most = |above: &usize| {
            self.table(*above)
                .is_some_and(|table| table.rows * 5 >= count.saturating_sub(*above) * 3)
        };
        (1..=LINES_ABOVE).take_while(is_above).find(is_most).unwrap_or(0)
    }

    /// Whether a table is only a few lines at the top of columns that go on.
    fn is_column_head(&self, table: &Table, columns: Option<(usize, f64)>) -> bool {
        let Some((count, _)) = columns.filter(|_| table.rows <= FEW) else { return false };
        let next = self.table(table.rows).map_or(0, |next| next.rows);
        count >= 3 * table.rows && next * 3 < count - table.rows
    }
}

#[cfg(test)]
mod tests;
