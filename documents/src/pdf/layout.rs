//! Letters with places to text in reading order.
//!
//! Letters that touch make words, words on one baseline make rows, rows that leave the same gutter
//! free make columns. What is left in a row with wide gaps above each other is a table's row.

use std::collections::BTreeMap;

use super::glyphs::Glyph;

/// A gap that separates words, in ems. Kerning stays below it, justified spaces above.
const WORD_GAP: f64 = 0.14;
/// A gap that separates cells and columns, in ems.
const CELL_GAP: f64 = 1.2;
/// Lines that a column has at least.
const COLUMN_LINES: usize = 3;
/// Letters that a line of a column has at least, on average; cells of tables have fewer.
const COLUMN_LETTERS: usize = 15;
/// On pages with more rows than this nobody looks for columns.
const MAX_ROWS: usize = 3_000;
/// Columns within columns.
const MAX_DEPTH: usize = 6;

#[derive(Debug, Clone)]
struct Word {
    text: String,
    x: (f64, f64),
    y: f64,
    size: f64,
    /// A space was drawn after it.
    space: bool,
}

/// Words on one baseline, from left to right.
#[derive(Debug, Clone)]
struct Row {
    words: Vec<Word>,
    y: f64,
    size: f64,
}

/// A line of text, with where it stands.
#[derive(Debug)]
struct Line {
    text: String,
    y: f64,
    size: f64,
}

/// The text of a page. Letters that run in another direction come after the others.
pub(super) fn text(glyphs: &[Glyph]) -> String {
    let mut text = String::new();
    for turn in 0..4 {
        let words = words(glyphs.iter().filter(|glyph| glyph.turn == turn));
        let mut lines = Vec::new();
        read(rows(words), 0, &mut lines);
        let part = paragraphs(&lines);
        if !part.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n\n" });
            text.push_str(&part);
        }
    }
    text
}

/// Letters in the order in which they are drawn to words, as far as they go on from each other.
fn words<'a>(glyphs: impl Iterator<Item = &'a Glyph>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    for glyph in glyphs {
        if glyph.text.trim().is_empty() {
            if let Some(word) = words.last_mut().filter(|_| open) {
                word.space = true;
            }
            open = false;
            continue;
        }
        let goes_on = open
            && words.last().is_some_and(|word| {
                let gap = glyph.x.0 - word.x.1;
                let size = word.size.max(glyph.size);
                // Raised and lowered letters of one word, as in a logo, are closer than words.
                (glyph.y - word.y).abs() < 0.35 * size
                    && (-0.5 * size..WORD_GAP * size).contains(&gap)
            });
        match words.last_mut().filter(|_| goes_on) {
            Some(word) => {
                word.text.push_str(glyph.text.trim_start());
                word.x.1 = word.x.1.max(glyph.x.1);
                word.size = word.size.max(glyph.size);
            }
            None => words.push(Word {
                text: glyph.text.to_string(),
                x: glyph.x,
                y: glyph.y,
                size: glyph.size,
                space: false,
            }),
        }
        open = true;
    }
    words
}

