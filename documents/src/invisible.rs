//! Invisible characters, with which text for a model alone can be hidden in a document.

use std::borrow::Cow;

use crate::left_out::Tally;

/// The visible flags of regions are written with tag characters after this one.
const BLACK_FLAG: char = '\u{1f3f4}';

/// Returns the ASCII character of a Unicode tag; `None` for other characters.
fn tag_character(c: char) -> Option<char> {
    char::from_u32(u32::from(c).checked_sub(0xe_0000)?).filter(char::is_ascii)
}

/// Returns whether a character is a variation selector. A character has at most one behind it.
fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Removes Unicode tags, and all variation selectors behind the first one of a character.
pub(crate) fn remove_invisible<'t>(text: Cow<'t, str>, tally: &Tally) -> Cow<'t, str> {
    let has_some = |text: &str| {
        text.contains(|c| tag_character(c).is_some())
            || text
                .chars()
                .zip(text.chars().skip(1))
                .any(|(a, b)| is_variation_selector(a) && is_variation_selector(b))
    };
    if !has_some(&text) {
        return text;
    }
    let (mut seen, mut hidden) = (String::with_capacity(text.len()), String::new());
    let (mut in_flag, mut last) = (false, ' ');
    for c in text.chars() {
        in_flag = c == BLACK_FLAG || (in_flag && tag_character(c).is_some());
        match tag_character(c) {
            Some(letter) if !in_flag => hidden.push(letter),
            None if is_variation_selector(c) && is_variation_selector(last) => hidden.push(c),
            _ => {
                seen.push_str(&tally.count_hidden(&std::mem::take(&mut hidden), None));
                seen.push(c);
            }
        }
        last = c;
    }
    seen.push_str(&tally.count_hidden(&hidden, None));
    Cow::Owned(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{left_out::Kind, limits::Hidden};

    #[test]
    fn tags_and_heaps_of_selectors_are_not_seen() {
        let tags = |text: &str| -> String {
            text.chars().filter_map(|c| char::from_u32(0xe_0000 + u32::from(c))).collect()
        };
        let scotland = format!("\u{1f3f4}{}\u{e007f}", tags("gbsct"));
        let text =
            format!("a{}b {scotland} 葛\u{e0100} ❤\u{fe0f} x\u{fe01}\u{fe02}\u{e0101}", tags("do"));
        let tally = Tally::default();
        let seen = format!("ab {scotland} 葛\u{e0100} ❤\u{fe0f} x\u{fe01}");
        assert_eq!(remove_invisible(text.clone().into(), &tally), seen);
        assert_eq!(tally.into_left_out().count(Kind::HiddenText), 4);
        assert!(
            remove_invisible(text.into(), &Tally::new(Hidden::Mark)).starts_with("a[hidden: do]b ")
        );
        assert!(matches!(remove_invisible("plain".into(), &Tally::default()), Cow::Borrowed(_)));
    }
}
