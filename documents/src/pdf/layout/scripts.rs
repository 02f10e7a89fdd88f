//! Exponents, indices and note marks, which are drawn small and raised or lowered. Without a sign of that,
//! 10⁻³ would be another number.

use super::words::{Script, WORD_GAP, Word};
use crate::math::RAISED;

/// Widest gap between an exponent and its base, in ems of the larger.
const NEAR: f64 = 0.5;
/// Most letters of an exponent.
const LONG: usize = 12;

/// Returns the text of word `at`, marked if it is an exponent, an index or a note mark.
pub(super) fn script_text(words: &[&Word], at: usize) -> String {
    let Some(word) = words.get(at) else { return String::new() };
    if word.table.is_some() {
        return word.text.clone();
    }
    let text = word.text.trim();
    let script = match base(words, at) {
        Some(base) => word.script_of(base).map(|script| (script, base)),
        // A note mark stands before its text.
        None => words
            .get(at + 1)
            .and_then(|next| Some((word.script_of(next)?, *next)))
            .filter(|(script, next)| *script == Script::Raised && is_near(word, next)),
    };
    let written = match script {
        Some((Script::Raised, base)) => {
            small_text(text, Script::Raised).or_else(|| power(words, at, base))
        }
        Some((Script::Lowered, _)) => small_text(text, Script::Lowered),
        None => None,
    };
    written.unwrap_or_else(|| text.to_owned())
}

/// Returns the larger word that a small word follows, with only small words between.
fn base<'a>(words: &[&'a Word], at: usize) -> Option<&'a Word> {
    let mut word = *words.get(at)?;
    for before in words.get(..at)?.iter().rev().take(4) {
        if !is_near(before, word) || before.table.is_some() {
            return None;
        }
        if word.script_of(before).is_some() {
            return Some(before);
        }
        word = before;
    }
    None
}

fn is_near(left: &Word, right: &Word) -> bool {
    right.x.0 - left.x.1 < NEAR * left.size.max(right.size)
}

/// Converts digits and signs to Unicode's raised or lowered characters; `None` if there is none for a
/// character.
fn small_text(text: &str, script: Script) -> Option<String> {
    const LOWERED: [char; 10] = ['₀', '₁', '₂', '₃', '₄', '₅', '₆', '₇', '₈', '₉'];
    let (digits, signs) = match script {
        Script::Raised => (RAISED, ['⁺', '⁻', '⁽', '⁾']),
        Script::Lowered => (LOWERED, ['₊', '₋', '₍', '₎']),
    };
    // In some fonts a lone dash is drawn higher.
    if !text.contains(|c: char| c.is_ascii_digit() || c == '+' || c == '−') {
        return None;
    }
    let letter = |c: char| match c {
        '+' => Some(signs[0]),
        '-' | '−' | '–' => Some(signs[1]),
        '(' => Some(signs[2]),
        ')' => Some(signs[3]),
        _ => digits.get(c.to_digit(10)? as usize).copied(),
    };
    text.chars().map(letter).collect()
}

/// Writes a text as an exponent in TeX's notation. `None` if it is part of an abbreviation, an ordinal or
/// a logo.
fn power(words: &[&Word], at: usize, base: &Word) -> Option<String> {
    let word = words.get(at)?;
    let text = word.text.trim();
    let last = base.text.trim().chars().next_back()?;
    let letters = text.chars().count();
    let behind_number = last.is_ascii_digit();
    let is_formula = text.contains(|c: char| c.is_ascii_digit() || "+−=".contains(c));
    let is_ordinal = behind_number
        && matches!(text, "st" | "nd" | "rd" | "th" | "e" | "er" | "re" | "ème" | "o");
    // A logo has small letters within a word.
    let is_within = words.get(at + 1).is_some_and(|next| {
        next.x.0 - word.x.1 < WORD_GAP * base.size
            && next.size > word.size
            && next.text.starts_with(char::is_alphabetic)
    });
    if !(last.is_alphanumeric() || last == ')')
        || !text.contains(char::is_alphanumeric)
        || letters > LONG
        || is_ordinal
        || (is_within && !is_formula)
        || (letters > 1 && !behind_number && !is_formula)
    {
        return None;
    }
    Some(if letters == 1 { format!("^{text}") } else { format!("^{{{text}}}") })
}

#[cfg(test)]
mod tests {
    use super::super::tests::set;
    use crate::pdf::glyph::Glyph;

    /// Reads a word of letters of 10 points, one of 6 points raised by `up` points, and a word behind it.
    fn read(before: &str, text: &str, up: f64, after: &str) -> String {
        read_of_size(before, text, (6.0, up), after)
    }

    fn read_of_size(before: &str, text: &str, (size, up): (f64, f64), after: &str) -> String {
        let mut page = set(0.0, 100.0, before);
        let mut x = page.last().unwrap().x.1;
        for c in text.chars() {
            page.push(Glyph {
                text: c.to_string().into(),
                x: (x, x + size / 2.0),
                y: 100.0 - up,
                size,
                turn: 0,
            });
            x += size / 2.0;
        }
        page.extend(set(x, 100.0, after));
        crate::pdf::layout::tests::read(&page)
    }

    #[test]
    fn exponents_and_indices_are_told_from_digits_of_their_own() {
        for up in [2.0, 4.0] {
            assert_eq!(read("7 m", "2", up, " of sea"), "7 m² of sea");
            assert_eq!(read("10", "−3", up, ""), "10⁻³");
        }
        assert_eq!(read("see note", "12", 4.0, " and"), "see note¹² and");
        assert_eq!(read("H", "2", -2.0, "O"), "H₂O");
        assert_eq!(read("2", "n", 4.0, " is"), "2^n is");
        assert_eq!(read("2", "n+1", 4.0, ""), "2^{n+1}");
        assert_eq!(read("Doe", "1,2", 4.0, ""), "Doe^{1,2}");
    }

    /// Programs raise exponents by half an em, and by more above letters with large ascenders.
    #[test]
    fn exponents_raised_by_more_than_half_an_em_stay_in_their_line() {
        for up in [5.0, 6.0, 7.0] {
            assert_eq!(read("10", "6", up, " units"), "10⁶ units");
            assert_eq!(read("the 5", "th", up, " stage"), "the 5th stage");
            assert_eq!(read("H", "2", -up, "O"), "H₂O");
        }
        let mut page = set(0.0, 100.0, "Name and place");
        page.push(Glyph { text: "label".into(), x: (100.0, 115.0), y: 93.5, size: 6.0, turn: 0 });
        page.extend(set(140.0, 100.0, "Brest"));
        let lines = crate::pdf::layout::tests::read(&page);
        assert_eq!(lines.lines().next(), Some("label"), "a label beside nothing: {lines}");
    }

    /// A browser's "smaller" is five sixths, that of other programs eight ninths.
    #[test]
    fn exponents_may_be_nearly_as_large_as_their_base() {
        for size in [8.3, 8.9] {
            assert_eq!(read_of_size("E = mc", "2", (size, 4.5), " is known"), "E = mc² is known");
            assert_eq!(read_of_size("H", "2", (size, -4.5), "O"), "H₂O");
        }
    }

    #[test]
    fn ordinals_and_logos_are_words() {
        assert_eq!(read("the 1", "st", 4.0, " day"), "the 1st day");
        assert_eq!(read("L", "A", 2.0, "TEX"), "LATEX");
        assert_eq!(read("M", "me", 4.0, " X"), "Mme X");
        // Small, but on the baseline: not an exponent.
        assert_eq!(read("10", "6", 0.0, ""), "106");
    }
}
