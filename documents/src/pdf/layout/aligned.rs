//! Tables without drawn lines: rows whose cells are aligned below each other.

use std::ops::Range;

use super::{
    bidi::is_right_to_left,
    blocks::{Block, ColumnStats, Entry},
    columns::COLUMN_LETTERS,
    groups::{self, LEADING},
    gutters::{self, RowBudget},
    lines::{BAR, Line},
    rows::Row,
    ruling::Ruling,
};

/// Fewest letters per line, on average, of a column of text.
const TEXT_LETTERS: f64 = 20.0;
/// With more lines per row than this, cells of text must be of unequal length; otherwise they are columns
/// of text.
const LONG_CELL: usize = 3;
/// In a table, some column has fewer letters per line than this fraction of the longest column's.
const SHORTER: f64 = 0.65;
/// Smallest step between lines of one text, in ems.
const CLOSE: f64 = 0.8;
/// Single lines further apart than this are rows, in ems.
const SPACED: f64 = 1.55;

/// A table found on a page.
#[derive(Debug)]
pub(super) struct Table {
    /// Number of rows of the page that it takes.
    pub(super) rows: usize,
    /// Number of columns.
    pub(super) columns: usize,
    pub(super) lines: Vec<Line>,
}

/// Finds the table that begins with the first row. `bounds` are the left and right end of the page's rows.
pub(super) fn find(
    rows: &[Row],
    bounds: (f64, f64),
    ruling: &Ruling,
    number: usize,
    budget: &RowBudget<'_>,
) -> Option<Table> {
    let (count, limits) = gutters::find(rows, bounds, budget)?;
    let entries: Vec<Entry<'_>> =
        rows.iter().take(count).map(|row| Entry::new(row, &limits)).collect();
    let mut block = Block::new(entries, limits);
    let all = block.entries.len();
    block.entries.truncate(without_text_below(&block));
    if block.entries.len() < all {
        let Block { entries, limits, .. } = block;
        block = Block::new(entries, limits);
    }
    let lone = block.entries.iter().filter(|entry| entry.is_lone()).count();
    if lone * 5 > block.entries.len() * 2 || !block.columns_are_aligned() || is_interleaved(&block)
    {
        return None;
    }
    let by_gap = groups::group_by_gap(&block, ruling)
        .filter(|(groups, is_ruled)| *is_ruled || is_grouped(&block, groups));
    let groups = match by_gap {
        Some((groups, _)) => groups,
        None if is_aligned(&block) => groups::group_by_text(&block),
        None => return None,
    };
    let rtl = is_rtl(&block);
    let lines = groups.into_iter().filter_map(|group| {
        let lines = block.entries.get(group)?;
        let first = lines.first()?;
        let cells = block.cells(lines).into_iter().zip(&block.columns);
        let used = cells.filter(|(_, column)| column.lines > 0);
        let mut cells: Vec<String> = used.map(|(cell, _)| cell).collect();
        // A lone first cell is a title or a line of its own.
        if lines.iter().all(Entry::is_lone) {
            cells.truncate(1);
        }
        if rtl {
            cells.reverse();
        }
        let text = cells.join(BAR).trim_end().to_owned();
        Some(Line { text, y: first.y, size: first.size, table: Some(number) })
    });
    let lines = lines.collect();
    Some(Table { rows: block.entries.len(), columns: block.columns.len(), lines })
}

/// Returns the number of entries without the text below the last row. Such text is several lines, or one
/// line further below than rows are apart.
fn without_text_below(block: &Block<'_>) -> usize {
    let all = block.entries.len();
    let lone = block.entries.iter().rev().take_while(|entry| entry.is_lone()).count();
    let goes_on = |at: &usize| {
        let lines = (block.entries.get(at - 1), block.entries.get(*at));
        let cells = lines.0.zip(lines.1).and_then(|(a, b)| a.cell(0).zip(b.cell(0)));
        block.step(*at).is_some_and(|step| step < LEADING * size(block))
            && cells.is_some_and(|(line, next)| block.is_wrapped(0, line, next))
    };
    // A line that continues the last row's first cell is not text below the table.
    let rows = (all - lone..all).find(|at| *at > 0 && !goes_on(at)).unwrap_or(all);
    let steps = (1..rows).filter_map(|to| block.step(to)).fold(0.0, f64::max);
    let is_far = rows > 1 && block.step(rows).is_some_and(|step| step > 1.15 * steps);
    if all - rows > 1 || is_far { rows } else { all }
}

