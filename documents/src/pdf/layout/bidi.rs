//! Converts text from visual order (left to right) to reading order.

/// Puts right-to-left scripts into reading order: the whole line if most of its letters are of such
/// scripts, otherwise each run.
pub(super) fn to_reading_order(text: &str) -> String {
    if !text.contains(is_rtl) {
        return text.to_owned();
    }
    if is_right_to_left(text) {
        return reversed(text);
    }
    // A run begins and ends with a right-to-left letter. It ends before other letters and at a cell's end.
    let (mut read, mut run, mut behind) = (String::new(), String::new(), String::new());
    for c in text.chars() {
        if is_rtl(c) {
            run.push_str(&std::mem::take(&mut behind));
            run.push(c);
        } else if run.is_empty() {
            read.push(c);
        } else {
            behind.push(c);
            if c.is_alphabetic() || c == '|' {
                read.push_str(&reversed(&run));
                read.push_str(&behind);
                run.clear();
                behind.clear();
            }
        }
    }
    read + &reversed(&run) + &behind
}

/// Returns the text of one glyph in visual order.
pub(super) fn to_visual_order(text: &str) -> String {
    if text.contains(is_rtl) { reversed(text) } else { text.to_owned() }
}

pub(in crate::pdf) fn is_rtl(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && !c.is_numeric()
        && !is_arabic_separator(c)
}

/// Whether a sign stands within numbers of Arabic digits: the separators of decimals and of thousands.
fn is_arabic_separator(c: char) -> bool {
    matches!(c, '\u{66b}' | '\u{66c}')
}

/// Whether most letters are of right-to-left scripts.
pub(super) fn is_right_to_left(text: &str) -> bool {
    let rtl = text.chars().filter(|c| is_rtl(*c)).count();
    rtl * 2 > text.chars().filter(|c| c.is_alphabetic()).count() && rtl > 0
}

/// Reverses visual order. Numbers and words of other scripts keep theirs.
fn reversed(text: &str) -> String {
    let seen: Vec<char> = text.chars().collect();
    let mirrored = |c: char| if is_mirrored(&seen) { mirrored(c) } else { c };
    let (mut read, mut rest) = (String::with_capacity(text.len()), seen.as_slice());
    while let Some((last, before)) = rest.split_last() {
        if is_left_to_right(*last) || is_of_number(&seen, rest.len() - 1) {
            let start = start_of_run(rest);
            let (before, run) = rest.split_at(start);
            read.extend(run);
            rest = before;
        } else {
            read.push(mirrored(*last));
            rest = before;
        }
    }
    read
}

/// Whether brackets are stored as they look. Some programs store them by their role in reading order; from
/// left to right, each pair then closes before it opens.
fn is_mirrored(seen: &[char]) -> bool {
    let (mut depth, mut lowest) = (0_i32, 0_i32);
    for c in seen {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        lowest = lowest.min(depth);
    }
    lowest == 0 || depth != 0
}

/// Whether the sign at `place` belongs to a number beside it: `7.5%`, `€5`.
fn is_of_number(seen: &[char], place: usize) -> bool {
    let is_digit =
        |at: Option<usize>| at.and_then(|at| seen.get(at)).is_some_and(char::is_ascii_digit);
    seen.get(place)
        .is_some_and(|c| matches!(c, '%' | '‰' | '°' | '#' | '$' | '€' | '£' | '¥' | '₪'))
        && (is_digit(place.checked_sub(1)) || is_digit(Some(place + 1)))
}

/// Whether a letter or digit is read from left to right.
fn is_left_to_right(c: char) -> bool {
    c.is_alphanumeric() && !is_rtl(c)
}

/// Returns the start of the left-to-right run at the end of `seen`. Several words of another script are
/// one run, with the numbers between them.
fn start_of_run(seen: &[char]) -> usize {
    let mut start = seen.len();
    let mut joins = true;
    for (place, c) in seen.iter().enumerate().rev() {
        if is_left_to_right(*c) || is_of_number(seen, place) {
            if joins {
                start = place;
            } else if let Some(word) = letters_before(seen, place) {
                start = word;
                joins = true;
            } else {
                break;
            }
        } else if is_rtl(*c) {
            break;
        } else if c.is_whitespace() || *c == '|' {
            joins = false;
        }
    }
    start
}

/// Returns `end` if the last letter up to there is read from left to right. A number behind such a letter
/// belongs to it (UAX #9, rule W7).
fn letters_before(seen: &[char], end: usize) -> Option<usize> {
    let is_strong = |c: &&char| c.is_alphabetic() || is_rtl(**c) || **c == '|';
    let last = seen.get(..=end)?.iter().rev().find(is_strong)?;
    (last.is_alphabetic() && !is_rtl(*last)).then_some(end)
}

fn mirrored(c: char) -> char {
    match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hebrew_is_read_from_the_right() {
        // Visual order: the first letter stands at the right.
        assert_eq!(to_reading_order("12 םולש"), "שלום 12");
        assert_eq!(to_reading_order("(4 ףיעס) 123 רפסמ"), "מספר 123 (סעיף 4)");
        assert_eq!(to_reading_order("הנוקה ןיבו Acme Ltd תרבח"), "חברת Acme Ltd ובין הקונה");
        assert_eq!(
            to_reading_order("12.3.2024 םויב 2 Acme Ltd ןיבו"),
            "ובין Acme Ltd 2 ביום 12.3.2024"
        );
        assert_eq!(to_reading_order("7 5 םירפסמ"), "מספרים 5 7");
        assert_eq!(
            to_reading_order("הזה שדחה ןופלטה iPhone 15 Pro-ב"),
            "ב-iPhone 15 Pro הטלפון החדש הזה"
        );
        assert_eq!(to_reading_order("7.5% לש תיביר"), "ריבית של 7.5%");
        assert_eq!(to_reading_order("٢٬٥٠٠٫٥٠ ﻎﻠﺒﻤﻟﺍ"), "ﺍﻟﻤﺒﻠﻎ ٢٬٥٠٠٫٥٠");
        assert_eq!(to_reading_order("₪500 םולשת"), "תשלום ₪500");
        // Brackets stored by their role.
        assert_eq!(to_reading_order("]הטויט[ )א חפסנ("), "(נספח א) [טיוטה]");
        assert_eq!(to_reading_order("[הטויט] (א חפסנ)"), "(נספח א) [טיוטה]");
    }

    #[test]
    fn hebrew_within_other_text_is_turned_alone() {
        assert_eq!(
            to_reading_order("Agreement with הזוח 3 הז dated 2024"),
            "Agreement with זה 3 חוזה dated 2024"
        );
        assert_eq!(
            to_reading_order("The house | תיב | The door | תלד"),
            "The house | בית | The door | דלת"
        );
        assert_eq!(to_reading_order("plain"), "plain");
    }
}
