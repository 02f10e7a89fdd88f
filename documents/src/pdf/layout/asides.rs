//! Notes in small letters beside running text. Their lines stand on baselines of their own, so common rows
//! would mix their words with the text's.

use super::{
    super::page_budget::PageBudget,
    rows::CELL_GAP,
    words::{SMALL, Word},
};

/// Largest step between lines of a note, in ems.
const STEP: f64 = 1.6;
/// Narrowest gap between a note and the text, in ems of the note.
const GAP: f64 = 0.7;
/// Height of a line above its baseline, in ems.
const HEIGHT: f64 = 0.6;
/// Fewest letters per line, on average, of a note and of the text beside it. Cells of tables have fewer.
const NOTE_LETTERS: usize = 12;
const TEXT_LETTERS: usize = 20;
/// Offsets from the text's baselines that differ by less are equal, in ems of the text.
const SAME: f64 = 0.06;

/// The words of a note, and the first and the last baseline.
pub(super) struct Aside {
    pub(super) words: Vec<Word>,
    pub(super) y: (f64, f64),
}

/// Lines of the same size below each other.
#[derive(Debug, Clone)]
struct Block {
    x: (f64, f64),
    /// Baselines.
    lines: Vec<f64>,
    size: f64,
    letters: usize,
}

/// Separates notes from the other words. Small letters in great disorder may take the page's time.
pub(super) fn split_asides(words: Vec<Word>, budget: &PageBudget) -> (Vec<Word>, Vec<Aside>) {
    let (smallest, largest) = words.iter().fold((f64::INFINITY, 0.0_f64), |sizes, word| {
        (sizes.0.min(word.size), sizes.1.max(word.size))
    });
    if smallest >= SMALL * largest {
        return (words, Vec::new());
    }
    let mut by_line: Vec<&Word> = words.iter().collect();
    by_line.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut by_size = by_line.clone();
    by_size.sort_by(|a, b| a.size.total_cmp(&b.size));
    let same_size = by_size.chunk_by(|a, b| b.size - a.size < 0.01 * b.size);
    let notes: Vec<Block> = same_size
        .filter(|same| same.first().is_some_and(|word| word.size < SMALL * largest))
        .flat_map(|same| blocks(same, budget))
        .filter(|block| is_note(block, &by_line, budget))
        .collect();
    let mut asides: Vec<Aside> =
        notes.iter().map(|note| Aside { words: Vec::new(), y: note.y() }).collect();
    let mut others = Vec::with_capacity(words.len());
    for word in words {
        budget.check_time();
        match notes.iter().position(|note| note.contains(&word)) {
            Some(at) => asides[at].words.push(word),
            None => others.push(word),
        }
    }
    (others, asides)
}

impl Block {
    fn y(&self) -> (f64, f64) {
        let last = self.lines.last().copied().unwrap_or(f64::NEG_INFINITY);
        (self.lines.first().copied().unwrap_or(f64::INFINITY), last)
    }

    /// Returns the upper and the lower end.
    fn ends(&self) -> (f64, f64) {
        let (first, last) = self.y();
        (first - HEIGHT * self.size, last)
    }

    /// Whether it holds a word, such as one of its own or a raised number in it.
    fn contains(&self, word: &Word) -> bool {
        let ((top, bottom), gap) = (self.ends(), GAP * self.size);
        word.table.is_none()
            && word.size < 1.01 * self.size
            && word.x.1 > self.x.0 - gap
            && word.x.0 < self.x.1 + gap
            && (top..=bottom + 0.5 * self.size).contains(&word.y)
    }

    /// Adds a line's part below the others, if it is near.
    fn add(&mut self, part: &Self) -> bool {
        let step = part.y().0 - self.y().1;
        let is_below = self.x.0 < part.x.1 && part.x.0 < self.x.1;
        if !is_below || !(0.8 * self.size..STEP * self.size).contains(&step) {
            return false;
        }
        self.x = (self.x.0.min(part.x.0), self.x.1.max(part.x.1));
        self.lines.extend(&part.lines);
        self.letters += part.letters;
        true
    }
}

