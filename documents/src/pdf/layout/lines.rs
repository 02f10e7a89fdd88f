//! Words of a row to a line, and lines to paragraphs.

use super::{
    bidi,
    rows::{Row, is_wide},
    scripts,
    words::{WORD_GAP, Word},
};

/// What stands between cells.
pub(super) const BAR: &str = " | ";

/// A line of text, with where it stands.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) y: f64,
    pub(super) size: f64,
    /// The table of which it is a row.
    pub(super) table: Option<usize>,
}

/// The text of a row of `rows`, with ` | ` where a row beside it has a wide gap at the same place.
pub(super) fn line(rows: &[Row], at: usize) -> Option<Line> {
    let row = rows.get(at)?;
    let beside: Vec<(f64, f64)> = [at.checked_sub(1), Some(at + 1)]
        .into_iter()
        .filter_map(|other| rows.get(other?))
        .filter(|other| (other.y - row.y).abs() < 4.0 * row.size.max(other.size))
        .flat_map(Row::gaps)
        .collect();
    let words: Vec<&Word> = row.words.iter().collect();
    let table = words.iter().find_map(|word| word.table).filter(|_| words.len() == 1);
    let text = joined(&words, |before, left, right| {
        let shared = |other: &(f64, f64)| {
            other.1.min(right.x.0) - other.0.max(left.x.1) > 0.5 * left.size.max(right.size)
        };
        is_wide(left, right) && beside.iter().any(shared) && !is_mark(before)
    });
    Some(Line { text, y: row.y, size: row.size, table })
}

/// Words from left to right as they are read; `parts` tells, of what is written so far and the words
/// on either side, whether another cell begins.
pub(super) fn joined(words: &[&Word], parts: impl Fn(&str, &Word, &Word) -> bool) -> String {
    let mut text = String::new();
    let mut last: Option<&Word> = None;
    for (at, word) in words.iter().enumerate() {
        if let Some(last) = last {
            let (gap, size) = (word.x.0 - last.x.1, last.size.max(word.size));
            if parts(&text, last, word) {
                text.push_str(BAR);
            } else if last.space_after || word.space_before || gap > WORD_GAP * size {
                text.push(' ');
            }
        }
        text.push_str(&scripts::written(words, at));
        last = Some(word);
    }
    // A row of a table is in the order in which it is read already.
    if words.iter().any(|word| word.table.is_some()) { text } else { bidi::logical(&text) }
}

/// A list's bullet or number, which is no cell.
pub(super) fn is_mark(text: &str) -> bool {
    text.chars().count() <= 4
        && (text.ends_with(['.', ')', ']', ':']) || !text.chars().any(char::is_alphanumeric))
}

/// Lines with the gaps between paragraphs, and words that a line's end divided made whole.
pub(super) fn paragraphs(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut last: Option<&Line> = None;
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        if let Some(last) = last {
            let step = line.y - last.y;
            let in_table = last.table.or(line.table).is_some();
            if in_table && last.table == line.table {
                text.push('\n');
            } else if let Some(end) = divided(&text, &line.text).filter(|_| !in_table) {
                text.truncate(end);
            } else if step > 1.75 * last.size.max(line.size) {
                text.push_str("\n\n");
            } else {
                text.push('\n');
            }
        }
        // A row may begin with an empty cell.
        text.push_str(if line.table.is_some() { &line.text } else { line.text.trim() });
        last = Some(line);
    }
    text
}

/// Where a text ends without the hyphen that divides its last word from the next line's first.
fn divided(text: &str, next: &str) -> Option<usize> {
    let head = text.strip_suffix(['-', '\u{ad}', '\u{2010}'])?;
    let before = head.chars().next_back()?;
    let after = next.trim_start().chars().next()?;
    (before.is_lowercase() && after.is_lowercase()).then_some(head.len())
}

/// Lines of a cell in one.
pub(super) fn flowed(lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        match divided(&text, &line) {
            Some(end) => text.truncate(end),
            None if !text.is_empty() => text.push(' '),
            None => {}
        }
        text.push_str(line.trim());
    }
    text
}
