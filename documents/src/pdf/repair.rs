//! Repairs a page's content: the interpreter stops at what it cannot read, and all text behind it would be
//! lost.

use hayro_interpret::hayro_syntax::{
    content::Operator,
    object::Object,
    reader::{Reader, ReaderExt as _},
};

/// Most faults that are skipped: each may cost a search to the end of the content.
const MAX_FAULTS: usize = 100;

/// Most operands that the interpreter takes.
const MAX_OPERANDS: usize = 33;

/// Returns the instructions of a content without those that cannot be read.
pub(super) fn repair(content: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(content);
    let (mut repaired, mut start, mut faults) = (Vec::with_capacity(content.len()), 0, 0);
    let mut operands: Vec<bool> = Vec::new();
    while faults < MAX_FAULTS {
        reader.skip_white_spaces_and_comments();
        let at = reader.offset();
        let Some(first) = reader.peek_byte() else { break };
        if matches!(first, b'.' | b'+' | b'-' | b'0'..=b'9' | b'/' | b'[' | b'<' | b'(') {
            if let Some(object) = reader.read_without_context::<Object<'_>>() {
                operands.push(matches!(object, Object::Number(_)));
                continue;
            }
            reader.jump(at);
            faults += 1;
            if reader.read_without_context::<Operator<'_>>().is_none() {
                reader.jump(at + 1);
            }
        } else if let Some(operator) = reader.read_without_context::<Operator<'_>>() {
            if &*operator == b"BI" {
                skip_inline_image(&mut reader);
            }
            if is_complete(&operator, &operands) {
                repaired.extend(reader.range(start..reader.offset()).unwrap_or_default());
                repaired.push(b'\n');
            } else {
                faults += 1;
            }
        } else {
            // A bracket that closes nothing.
            reader.jump(at + 1);
            faults += 1;
        }
        operands.clear();
        start = reader.offset();
    }
    repaired
}

/// Whether an operator has its operands, given which of them are numbers. The interpreter skips others than
/// those that draw paths.
fn is_complete(operator: &[u8], operands: &[bool]) -> bool {
    let count = match operator {
        b"m" | b"l" => 2,
        b"c" => 6,
        b"v" | b"y" | b"re" => 4,
        _ => 0,
    };
    let last = operands.len().checked_sub(count).and_then(|first| operands.get(first..));
    operands.len() <= MAX_OPERANDS && last.is_some_and(|last| count == 0 || !last.contains(&false))
}

/// Moves behind the end of an inline image.
fn skip_inline_image(reader: &mut Reader<'_>) {
    let (start, tail) = (reader.offset(), reader.tail().unwrap_or_default());
    let is_end = |at: &usize| {
        let is_space = |at: Option<&u8>| at.is_none_or(u8::is_ascii_whitespace);
        is_space(at.checked_sub(1).and_then(|at| tail.get(at))) && is_space(tail.get(at + 2))
    };
    match memchr::memmem::find_iter(tail, b"EI").find(is_end) {
        Some(end) => reader.jump(start + end + 2),
        None => reader.jump_to_end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::one_line;

    #[test]
    fn instructions_that_cannot_be_read_are_left_out() {
        for (content, expected) in [
            ("0 0 1 rg 1 2 3 re f", "0 0 1 rg f"),
            ("] 1 2 m >> 3 4 l", "1 2 m 3 4 l"),
            ("/A (b m 1 2 m", "b 1 2 m"),
            ("BI /W 1 ID \u{1}EI( EI 1 2 m", "BI /W 1 ID \u{1}EI( EI 1 2 m"),
            ("1 /A m 5 w", "5 w"),
        ] {
            let repaired = String::from_utf8(repair(content.as_bytes())).unwrap();
            assert_eq!(one_line(&repaired), expected, "{content}");
        }
        assert_eq!(repair(&[b"1 ".repeat(40), b"w 2 w".to_vec()].concat()), b" 2 w\n");
        assert_eq!(repair(&b"(".repeat(1 << 20)), b"");
    }
}
