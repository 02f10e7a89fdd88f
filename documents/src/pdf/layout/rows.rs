//! Words on one baseline make rows.

use super::words::Word;

/// A gap that separates cells and columns, in ems.
const CELL_GAP: f64 = 1.2;

/// Words on one baseline, from left to right; never empty.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) words: Vec<Word>,
    pub(super) y: f64,
    pub(super) size: f64,
}

impl Row {
    /// Words between wide gaps.
    pub(super) fn cells(&self) -> impl Iterator<Item = &[Word]> {
        self.words.chunk_by(|a, b| b.x.0 - a.x.1 < CELL_GAP * a.size.max(b.size))
    }

    /// Wide gaps between its words.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (f64, f64)> {
        self.words.windows(2).filter_map(|pair| match pair {
            [left, right] if is_wide(left, right) => Some((left.x.1, right.x.0)),
            _ => None,
        })
    }

    /// Where it begins.
    pub(super) fn left(&self) -> f64 {
        self.words.first().map_or(f64::INFINITY, |word| word.x.0)
    }

    /// Whether both have a row of the same table.
    fn shares_table(&self, other: &Self) -> bool {
        let tables = |row: &Self| row.words.iter().find_map(|word| word.table);
        tables(self).is_some_and(|table| tables(other) == Some(table))
    }
}

/// Whether two words stand as far apart as cells do.
pub(super) fn is_wide(left: &Word, right: &Word) -> bool {
    right.x.0 - left.x.1 >= CELL_GAP * left.size.max(right.size)
}

/// Words to rows by their baselines; what is raised or lowered goes to the row that it belongs to.
pub(super) fn rows(mut words: Vec<Word>) -> Vec<Row> {
    words.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut rows: Vec<Row> = Vec::new();
    for word in words {
        match rows.last_mut() {
            Some(row)
                if word.y - row.y < 0.3 * row.size.max(word.size)
                    && !(word.table.is_some()
                        && row.words.iter().any(|w| w.table == word.table)) =>
            {
                row.size = row.size.max(word.size);
                row.words.push(word);
            }
            _ => rows.push(Row { y: word.y, size: word.size, words: vec![word] }),
        }
    }
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some(last) if belong_together(last, &row) => {
                if row.size > last.size {
                    (last.y, last.size) = (row.y, row.size);
                }
                last.words.extend(row.words);
            }
            _ => merged.push(row),
        }
    }
    for row in &mut merged {
        row.words.sort_by(|a, b| a.x.0.total_cmp(&b.x.0));
    }
    merged
}

/// Whether one of two rows is an index, an exponent or a note's mark of the other.
fn belong_together(a: &Row, b: &Row) -> bool {
    let (large, small) = if a.size >= b.size { (a, b) } else { (b, a) };
    small.size < 0.85 * large.size
        && (a.y - b.y).abs() < 0.5 * large.size
        && small.words.len() <= large.words.len() * 2
        && small.words.len() < 50
        && !a.shares_table(b)
        && small.words.iter().all(|s| {
            !large.words.iter().any(|l| l.x.1.min(s.x.1) - l.x.0.max(s.x.0) > 0.25 * s.size)
        })
}
