//! Unique boundaries for the parts of a message.
//!
//! A boundary is a line of its own (RFC 2046, section 5.1.1). `mail-parser` 0.11 also finds it in
//! the middle of a line, or as the beginning of a longer one, and ends a part there. If a message
//! has such lines, its boundaries are renamed to names that occur nowhere in it.

use std::borrow::Cow;

use memchr::memmem;

/// Most boundaries of a message; it has one for each level of its parts.
const MAX_BOUNDARIES: usize = 16;

/// Longest boundary in bytes, twice as long as the RFC allows.
const MAX_LENGTH: usize = 140;

/// Renames the boundaries of a message if the parser could mistake other text for them.
pub(super) fn with_unique_boundaries(message: &[u8]) -> Cow<'_, [u8]> {
    let declared = declared_boundaries(message);
    if !declared.iter().any(|boundary| occurs_elsewhere(message, boundary)) {
        return Cow::Borrowed(message);
    }
    let Some(fresh) = (0_u32..1_000)
        .map(|number| format!("=_tidegate_{number}_"))
        .find(|fresh| memmem::find(message, fresh.as_bytes()).is_none())
    else {
        return Cow::Borrowed(message);
    };
    let mut renamed = Vec::with_capacity(message.len() + 4_096);
    // Boundaries of the open parts, the innermost last.
    let mut open: Vec<usize> = Vec::new();
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii_end();
        let delimiter = delimiter(text, &declared)
            .and_then(|(place, closes)| Some((open.iter().rposition(|of| *of == place)?, closes)));
        if let Some((level, closes)) = delimiter {
            // A boundary of an outer part also ends the parts within it.
            for inner in open.drain(level + 1..).rev() {
                renamed.extend(format!("--{fresh}{inner}_--\r\n").bytes());
            }
            renamed.extend(format!("--{fresh}{}_", open[level]).bytes());
            if closes {
                renamed.extend(b"--");
                open.truncate(level);
            }
            renamed.extend(&line[text.len()..]);
        } else if let Some((place, from, to)) = declaration(line, &declared) {
            open.push(place);
            renamed.extend(&line[..from]);
            renamed.extend(format!("\"{fresh}{place}_\"").bytes());
            renamed.extend(&line[to..]);
        } else {
            renamed.extend(line);
        }
    }
    Cow::Owned(renamed)
}

/// Returns the boundaries that the headers declare, each once.
fn declared_boundaries(message: &[u8]) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = Vec::new();
    for line in message.split(|byte| *byte == b'\n') {
        if let Some((from, to)) = value(line) {
            let boundary = unquoted(&line[from..to]);
            let fits = (1..=MAX_LENGTH).contains(&boundary.len());
            if fits && !all.contains(&boundary) && all.len() < MAX_BOUNDARIES {
                all.push(boundary);
            }
        }
    }
    all
}

/// Returns the range of a boundary parameter's value in a line, with its quotes.
fn value(line: &[u8]) -> Option<(usize, usize)> {
    const NAME: &[u8] = b"boundary";
    // It may come after other parameters.
    let signs = (0..line.len()).filter(|at| line[*at] == b'=');
    let from = signs.map(|at| at + 1).find(|from| {
        let before = &line[..from - 1];
        let Some(start) = before.len().checked_sub(NAME.len()) else { return false };
        let parted = start == 0 || matches!(before[start - 1], b' ' | b'\t' | b';');
        parted && before[start..].eq_ignore_ascii_case(NAME)
    })?;
    let rest = line.get(from..)?;
    let length = match rest.strip_prefix(b"\"") {
        Some(quoted) => quoted.iter().position(|byte| *byte == b'"')? + 2,
        None => rest
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || *byte == b';')
            .unwrap_or(rest.len()),
    };
    Some((from, from + length))
}

fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

/// Returns the index of the boundary that a line is, and whether it closes the part.
fn delimiter(line: &[u8], declared: &[&[u8]]) -> Option<(usize, bool)> {
    let rest = line.strip_prefix(b"--")?;
    let is = |boundary: &[u8]| declared.iter().position(|known| *known == boundary);
    // A boundary may end in two hyphens itself.
    let open = is(rest).map(|place| (place, false));
    open.or_else(|| Some((is(rest.strip_suffix(b"--")?)?, true)))
}

/// Returns the index of the boundary that a line declares, and the range of its value.
fn declaration(line: &[u8], declared: &[&[u8]]) -> Option<(usize, usize, usize)> {
    let (from, to) = value(line)?;
    let boundary = unquoted(&line[from..to]);
    Some((declared.iter().position(|known| *known == boundary)?, from, to))
}

/// Returns whether a boundary occurs within a line or with text behind it.
fn occurs_elsewhere(message: &[u8], boundary: &[u8]) -> bool {
    let mark = [b"--", boundary].concat();
    let mut from = 0;
    while let Some(at) = memmem::find(&message[from..], &mark) {
        let (start, end) = (from + at, from + at + mark.len());
        let rest = message[end..].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let rest = rest.trim_ascii_end();
        let begins_line = start == 0 || message[start - 1] == b'\n';
        if !begins_line || !(rest.is_empty() || rest == b"--") {
            return true;
        }
        from = end;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_mistaken_stays_as_it_is() {
        let message = b"Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\nx\n--b--\n";
        assert!(matches!(with_unique_boundaries(message), Cow::Borrowed(_)));
        assert!(matches!(with_unique_boundaries(b"From: a\n\nno parts, --b"), Cow::Borrowed(_)));
    }

    #[test]
    fn lines_alone_are_boundaries() {
        let message = "Content-Type: multipart/mixed;\r\n boundary=b\r\n\r\n--b  \r\nContent-Type: multipart/related; boundary=bb\r\n\r\n--bb\r\n\r\na --b stays\r\n--bc, too\r\n--bb--\r\n--b--\r\n";
        let renamed =
            String::from_utf8(with_unique_boundaries(message.as_bytes()).into_owned()).unwrap();
        let (one, two) = ("=_tidegate_0_0_", "=_tidegate_0_1_");
        let expected = format!(
            "Content-Type: multipart/mixed;\r\n boundary=\"{one}\"\r\n\r\n--{one}  \r\nContent-Type: multipart/related; boundary=\"{two}\"\r\n\r\n--{two}\r\n\r\na --b stays\r\n--bc, too\r\n--{two}--\r\n--{one}--\r\n"
        );
        assert_eq!(renamed, expected);
    }

    #[test]
    fn an_outer_boundary_ends_the_parts_within() {
        let message = "Content-Type: multipart/mixed; boundary=12\n\n--12\nContent-Type: multipart/mixed; boundary=1\n\n--1\n\none\n--12\n\ntwo\n--1\n--12--\n";
        let renamed =
            String::from_utf8(with_unique_boundaries(message.as_bytes()).into_owned()).unwrap();
        let (outer, inner) = ("--=_tidegate_0_0_", "--=_tidegate_0_1_");
        let (_, parts) = renamed.split_once("one\n").unwrap();
        // Boundaries of closed parts are not recognized.
        assert_eq!(parts, format!("{inner}--\r\n{outer}\n\ntwo\n--1\n{outer}--\n"));
    }
}
