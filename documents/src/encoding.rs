//! Bytes to text, whatever the encoding.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::unreadable::Unreadable;

/// So much of a file is looked at to tell UTF-16 from other bytes, and before the first letter
/// outside of ASCII; after that, sixteen times as much.
const LOOKED_AT: usize = 64 << 10;

/// Text of any encoding: as a mark at its beginning says, UTF-16 if its zeros say so, UTF-8 if it
/// is, else the likeliest of the older ones. Text in UTF-8 comes back byte for byte.
///
/// # Errors
/// [`Unreadable::Binary`] when it is no text in any encoding.
pub(crate) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Unreadable> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return text(encoding, &bytes[mark..]);
    }
    // Before UTF-8, which English in UTF-16 is as well.
    if bytes.contains(&0) {
        return utf16(bytes).map_or(Err(Unreadable::Binary), |encoding| text(encoding, bytes));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return if is_binary(text) { Err(Unreadable::Binary) } else { Ok(Cow::Borrowed(text)) };
    }
    text(of(bytes), bytes)
}

/// The encoding of bytes that are not in ASCII, have no mark, and a byte for each letter of the
/// alphabet.
pub(crate) fn of(bytes: &[u8]) -> &'static Encoding {
    if is_damaged_utf8(bytes) {
        return UTF_8;
    }
    // What comes before the first accent says nothing, however long it is.
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let telling = &bytes[first.saturating_sub(LOOKED_AT)..];
    let telling = &telling[..telling.len().min(16 * LOOKED_AT)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(telling, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// Whether bytes are UTF-8 but for a few of them. In the older encodings, letters outside of ASCII
/// hardly ever happen to be whole letters of UTF-8.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for piece in bytes.utf8_chunks() {
        whole += piece.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!piece.invalid().is_empty());
    }
    whole > 0 && broken <= whole
}

/// Text in an encoding that is known.
pub(crate) fn text<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
) -> Result<Cow<'a, str>, Unreadable> {
    let (text, damaged) = encoding.decode_without_bom_handling(bytes);
    // A few bad bytes are a flaw, many are no text.
    let bad = if damaged { text.matches('\u{fffd}').count() } else { 0 };
    if bad * 50 > text.len() || is_binary(&text) { Err(Unreadable::Binary) } else { Ok(text) }
}

/// More than one control character in a hundred is no text.
fn is_binary(text: &str) -> bool {
    let control = text
        .chars()
        .filter(|c| {
            c.is_control()
                && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{b}' | '\u{1b}' | '\u{85}')
        })
        .count();
    text.contains('\0') || control * 100 > text.len()
}

/// UTF-16 without a mark: every other byte of Western text is zero.
fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(LOOKED_AT) & !1];
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, half) = (zeros(0), zeros(1), head.len() / 2);
    if !bytes.len().is_multiple_of(2) || half == 0 {
        return None;
    }
    match (even * 10 > half * 4, odd * 10 > half * 4) {
        (false, true) if even * 20 <= half => Some(UTF_16LE),
        (true, false) if odd * 20 <= half => Some(UTF_16BE),
        _ => None,
    }
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
        let long = "潮は一日に二度満ちる".repeat(4);
        let cut = &long.as_bytes()[..long.len() - 1];
        assert_eq!(decode(cut).unwrap(), long.trim_end_matches('る').to_owned() + "\u{fffd}");
    }

    #[test]
    fn the_first_accent_may_come_late() {
        let plain = "The tide turns twice a day. ".repeat(5_000);
        let late = [plain.as_bytes(), b"Caf\xe9 cr\xe8me, na\xefve fa\xe7ade."].concat();
        assert!(late.len() > 2 * LOOKED_AT);
        assert!(decode(&late).unwrap().ends_with("Café crème, naïve façade."));
    }

    #[test]
    fn binary_data_is_no_text() {
        let noise: Vec<u8> =
            (0..4_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for bytes in [&noise[..], b"abc\0def", &[1, 2, 3, 4, 5, 6, 7, 8]] {
            assert_eq!(decode(bytes), Err(Unreadable::Binary));
        }
        assert_eq!(decode(b"\x1b[31mred\x1b[0m\n").unwrap(), "\x1b[31mred\x1b[0m\n");
    }
}
