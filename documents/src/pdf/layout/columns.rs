//! Columns of text: rows with a common gutter.

use std::collections::BTreeMap;

use super::{gutters::RowBudget, rows::Row, words::Word};

/// Fewest lines of a column, unless its text flows from line to line.
const COLUMN_LINES: usize = 3;
/// Fewest lines of any column.
const FEW_LINES: usize = 2;
/// Fewest words of a line whose sentence may continue on the next.
const WORDS: usize = 3;
/// Fewest lines of running text that is a column whatever stands beside it, such as a figure's words, and
/// their fewest letters on average.
const PROSE_LINES: usize = 6;
const PROSE_LETTERS: usize = 30;
/// Fewest rows in which what stands beside it has another baseline.
const LINES_APART: usize = 3;
/// Baselines that differ by more are not one, in ems.
const APART: f64 = 0.06;
/// Fewest letters per cell of a column, on average; cells of tables have fewer.
pub(super) const COLUMN_LETTERS: usize = 15;

/// Returns each x at which several rows begin again after a wide gap.
pub(super) fn starts(rows: &[Row]) -> Vec<f64> {
    let left = rows.iter().map(Row::left).fold(f64::INFINITY, f64::min);
    let mut starts: BTreeMap<i64, (usize, f64)> = BTreeMap::new();
    for row in rows {
        let begins = row.cells().filter_map(|cell| Some(cell.first()?.x.0));
        for x in begins.filter(|x| *x > left + 5.0 * row.size) {
            // Grouped within 4 points, because glyphs have bearings of their own. The cast fits: a page is
            // some hundreds of points wide.
            let entry = starts.entry((x / 4.0).round() as i64).or_insert((0, x));
            *entry = (entry.0 + 1, entry.1.min(x));
        }
    }
    starts.values().filter(|(count, _)| *count >= FEW_LINES).map(|(_, x)| x - 1.0).collect()
}

/// Returns how many of the first rows form two columns, and the x of the second.
pub(super) fn find(rows: &[Row], starts: &[f64], budget: &RowBudget<'_>) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for &x in starts {
        let (mut end, mut both, mut apart) = (0, 0, 0);
        let mut alone = (0, 0);
        let (mut left, mut right) = (Side::default(), Side::default());
        for row in rows {
            let gutter = (x - 0.7 * row.size, x);
            if row.words.iter().any(|word| word.x.0 < gutter.1 && word.x.1 > gutter.0) {
                break;
            }
            for cell in row.cells() {
                let split = cell.iter().position(|word| word.x.0 >= x).unwrap_or(cell.len());
                let (before, behind) = cell.split_at(split);
                left.add(before);
                right.add(behind);
            }
            let split = row.words.iter().position(|word| word.x.0 >= x).unwrap_or(row.words.len());
            let (before, behind) = row.words.split_at(split);
            left.line(before);
            right.line(behind);
            match (before.first(), behind.first()) {
                (Some(a), Some(b)) => {
                    both += 1;
                    apart += usize::from((a.y - b.y).abs() > APART * row.size);
                }
                (Some(_), None) => alone.0 += usize::from(right.lines > 0),
                (None, _) => alone.1 += usize::from(left.lines > 0),
            }
            end += 1;
        }
        if !budget.take(end) {
            break;
        }
        // Rows of a table below the columns do not belong to them.
        let cells = rows.iter().take(end).rev().take_while(|row| is_table_row(row, x)).count();
        let end = if cells > 1 { end - cells } else { end };
        let are_columns = left.is_column(COLUMN_LINES) && right.is_column(COLUMN_LINES);
        // Few lines need stronger evidence that they are not rows of a table.
        let flow = || left.flows() && right.flows();
        // Whether what stands beside running text has baselines of its own. Cells of a table share some.
        let is_beside = |prose: &Side, alone: usize| {
            prose.is_prose()
                && ((apart >= LINES_APART && apart * 2 >= both)
                    || (apart + alone) * 3 >= prose.lines * 2)
        };
        let beside = is_beside(&left, alone.1) || is_beside(&right, alone.0);
        if (are_columns || beside || flow()) && best.is_none_or(|(most, _)| end > most) {
            best = Some((end, x));
        }
    }
    best
}

/// Whether a row has only a few letters on each side of a gutter.
fn is_table_row(row: &Row, x: f64) -> bool {
    let letters = |right: bool| -> usize {
        let side = row.words.iter().filter(|word| (word.x.0 >= x) == right);
        side.map(|word| word.letters + 1).sum()
    };
    (1..COLUMN_LETTERS).contains(&letters(false)) && (1..COLUMN_LETTERS).contains(&letters(true))
}

/// Measures of the text on one side of a gutter.
#[derive(Debug, Default)]
struct Side {
    lines: usize,
    cells: usize,
    letters: usize,
    /// Lines that continue the sentence of the line before.
    going_on: usize,
    /// Words of the last line.
    words: usize,
}

impl Side {
    fn line(&mut self, words: &[Word]) {
        let Some(first) = words.first() else { return };
        let is_small = first.text.chars().next().is_some_and(char::is_lowercase);
        self.going_on += usize::from(self.lines > 0 && self.words >= WORDS && is_small);
        self.lines += 1;
        self.words = words.len();
    }

    /// Whether each line continues the sentence of the line before.
    fn flows(&self) -> bool {
        self.is_column(FEW_LINES) && self.going_on + 1 == self.lines
    }

    /// Whether it is running text, line by line.
    fn is_prose(&self) -> bool {
        self.lines >= PROSE_LINES
            && self.letters >= self.lines * PROSE_LETTERS
            && self.going_on * 5 >= self.lines * 2
    }

    fn add(&mut self, cell: &[Word]) {
        if !cell.is_empty() {
            self.cells += 1;
            self.letters += cell.iter().map(|word| word.letters + 1).sum::<usize>();
        }
    }

    fn is_column(&self, lines: usize) -> bool {
        self.lines >= lines && self.letters >= self.cells * COLUMN_LETTERS
    }
}