/// Whether more than a quarter of the lines are closer to each other than letters are high. Then they
/// belong to columns of text with different baselines.
fn is_interleaved(block: &Block<'_>) -> bool {
    let steps = block.entries.windows(2).filter(|pair| match pair {
        [last, next] => next.y - last.y < CLOSE * last.size.min(next.size),
        _ => false,
    });
    steps.count() * 4 > block.entries.len()
}

fn size(block: &Block<'_>) -> f64 {
    block.entries.iter().map(|entry| entry.size).fold(0.0, f64::max)
}

/// Whether a column holds lines of text, as in a book.
fn is_text(column: &ColumnStats) -> bool {
    column.lines >= 2 && column.full >= 0.5 && column.letters >= TEXT_LETTERS
}

/// Whether all columns are text, except those of short numbers.
fn is_prose(block: &Block<'_>) -> bool {
    let mut columns = block
        .columns
        .iter()
        .filter(|column| column.lines >= 2 && !(column.numbers > 0.9 && column.letters < 6.0))
        .peekable();
    columns.peek().is_some() && columns.all(is_text)
}

fn shortest_and_longest(block: &Block<'_>) -> (f64, f64) {
    let letters = || block.columns.iter().map(|column| column.letters);
    (letters().fold(f64::INFINITY, f64::min), letters().fold(0.0, f64::max))
}

/// Whether rows found by the gaps between them are rows of a table.
fn is_grouped(block: &Block<'_>, rows: &[Range<usize>]) -> bool {
    let (lines, groups) = (block.entries.len(), rows.len());
    let (shortest, longest) = shortest_and_longest(block);
    if shortest >= TEXT_LETTERS && lines > LONG_CELL * groups && !is_uneven(block, rows) {
        return false;
    }
    if is_prose(block) {
        // Text in two languages: each paragraph stands beside its translation.
        return groups >= 3
            && lines <= 12 * groups
            && block.columns.iter().all(|c| c.aligned > 0.6);
    }
    let wrapped = block.wrapped_fraction();
    let unequal = shortest < 15.0 || shortest < SHORTER * longest;
    (unequal && wrapped > 0.3) || (groups >= 3 && wrapped > 0.6)
}

/// Whether in at least a third of the rows the cells have different numbers of lines. Columns of text have
/// no gaps, so paragraphs beside each other by accident are equally long.
fn is_uneven(block: &Block<'_>, rows: &[Range<usize>]) -> bool {
    let uneven = |row: &&Range<usize>| {
        let lines = block.entries.get((*row).clone()).unwrap_or_default();
        let of = |column| lines.iter().filter(|line| line.cell(column).is_some()).count();
        (1..block.columns.len()).any(|column| of(column) != of(0))
    };
    rows.iter().filter(uneven).count() * 3 >= rows.len()
}

/// Whether evenly spaced lines are rows of a table, not columns of text.
fn is_aligned(block: &Block<'_>) -> bool {
    let with_several_cells = block.entries.iter().filter(|entry| entry.filled() > 1).count();
    let longest = block.columns.iter().map(|column| column.lines).max().unwrap_or(0);
    // One column may have cells of several lines, and so lines without a neighbour.
    let mut unaligned = block.columns.iter().filter(|column| column.aligned < 0.8);
    let aligned =
        unaligned.next().is_none_or(|column| column.lines == longest) && unaligned.next().is_none();
    if with_several_cells < 2
        || with_several_cells * 4 < block.entries.len()
        || !aligned
        || is_prose(block)
        || block.columns.iter().skip(1).any(|column| column.bullets >= 0.5)
    {
        return false;
    }
    let (shortest, longest) = shortest_and_longest(block);
    let short = shortest < COLUMN_LETTERS as f64;
    short
        || shortest < SHORTER * longest
        || block.columns.iter().any(|column| column.lines >= 2 && column.numbers > 0.6)
        || is_spaced(block)
}

fn is_spaced(block: &Block<'_>) -> bool {
    let steps = (1..block.entries.len()).filter_map(|to| block.step(to));
    steps.into_iter().all(|step| step > SPACED * size(block))
}

fn is_rtl(block: &Block<'_>) -> bool {
    let words = block.entries.iter().flat_map(|entry| entry.cells.iter().flatten());
    is_right_to_left(&words.map(|word| word.text.as_str()).collect::<String>())
}
