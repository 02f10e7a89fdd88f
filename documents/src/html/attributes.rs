//! Bound on the attributes of a tag: the parser compares each one with all before it.

use std::borrow::Cow;

/// Most attributes of a tag. Real tags have some dozens.
const MAX_ATTRIBUTES: usize = 1_000;

/// Removes the attributes of tags beyond the first thousand.
pub(super) fn limit_attributes(page: &str) -> Cow<'_, str> {
    let bytes = page.as_bytes();
    let (mut whole, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(open) = bytes.get(at..).and_then(|rest| memchr::memchr(b'<', rest)) {
        at += open + 1;
        if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let Some((cut, end)) = scan_tag(&bytes[at..]) else { break };
        if let Some(cut) = cut {
            whole.push_str(page.get(copied..at + cut).unwrap_or_default());
            copied = at + end;
        }
        at += end;
    }
    if copied == 0 {
        return Cow::Borrowed(page);
    }
    whole.push_str(page.get(copied..).unwrap_or_default());
    Cow::Owned(whole)
}

/// Returns where a tag's excess attributes begin, if it has any, and where its `>` is.
fn scan_tag(tag: &[u8]) -> Option<(Option<usize>, usize)> {
    let (mut cut, mut count, mut quote, mut after_space) = (None, 0_usize, None, false);
    let mut last = b' ';
    for (at, byte) in tag.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) => quote = Some(open).filter(|open| byte != open),
            (None, b'>') => return Some((cut, at)),
            (None, b'"' | b'\'') if last == b'=' => quote = Some(*byte),
            _ => {
                let is_space = byte.is_ascii_whitespace() || *byte == b'/';
                if after_space && !is_space && *byte != b'=' {
                    count += 1;
                    if count == MAX_ATTRIBUTES {
                        cut = Some(at);
                    }
                }
                after_space = is_space;
            }
        }
        if !byte.is_ascii_whitespace() {
            last = *byte;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_of_a_tag_are_bounded() {
        let few = "<p a='>' b=\"<\" c = d>x</p> 1 < 2 <!-- <a b> --><br/>";
        assert_eq!(limit_attributes(few), few);
        let many = |count: usize| (0..count).map(|at| format!(" a{at}='>'")).collect::<String>();
        let text = limit_attributes(&format!("<p{}>x<i{}>y", many(2_000), many(5))).into_owned();
        assert!(text.ends_with(&format!(">x<i{}>y", many(5))), "{text}");
        assert!(text.contains(" a998='>'") && !text.contains("a999"), "{text}");
        assert_eq!(limit_attributes("<p title='no end"), "<p title='no end");
    }
}
