//! Decoding of text in any encoding.

use std::{borrow::Cow, collections::HashSet};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

use crate::{code_page::CodePage, unreadable::Unreadable};

/// Bytes checked to detect UTF-16 and UTF-32, and before the first byte outside of ASCII to guess
/// an older encoding. The guess uses at most sixteen times as many bytes.
const SAMPLE_BYTES: usize = 64 << 10;

/// Fewest characters that can be recognized as words of UTF-16.
const MIN_LETTERS: usize = 12;

/// Fewest bytes of text in ASCII that may stand behind text in UTF-16.
const MIN_APPENDED: usize = 20;

/// Decodes text: by its byte order mark, as UTF-16 if its zeros fit, as UTF-8 if valid, else in the
/// likeliest older encoding. UTF-8 stays unchanged, except for escapes and overstrikes of
/// terminals, which are removed.
///
/// # Errors
/// [`Unreadable::Binary`] if it is no text in any encoding.
pub(crate) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Unreadable> {
    if let Some(text) = decode_utf32(bytes) {
        return Ok(Cow::Owned(text));
    }
    let bytes = strip_padding(bytes);
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return decode_with_appended(encoding, &bytes[mark..]);
    }
    // Checked before UTF-8, because English in UTF-16 is valid UTF-8 too.
    if bytes.contains(&0) {
        if let Some(fields) = decode_zero_ended_fields(bytes) {
            return Ok(Cow::Owned(fields));
        }
        if let Some(encoding) = detect_utf16(bytes) {
            return decode_with_appended(encoding, bytes);
        }
        // A log may have a few, where a program stopped while it wrote.
        let text: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        let zeros = bytes.len() - text.len();
        if zeros * 20 > bytes.len() {
            return Err(Unreadable::Binary);
        }
        return Ok(Cow::Owned(decode(&text)?.into_owned()));
    }
    if is_iso_2022_jp(bytes) {
        return decode_as(ISO_2022_JP, bytes);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if text.contains('\u{8}') || text.contains('\u{1b}') {
            let text = remove_escapes(&remove_overstrikes(text));
            return if is_binary(&text) { Err(Unreadable::Binary) } else { Ok(Cow::Owned(text)) };
        }
        return if is_binary(text) { Err(Unreadable::Binary) } else { Ok(Cow::Borrowed(text)) };
    }
    if let Some(joined) = join_surrogates(bytes) {
        return Ok(Cow::Owned(decode(&joined)?.into_owned()));
    }
    match CodePage::new(detect_encoding(bytes), bytes) {
        CodePage::Known(encoding) => decode_as(encoding, bytes),
        page => {
            let text = page.decode(bytes);
            if is_binary(&text) { Err(Unreadable::Binary) } else { Ok(text) }
        }
    }
}

/// Returns the bytes in UTF-8 if they contain characters in CESU-8. Some databases write a character
/// outside of the first plane so: each half of its pair of UTF-16 by itself.
fn join_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut joined, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(6).position(|part| surrogate_pair(part).is_some()) {
        let (before, pair) = rest.split_at(at);
        joined.extend_from_slice(before);
        let letter = surrogate_pair(pair)?;
        joined.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        rest = pair.get(6..).unwrap_or_default();
    }
    (rest.len() < bytes.len()).then(|| {
        joined.extend_from_slice(rest);
        joined
    })
}

/// Returns the character whose two surrogates begin the bytes, each written as three bytes.
fn surrogate_pair(bytes: &[u8]) -> Option<char> {
    let [0xed, a @ 0xa0..=0xaf, b @ 0x80..=0xbf, 0xed, c @ 0xb0..=0xbf, d @ 0x80..=0xbf, ..] =
        bytes
    else {
        return None;
    };
    let unit = |high: u8, low: u8| 0xd000 | (u16::from(high & 0x3f) << 6) | u16::from(low & 0x3f);
    char::decode_utf16([unit(*a, *b), unit(*c, *d)]).next()?.ok()
}

/// Guesses the encoding of bytes that have no byte order mark and are not in ASCII, UTF-16 or
/// UTF-32.
pub(crate) fn detect_encoding(bytes: &[u8]) -> &'static Encoding {
    if is_damaged_utf8(bytes) {
        return UTF_8;
    }
    // Text before the first byte outside of ASCII tells nothing, however long it is.
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let telling = &bytes[first.saturating_sub(SAMPLE_BYTES)..];
    let telling = &telling[..telling.len().min(16 * SAMPLE_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(telling, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// Returns whether bytes are UTF-8 with a few errors. In older encodings, bytes outside of ASCII
/// hardly ever form valid UTF-8.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for piece in bytes.utf8_chunks() {
        whole += piece.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!piece.invalid().is_empty());
    }
    whole > 0 && broken <= whole
}

