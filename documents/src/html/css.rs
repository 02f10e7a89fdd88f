//! Tokens of style sheets: strings, brackets and escapes.

use std::borrow::Cow;

/// Most bytes of a declaration whose variables are replaced.
const MAX_VALUE: usize = 4 << 10;

/// Most variables that are replaced in one value.
const MAX_VARIABLES: usize = 20;

/// Returns the index of the first of these signs outside of strings and round or square brackets.
pub(super) fn find_outside(text: &str, signs: &[char]) -> Option<usize> {
    let (mut quote, mut depth, mut is_escaped) = (None, 0_usize, false);
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (quote, c) {
            (_, '\\') => is_escaped = true,
            // A string ends with its line.
            (Some(open), _) if c == open || c == '\n' => quote = None,
            (Some(_), _) => {}
            (None, _) if depth == 0 && signs.contains(&c) => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Splits a text at a sign outside of strings and brackets.
pub(super) fn split_outside(text: &str, sign: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let at = find_outside(text, &[sign]);
        rest = at.map(|at| &text[at + sign.len_utf8()..]);
        Some(at.map_or(text, |at| &text[..at]))
    })
}

/// Returns the index of the brace that closes the first one, or the length.
pub(super) fn find_closing_brace(body: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(next) = body.get(at..).and_then(|rest| find_outside(rest, &['{', '}'])) {
        at += next;
        if body[at..].starts_with('{') {
            depth += 1;
        } else {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at;
            }
        }
        at += 1;
    }
    body.len()
}

/// Replaces escapes: `\` with up to six parse_hexadecimal digits, or before any other sign.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('\\');
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut plain = first.to_owned();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            // An escaped backslash: the text behind it is no escape.
            plain.push('\\');
            plain.push_str(parts.next().unwrap_or_default());
            continue;
        }
        let digits = part.chars().take(6).take_while(char::is_ascii_hexdigit).count();
        let (code, rest) = part.split_at(digits);
        match u32::from_str_radix(code, 16) {
            Ok(code) => {
                plain.push(char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}'));
                plain.push_str(rest.strip_prefix(char::is_whitespace).unwrap_or(rest));
            }
            Err(_) => plain.push_str(rest.strip_prefix('\n').unwrap_or(rest)),
        }
    }
    Cow::Owned(plain)
}

/// Replaces `var(--name)` and `var(--name, fallback)`. `value` returns the value of a name, or an
/// error if it depends on the element.
pub(super) fn replace_variables(
    style: &str,
    value: impl Fn(&str) -> Result<Option<String>, ()>,
) -> Cow<'_, str> {
    if style.len() > MAX_VALUE || !style.contains("var(") {
        return Cow::Borrowed(style);
    }
    let mut style = style.to_owned();
    for _ in 0..MAX_VARIABLES {
        // The last one has no other within it.
        let Some(start) = style.rfind("var(") else { break };
        let inside = start + "var(".len();
        let end = find_outside(&style[inside..], &[')']).map_or(style.len(), |end| inside + end);
        let (name, fallback) = match style[inside..end].split_once(',') {
            Some((name, fallback)) => (name, Some(fallback.trim().to_owned())),
            None => (&style[inside..end], None),
        };
        let new = match value(name.trim()) {
            Ok(value) => value.or(fallback).unwrap_or_else(|| "unset".to_owned()),
            Err(()) => "unknown".to_owned(),
        };
        style.replace_range(start..(end + 1).min(style.len()), &new);
        if style.len() > MAX_VALUE {
            break;
        }
    }
    Cow::Owned(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_brackets_and_escapes_are_one_token() {
        let parts: Vec<_> = split_outside("a(b,c),\"d,\\\",e\",[f,g]),h", ',').collect();
        assert_eq!(parts, ["a(b,c)", "\"d,\\\",e\"", "[f,g])", "h"]);
        assert_eq!(find_closing_brace("{a{content:'}'}b}c"), 16);
        assert_eq!(find_closing_brace("{a{"), 3);
        assert_eq!(find_closing_brace("{a:'\n}"), 5);
        for (text, plain) in [
            ("d\\69splay", "display"),
            ("\\000064 isplay", "display"),
            ("a\\.b", "a.b"),
            ("a\\\\b", "a\\b"),
            ("\\", "\\"),
            ("\\0", "\u{fffd}"),
            ("\\é", "é"),
        ] {
            assert_eq!(unescape(text), plain, "{text}");
        }
    }

    #[test]
    fn variables_are_replaced() {
        let value = |name: &str| match name {
            "--a" => Ok(Some("none".to_owned())),
            "--b" => Ok(Some("var(--a)".to_owned())),
            "--loop" => Ok(Some("var(--loop) var(--loop)".to_owned())),
            "--c" => Err(()),
            _ => Ok(None),
        };
        for (style, expected) in [
            ("display:var(--a)", "display:none"),
            ("display: var( --b , x)", "display: none"),
            ("var(--z, var(--a))", "none"),
            ("var(--z)", "unset"),
            ("var(--c, none)", "unknown"),
            ("var(--a", "none"),
        ] {
            assert_eq!(replace_variables(style, value), expected, "{style}");
        }
        assert!(replace_variables("var(--loop)", value).len() < 2 * MAX_VALUE);
    }
}
