//! Prepares a page's content for the interpreter: separates adjacent numbers, and marks the end.

use std::borrow::Cow;

use hayro_interpret::{
    Context, Device, hayro_syntax::content::TypedIter, hayro_syntax::page::Page, interpret,
};

/// The tag of the marked content that ends a page's content: whoever has seen it has seen all.
pub(super) const END: &[u8] = b"EndOfContent";

/// Returns a page's content with its [end](END).
pub(super) fn page_content(page: &Page<'_>) -> Vec<u8> {
    let content = separate_adjacent_numbers(page.page_stream().unwrap_or_default());
    [&*content, b"\n/", END, b" BMC EMC"].concat()
}

/// Draws a page's content.
pub(super) fn draw_content<'a>(
    page: &Page<'a>,
    content: &[u8],
    context: &mut Context<'a>,
    device: &mut impl Device<'a>,
) {
    interpret(TypedIter::new(content), page.resources(), context, device);
}

/// Inserts a space between the adjacent numbers of an array. `[(a)12-333(b)] TJ` moves by 12 and by -333;
/// the interpreter would lose the second, which is the space between two words. Outside of arrays, where
/// the number of operands counts, such numbers stay as they are.
fn separate_adjacent_numbers(content: &[u8]) -> Cow<'_, [u8]> {
    let is_digit = |at: usize| content.get(at).is_some_and(|byte| byte.is_ascii_digit());
    let is_border =
        |at: usize| at > 0 && is_digit(at - 1) && (is_digit(at + 1) || is_fraction_at(content, at));
    if !memchr::memchr_iter(b'-', content).any(is_border) {
        return Cow::Borrowed(content);
    }
    let (mut separated, mut from, mut state) =
        (Vec::with_capacity(content.len() + 64), 0, State::default());
    for (at, byte) in content.iter().enumerate() {
        if state.is_in_number_of_array() && *byte == b'-' && is_border(at) {
            separated.extend_from_slice(content.get(from..at).unwrap_or_default());
            separated.push(b' ');
            from = at;
        }
        state.take(*byte);
    }
    separated.extend_from_slice(content.get(from..).unwrap_or_default());
    Cow::Owned(separated)
}

/// Whether a fraction without a whole part follows the sign: `-.5`.
fn is_fraction_at(content: &[u8], at: usize) -> bool {
    content.get(at + 1) == Some(&b'.') && content.get(at + 2).is_some_and(u8::is_ascii_digit)
}

/// Lexical state of the content at a byte.
#[derive(Debug, Default)]
struct State {
    /// Number of open arrays.
    arrays: usize,
    /// Number of open brackets of a string.
    brackets: usize,
    /// Whether the byte before was a backslash in a string.
    escaped: bool,
    /// Whether in a hexadecimal string.
    hex: bool,
    /// Whether in a comment.
    comment: bool,
    /// Whether in a number. Digits of a name do not count.
    number: bool,
    /// Whether in a name or an operator.
    word: bool,
}

impl State {
    fn is_in_number_of_array(&self) -> bool {
        self.arrays > 0 && self.number
    }

    fn take(&mut self, byte: u8) {
        if self.brackets > 0 {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'(' => self.brackets += 1,
                b')' => self.brackets -= 1,
                _ => {}
            }
            return;
        }
        if self.hex {
            // `<<` opens a dictionary.
            self.hex = !matches!(byte, b'<' | b'>');
            return;
        }
        if self.comment {
            self.comment = !matches!(byte, b'\n' | b'\r');
            return;
        }
        let was_in_word = self.word;
        (self.number, self.word) = match byte {
            b'0'..=b'9' | b'+' | b'-' | b'.' => (!was_in_word, was_in_word),
            b'[' => (false, false),
            _ if byte.is_ascii_whitespace() || b"\0]<>(){}%".contains(&byte) => (false, false),
            _ => (false, true),
        };
        match byte {
            b'[' => self.arrays += 1,
            b']' => self.arrays = self.arrays.saturating_sub(1),
            b'(' => self.brackets = 1,
            b'<' => self.hex = true,
            b'%' => self.comment = true,
            // An operator: an open bracket before it did not open an array.
            b'A'..=b'Z' | b'a'..=b'z' if !was_in_word => self.arrays = 0,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_array_are_separated_and_nothing_else() {
        let separated = |content: &str| {
            String::from_utf8(separate_adjacent_numbers(content.as_bytes()).into_owned()).unwrap()
        };
        assert_eq!(separated("[(a)12-333(b)-.5-.25] TJ"), "[(a)12 -333(b)-.5 -.25] TJ");
        for content in [
            "[(1-2 \\) 3-4 (5-6) )] TJ",
            "/A1-2 gs 0.00-35 0 m",
            "[/F1-2 <31-32>] TJ",
            "% [1-2\n[3--4] 0 d",
        ] {
            assert_eq!(separated(content), content);
        }
        assert_eq!(separated("[1 % 2-3]\r 4-5]"), "[1 % 2-3]\r 4 -5]");
    }
}
