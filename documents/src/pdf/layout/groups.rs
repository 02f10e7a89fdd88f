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
const MIN_LINES_TO_CONTINUE_FIRST_CELL: usize = 5;

/// Counts of evidence for and against gaps as borders of rows.
#[derive(Debug, Default)]
struct GapEvidence {
    /// Gaps, with or without a drawn line.
    gaps: usize,
    /// Gaps with a drawn line.
    ruled_gaps: usize,
    /// Gaps without a drawn line, across which text continues.
    split_texts: usize,
    /// Lines without a gap before them.
    lines_without_gap: usize,
    /// Such lines with a first cell.
    with_first_cell: usize,
    /// Such lines that begin a row, judged by their text.
    beginning_rows: usize,
    /// Such lines with a number below a number.
    numbers: usize,
}

impl GapEvidence {
    /// Counts a line with a gap before it.
    fn count_gap(&mut self, block: &Block<'_>, last: &Entry<'_>, next: &Entry<'_>, is_ruled: bool) {
        let goes_on = |column: usize, line: &[&Word], next: &[&Word]| {
            begins_small(next) && block.is_wrapped(column, line, next)
        };
        self.gaps += 1;
        self.ruled_gaps += usize::from(is_ruled);
        self.split_texts += usize::from(!is_ruled && any_column(last, next, goes_on));
    }

    /// Counts a line without a gap before it.
    fn count_line_without_gap(&mut self, block: &Block<'_>, last: &Entry<'_>, next: &Entry<'_>) {
        let broke =
            |column: usize, line: &[&Word], next: &[&Word]| !block.may_continue(column, line, next);
        let is_head = next.cell(0).is_some();
        self.lines_without_gap += 1;
        self.with_first_cell += usize::from(is_head);
        self.beginning_rows +=
            usize::from(is_head && next.filled() > 1 && any_column(last, next, broke));
        self.numbers += usize::from(block.both_have_numbers(last, next));
    }

    /// Whether every gap has a drawn line, and rows have at most four lines on average.
    fn is_ruled(&self) -> bool {
        self.ruled_gaps > 1
            && self.ruled_gaps == self.gaps
            && self.lines_without_gap <= 3 * (self.gaps + 1)
    }

    /// Whether gaps, and only gaps, separate rows.
    fn gaps_separate_rows(&self, lines: usize) -> bool {
        // Drawn lines suffice, unless numbers stand below each other.
        let broken = if self.is_ruled() { self.numbers } else { self.beginning_rows };
        self.lines_without_gap > 0
            && self.gaps > 0
            && (self.is_ruled()
                || self.with_first_cell == 0
                || lines >= MIN_LINES_TO_CONTINUE_FIRST_CELL)
            && broken * 3 <= self.lines_without_gap
            && self.split_texts * 3 <= self.gaps + 1
    }
}

/// Whether `holds` is true for both cells of some column.
fn any_column(
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
pub(super) fn group_by_gap(
    block: &Block<'_>,
    ruling: &Ruling,
) -> Option<(Vec<Range<usize>>, bool)> {
    let (x, narrow) = (block.bounds(), largest_narrow_step(block)?);
    let (mut groups, mut start, mut evidence) = (Vec::new(), 0, GapEvidence::default());
    for (to, pair) in (1..).zip(block.entries.windows(2)) {
        let [last, next] = pair else { continue };
        let is_ruled = ruling.divides((last.y, next.y - 0.5 * next.size), x);
        if is_ruled || block.step(to)? > narrow {
            groups.push(start..to);
            start = to;
            evidence.count_gap(block, last, next, is_ruled);
        } else {
            evidence.count_line_without_gap(block, last, next);
        }
    }
    groups.push(start..block.entries.len());
    let filled = |group: &&Range<usize>| {
        let lines = block.entries.get((*group).clone()).unwrap_or_default();
        let has = |column: &usize| lines.iter().any(|line| line.cell(*column).is_some());
        (0..block.columns.len()).filter(has).count() > 1
    };
    let filled = groups.iter().filter(filled).count();
    let resumed: usize = groups.iter().map(|group| count_resumptions(block, group)).sum();
    let gaps_separate_rows = evidence.gaps_separate_rows(block.entries.len())
        && filled * 5 >= groups.len() * 3
        && resumed * 5 <= groups.len();
    gaps_separate_rows.then_some((groups, evidence.is_ruled()))
}

/// Returns how often a column of a row has text again after a line without. Columns of text do that, cells
/// do not.
fn count_resumptions(block: &Block<'_>, group: &Range<usize>) -> usize {
    let lines = block.entries.get(group.clone()).unwrap_or_default();
    let gaps = |column: usize| {
        let has: Vec<bool> = lines.iter().map(|line| line.cell(column).is_some()).collect();
        has.chunk_by(|a, b| a == b).filter(|run| run.first() == Some(&true)).count()
    };
    (0..block.columns.len()).map(|column| gaps(column).saturating_sub(1)).sum()
}

/// Returns the largest step that is not wide: the step of closely set lines, increased by [`WIDER`].
fn largest_narrow_step(block: &Block<'_>) -> Option<f64> {
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
pub(super) fn group_by_text(block: &Block<'_>) -> Vec<Range<usize>> {
    let narrow = largest_narrow_step(block).unwrap_or(0.0);
    let (mut groups, mut start) = (Vec::new(), 0);
    for to in 1..block.entries.len() {
        let step = block.step(to).unwrap_or(f64::INFINITY);
        if step > narrow || !continues_row(block, start, to) {
            groups.push(start..to);
            start = to;
        }
    }
    groups.push(start..block.entries.len());
    groups
}

/// Whether a line continues the row that begins at `start`.
fn continues_row(block: &Block<'_>, start: usize, to: usize) -> bool {
    let Some(next) = block.entries.get(to) else { return false };
    let lines = block.entries.get(start..to).unwrap_or_default();
    let last = lines.last();
    if last.is_none_or(|last| next.y - last.y > LEADING * last.size.max(next.size)) {
        return false;
    }
    // A line with a first cell begins a row, unless that cell continues a longer one.
    let is_row = |cell: &[&Word]| {
        block.entries.len() < MIN_LINES_TO_CONTINUE_FIRST_CELL || !begins_small(cell)
    };
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
