//! Rows split into columns at common gutters, and measures of the columns.

use super::{
    lines::{join_lines, join_words},
    rows::Row,
    words::Word,
};

/// A row split into cells.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) cells: Vec<Vec<&'a Word>>,
    pub(super) y: f64,
    pub(super) size: f64,
}

impl<'a> Entry<'a> {
    /// Splits a row. `limits` are the right limits of the columns.
    pub(super) fn new(row: &'a Row, limits: &[f64]) -> Self {
        let mut cells = vec![Vec::new(); limits.len()];
        for word in &row.words {
            let middle = f64::midpoint(word.x.0, word.x.1);
            let column = limits.partition_point(|limit| *limit <= middle);
            if let Some(cell) = cells.get_mut(column.min(limits.len().saturating_sub(1))) {
                cell.push(word);
            }
        }
        Self { cells, y: row.y, size: row.size }
    }

    pub(super) fn cell(&self, column: usize) -> Option<&[&'a Word]> {
        self.cells.get(column).map(Vec::as_slice).filter(|cell| !cell.is_empty())
    }

    /// Returns the number of cells with text.
    pub(super) fn filled(&self) -> usize {
        self.cells.iter().filter(|cell| !cell.is_empty()).count()
    }

    /// Whether only the first cell has text.
    pub(super) fn is_lone(&self) -> bool {
        self.filled() == 1 && self.cell(0).is_some()
    }
}

/// Measures of a column. Each cell with text is one line.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ColumnStats {
    /// Number of cells with text.
    pub(super) lines: usize,
    /// Average number of letters in a line, counting one more for each word.
    pub(super) letters: f64,
    /// Fraction of the lines that end where the next line's first word would not have fitted.
    pub(super) full: f64,
    /// Fraction of the lines that are numbers.
    pub(super) numbers: f64,
    /// Fraction of the lines with text of another column beside them.
    pub(super) aligned: f64,
    /// Fraction of the lines that begin with a bullet.
    pub(super) bullets: f64,
}

/// Entries below each other.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    /// Right limit of each column: where the next one begins.
    pub(super) limits: Vec<f64>,
    /// Right end of each column's text.
    ends: Vec<f64>,
    pub(super) columns: Vec<ColumnStats>,
}

impl<'a> Block<'a> {
    pub(super) fn new(entries: Vec<Entry<'a>>, limits: Vec<f64>) -> Self {
        let end = |column: usize| {
            let words = entries.iter().filter_map(|entry| entry.cell(column)?.last());
            words.map(|word| word.x.1).fold(f64::NEG_INFINITY, f64::max)
        };
        let ends = (0..limits.len()).map(end).collect();
        let mut block = Self { entries, limits, ends, columns: Vec::new() };
        block.columns = (0..block.limits.len()).map(|column| block.column_stats(column)).collect();
        block
    }

    fn column_stats(&self, column: usize) -> ColumnStats {
        let (mut lines, mut letters, mut numbers, mut aligned, mut bullets) = (0, 0, 0, 0, 0);
        let (mut full, mut last) = (0, None);
        for entry in &self.entries {
            let Some(cell) = entry.cell(column) else { continue };
            lines += 1;
            letters += cell.iter().map(|word| word.letters + 1).sum::<usize>();
            numbers += usize::from(is_number(cell));
            aligned += usize::from(entry.filled() > 1);
            bullets += usize::from(begins_with_bullet(cell));
            if let Some(last) = last {
                let room = self.limit(column) - 2.5 * entry.size;
                full += usize::from(reaches(last, cell, self.end(column).max(room)));
            }
            last = Some(cell);
        }
        let part = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        ColumnStats {
            lines,
            letters: part(letters, lines),
            full: part(full, lines.saturating_sub(1)),
            numbers: part(numbers, lines),
            aligned: part(aligned, lines),
            bullets: part(bullets, lines),
        }
    }

    fn limit(&self, column: usize) -> f64 {
        self.limits.get(column).copied().unwrap_or(f64::INFINITY)
    }

    fn end(&self, column: usize) -> f64 {
        self.ends.get(column).copied().unwrap_or(f64::INFINITY)
    }