/// Decodes text in a known encoding. A log in UTF-16 may end with lines in ASCII, which another program
/// has appended.
fn decode_with_appended<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
) -> Result<Cow<'a, str>, Unreadable> {
    let last = memchr::memrchr(0, bytes);
    let end = match last {
        Some(last) if encoding == UTF_16LE => last + 1,
        Some(last) if encoding == UTF_16BE => last + 2,
        _ => bytes.len(),
    };
    let (wide, appended) = bytes.split_at(end.min(bytes.len()));
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    // Ideographs of such bytes alone are rare, and so are more than a few of them in a row.
    let is_appended = appended.len() >= MIN_APPENDED
        && appended.iter().all(is_text)
        && appended.contains(&b' ')
        && memchr::memchr_iter(0, wide).count() * 5 > wide.len() * 2;
    if !is_appended {
        return decode_as(encoding, bytes);
    }
    let text = decode_as(encoding, wide)?.into_owned();
    Ok((text + &String::from_utf8_lossy(appended)).into())
}

/// Decodes text in a known encoding.
///
/// # Errors
/// [`Unreadable::Binary`] if too much of it is invalid.
pub(crate) fn decode_as<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
) -> Result<Cow<'a, str>, Unreadable> {
    let (text, damaged) = encoding.decode_without_bom_handling(bytes);
    // A few invalid bytes are accepted; of UTF-8 more (a tenth) than of others (a fiftieth).
    let bad = if damaged { text.matches('\u{fffd}').count() } else { 0 };
    let most = if encoding == UTF_8 { 10 } else { 50 };
    if bad * most > text.len() || is_binary(&text) { Err(Unreadable::Binary) } else { Ok(text) }
}

/// Returns whether more than one byte in a hundred is a control character. A log or table may have
/// more, if they separate its fields and records.
fn is_binary(text: &str) -> bool {
    let is_odd = |c: &char| {
        c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{b}' | '\u{1b}' | '\u{85}')
    };
    let control = text.chars().filter(is_odd).count();
    let first = text.chars().find(is_odd);
    let separates = || {
        text.chars()
            .filter(is_odd)
            .all(|c| matches!(c, '\u{1c}'..='\u{1f}') || (c == '\u{1}' && first == Some(c)))
            && control * 3 < text.len()
    };
    text.contains('\0') || (control * 100 > text.len() && !separates())
}

/// Removes padding at the end: zeros, and the end-of-file character of DOS.
fn strip_padding(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !matches!(byte, 0 | 0x1a)).map_or(0, |at| at + 1);
    let (text, padding) = bytes.split_at(end);
    // One zero may be half of a UTF-16 character.
    let is_wide = text.contains(&0) || (padding == [0] && std::str::from_utf8(text).is_err());
    if is_wide { bytes } else { text }
}

/// Removes the escape sequences of terminals, such as colors and movements.
pub(crate) fn remove_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = match part.chars().next() {
            // `[`, numbers, a letter.
            Some('[') => {
                let end = part.char_indices().skip(1).find(|(_, c)| matches!(c, '@'..='~'));
                end.and_then(|(at, _)| part.get(at + 1..))
            }
            // A title or an address, up to a bell or a line end. Its other terminator, `ESC \`, is
            // a sequence of its own.
            Some(']') => {
                let end = part.find(['\u{7}', '\n']).unwrap_or(part.len());
                part.get(end..).map(|rest| rest.strip_prefix('\u{7}').unwrap_or(rest))
            }
            Some('\\') => part.get(1..),
            Some('(' | ')') => part.get(2..),
            _ => None,
        };
        match rest {
            Some(rest) => plain.push_str(rest),
            None => {
                plain.push('\u{1b}');
                plain.push_str(part);
            }
        }
    }
    plain
}

/// Removes overstrikes: manuals print a letter twice for bold, and `_` over it for underlining.
fn remove_overstrikes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{8}' {
            plain.push(letter);
            continue;
        }
        // The underlined letter comes before or after its `_`.
        let before = plain.pop();
        if letters.peek() == Some(&'_') && before.is_some_and(|before| before != '_') {
            letters.next();
            plain.extend(before);
        }
    }
    plain
}

/// Returns whether bytes are ISO-2022-JP, an older encoding of Japanese mail and pages: ASCII with
/// escapes between alphabets.
fn is_iso_2022_jp(bytes: &[u8]) -> bool {
    let has = |mark: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
    bytes.contains(&0x1b) && bytes.is_ascii() && (has(b"\x1b$B") || has(b"\x1b$@")) && has(b"\x1b(")
}

/// Decodes fields that end with zeros, as in lists of files and environments. Each becomes a line.
fn decode_zero_ended_fields(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let zeros = text.matches('\0').count();
    let lines = text.replace('\0', "\n");
    (zeros * 3 < text.len() && !is_binary(&lines)).then_some(lines)
}

