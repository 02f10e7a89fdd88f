//! Level watermarks: words much larger than the text, across several of its words.

use super::words::Word;

/// Smallest size of such a word, relative to the text.
const LARGE: f64 = 2.5;
/// Fewest words of the text that it crosses.
const CROSSED: usize = 2;
/// Most large words of a page; one with more is no text with a watermark.
const MAX_LARGE: usize = 50;

/// Separates the words of a watermark from the others.
pub(super) fn split_overlays(words: Vec<Word>) -> (Vec<Word>, Vec<Word>) {
    let mut sizes: Vec<f64> = words.iter().map(|word| word.size).collect();
    sizes.sort_by(f64::total_cmp);
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let is_large = |word: &Word| word.size > LARGE * usual;
    if !(1..=MAX_LARGE).contains(&words.iter().filter(|word| is_large(word)).count()) {
        return (words, Vec::new());
    }
    let crosses = |large: &&Word| {
        let crossed = words.iter().filter(|word| {
            let (x, y) = (f64::midpoint(word.x.0, word.x.1), word.y - 0.3 * word.size);
            let is_within = (large.y - 0.7 * large.size..large.y).contains(&y);
            !is_large(word) && is_within && (large.x.0..large.x.1).contains(&x)
        });
        crossed.take(CROSSED).count() == CROSSED
    };
    let lines: Vec<f64> =
        words.iter().filter(|it| is_large(it)).filter(crosses).map(|it| it.y).collect();
    let is_overlay =
        |word: &Word| is_large(word) && lines.iter().any(|y| (word.y - y).abs() < 0.1 * word.size);
    let (overlays, words) = words.into_iter().partition(is_overlay);
    (words, overlays)
}
