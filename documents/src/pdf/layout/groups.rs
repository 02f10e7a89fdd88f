//! Which lines of a block are one row of a table.

use std::ops::Range;

use super::{
    blocks::{Block, begins_small},
    ruling::Ruling,
    words::Word,
};

/// A step is wider than others from this many times them on, and these points.
const WIDER: (f64, f64) = (1.12, 0.3);
/// Lines of a cell are no further from each other, in ems.
pub(super) const LEADING: f64 = 1.6;

/// Lines of a table of which some may go on in the first cell.
const SURE: usize = 5;

/// Rows by the space or the lines between them, and whether there are lines between all; nothing where
/// these do not tell.
pub(super) fn by_gap(block: &Block<'_>, ruling: &Ruling) -> Option<(Vec<Range<usize>>, bool)> {
    let x = block.bounds();
    let narrow = narrowest(block)?;
    let (mut groups, mut start) = (Vec::new(), 0);
    let (mut inner, mut rows, mut torn) = (0_usize, 0_usize, 0_usize);
    let (mut lines, mut numbers) = (0_usize, 0_usize);
    for (at, pair) in block.entries.windows(2).enumerate() {
        let [last, next] = pair else { continue };
        let step = block.step(at + 1)?;
        let ruled = ruling.divides((last.y, next.y - 0.5 * next.size), x);
        if ruled || step > narrow {
            // Text that goes on over the gap is not parted by it.
            let goes_on = |column: usize| match (last.cell(column), next.cell(column)) {
                (Some(line), Some(next)) => {
                    begins_small(next) && block.is_wrapped(column, line, next)
                }
                _ => false,
            };
            torn += usize::from(!ruled && (0..next.cells.len()).any(goes_on));
            groups.push(start..at + 1);
            start = at + 1;
            lines += usize::from(ruled);
        } else {
            inner += 1;
            numbers += usize::from(block.both_have_numbers(last, next));
            let broke = |column: usize| match (last.cell(column), next.cell(column)) {
                (Some(line), Some(next)) => !block.may_go_on(column, line, next),
                _ => false,
            };
            let is_row = next.filled() > 1 && next.cell(0).is_some();
            rows += usize::from(is_row && (0..next.cells.len()).any(broke));
        }
    }
    groups.push(start..block.entries.len());
    let filled = |group: &Range<usize>| {
        let lines = block.entries.get(group.clone()).unwrap_or_default();
        let columns = (0..block.columns.len())
            .filter(|column| lines.iter().any(|line| line.cell(*column).is_some()));
        columns.count() > 1
    };
    let filled = groups.iter().filter(|group| filled(group)).count();
    let resumed: usize = groups.iter().map(|group| resumed(block, group)).sum();
    // Lines between all rows need no words to tell, unless there are numbers below each other.
    let is_ruled = lines > 1 && lines + 1 == groups.len() && inner <= 3 * groups.len();
    let is_broken = if is_ruled { numbers } else { rows };
    let tells = inner > 0
        && groups.len() > 1
        && is_broken * 3 <= inner
        && filled * 5 >= groups.len() * 3
        && resumed * 5 <= groups.len()
        && torn * 3 <= groups.len();
    tells.then_some((groups, is_ruled))
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
