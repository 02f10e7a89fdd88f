//! Joins the words of a row into a line, and lines into paragraphs.

use super::{
    bidi,
    hyphens::Hyphens,
    rows::{Row, is_wide},
    scripts,
    words::{WORD_GAP, Word},
};

/// Separator of cells.
pub(super) const BAR: &str = " | ";

/// A line of text with its position.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) y: f64,
    pub(super) size: f64,
    /// The table of which it is a row.
    pub(super) table: Option<usize>,
}

/// Returns the text of a row of `rows`, with ` | ` at wide gaps that a neighbouring row shares.
pub(super) fn line_of_row(rows: &[Row], at: usize) -> Option<Line> {
    let row = rows.get(at)?;
    let neighbours: Vec<(f64, f64)> = [at.checked_sub(1), Some(at + 1)]
        .into_iter()
        .filter_map(|other| rows.get(other?))
        .filter(|other| (other.y - row.y).abs() < 4.0 * row.size.max(other.size))
        .flat_map(Row::gaps)
        .collect();
    let words: Vec<&Word> = row.words.iter().collect();
    let table = words.iter().find_map(|word| word.table).filter(|_| words.len() == 1);
    let text = join_words(&words, |before, left, right| {
        let shared = |other: &(f64, f64)| {
            other.1.min(right.x.0) - other.0.max(left.x.1) > 0.5 * left.size.max(right.size)
        };
        is_wide(left, right) && neighbours.iter().any(shared) && !is_mark(before)
    });
    Some(Line { text, y: row.y, size: row.size, table })
}

/// Joins words from left to right into text in reading order. `parts` gets the text so far and the words
/// on either side, and returns whether a new cell begins.
pub(super) fn join_words(words: &[&Word], parts: impl Fn(&str, &Word, &Word) -> bool) -> String {
    let mut text = String::new();
    let mut last: Option<&Word> = None;
    for (at, word) in words.iter().enumerate() {
        if let Some(last) = last {
            let (gap, size) = (word.x.0 - last.x.1, last.size.max(word.size));
            if parts(&text, last, word) {
                text.push_str(BAR);
            } else if last.space_after
                || word.space_before
                || gap > WORD_GAP * size
                // Written over each other, as a value over its field's hint.
                || gap < -size
            {
                text.push(' ');
            }
        }
        text.push_str(&scripts::script_text(words, at));
        last = Some(word);
    }
    // A row of a table is in reading order already.
    if words.iter().any(|word| word.table.is_some()) { text } else { bidi::to_reading_order(&text) }
}

/// Whether a text is a list's bullet or number, and so not a cell.
pub(super) fn is_mark(text: &str) -> bool {
    text.chars().count() <= 4
        && (text.ends_with(['.', ')', ']', ':']) || !text.chars().any(char::is_alphanumeric))
}

/// Joins lines, with blank lines between paragraphs. Joins words divided at a line's end.
pub(super) fn write_paragraphs(lines: &[Line]) -> String {
    let hyphens = Hyphens::of_lines(lines.iter().map(|line| &*line.text));
    let mut text = String::new();
    let mut last: Option<&Line> = None;
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        if let Some(last) = last {
            let in_table = last.table.or(line.table).is_some();
            if in_table && last.table == line.table {
                text.push('\n');
            } else if !in_table && hyphens.join(&mut text, &line.text) {
            } else if is_far_below(last, line) {
                text.push_str("\n\n");
            } else {
                text.push('\n');
            }
        }
        // Not trimmed: a row may begin with an empty cell.
        text.push_str(if line.table.is_some() { &line.text } else { line.text.trim() });
        last = Some(line);
    }
    text
}

/// Whether a line stands so far below another that it begins a paragraph.
fn is_far_below(last: &Line, line: &Line) -> bool {
    line.y - last.y > 1.75 * last.size.max(line.size)
}

/// Inserts the lines of a note behind the paragraph beside it. `y` are the note's first and last baseline.
pub(super) fn insert_note(lines: &mut Vec<Line>, note: Vec<Line>, y: (f64, f64)) {
    let is_beside = |line: &Line| (y.0..y.1 + line.size).contains(&line.y);
    let mut at = lines.iter().rposition(is_beside).map_or(lines.len(), |last| last + 1);
    let goes_on = |last: &Line, line: &Line| {
        line.y > last.y && !is_far_below(last, line) && line.table == last.table
    };
    while let Some([last, line]) = at.checked_sub(1).and_then(|last| lines.get(last..=at))
        && goes_on(last, line)
    {
        at += 1;
    }
    lines.splice(at..at, note);
}

/// Joins the lines of a cell into one.
pub(super) fn join_lines(lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        if !Hyphens::default().join(&mut text, &line) && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line.trim());
    }
    text
}
