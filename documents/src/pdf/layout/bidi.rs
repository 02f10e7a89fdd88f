//! Text as it is seen, from left to right, to text as it is read.

/// Scripts that run from right to left are put into the order of reading: the whole of a line that is
/// mostly of them, else each run within.
pub(super) fn logical(text: &str) -> String {
    if !text.contains(is_rtl) {
        return text.to_owned();
    }
    if is_right_to_left(text) {
        return reversed(text);
    }
    // A run begins and ends with such a letter, and ends before letters of others and at a cell's end.
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

/// What one glyph says, as it would be seen.
pub(super) fn visual(text: &str) -> String {
    if text.contains(is_rtl) { reversed(text) } else { text.to_owned() }
}

pub(super) fn is_rtl(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && !c.is_numeric()
}

/// Whether most letters are of scripts that run from right to left.
pub(super) fn is_right_to_left(text: &str) -> bool {
    let rtl = text.chars().filter(|c| is_rtl(*c)).count();
    rtl * 2 > text.chars().filter(|c| c.is_alphabetic()).count() && rtl > 0
}

/// From the right to the left; numbers and words of other scripts keep their order.
fn reversed(text: &str) -> String {
    let seen: Vec<char> = text.chars().collect();
    let (mut read, mut rest) = (String::with_capacity(text.len()), seen.as_slice());
    while let Some((last, before)) = rest.split_last() {
        if stays(*last) {
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

/// Letters and digits that are read from left to right.
fn stays(c: char) -> bool {
    c.is_alphanumeric() && !is_rtl(c)
}

/// Where the words and numbers begin that stand at the end: several words of another script are read
/// one after the other, but numbers with a space between them are numbers of the outer text.
fn start_of_run(seen: &[char]) -> usize {
    let mut start = seen.len();
    let mut joins = true;
    for (place, c) in seen.iter().enumerate().rev() {
        if stays(*c) {
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

/// The beginning of the word that ends at a place, if there is a letter in it.
fn letters_before(seen: &[char], end: usize) -> Option<usize> {
    let word = seen.get(..=end)?;
    let length =
        word.iter().rev().take_while(|c| !c.is_whitespace() && **c != '|' && !is_rtl(**c)).count();
    let start = word.len() - length;
    word.get(start..)?.iter().any(|c| c.is_alphabetic()).then_some(end)
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
        // As it is seen: the first letter stands at the right.
        assert_eq!(logical("12 םולש"), "שלום 12");
        assert_eq!(logical("(4 ףיעס) 123 רפסמ"), "מספר 123 (סעיף 4)");
        assert_eq!(logical("הנוקה ןיבו Acme Ltd תרבח"), "חברת Acme Ltd ובין הקונה");
        assert_eq!(logical("12.3.2024 םויב 2 Acme Ltd ןיבו"), "ובין Acme Ltd 2 ביום 12.3.2024");
        assert_eq!(logical("7 5 םירפסמ"), "מספרים 5 7");
    }

    #[test]
    fn hebrew_within_other_text_is_turned_alone() {
        assert_eq!(
            logical("Agreement with הזוח 3 הז dated 2024"),
            "Agreement with זה 3 חוזה dated 2024"
        );
        assert_eq!(logical("The house | תיב | The door | תלד"), "The house | בית | The door | דלת");
        assert_eq!(logical("plain"), "plain");
    }
}
