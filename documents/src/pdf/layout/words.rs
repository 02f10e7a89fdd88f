//! Letters that touch make words.

use super::{super::glyphs::Glyph, bidi};

/// A gap that separates words, in ems. Kerning stays below it, justified spaces above.
pub(super) const WORD_GAP: f64 = 0.14;
/// What is smaller than this part of what it stands beside may be an index or an exponent.
const SMALL: f64 = 0.9;
/// What is not much smaller is raised or lowered further.
const MUCH_SMALLER: f64 = 0.8;
/// How far an index or an exponent is lowered or raised at least, in ems of what it belongs to.
const SHIFT: f64 = 0.08;
const FAR_SHIFT: f64 = 0.15;

/// Letters without a space between them, or a row of a table that is read already.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    /// How many letters its text has.
    pub(super) letters: usize,
    pub(super) x: (f64, f64),
    pub(super) y: f64,
    pub(super) size: f64,
    /// A space was drawn at its left end.
    pub(super) space_before: bool,
    /// A space was drawn at its right end.
    pub(super) space_after: bool,
    /// The table of which it is a row.
    pub(super) table: Option<usize>,
}

/// How a small word stands to a large one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Raised,
    Lowered,
}

impl Word {
    pub(super) fn width(&self) -> f64 {
        self.x.1 - self.x.0
    }

    fn is_rtl(&self) -> bool {
        self.text.contains(bidi::is_rtl)
    }

    /// Whether it is an index or an exponent of another word.
    pub(super) fn script_of(&self, large: &Self) -> Option<Script> {
        script((self.y, self.size), (large.y, large.size))
    }
}

/// The same of baselines and ems.
fn script(small: (f64, f64), large: (f64, f64)) -> Option<Script> {
    let up = (large.0 - small.0) / large.1;
    let shift = if small.1 < MUCH_SMALLER * large.1 { SHIFT } else { FAR_SHIFT };
    if small.1 >= SMALL * large.1 || up.abs() < shift {
        return None;
    }
    Some(if up > 0.0 { Script::Raised } else { Script::Lowered })
}

/// Letters in the order in which they are drawn to words, as far as they go on from each other.
pub(super) fn words<'a>(glyphs: impl Iterator<Item = &'a Glyph>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    for glyph in glyphs {
        if glyph.text.trim().is_empty() {
            if let Some(word) = words.last_mut().filter(|_| open) {
                // Scripts that run to the left have their spaces there, or behind the whole of them.
                if glyph.x.0 < word.x.0 {
                    word.space_before = true;
                } else if !word.is_rtl() || glyph.x.0 < word.x.1 + 0.3 * word.size {
                    word.space_after = true;
                }
            }
            open = false;
            continue;
        }
        let goes_on = open
            && words.last().is_some_and(|word| {
                let gap = glyph.x.0 - word.x.1;
                let size = word.size.max(glyph.size);
                // Scripts that run to the left are put in order by their places.
                let backwards = glyph.x.0 < word.x.0 && glyph.text.contains(bidi::is_rtl);
                let (new, old) = ((glyph.y, glyph.size), (word.y, word.size));
                // Raised and lowered letters of one word, as in a logo, are closer than words.
                (glyph.y - word.y).abs() < 0.35 * size
                    && (-0.5 * size..WORD_GAP * size).contains(&gap)
                    && !backwards
                    && script(new, old).is_none()
                    && script(old, new).is_none()
            });
        let text = bidi::visual(&glyph.text);
        match words.last_mut().filter(|_| goes_on) {
            Some(word) => {
                word.text.push_str(text.trim_start());
                word.letters += text.chars().count();
                word.x.1 = word.x.1.max(glyph.x.1);
                word.size = word.size.max(glyph.size);
            }
            None => words.push(Word {
                letters: text.chars().count(),
                text,
                x: glyph.x,
                y: glyph.y,
                size: glyph.size,
                space_before: false,
                space_after: false,
                table: None,
            }),
        }
        open = true;
    }
    words
}