/// Groups words of one size.
fn blocks(words: &[&Word], budget: &PageBudget) -> Vec<Block> {
    let mut words = words.to_vec();
    words.sort_by(|a, b| a.y.total_cmp(&b.y));
    let (mut open, mut closed): (Vec<Block>, Vec<Block>) = (Vec::new(), Vec::new());
    for line in words.chunk_by_mut(|a, b| b.y - a.y < 0.1 * b.size) {
        line.sort_by(|a, b| a.x.0.total_cmp(&b.x.0));
        for part in line.chunk_by(|a, b| b.x.0 - a.x.1 < CELL_GAP * b.size) {
            budget.check_time();
            let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
            let letters = part.iter().map(|word| word.letters + 1).sum();
            let (x, lines) = ((first.x.0, last.x.1), vec![first.y]);
            let part = Block { x, lines, size: first.size, letters };
            closed.extend(open.extract_if(.., |it| part.y().0 - it.y().1 > STEP * part.size));
            if !open.iter_mut().any(|block| block.add(&part)) {
                open.push(part);
            }
        }
    }
    closed.extend(open);
    closed
}

/// Whether lines are a note beside text. `words` are all words, by their baselines.
fn is_note(block: &Block, words: &[&Word], budget: &PageBudget) -> bool {
    budget.check_time();
    let (top, bottom) = block.ends();
    if block.lines.len() < 2 || block.letters < NOTE_LETTERS * block.lines.len() {
        return false;
    }
    let from = words.partition_point(|word| word.y <= top);
    let beside = words.iter().skip(from).take_while(|word| {
        word.y - HEIGHT * word.size < bottom || word.y < bottom + HEIGHT * block.size
    });
    let beside: Vec<&&Word> = beside
        .filter(|word| word.y - HEIGHT * word.size < bottom && !block.contains(word))
        .collect();
    let is_apart = |word: &&&Word| {
        let gap = GAP * block.size;
        word.x.1 + gap < block.x.0 || word.x.0 - gap > block.x.1
    };
    if !beside.iter().all(is_apart) {
        return false;
    }
    let text: Vec<&&&Word> = beside
        .iter()
        .filter(|word| word.table.is_none() && block.size < SMALL * word.size)
        .collect();
    let size = text.iter().map(|word| word.size).fold(0.0, f64::max);
    let mut baselines: Vec<f64> = text.iter().map(|word| word.y).collect();
    baselines.dedup_by(|b, a| *b - *a < 0.3 * size);
    let letters: usize = text.iter().map(|word| word.letters + 1).sum();
    if baselines.len() < 2 || letters < TEXT_LETTERS * baselines.len() {
        return false;
    }
    // Cells of a table all stand alike to the others of their rows.
    let offset = |line: &f64| {
        budget.check_time();
        let nearest = baselines.iter().map(|base| line - base);
        nearest.min_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
    };
    let offsets: Vec<f64> = block.lines.iter().map(offset).collect();
    let alike = |at: &f64| {
        budget.check_time();
        offsets.iter().filter(|it| (*it - at).abs() < SAME * size).count()
    };
    offsets.iter().map(alike).max().unwrap_or(0) * 2 <= offsets.len()
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        time::{Duration, Instant},
    };

    use super::{super::super::page_budget::is_budget_exceeded, *};
    use crate::limits::Limits;

    fn word(x: (f64, f64), y: f64, size: f64, letters: usize) -> Word {
        let (text, table) = ("a".repeat(letters), None);
        Word { text, letters, x, y, size, space_before: false, space_after: false, table }
    }

    #[test]
    fn disorder_costs_no_more_than_the_time_of_the_page() {
        let count = || (0..30_000_u32).map(f64::from);
        // Small words far apart on one line.
        let mut line: Vec<Word> = count().map(|at| word((at, at + 0.1), 0.0, 0.5, 1)).collect();
        line.push(word((0.0, 10.0), 50.0, 10.0, 2));
        // A note of many lines beside as many lines of text.
        let column = count().flat_map(|at| {
            let y = at * 6.0;
            [word((0.0, 50.0), y, 5.0, 20), word((100.0, 300.0), y + at % 7.0 * 0.4, 10.0, 40)]
        });
        for words in [line, column.collect()] {
            let limits = Limits { time: Duration::from_millis(1_200), ..Limits::default() };
            let budget = PageBudget::from_limits(&limits);
            let start = Instant::now();
            let cause = catch_unwind(AssertUnwindSafe(|| split_asides(words, &budget))).err();
            assert!(start.elapsed() < Duration::from_secs(2), "took {:?}", start.elapsed());
            assert!(cause.is_some_and(|cause| is_budget_exceeded(&*cause)));
        }
    }
}
