//! Which lines of a block are one row of a table.

use std::ops::Range;

use super::{
    blocks::{Block, Entry, begins_small},
    ruling::Ruling,
    words::Word,
};

/// A step is wider than others from this many times them on, and these points.
const WIDER: (f64, f64) = (1.12, 0.3);
/// Lines of a cell are no further from each other, in ems.
pub(super) const LEADING: f64 = 1.6;

/// Lines of a table of which some may go on in the first cell.
const SURE: usize = 5;

/// What is met between the lines of a block.
#[derive(Debug, Default)]
struct Signs {
    /// Gaps, and lines that are drawn.
    gaps: usize,
    lines: usize,
    /// Gaps over which text goes on.
    torn: usize,
    /// Lines without a gap before them: of all; with a first cell; that are rows by what they say;
    /// with numbers below numbers.
    inner: usize,
    heads: usize,
    rows: usize,
    numbers: usize,
}

impl Signs {
    /// Takes a line that has a gap before it.
    fn gap(&mut self, block: &Block<'_>, last: &Entry<'_>, next: &Entry<'_>, is_ruled: bool) {
        let goes_on = |column: usize, line: &[&Word], next: &[&Word]| {
            begins_small(next) && block.is_wrapped(column, line, next)
        };
        self.gaps += 1;
        self.lines += usize::from(is_ruled);
        self.torn += usize::from(!is_ruled && any(last, next, goes_on));
    }

    /// Takes a line that has none.
    fn inner(&mut self, block: &Block<'_>, last: &Entry<'_>, next: &Entry<'_>) {
        let broke =
            |column: usize, line: &[&Word], next: &[&Word]| !block.may_go_on(column, line, next);
        let is_head = next.cell(0).is_some();
        self.inner += 1;
        self.heads += usize::from(is_head);
        self.rows += usize::from(is_head && next.filled() > 1 && any(last, next, broke));
        self.numbers += usize::from(block.both_have_numbers(last, next));
    }

    /// Whether lines are drawn between all rows.
    fn is_ruled(&self) -> bool {
        self.lines > 1 && self.lines == self.gaps && self.inner <= 3 * (self.gaps + 1)
    }

    /// Whether gaps part rows, and nothing else does.
    fn tell(&self, lines: usize) -> bool {
        // Lines need no words to tell, unless there are numbers below each other.
        let broken = if self.is_ruled() { self.numbers } else { self.rows };
        self.inner > 0
            && self.gaps > 0
            && (self.is_ruled() || self.heads == 0 || lines >= SURE)
            && broken * 3 <= self.inner
            && self.torn * 3 <= self.gaps + 1
    }
}

/// Whether something holds for the cells of a column in two entries.
fn any(
    last: &Entry<'_>,
    next: &Entry<'_>,
    holds: impl Fn(usize, &[&Word], &[&Word]) -> bool,
) -> bool {
    (0..next.cells.len()).any(|column| {
        last.cell(column).zip(next.cell(column)).is_some_and(|(a, b)| holds(column, a, b))
    })
}

/// Rows by the space or the lines between them, and whether there are lines between all; nothing where
/// these do not tell.
pub(super) fn by_gap(block: &Block<'_>, ruling: &Ruling) -> Option<(Vec<Range<usize>>, bool)> {
    let (x, narrow) = (block.bounds(), narrowest(block)?);
    let (mut groups, mut start, mut signs) = (Vec::new(), 0, Signs::default());
    for (to, pair) in (1..).zip(block.entries.windows(2)) {
        let [last, next] = pair else { continue };
        let is_ruled = ruling.divides((last.y, next.y - 0.5 * next.size), x);
        if is_ruled || block.step(to)? > narrow {
            groups.push(start..to);
            start = to;
            signs.gap(block, last, next, is_ruled);
        } else {
            signs.inner(block, last, next);
        }
    }
    groups.push(start..block.entries.len());
    let filled = |group: &&Range<usize>| {
        let lines = block.entries.get((*group).clone()).unwrap_or_default();
        let has = |column: &usize| lines.iter().any(|line| line.cell(*column).is_some());
        (0..block.columns.len()).filter(has).count() > 1
    };
    let filled = groups.iter().filter(filled).count();
    let resumed: usize = groups.iter().map(|group| resumed(block, group)).sum();
    let tell = signs.tell(block.entries.len())
        && filled * 5 >= groups.len() * 3
        && resumed * 5 <= groups.len();
    tell.then_some((groups, signs.is_ruled()))
}

/// How often a column goes on in a row after it had ended: columns of text do, cells do not.
fn resumed(block: &Block<'_>, group: &Range<usize>) -> usize {
    let lines = block.entries.get(group.clone()).unwrap_or_default();
    let gaps = |column: usize| {
        let has: Vec<bool> = lines.iter().map(|line| line.cell(column).is_some()).collect();
        has.chunk_by(|a, b| a == b).filter(|run| run.first() == Some(&true)).count()
    };
    (0..block.columns.len()).map(|column| gaps(column).saturating_sub(1)).sum()
}

/// The step of lines that follow each other closely, and a little more.
fn narrowest(block: &Block<'_>) -> Option<f64> {
    let size = block.entries.iter().map(|entry| entry.size).fold(0.0, f64::max);
    let steps = (1..block.entries.len()).filter_map(|to| block.step(to));
    let mut steps: Vec<f64> = steps.filter(|step| *step > 0.7 * size).collect();
    steps.sort_by(f64::total_cmp);
    // A few may be less by accident.
    let narrow = *steps.get(steps.len() / 20)?;
    narrow.is_finite().then_some(narrow * WIDER.0 + WIDER.1)
}

/// Rows by what their lines say, where all lines are equally far from each other: a line that goes on
/// with what had no more room in the one before it belongs to it.
pub(super) fn by_text(block: &Block<'_>) -> Vec<Range<usize>> {
    let narrow = narrowest(block).unwrap_or(0.0);
    let (mut groups, mut start) = (Vec::new(), 0);
    for to in 1..block.entries.len() {
        let step = block.step(to).unwrap_or(f64::INFINITY);
        if step > narrow || !goes_on(block, start, to) {
            groups.push(start..to);
            start = to;
        }
    }
    groups.push(start..block.entries.len());
    groups
}

/// Whether a line goes on with the row that begins at `start`.
fn goes_on(block: &Block<'_>, start: usize, to: usize) -> bool {
    let Some(next) = block.entries.get(to) else { return false };
    let lines = block.entries.get(start..to).unwrap_or_default();
    let last = lines.last();
    if last.is_none_or(|last| next.y - last.y > LEADING * last.size.max(next.size)) {
        return false;
    }
    // A row has a first cell, unless that is the end of a longer one.
    let is_row = |cell: &[&Word]| block.entries.len() < SURE || !begins_small(cell);
    if next.cell(0).is_some_and(is_row) {
        return false;
    }
    (0..next.cells.len()).all(|column| match next.cell(column) {
        None => true,
        Some(cell) => last
            .and_then(|last| last.cell(column))
            .is_some_and(|line| block.is_wrapped(column, line, cell)),
    })
}
