//! Groups words on one baseline into rows.

use super::words::{SMALL, Word};

/// Narrowest gap between cells or columns, in ems.
pub(super) const CELL_GAP: f64 = 1.2;

/// Fewest underscores of a line to write on.
const SHORT_BLANK: usize = 3;

/// Most words of a row in which such lines are looked for.
const MOST_ON_LINE: usize = 200;

/// Smallest size of an initial, relative to the words beside it.
const INITIAL: f64 = 1.8;

/// Farthest that lines stand from a large number before them, in ems of the number.
const NUMBER_GAP: f64 = 1.5;

/// Most initials of a page.
const MOST_INITIALS: usize = 50;

/// Farthest that words of another size may stand from the baseline of their row, in ems.
const SHIFT: f64 = 0.5;

/// Farthest that an exponent or index next to its base may stand from its baseline, in ems.
const FAR_SHIFT: f64 = 0.8;

/// Fewest adjacent single letters that may be letterspaced words, and the fewest that are closer to each
/// other than [`CLOSE`].
const SPACED: usize = 6;
const CLOSELY_SPACED: usize = 4;

/// Letters of one word are closer than this, those of columns are not, in ems.
const CLOSE: f64 = 0.4;

/// Words on one baseline, from left to right; never empty.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) words: Vec<Word>,
    pub(super) y: f64,
    pub(super) size: f64,
}

impl Row {
    /// Returns the runs of words between wide gaps.
    pub(super) fn cells(&self) -> impl Iterator<Item = &[Word]> {
        self.words.chunk_by(|a, b| b.x.0 - a.x.1 < CELL_GAP * a.size.max(b.size))
    }

    /// Returns the left and right end of each wide gap.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (f64, f64)> {
        self.words.windows(2).filter_map(|pair| match pair {
            [left, right] if is_wide(left, right) => Some((left.x.1, right.x.0)),
            _ => None,
        })
    }

    /// Returns the x at which it begins.
    pub(super) fn left(&self) -> f64 {
        self.words.first().map_or(f64::INFINITY, |word| word.x.0)
    }

    /// Whether both contain a row of the same table.
    fn shares_table(&self, other: &Self) -> bool {
        let tables = |row: &Self| row.words.iter().find_map(|word| word.table);
        tables(self).is_some_and(|table| tables(other) == Some(table))
    }
}

/// Whether two words are as far apart as cells.
pub(super) fn is_wide(left: &Word, right: &Word) -> bool {
    right.x.0 - left.x.1 >= CELL_GAP * left.size.max(right.size)
}