/// Words to rows by their baselines; what is raised or lowered goes to the row that it belongs to.
fn rows(mut words: Vec<Word>) -> Vec<Row> {
    words.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut rows: Vec<Row> = Vec::new();
    for word in words {
        match rows.last_mut() {
            Some(row) if word.y - row.y < 0.3 * row.size.max(word.size) => {
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
        && small.words.iter().all(|s| {
            !large.words.iter().any(|l| l.x.1.min(s.x.1) - l.x.0.max(s.x.0) > 0.25 * s.size)
        })
}

/// Rows in reading order.
fn read(rows: Vec<Row>, depth: usize, lines: &mut Vec<Line>) {
    let starts =
        if depth < MAX_DEPTH && rows.len() <= MAX_ROWS { column_starts(&rows) } else { Vec::new() };
    let mut at = 0;
    while at < rows.len() {
        if let Some((end, x)) = columns(&rows, at, &starts) {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for word in rows[at..end].iter().flat_map(|row| &row.words) {
                if word.x.0 >= x { right.push(word.clone()) } else { left.push(word.clone()) }
            }
            read(self::rows(left), depth + 1, lines);
            read(self::rows(right), depth + 1, lines);
            at = end;
        } else {
            lines.push(line(&rows, at));
            at += 1;
        }
    }
}

/// Where several rows begin anew after a wide gap.
fn column_starts(rows: &[Row]) -> Vec<f64> {
    let left = rows.iter().map(|row| row.words[0].x.0).fold(f64::INFINITY, f64::min);
    let mut starts: BTreeMap<i64, (usize, f64)> = BTreeMap::new();
    for row in rows {
        for x in cells(row).map(|cell| cell[0].x.0).filter(|x| *x > left + 5.0 * row.size) {
            // Within a few points: glyphs have bearings of their own.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a page is some hundreds of points"
            )]
            let entry = starts.entry((x / 4.0).round() as i64).or_insert((0, x));
            *entry = (entry.0 + 1, entry.1.min(x));
        }
    }
    starts.values().filter(|(count, _)| *count >= COLUMN_LINES).map(|(_, x)| x - 1.0).collect()
}

/// The end of the rows from `at` that stand in two columns, and where the second begins.
fn columns(rows: &[Row], at: usize, starts: &[f64]) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for &x in starts {
        let mut end = at;
        let (mut left, mut right) = (Side::default(), Side::default());
        for row in &rows[at..] {
            let gutter = (x - 0.7 * row.size, x);
            if row.words.iter().any(|word| word.x.0 < gutter.1 && word.x.1 > gutter.0) {
                break;
            }
            for cell in cells(row) {
                let split = cell.iter().position(|word| word.x.0 >= x).unwrap_or(cell.len());
                left.add(&cell[..split]);
                right.add(&cell[split..]);
            }
            left.lines += usize::from(row.words.iter().any(|word| word.x.0 < x));
            right.lines += usize::from(row.words.iter().any(|word| word.x.0 >= x));
            end += 1;
        }
        // Rows of a table below the columns are no lines of theirs.
        let cells = rows[at..end].iter().rev().take_while(|row| is_table_row(row, x)).count();
        let end = if cells > 1 { end - cells } else { end };
        if left.is_column() && right.is_column() && best.is_none_or(|(most, _)| end > most) {
            best = Some((end, x));
        }
    }
    best
}

/// Whether a row has but a few letters on both sides of a gutter.
fn is_table_row(row: &Row, x: f64) -> bool {
    let letters = |right: bool| -> usize {
        let side = row.words.iter().filter(|word| (word.x.0 >= x) == right);
        side.map(|word| word.text.chars().count() + 1).sum()
    };
    (1..COLUMN_LETTERS).contains(&letters(false)) && (1..COLUMN_LETTERS).contains(&letters(true))
}

/// What stands on one side of a gutter.
#[derive(Debug, Default)]
struct Side {
    lines: usize,
    cells: usize,
    letters: usize,
}

impl Side {
    fn add(&mut self, cell: &[Word]) {
        if !cell.is_empty() {
            self.cells += 1;
            self.letters += cell.iter().map(|word| word.text.chars().count() + 1).sum::<usize>();
        }
    }

    fn is_column(&self) -> bool {
        self.lines >= COLUMN_LINES && self.letters >= self.cells * COLUMN_LETTERS
    }
}

/// Words of a row between wide gaps.
fn cells(row: &Row) -> impl Iterator<Item = &[Word]> {
    row.words.chunk_by(|a, b| b.x.0 - a.x.1 < CELL_GAP * a.size.max(b.size))
}

/// A row's text, with ` | ` where a row beside it has a wide gap at the same place.
fn line(rows: &[Row], at: usize) -> Line {
    let row = &rows[at];
    let beside: Vec<(f64, f64)> = [at.checked_sub(1), Some(at + 1)]
        .into_iter()
        .filter_map(|other| rows.get(other?))
        .filter(|other| (other.y - row.y).abs() < 4.0 * row.size.max(other.size))
        .flat_map(gaps)
        .collect();
    let mut text = String::new();
    let mut last: Option<&Word> = None;
    for word in &row.words {
        if let Some(last) = last {
            let (gap, size) = (word.x.0 - last.x.1, last.size.max(word.size));
            let shared =
                |other: &(f64, f64)| other.1.min(word.x.0) - other.0.max(last.x.1) > 0.5 * size;
            if gap >= CELL_GAP * size && beside.iter().any(shared) && !is_mark(&text) {
                text.push_str(" | ");
            } else if last.space || gap > WORD_GAP * size {
                text.push(' ');
            }
        }
        text.push_str(word.text.trim());
        last = Some(word);
    }
    let text = if is_right_to_left(&text) { reversed(&text) } else { text };
    Line { text, y: row.y, size: row.size }
}

fn gaps(row: &Row) -> impl Iterator<Item = (f64, f64)> {
    row.words.windows(2).filter_map(|pair| {
        let gap = (pair[0].x.1, pair[1].x.0);
        (gap.1 - gap.0 >= CELL_GAP * pair[0].size.max(pair[1].size)).then_some(gap)
    })
}

