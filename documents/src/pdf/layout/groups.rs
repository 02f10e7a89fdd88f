//! Groups the lines of a block into rows of a table.

use std::ops::Range;

use super::{
    blocks::{Block, Entry, begins_small},
    ruling::Ruling,
    words::Word,
};

/// A step is wide if it exceeds the narrow step times this factor plus these points.
const WIDER: (f64, f64) = (1.12, 0.3);
/// Largest step between lines of one cell, in ems.
pub(super) const LEADING: f64 = 1.6;

/// Fewest lines of a table in which a line may continue the first cell.
const SURE: usize = 5;

/// Counts of evidence for and against gaps as borders of rows.
#[derive(Debug, Default)]
struct Signs {
    /// Gaps, with or without a drawn line.
    gaps: usize,
    /// Gaps with a drawn line.
    lines: usize,
    /// Gaps without a drawn line, across which text continues.
    torn: usize,
    /// Lines without a gap before them.
    inner: usize,
    /// Such lines with a first cell.
    heads: usize,
    /// Such lines that begin a row, judged by their text.
    rows: usize,
    /// Such lines with a number below a number.
    numbers: usize,
}

impl Signs {
    /// Counts a line with a gap before it.
    fn gap(&mut self, block: &Block<'_>, last: &Entry<'_>, next: &Entry<'_>, is_ruled: bool) {
        let goes_on = |column: usize, line: &[&Word], next: &[&Word]| {
            begins_small(next) && block.is_wrapped(column, line, next)
        };
        self.gaps += 1;
        self.lines += usize::from(is_ruled);
        self.torn += usize::from(!is_ruled && any(last, next, goes_on));
    }

    /// Counts a line without a gap before it.
    fn inner(&mut self, block: &Block<'_>, last: &Entry<'_>, next: &Entry<'_>) {
        let broke =
            |column: usize, line: &[&Word], next: &[&Word]| !block.may_go_on(column, line, next);
        let is_head = next.cell(0).is_some();
        self.inner += 1;
        self.heads += usize::from(is_head);
        self.rows += usize::from(is_head && next.filled() > 1 && any(last, next, broke));
        self.numbers += usize::from(block.both_have_numbers(last, next));
    }

    /// Whether every gap has a drawn line, and rows have at most four lines on average.
    fn is_ruled(&self) -> bool {
        self.lines > 1 && self.lines == self.gaps && self.inner <= 3 * (self.gaps + 1)
    }

    /// Whether gaps, and only gaps, separate rows.
    fn tell(&self, lines: usize) -> bool {
        // Drawn lines suffice, unless numbers stand below each other.
        let broken = if self.is_ruled() { self.numbers } else { self.rows };
        self.inner > 0
            && self.gaps > 0
            && (self.is_ruled() || self.heads == 0 || lines >= SURE)
            && broken * 3 <= self.inner
            && self.torn * 3 <= self.gaps + 1
    }
}

/// Whether `holds` is true for both cells of some column.
fn any(
    last: &Entry<'_>,
    next: &Entry<'_>,
    holds: impl Fn(usize, &[&Word], &[&Word]) -> bool,
) -> bool {
    (0..next.cells.len()).any(|column| {
        last.cell(column).zip(next.cell(column)).is_some_and(|(a, b)| holds(column, a, b))
    })
}

/// Groups lines into rows by gaps and drawn lines. Also returns whether every gap has a drawn line. `None`
/// if the gaps do not separate rows.
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

/// Returns how often a column of a row has text again after a line without. Columns of text do that, cells
/// do not.
fn resumed(block: &Block<'_>, group: &Range<usize>) -> usize {
    let lines = block.entries.get(group.clone()).unwrap_or_default();
    let gaps = |column: usize| {
        let has: Vec<bool> = lines.iter().map(|line| line.cell(column).is_some()).collect();
        has.chunk_by(|a, b| a == b).filter(|run| run.first() == Some(&true)).count()
    };
    (0..block.columns.len()).map(|column| gaps(column).saturating_sub(1)).sum()
}

/// Returns the largest step that is not wide: the step of closely set lines, increased by [`WIDER`].
fn narrowest(block: &Block<'_>) -> Option<f64> {
    let size = block.entries.iter().map(|entry| entry.size).fold(0.0, f64::max);
    let steps = (1..block.entries.len()).filter_map(|to| block.step(to));
    let mut steps: Vec<f64> = steps.filter(|step| *step > 0.7 * size).collect();
    steps.sort_by(f64::total_cmp);
    // The smallest twentieth may be accidents.
    let narrow = *steps.get(steps.len() / 20)?;
    narrow.is_finite().then_some(narrow * WIDER.0 + WIDER.1)
}

/// Groups evenly spaced lines into rows by their text: a line joins the row before if it continues text
/// that had no more room there.
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

/// Whether a line continues the row that begins at `start`.
fn goes_on(block: &Block<'_>, start: usize, to: usize) -> bool {
    let Some(next) = block.entries.get(to) else { return false };
    let lines = block.entries.get(start..to).unwrap_or_default();
    let last = lines.last();
    if last.is_none_or(|last| next.y - last.y > LEADING * last.size.max(next.size)) {
        return false;
    }
    // A line with a first cell begins a row, unless that cell continues a longer one.
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