/// Groups words into rows by their baselines. Raised or lowered words join the row that they belong to.
pub(super) fn group_into_rows(mut words: Vec<Word>) -> Vec<Row> {
    raise_initials(&mut words);
    words.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut rows: Vec<Row> = Vec::new();
    for word in words {
        // A large word has several lines of small ones beside it.
        let near = |row: &Row| {
            let (small, large) = (row.size.min(word.size), row.size.max(word.size));
            0.3 * large.min(2.0 * small)
        };
        match rows.last_mut() {
            Some(row)
                if word.y - row.y < near(row)
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
        clear_blanks(&mut row.words);
        row.words.sort_by(|a, b| a.x.0.total_cmp(&b.x.0));
        if row.words.len() >= CLOSELY_SPACED {
            row.words = join_spaced_letters(std::mem::take(&mut row.words));
        }
    }
    merged
}

/// Moves the start of a line of underscores behind the words that are written on it.
fn clear_blanks(words: &mut Vec<Word>) {
    if words.len() > MOST_ON_LINE {
        return;
    }
    for at in 0..words.len() {
        let Some(word) = words.get(at).filter(|word| word.table.is_none()) else { continue };
        let label = word.text.trim_end_matches('_');
        let count = word.text.len() - label.len();
        if count < SHORT_BLANK {
            continue;
        }
        let each = word.width() / word.letters.max(1) as f64;
        let start = word.x.1 - each * count as f64;
        let over = words.iter().filter(|it| {
            !it.text.ends_with("__") && it.x.1.min(word.x.1) - it.x.0.max(start) > 0.25 * it.size
        });
        let end = over.map(|it| it.x.1).fold(start, f64::max);
        if end <= start {
            continue;
        }
        let left = ((word.x.1 - end) / each).max(0.0) as usize;
        let rest = Word {
            text: "_".repeat(left.min(count)),
            letters: left.min(count),
            x: (end.min(word.x.1), word.x.1),
            space_before: true,
            ..word.clone()
        };
        let (text, letters) = (label.to_owned(), word.letters.saturating_sub(count));
        if let Some(word) = words.get_mut(at) {
            (word.text, word.letters, word.x.1, word.space_after) = (text, letters, start, true);
        }
        words.push(rest);
    }
    words.retain(|word| !word.text.is_empty());
}

/// Moves initials and large numbers, which reach down over several lines, to the first line beside them.
/// The words of a large line stay together.
fn raise_initials(words: &mut [Word]) {
    let letters: usize = words.iter().map(|word| word.letters).sum();
    let usual = words.iter().map(|word| word.size * word.letters as f64).sum::<f64>();
    let is_large = |word: &Word| word.size * letters as f64 > INITIAL * usual;
    let large = (0..words.len()).filter(|at| is_large(&words[*at]));
    for at in large.take(MOST_INITIALS).collect::<Vec<_>>() {
        let Some(word) = words.get(at).filter(|word| word.table.is_none()).cloned() else {
            continue;
        };
        let is_before = |other: &Word| {
            (other.size - word.size).abs() < 0.01 * word.size
                && (other.y - word.y).abs() < 0.1 * word.size
                && other.x.0 < word.x.0
                && word.x.0 - other.x.1 < CELL_GAP * word.size
        };
        if words.iter().any(is_before) {
            continue;
        }
        let is_beside = |line: &&Word| {
            line.size * INITIAL < word.size
                && line.table.is_none()
                && (-0.1 * line.size..word.size).contains(&(word.y - line.y))
                && (-0.1 * line.size..farthest(&word, line)).contains(&(line.x.0 - word.x.1))
        };
        // Of the first line, the first word.
        let first = words.iter().filter(is_beside).min_by(|a, b| {
            let is_one_line = (a.y - b.y).abs() < 0.1 * a.size;
            if is_one_line { a.x.0.total_cmp(&b.x.0) } else { a.y.total_cmp(&b.y) }
        });
        let Some(first) = first.cloned() else { continue };
        let is_initial = word.letters <= 2
            && word.text.contains(char::is_uppercase)
            && !word.text.contains(|c: char| c.is_alphanumeric() && !c.is_uppercase());
        let is_word = is_initial && is_word_of_one_letter(&word, &first, words);
        if let Some(word) = words.get_mut(at) {
            (word.y, word.size) = (first.y, first.size);
            if is_initial {
                (word.x.1, word.space_after) = (first.x.0, is_word);
            }
        }
    }
}

/// Returns the farthest that a line may stand from a large word before it.
fn farthest(word: &Word, line: &Word) -> f64 {
    let is_number = word.text.contains(char::is_numeric);
    if is_number { NUMBER_GAP * word.size } else { line.size }
}

/// Whether an initial is a word of its own: the page has the word behind it elsewhere too, and not the one
/// that both would make.
fn is_word_of_one_letter(initial: &Word, behind: &Word, words: &[Word]) -> bool {
    let letters =
        |word: &Word| word.text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let rest = letters(behind);
    let whole = initial.text.to_lowercase() + &rest;
    let count = |wanted: &str| words.iter().filter(|word| letters(word) == wanted).count();
    matches!(&*initial.text, "A" | "I" | "O")
        && rest.chars().nth(1).is_some()
        && count(&rest) > 1
        && count(&whole) == 0
}

/// Joins letterspaced letters into words: single letters at even steps, with wider steps between words.
fn join_spaced_letters(words: Vec<Word>) -> Vec<Word> {
    let single = |word: &Word| {
        word.letters == 1 && word.table.is_none() && word.text.chars().all(char::is_alphabetic)
    };
    let mut closed: Vec<Word> = Vec::with_capacity(words.len());
    for run in words.chunk_by(|a, b| {
        single(a) && single(b) && (a.size - b.size).abs() < 0.1 && b.x.0 - a.x.1 < 1.5 * a.size
    }) {
        let has_space = |a: &Word, b: &Word| a.space_after || b.space_before;
        // Letters typed with spaces between them stay apart, as in a list.
        let spaces = run.windows(2).filter(|pair| has_space(&pair[0], &pair[1])).count();
        let mut gaps: Vec<f64> = run.windows(2).map(|pair| pair[1].x.0 - pair[0].x.1).collect();
        gaps.sort_by(f64::total_cmp);
        let even = gaps.get(gaps.len() / 2).copied().unwrap_or(0.0);
        let size = run.first().map_or(0.0, |word| word.size);
        let fewest = if even < CLOSE * size { CLOSELY_SPACED } else { SPACED };
        if run.len() < fewest || spaces * 3 > run.len() {
            closed.extend(run.iter().cloned());
            continue;
        }
        // Within a word, gaps differ only by the letters' bearings.
        let within = 1.3 * even + 0.05 * size;
        for word in run.chunk_by(|a, b| b.x.0 - a.x.1 < within && !has_space(a, b)) {
            let (Some(first), Some(last)) = (word.first(), word.last()) else { continue };
            closed.push(Word {
                text: word.iter().map(|letter| &*letter.text).collect(),
                letters: word.len(),
                x: (first.x.0, last.x.1),
                space_after: true,
                ..first.clone()
            });
        }
    }
    closed
}

/// Whether one of two rows holds indices, exponents or note marks of the other.
fn belong_together(a: &Row, b: &Row) -> bool {
    let (large, small) = if a.size >= b.size { (a, b) } else { (b, a) };
    let shift = (large.y - small.y).abs();
    small.size < SMALL * large.size
        && (shift < SHIFT * large.size || (shift < FAR_SHIFT * large.size && touches(small, large)))
        && small.words.len() <= large.words.len() * 2
        && small.words.len() < 50
        && !a.shares_table(b)
        && small.words.iter().all(|s| {
            !large.words.iter().any(|l| l.x.1.min(s.x.1) - l.x.0.max(s.x.0) > 0.25 * s.size)
        })
}

/// Whether each word of a row stands behind a word of a larger one without a space, or before it as the
/// mark of a note, or beside such a word.
fn touches(small: &Row, large: &Row) -> bool {
    let near = |left: &Word, right: &Word| (right.x.0 - left.x.1).abs() < 0.3 * large.size;
    let beside = |word: &Word| large.words.iter().any(|it| near(it, word) || near(word, it));
    let mut words: Vec<&Word> = small.words.iter().collect();
    words.sort_by(|a, b| a.x.0.total_cmp(&b.x.0));
    words.chunk_by(|a, b| near(a, b)).all(|run| run.iter().any(|word| beside(word)))
}
