//! Joins letters that touch into words.

use super::{super::glyph::Glyph, bidi};

/// Narrowest gap between words, in ems. Kerning stays below it, justified spaces above.
pub(super) const WORD_GAP: f64 = 0.14;
/// An index or exponent is smaller than this fraction of its base.
pub(super) const SMALL: f64 = 0.9;
/// Above this fraction of its base's size it must be shifted by [`FAR_SHIFT`], below by [`SHIFT`].
const MUCH_SMALLER: f64 = 0.8;
/// Smallest shift of an index or exponent, in ems of its base.
const SHIFT: f64 = 0.08;
const FAR_SHIFT: f64 = 0.15;

/// Letters without a space between them, or a finished row of a table.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    /// Number of letters of the text.
    pub(super) letters: usize,
    pub(super) x: (f64, f64),
    pub(super) y: f64,
    pub(super) size: f64,
    /// Whether a space was drawn at its left end.
    pub(super) space_before: bool,
    /// Whether a space was drawn at its right end.
    pub(super) space_after: bool,
    /// The table of which it is a row.
    pub(super) table: Option<usize>,
}

/// Position of a small word relative to a large one.
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

    /// Returns the position of this word if it is an index or exponent of another.
    pub(super) fn script_of(&self, large: &Self) -> Option<Script> {
        script_kind((self.y, self.size), (large.y, large.size))
    }
}

/// As [`Word::script_of`], for pairs of a baseline and an em.
fn script_kind(small: (f64, f64), large: (f64, f64)) -> Option<Script> {
    let up = (large.0 - small.0) / large.1;
    let shift = if small.1 < MUCH_SMALLER * large.1 { SHIFT } else { FAR_SHIFT };
    if small.1 >= SMALL * large.1 || up.abs() < shift {
        return None;
    }
    Some(if up > 0.0 { Script::Raised } else { Script::Lowered })
}

/// Whether a space of the same size stands next to a letter, at its left.
fn is_before(space: &Glyph, letter: &Glyph) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 0.1 * letter.size;
    near(space.size, letter.size) && near(space.y, letter.y) && near(space.x.1, letter.x.0)
}

/// Joins letters, in drawing order, into words as long as each continues the one before.
pub(super) fn join_letters<'a>(glyphs: impl Iterator<Item = &'a Glyph>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut open, mut space) = (false, None::<&Glyph>);
    for glyph in glyphs {
        if glyph.text.trim().is_empty() {
            space = Some(glyph);
            if let Some(word) = words.last_mut().filter(|_| open) {
                // Right-to-left scripts have their spaces at the left, or behind the whole run.
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
                // Right-to-left letters drawn from the right stay apart; their positions order them later.
                let backwards = glyph.x.0 < word.x.0 && glyph.text.contains(bidi::is_rtl);
                let (new, old) = ((glyph.y, glyph.size), (word.y, word.size));
                // Letters of one word may be raised or lowered a little, as in a logo; separate words are
                // further apart.
                (glyph.y - word.y).abs() < 0.35 * size
                    && (-0.5 * size..WORD_GAP * size).contains(&gap)
                    && !backwards
                    && script_kind(new, old).is_none()
                    && script_kind(old, new).is_none()
            });
        let text = bidi::to_visual_order(&glyph.text);
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
                space_before: space.is_some_and(|space| is_before(space, glyph)),
                space_after: false,
                table: None,
            }),
        }
        (open, space) = (true, None);
    }
    words
}
