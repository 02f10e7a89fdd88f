//! Pictures and fonts in base64 in text: as `data:` addresses, and as plain data in XML and cards.

use std::borrow::Cow;

use crate::left_out::{Kind, Tally};

/// Longest base64 data, in characters, that stays in the text.
const MAX_KEPT_CHARACTERS: usize = 100;

/// First characters of PNG, JPEG, GIF and WebP in base64.
const PICTURES: [&str; 4] = ["iVBORw0KGgo", "/9j/", "R0lGODlh", "UklGR"];

/// Fewest characters of a line of base64 behind the first one, unless it ends in padding.
const FULL_LINE: usize = 20;

/// Replaces long pictures and other data in base64 by `[image]` or `[data]`.
pub(crate) fn replace_data<'t>(text: Cow<'t, str>, tally: &Tally) -> Cow<'t, str> {
    let replaced = replace_data_uris(&text, tally);
    let text = replaced.map_or(text, Cow::Owned);
    let replaced = replace_plain_pictures(&text, tally);
    replaced.map_or(text, Cow::Owned)
}

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')
}

/// Replaces pictures in base64 that may have several lines. Returns `None` without any.
fn replace_plain_pictures(text: &str, tally: &Tally) -> Option<String> {
    let mut places: Vec<usize> =
        PICTURES.iter().flat_map(|mark| text.match_indices(mark)).map(|(at, _)| at).collect();
    places.sort_unstable();
    let (mut kept, mut copied, mut count) = (String::new(), 0, 0);
    for at in places {
        if at < copied || text[..at].ends_with(is_base64) {
            continue;
        }
        let length = base64_length(&text[at..]);
        if length > MAX_KEPT_CHARACTERS {
            kept.push_str(&text[copied..at]);
            kept.push_str("[image]");
            copied = at + length;
            count += 1;
        }
    }
    tally.add(Kind::Pictures, count);
    kept.push_str(&text[copied..]);
    (count > 0).then_some(kept)
}

/// Returns the length of the data at the start of a text: its first line, and further lines of nothing else.
fn base64_length(text: &str) -> usize {
    let line_end = |line: &str| line.find(|c| !is_base64(c)).unwrap_or(line.len());
    let mut length = line_end(text);
    while !text[..length].ends_with('=') {
        let behind = &text[length..];
        let Some(line) = behind.trim_start_matches('\r').strip_prefix('\n') else { break };
        let line = line.trim_start_matches([' ', '\t']);
        let end = line_end(line);
        let is_whole = line[end..].is_empty() || line[end..].starts_with(['\r', '\n', '<']);
        if !is_whole || (end < FULL_LINE && !line[..end].ends_with('=')) {
            break;
        }
        length = text.len() - line.len() + end;
    }
    length
}

/// Replaces long `data:` addresses. Returns `None` without any.
fn replace_data_uris(text: &str, tally: &Tally) -> Option<String> {
    const MARK: &str = ";base64,";
    if !text.contains(MARK) {
        return None;
    }
    let (mut kept, mut rest, mut count) = (String::with_capacity(text.len()), text, 0);
    while let Some(at) = rest.find(MARK) {
        let (before, behind) = (&rest[..at], &rest[at + MARK.len()..]);
        let is_data = |c: char| is_base64(c) || matches!(c, '_' | '-' | '%' | '\\');
        let length = behind.find(|c| !is_data(c)).unwrap_or(behind.len());
        // The media type has fewer than 200 bytes.
        let start = before.rfind("data:").filter(|start| at - start < 200);
        match start {
            Some(start) if length > MAX_KEPT_CHARACTERS => {
                let kind = &before[start + "data:".len()..];
                kept.push_str(&before[..start]);
                kept.push_str(if kind.starts_with("image/") { "[image]" } else { "[data]" });
                count += 1;
            }
            _ => kept.push_str(&rest[..at + MARK.len() + length]),
        }
        rest = &behind[length..];
    }
    kept.push_str(rest);
    tally.add(Kind::Pictures, count);
    (count > 0).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_out_is_named() {
        let (tally, long) = (Tally::default(), "QUJD".repeat(50));
        let text = format!(
            "![a](data:image/png;base64,{long}) and {{\"f\":\"data:font/woff2;charset=x;base64,{long}==\"}}"
        );
        assert_eq!(replace_data(text.into(), &tally), "![a]([image]) and {\"f\":\"[data]\"}");
        assert_eq!(tally.into_left_out().count(Kind::Pictures), 2);
        for text in ["data:text/plain;base64,QUJD", "no address;base64,".to_owned().as_str()] {
            assert_eq!(replace_data(text.into(), &Tally::default()), text);
        }
    }

    #[test]
    fn pictures_without_an_address_are_known_by_their_first_bytes() {
        let line = "QUJD".repeat(19);
        let tally = Tally::default();
        let book = format!("<binary id=\"a\">iVBORw0KGgo{line}\n{line}\n  AAA=\n</binary> words");
        let expected = "<binary id=\"a\">[image]\n</binary> words";
        assert_eq!(replace_data(book.into(), &tally), expected);
        let card = format!("PHOTO;ENCODING=b:/9j/{line}{line}\nEND:VCARD");
        assert_eq!(replace_data(card.into(), &tally), "PHOTO;ENCODING=b:[image]\nEND:VCARD");
        assert_eq!(tally.into_left_out().count(Kind::Pictures), 2);
        for text in ["see /9j/ and UklGR", &format!("xiVBORw0KGgo{line}{line}")] {
            assert_eq!(replace_data(text.into(), &Tally::default()), text);
        }
    }
}