    /// Returns the left and right end of its text.
    pub(super) fn bounds(&self) -> (f64, f64) {
        let words = self.entries.iter().flat_map(|entry| entry.cells.iter().flatten());
        let left = words.map(|word| word.x.0).fold(f64::INFINITY, f64::min);
        (left, self.ends.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    /// Whether a cell's line broke because the next line's first word had no room: for certain, or judged
    /// by the column's other lines.
    pub(super) fn is_wrapped(&self, column: usize, line: &[&Word], next: &[&Word]) -> bool {
        let size = line.first().map_or(0.0, |word| word.size);
        if has_leader(line) || (is_number(line) && is_number(next)) {
            return false;
        }
        let (limit, end) = (self.limit(column), self.end(column));
        // The last column's limit may be just the end of its text.
        if limit > end + 1.0 && reaches(line, next, limit - 0.6 * size) {
            return true;
        }
        let measure = self.columns.get(column).copied().unwrap_or_default();
        let is_text = measure.letters >= 22.0 && !is_number(next);
        let is_near = limit - end < 4.0 * size && begins_small(next);
        (is_text || is_near) && reaches(line, next, end)
    }

    /// Whether `next` may continue a line that broke. Weaker than [`Self::is_wrapped`]: needs other
    /// evidence.
    pub(super) fn may_continue(&self, column: usize, line: &[&Word], next: &[&Word]) -> bool {
        self.is_wrapped(column, line, next)
            || (begins_small(next) && reaches(line, next, self.end(column)))
    }

    /// Whether some column has a number in both entries.
    pub(super) fn both_have_numbers(&self, last: &Entry<'_>, next: &Entry<'_>) -> bool {
        let is_number = |entry: &Entry<'_>, column| entry.cell(column).is_some_and(is_number);
        (0..self.limits.len()).any(|column| is_number(last, column) && is_number(next, column))
    }

    /// Returns the fraction of the lines directly below another line of their column that may continue it;
    /// 1 if there are none.
    pub(super) fn wrapped_fraction(&self) -> f64 {
        let (mut wrapped, mut all) = (0_u32, 0_u32);
        for (to, pair) in (1..).zip(self.entries.windows(2)) {
            let [last, next] = pair else { continue };
            let close = self.step(to).is_some_and(|step| step < 1.6 * next.size);
            for column in (0..self.limits.len()).filter(|_| close) {
                if let (Some(line), Some(next)) = (last.cell(column), next.cell(column)) {
                    all += 1;
                    wrapped += u32::from(self.may_continue(column, line, next));
                }
            }
        }
        if all == 0 { 1.0 } else { f64::from(wrapped) / f64::from(all) }
    }

    /// Whether in each column but the first, most cells begin, end or are centred at one position, or all
    /// are numbers. Gaps of justified lines are below each other only by accident.
    pub(super) fn columns_are_aligned(&self) -> bool {
        let few = self.columns.iter().filter(|column| column.lines < 2).count();
        if few * 2 > self.columns.len() {
            return false;
        }
        (1..self.limits.len()).all(|column| {
            let cells: Vec<&[&Word]> =
                self.entries.iter().filter_map(|entry| entry.cell(column)).collect();
            let meet = |place: fn((f64, f64)) -> f64| {
                let places = cells.iter().filter_map(|cell| {
                    Some((place((cell.first()?.x.0, cell.last()?.x.1)), 0.15 * cell.first()?.size))
                });
                let places: Vec<(f64, f64)> = places.collect();
                let near =
                    |at: f64| places.iter().filter(|(x, near)| (x - at).abs() < *near).count();
                places.iter().map(|(x, _)| near(*x)).max().unwrap_or(0) * 3 > cells.len() * 2
            };
            cells.len() < 2
                || cells.iter().all(|cell| is_number(cell))
                || meet(|x| x.0)
                || meet(|x| x.1)
                || meet(|x| f64::midpoint(x.0, x.1))
        })
    }

    /// Whether a column consists mostly of numbers below each other.
    pub(super) fn has_stacked_numbers(&self) -> bool {
        let rows = self.entries.len();
        self.columns
            .iter()
            .any(|column| column.lines >= 3 && column.lines * 3 >= rows * 2 && column.numbers > 0.7)
    }

    /// Returns the text of each column of entries that form one row.
    pub(super) fn cells(&self, entries: &[Entry<'_>]) -> Vec<String> {
        let cell = |column: usize| {
            let lines = entries.iter().filter_map(|entry| entry.cell(column));
            join_lines(lines.map(|line| join_words(line, |_, _, _| false)))
        };
        (0..self.limits.len()).map(cell).collect()
    }

    /// Returns how far entry `to` stands below the one before: the smallest distance in a column that both
    /// have.
    pub(super) fn step(&self, to: usize) -> Option<f64> {
        let (last, next) = (self.entries.get(to.checked_sub(1)?)?, self.entries.get(to)?);
        let both = (0..self.limits.len()).filter_map(|column| {
            Some(next.cell(column)?.first()?.y - last.cell(column)?.first()?.y)
        });
        let step = both.fold(f64::INFINITY, f64::min);
        Some(if step.is_finite() { step } else { next.y - last.y })
    }
}

/// Whether the next line's first word, set behind this line, would end beyond `place`.
fn reaches(line: &[&Word], next: &[&Word], place: f64) -> bool {
    let (Some(last), Some(first)) = (line.last(), next.first()) else { return false };
    last.x.1 + 0.25 * last.size + first.width() > place
}

/// Whether a line has a leader of dots before its end, as in a table of contents.
fn has_leader(line: &[&Word]) -> bool {
    line.iter().rev().take(3).any(|word| word.text.chars().all(|c| c == '.' || c == '…'))
}

pub(super) fn begins_small(cell: &[&Word]) -> bool {
    cell.first().and_then(|word| word.text.chars().next()).is_some_and(char::is_lowercase)
}

fn begins_with_bullet(cell: &[&Word]) -> bool {
    cell.first()
        .and_then(|word| word.text.chars().next())
        .is_some_and(|c| matches!(c, '•' | '◦' | '▪' | '●' | '○' | '■' | '–' | '·' | '*'))
}

/// Whether a cell has at least as many digits as letters.
fn is_number(cell: &[&Word]) -> bool {
    let letters = || cell.iter().flat_map(|word| word.text.chars());
    let digits = letters().filter(char::is_ascii_digit).count();
    digits > 0 && digits >= letters().filter(|c| c.is_alphabetic()).count()
}
