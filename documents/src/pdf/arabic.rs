//! Maps the presentation forms of Arabic letters, one for each place in a word, to the letters.

/// Letters in the order of their forms from U+FE80, with the number of forms of each.
const FORMS: [(&str, u32); 40] = [
    ("ء", 1),
    ("آ", 2),
    ("أ", 2),
    ("ؤ", 2),
    ("إ", 2),
    ("ئ", 4),
    ("ا", 2),
    ("ب", 4),
    ("ة", 2),
    ("ت", 4),
    ("ث", 4),
    ("ج", 4),
    ("ح", 4),
    ("خ", 4),
    ("د", 2),
    ("ذ", 2),
    ("ر", 2),
    ("ز", 2),
    ("س", 4),
    ("ش", 4),
    ("ص", 4),
    ("ض", 4),
    ("ط", 4),
    ("ظ", 4),
    ("ع", 4),
    ("غ", 4),
    ("ف", 4),
    ("ق", 4),
    ("ك", 4),
    ("ل", 4),
    ("م", 4),
    ("ن", 4),
    ("ه", 4),
    ("و", 2),
    ("ى", 2),
    ("ي", 4),
    ("لآ", 2),
    ("لأ", 2),
    ("لإ", 2),
    ("لا", 2),
];

/// Returns the one or two letters of a form.
pub(super) fn plain_letters(form: char) -> Option<&'static str> {
    let mut place = u32::from(form).checked_sub(0xfe80)?;
    for (letter, forms) in FORMS {
        match place.checked_sub(forms) {
            Some(rest) => place = rest,
            None => return Some(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_its_letter() {
        let all =
            ['\u{fe80}', '\u{fe8e}', '\u{fe92}', '\u{feb0}', '\u{fee0}', '\u{fef4}', '\u{fefc}'];
        assert_eq!(
            all.map(|form| plain_letters(form).unwrap()),
            ["ء", "ا", "ب", "ز", "ل", "ي", "لا"]
        );
        assert_eq!(
            (plain_letters('a'), plain_letters('\u{fefd}'), plain_letters('\u{fe7f}')),
            (None, None, None)
        );
    }
}