/// A list's bullet or number, which is no cell.
fn is_mark(text: &str) -> bool {
    text.chars().count() <= 4
        && (text.ends_with(['.', ')', ':']) || !text.chars().any(char::is_alphanumeric))
}

/// Lines with the gaps between paragraphs, and words that a line's end divided made whole.
fn paragraphs(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut last: Option<&Line> = None;
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        if let Some(last) = last {
            let step = line.y - last.y;
            if let Some(end) = divided(&text, &line.text) {
                text.truncate(end);
            } else if step > 1.75 * last.size.max(line.size) {
                text.push_str("\n\n");
            } else {
                text.push('\n');
            }
        }
        text.push_str(line.text.trim());
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

fn is_rtl(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

fn is_right_to_left(text: &str) -> bool {
    let rtl = text.chars().filter(|c| is_rtl(*c)).count();
    rtl * 2 > text.chars().filter(|c| c.is_alphabetic()).count() && rtl > 0
}

/// Text as it is seen, from left to right, to text as it is read, from right to left: numbers and
/// words of other scripts keep their order.
fn reversed(text: &str) -> String {
    let letters: Vec<char> = text.chars().rev().collect();
    let stays = |c: char| c.is_alphanumeric() && !is_rtl(c);
    let mut read = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        if stays(letters[at]) {
            let mut end = at;
            for (place, c) in letters.iter().enumerate().skip(at) {
                if stays(*c) {
                    end = place + 1;
                } else if is_rtl(*c) || c.is_whitespace() {
                    break;
                }
            }
            read.extend(letters[at..end].iter().rev());
            at = end;
        } else {
            read.push(match letters[at] {
                '(' => ')',
                ')' => '(',
                '[' => ']',
                ']' => '[',
                other => other,
            });
            at += 1;
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of letters half an em wide.
    fn set(x: f64, y: f64, text: &str) -> Vec<Glyph> {
        (0_u32..)
            .zip(text.chars())
            .map(|(place, c)| {
                let x = x + f64::from(place) * 5.0;
                Glyph { text: c.to_string().into(), x: (x, x + 5.0), y, size: 10.0, turn: 0 }
            })
            .collect()
    }

    #[test]
    fn columns_are_read_one_after_the_other_and_tables_row_by_row() {
        let mut page = set(100.0, 20.0, "A title over both of the columns of this page");
        for n in 0..5 {
            let y = 50.0 + f64::from(n) * 12.0;
            // As printers of pages do: in any order, and with baselines that do not meet.
            page.extend(set(320.0, y + 5.0, &format!("right line {n} of its column")));
            page.extend(set(50.0, y, &format!("left line {n} of its column")));
        }
        for n in 0..4 {
            let y = 150.0 + f64::from(n) * 12.0;
            page.extend(set(320.0, y, &format!("{n}.5 m")));
            page.extend(set(50.0, y, &format!("port {n}")));
        }
        let text = text(&page);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines[0], "A title over both of the columns of this page");
        assert_eq!(lines[1], "left line 0 of its column");
        assert_eq!(lines[5], "left line 4 of its column");
        assert_eq!(lines[6], "right line 0 of its column");
        assert_eq!(lines[10], "right line 4 of its column");
        assert_eq!(
            lines[11..],
            ["port 0 | 0.5 m", "port 1 | 1.5 m", "port 2 | 2.5 m", "port 3 | 3.5 m"]
        );
    }

    #[test]
    fn words_divided_at_the_end_of_a_line_are_made_whole() {
        let page = [
            set(0.0, 0.0, "the reg-"),
            set(0.0, 12.0, "ular tide"),
            set(0.0, 24.0, "A-"),
            set(0.0, 36.0, "B"),
        ]
        .concat();
        assert_eq!(text(&page), "the regular tide\nA-\nB");
    }

    #[test]
    fn an_exponent_stands_in_its_row() {
        let mut page = set(0.0, 100.0, "7 m");
        page.push(Glyph { text: "2".into(), x: (15.0, 18.0), y: 96.0, size: 6.0, turn: 0 });
        page.extend(set(18.0, 100.0, " of sea"));
        assert_eq!(text(&page), "7 m2 of sea");
    }

    #[test]
    fn hebrew_is_read_from_the_right() {
        // As it is seen: the first letter stands at the right.
        assert_eq!(reversed("12 םולש"), "שלום 12");
        assert_eq!(text(&set(0.0, 0.0, "םולש")), "שלום");
    }
}
