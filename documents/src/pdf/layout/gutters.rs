//! Gutters that consecutive rows leave free.

use std::cell::Cell;

use super::{
    lines::{is_mark, join_words},
    rows::Row,
};
use crate::pdf::page_budget::PageBudget;

/// Most rows of a table.
const MAX_ROWS: usize = 400;
/// Narrowest gutter of a table, in ems.
const GUTTER: f64 = 0.75;
/// Narrowest gap that separates cells for certain, in ems.
const WIDE: f64 = 1.2;
/// Largest step between rows of a table, in ems.
const FAR: f64 = 2.8;
/// Largest fraction of a gutter that a separate line of text may cover.
const TAKEN: f64 = 0.4;

/// Most separate lines below which a table with more columns is looked for.
const MAX_HEADS: usize = 4;

/// Most rows examined on a page: each row may be examined again for each row above it.
const MAX_ROWS_EXAMINED: usize = 500_000;

/// Remaining rows that may be examined, and the limits of the page.
#[derive(Debug)]
pub(super) struct RowBudget<'p> {
    rows: Cell<usize>,
    page_budget: &'p PageBudget,
}

impl<'p> RowBudget<'p> {
    pub(super) fn new(page_budget: &'p PageBudget) -> Self {
        Self { rows: Cell::new(MAX_ROWS_EXAMINED), page_budget }
    }

    /// Subtracts `rows`. Returns whether any are left. Unwinds if the page's time is over.
    pub(super) fn take(&self, rows: usize) -> bool {
        self.page_budget.check_time();
        self.rows.set(self.rows.get().saturating_sub(rows));
        self.rows.get() > 0
    }
}

/// A range of x that no row has covered yet.
#[derive(Debug, Clone)]
struct FreeRange {
    x: (f64, f64),
    /// Number of rows with a wide gap here.
    rows: usize,
}

/// Returns how many of the first rows have gutters in common, and the right limit of each column. `bounds`
/// are the left and right end of the page's rows.
pub(super) fn find(
    rows: &[Row],
    bounds: (f64, f64),
    budget: &RowBudget<'_>,
) -> Option<(usize, Vec<f64>)> {
    let first = |rows: &[Row]| find_first(rows, bounds, budget);
    let found = first(rows)?;
    // A row without gaps may be the heading of another table with more columns.
    let lone =
        (1..found.0).filter(|at| rows.get(*at).is_some_and(|row| row.gaps().next().is_none()));
    let more = lone.take(MAX_HEADS).find(|at| {
        let below = rows.get(at + 1..).and_then(first);
        below.is_some_and(|below| below.1.len() > found.1.len())
    });
    match more {
        Some(end) => first(rows.get(..end)?),
        None => Some(found),
    }
}

fn find_first(
    rows: &[Row],
    bounds: (f64, f64),
    budget: &RowBudget<'_>,
) -> Option<(usize, Vec<f64>)> {
    rows.first()?.gaps().next()?;
    let mut free = vec![FreeRange { x: (bounds.0 - 100.0, bounds.1 + 100.0), rows: 0 }];
    let (mut count, mut last) = (0, f64::NEG_INFINITY);
    for row in rows.iter().take(MAX_ROWS) {
        let far = count > 0 && row.y - last > FAR * row.size;
        let Some(next) = free_after_row(&free, row).filter(|_| !far) else { break };
        free = next;
        last = row.y;
        count += 1;
    }
    if !budget.take(count) {
        return None;
    }
    let left = rows.iter().take(count).map(Row::left).fold(f64::INFINITY, f64::min);
    let mut limits: Vec<f64> = free
        .iter()
        .filter(|free| free.rows >= 2 && free.x.0 > left && free.x.1 < bounds.1)
        .map(|free| free.x.1)
        .collect();
    // Marks of a list are not a column. If there are more columns, they may number a table's rows.
    if let [limit] = limits.as_slice()
        && has_marks(rows.iter().take(count), *limit)
    {
        limits.clear();
    }
    limits.push(bounds.1);
    (count >= 2 && limits.len() >= 2).then_some((count, limits))
}

/// Returns the ranges still free after a row. `None` if the row covers a gutter of the rows before, or is
/// a row of a table already.
fn free_after_row(free: &[FreeRange], row: &Row) -> Option<Vec<FreeRange>> {
    if row.words.iter().any(|word| word.table.is_some()) {
        return None;
    }
    // Ranges that the row covers, from left to right.
    let mut covered: Vec<(f64, f64)> = Vec::new();
    for word in &row.words {
        match covered.last_mut() {
            Some(last) if word.x.0 - last.1 < GUTTER * row.size => last.1 = last.1.max(word.x.1),
            _ => covered.push(word.x),
        }
    }
    // A row with one range is text between tables, unless it begins behind a gutter.
    let is_text = covered.len() == 1
        && !covered.first().is_some_and(|part| {
            free.iter().any(|free| free.rows > 0 && free.x.1 < part.0 + row.size)
        });
    let mut left = Vec::with_capacity(free.len() + covered.len());
    let mut first = 0;
    for range in free {
        while covered.get(first).is_some_and(|part| part.1 <= range.x.0) {
            first += 1;
        }
        let (start, before) = (range.x.0, left.len());
        let (mut at, mut next) = (start, first);
        loop {
            let part = covered.get(next).filter(|part| part.0 < range.x.1);
            let end = part.map_or(range.x.1, |part| part.0);
            if end - at >= GUTTER * row.size {
                let (from, to) =
                    (next.checked_sub(1).and_then(|at| covered.get(at)), covered.get(next));
                let wide = from.zip(to).is_some_and(|(from, to)| to.0 - from.1 >= WIDE * row.size);
                left.push(FreeRange { x: (at, end), rows: range.rows + usize::from(wide) });
            }
            let Some(part) = part else { break };
            at = at.max(part.1);
            next += 1;
        }
        let width = left.iter().skip(before).map(|free| free.x.1 - free.x.0).fold(0.0, f64::max);
        let room = if is_text { 1.0 - TAKEN } else { 0.0 };
        if range.rows > 0 && (left.len() == before || width < room * (range.x.1 - range.x.0)) {
            return None;
        }
    }
    Some(left)
}

/// Whether in more than three fifths of the rows the text before `place` is a mark of a list.
fn has_marks<'a>(rows: impl Iterator<Item = &'a Row>, place: f64) -> bool {
    let (mut marks, mut all) = (0, 0);
    for row in rows {
        let words: Vec<_> = row.words.iter().take_while(|word| word.x.0 < place).collect();
        if !words.is_empty() {
            all += 1;
            marks += usize::from(is_mark(&join_words(&words, |_, _, _| false)));
        }
    }
    marks * 5 > all * 3
}