/// Decodes UTF-32 with or without a byte order mark.
fn decode_utf32(bytes: &[u8]) -> Option<String> {
    let (units, []) = bytes.as_chunks::<4>() else { return None };
    let [first, ..] = units else { return None };
    let is_letter = |unit: &[u8; 4], read: fn([u8; 4]) -> u32| {
        char::from_u32(read(*unit)).is_some_and(|c| c != '\0')
    };
    let head = &units[..units.len().min(SAMPLE_BYTES / 4)];
    let read = match first {
        [0xff, 0xfe, 0, 0] => u32::from_le_bytes,
        [0, 0, 0xfe, 0xff] => u32::from_be_bytes,
        _ if head.len() < 2 => return None,
        _ if head.iter().all(|unit| is_letter(unit, u32::from_le_bytes)) => u32::from_le_bytes,
        _ if head.iter().all(|unit| is_letter(unit, u32::from_be_bytes)) => u32::from_be_bytes,
        _ => return None,
    };
    let text: String =
        units.iter().map(|unit| char::from_u32(read(*unit)).unwrap_or('\u{fffd}')).collect();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    (!is_binary(text)).then(|| text.to_owned())
}

/// Detects UTF-16 without a byte order mark. In Western text every other byte is zero.
fn detect_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(SAMPLE_BYTES) & !1];
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, half) = (zeros(0), zeros(1), head.len() / 2);
    if !bytes.len().is_multiple_of(2) || half == 0 {
        return None;
    }
    match (even * 10 > half * 4, odd * 10 > half * 4) {
        (false, true) if even * 20 <= half => Some(UTF_16LE),
        (true, false) if odd * 20 <= half => Some(UTF_16BE),
        // Other scripts share only spaces and line ends with Western text, so zeros are few.
        (false, false) => {
            let fluent = [UTF_16LE, UTF_16BE]
                .into_iter()
                .filter_map(|encoding| Some((blocks_of_words(encoding, head)?, encoding)));
            fluent.min_by_key(|(blocks, _)| *blocks).map(|(_, encoding)| encoding)
        }
        _ => None,
    }
}

/// Counts the blocks of 256 code points in which the characters lie. The letters of one script
/// share few blocks. Returns `None` if the bytes are not words in this encoding.
fn blocks_of_words(encoding: &'static Encoding, bytes: &[u8]) -> Option<usize> {
    let (text, is_damaged) = encoding.decode_without_bom_handling(bytes);
    let is_of_text = |c: &char| {
        c.is_alphanumeric()
            || c.is_whitespace()
            || c.is_ascii_punctuation()
            || matches!(c, '\u{300}'..='\u{36f}' | '\u{2010}'..='\u{205e}' | '\u{3000}'..='\u{30ff}' | '\u{ff00}'..='\u{ffef}')
    };
    let all = text.chars().count();
    let odd = text.chars().filter(|c| !is_of_text(c)).count();
    let letters = text.chars().filter(|c| c.is_alphabetic() && !c.is_ascii()).count();
    let blocks: HashSet<u32> = text.chars().map(|c| u32::from(c) >> 8).collect();
    let is_fluent = !is_damaged
        && all >= MIN_LETTERS
        && odd * 20 <= all
        && letters * 2 > all
        && blocks.len() * 10 <= all * 7;
    is_fluent.then_some(blocks.len())
}

/// Whether a text is an encrypted message (OpenPGP, RFC 9580, section 6.2).
pub(crate) fn is_encrypted(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"-----BEGIN PGP MESSAGE-----")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        let words =
            "Größe: 5 µm. Überall fließt Wasser, und die Gezeiten kehren zweimal täglich wieder.";
        let utf16: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16_be: Vec<u8> = [
            &[0xfe, 0xff][..],
            &words.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>(),
        ]
        .concat();
        let latin: Vec<u8> = words.chars().map(|c| c as u8).collect();
        let marked = ["\u{feff}".as_bytes(), words.as_bytes()].concat();
        let english: Vec<u8> =
            "High tide at noon.".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&english).unwrap(), "High tide at noon.");
        for bytes in [words.as_bytes(), &utf16, &utf16_be, &latin, &marked] {
            assert_eq!(decode(bytes).unwrap(), words);
        }
        let (japanese, _, _) = encoding_rs::SHIFT_JIS
            .encode("潮は一日に二度満ちて、誰も待たない。港の船は静かに揺れている。");
        assert!(decode(&japanese).unwrap().contains("一日に二度"));
    }

    #[test]
    fn a_bad_byte_costs_itself_alone() {
        let words = "Größe und Wärme: 5 µm, überall fließt Wasser. ";
        for bad in [&b"\xff"[..], b"\xe4", b"\xc3"] {
            let bytes = [words.as_bytes(), bad, words.as_bytes()].concat();
            assert_eq!(decode(&bytes).unwrap(), format!("{words}\u{fffd}{words}"));
        }
        let mixed = b"Gr\xc3\xb6\xc3\x9fe, caf\xe9 \xe2\x82\xac 5\n";
        assert_eq!(decode(mixed).unwrap(), "Größe, caf\u{fffd} € 5\n");
        let long = "潮は一日に二度満ちる".repeat(4);
        let cut = &long.as_bytes()[..long.len() - 1];
        assert_eq!(decode(cut).unwrap(), long.trim_end_matches('る').to_owned() + "\u{fffd}");
    }

    #[test]
    fn the_first_accent_may_come_late() {
        let plain = "The tide turns twice a day. ".repeat(5_000);
        let late = [plain.as_bytes(), b"Caf\xe9 cr\xe8me, na\xefve fa\xe7ade."].concat();
        assert!(late.len() > 2 * SAMPLE_BYTES);
        assert!(decode(&late).unwrap().ends_with("Café crème, naïve façade."));
    }

    #[test]
    fn binary_data_is_no_text() {
        let noise: Vec<u8> =
            (0..4_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for bytes in [&noise[..], b"abc\0\x02ef\x03", &[1, 2, 3, 4, 5, 6, 7, 8]] {
            assert_eq!(decode(bytes), Err(Unreadable::Binary));
        }
        assert_eq!(
            decode(b"8=FIX\x0135=D\x0149=BUYER\x01").unwrap(),
            "8=FIX\u{1}35=D\u{1}49=BUYER\u{1}"
        );
        let records = b"id\x1fname\x1e1\x1fAda\x1e2\x1fBob\x1e";
        assert_eq!(decode(records).unwrap().as_bytes(), records);
        assert_eq!(
            decode(b"name\0value\0other text with some content\n").unwrap(),
            "name\nvalue\nother text with some content\n"
        );
        assert_eq!(decode(b"N\x08NA\x08A _\x08lx\x08_").unwrap(), "NA lx");
        assert_eq!(decode(b"\x1b$B$\"\x1b(B!").unwrap(), "あ!");
        for units in [u32::to_le_bytes, u32::to_be_bytes] {
            let plain: Vec<u8> = "Ebbe 潮".chars().flat_map(|c| units(c as u32)).collect();
            assert_eq!(decode(&plain).unwrap(), "Ebbe 潮");
            assert_eq!(decode(&[&units(0xfeff)[..], &plain].concat()).unwrap(), "Ebbe 潮");
        }
        let shown =
            b"\x1b]0;title\x07\x1b[1;31mred\x1b[0m \x1b]8;;https://a.org\x1b\\link\x1b]8;;\x1b\\\n";
        assert_eq!(decode(shown).unwrap(), "red link\n");
    }

    #[test]
    fn a_text_may_be_filled_up_and_in_wide_letters_of_any_script() {
        assert_eq!(decode(b"Ebb.\r\n\x1a").unwrap(), "Ebb.\r\n");
        assert_eq!(decode(b"Ebb.\n\0\0\0\0").unwrap(), "Ebb.\n");
        assert_eq!(decode(b"Caf\xe9 cr\xe8me, na\xefve.\n\0\0\0").unwrap(), "Café crème, naïve.\n");
        assert_eq!(decode(b"\x1b]no bell\nEbb \x1b]0;a\x07tide").unwrap(), "\nEbb tide");
        for words in
            ["潮は一日に二度、満ちる。\n", "Прилив и отлив в порту", "밀물과 썰물은 하루에 두 번\n"]
        {
            for units in [u16::to_le_bytes, u16::to_be_bytes] {
                let bytes: Vec<u8> = words.encode_utf16().flat_map(units).collect();
                assert_eq!(decode(&bytes).unwrap(), words);
            }
        }
        let stopped = [&b"start of a log\n".repeat(9)[..], b"gr\xfc\0\0\xdfe\n"].concat();
        assert!(decode(&stopped).unwrap().ends_with("log\ngrüße\n"));
        for units in [u16::to_le_bytes, u16::to_be_bytes] {
            let wide = "\u{feff}Start of a log\n".encode_utf16().flat_map(units);
            let bytes: Vec<u8> = wide.chain(*b"written by another program\n").collect();
            assert_eq!(decode(&bytes).unwrap(), "Start of a log\nwritten by another program\n");
        }
        let twice = b"x \xed\xa0\xbd\xed\xb8\x80 \xc3\x9f \xed\xa0\xbd\xed\xb8\x81";
        assert_eq!(decode(twice).unwrap(), "x 😀 ß 😁");
        // Binary numbers are not words.
        let numbers: Vec<u8> = (1..400_u32).flat_map(|n| (n * 7_919).to_le_bytes()).collect();
        assert_eq!(decode(&numbers), Err(Unreadable::Binary));
    }
}
