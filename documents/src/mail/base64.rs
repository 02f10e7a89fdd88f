//! Base64 with common faults: no padding, foreign characters in it, a footer behind it.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Fewest characters of a word that is base64; words of a footer are shorter.
const LONG: usize = 24;

/// Fewest characters of the first word of all if it ends in padding.
const SHORT: usize = 8;

/// Returns whether the message parser would decode base64 wrongly: it drops the last characters if
/// there is no padding, fails at foreign characters, and decodes a footer of plain words as data.
pub(super) fn is_faulty(text: &[u8]) -> bool {
    let (mut signs, mut padded, mut goes_on) = (0_usize, false, false);
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        match byte {
            b'=' => padded = true,
            byte if is_sign(*byte) => {
                signs += 1;
                goes_on |= padded;
            }
            _ => return true,
        }
    }
    goes_on || (!padded && !signs.is_multiple_of(4))
}

/// Decodes base64. Returns its bytes, and the text behind it.
pub(super) fn decode_lenient(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut bytes, mut signs, mut at) = (Vec::with_capacity(text.len() / 4 * 3), Vec::new(), 0);
    let (mut goes_on, mut behind) = (true, text.len());
    // Lines of words between lines of data are skipped; only those behind the last line of data are
    // text.
    let whole = text.split_inclusive(|byte| *byte == b'\n').rev();
    for line in whole {
        if is_data(line, false) {
            break;
        }
        behind -= line.len();
    }
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let is_first = bytes.is_empty() && signs.is_empty();
        if line.trim_ascii().is_empty() {
            goes_on = false;
        } else if let Some(end) = end_of_padded_word(line).filter(|_| is_first)
            && !is_data(line, false)
        {
            signs.extend(line[..end].iter().filter(|byte| is_sign(**byte)));
            at += end;
            break;
        } else if is_data(line, goes_on) {
            for byte in line {
                match byte {
                    b'=' => flush(&mut signs, &mut bytes),
                    byte if is_sign(*byte) => signs.push(*byte),
                    _ => {}
                }
            }
            goes_on = !line.trim_ascii().ends_with(b"=");
        } else if at >= behind {
            break;
        }
        at += line.len();
    }
    flush(&mut signs, &mut bytes);
    (bytes, text.get(at..).unwrap_or_default().trim_ascii())
}

fn is_sign(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Returns whether a line is base64. A short line is base64 only if it follows a line of data.
fn is_data(line: &[u8], goes_on: bool) -> bool {
    let signs = line.iter().filter(|byte| is_sign(**byte) || **byte == b'=').count();
    let spaces = line.iter().filter(|byte| byte.is_ascii_whitespace()).count();
    let words = || line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let longest = words().map(<[u8]>::len).max().unwrap_or(0);
    (line.len() - signs - spaces) * 20 <= signs
        && (longest >= LONG || (goes_on && words().count() == 1))
}

/// Returns the end of the first word of a line if more words follow and it is base64 that is padded.
fn end_of_padded_word(line: &[u8]) -> Option<usize> {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let length = line[start..].iter().position(u8::is_ascii_whitespace)?;
    let (word, rest) = line[start..].split_at(length);
    let is_padded = word.len() >= SHORT && word.len().is_multiple_of(4) && word.ends_with(b"=");
    let is_base64 = word.iter().all(|byte| is_sign(*byte) || *byte == b'=');
    (is_padded && is_base64 && !rest.trim_ascii().is_empty()).then_some(start + length)
}

fn flush(signs: &mut Vec<u8>, bytes: &mut Vec<u8>) {
    // A single character has six bits, which are no byte.
    if signs.len() % 4 == 1 {
        signs.pop();
    }
    // Decoding cannot fail otherwise.
    bytes.extend(LENIENT.decode(&*signs).unwrap_or_default());
    signs.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_lines_are_left_out_and_what_follows_is_read() {
        let text = b"VGhlIHRpZGUgdHVybnMgdHdpY2UgYSBkYXks\r\nsome stray words here\r\nIGFuZCBub2JvZHkgd2FpdHMsIHNhaWQgdGhl\r\nIG1hbi4=\r\n-- \r\nA footer\r\n";
        let (bytes, footer) = decode_lenient(text);
        assert_eq!(bytes, b"The tide turns twice a day, and nobody waits, said the man.");
        assert_eq!(footer, b"-- \r\nA footer");
    }

    const WHOLE: &str = "VGhlIHRpZGUgdHVybnMgdHdpY2UgYSBkYXks\r\nIGFuZCBub2JvZHkgd2FpdHMu";

    #[test]
    fn what_is_wrong_with_it_costs_itself_alone() {
        let whole = "The tide turns twice a day, and nobody waits.";
        let read = |text: &str| {
            let (bytes, rest) = decode_lenient(text.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(&bytes), text(rest))
        };
        assert!(!is_faulty(WHOLE.as_bytes()) && !is_faulty(b"SGk=\r\n"));
        assert_eq!(read(WHOLE), (whole.into(), String::new()));
        for (faulty, bytes, rest) in [
            (format!("{WHOLE}Ig"), format!("{whole}\""), ""),
            (format!("{WHOLE}Ii"), format!("{whole}\""), ""),
            (format!("{WHOLE}IiI"), format!("{whole}\"\""), ""),
            (format!("{WHOLE}I"), whole.into(), ""),
            (WHOLE.replace("VGhl", "VG!hl"), whole.into(), ""),
            (
                format!("{WHOLE}Ig==\r\n\r\nMailing list footer text"),
                format!("{whole}\""),
                "Mailing list footer text",
            ),
            (format!("{WHOLE}\r\n\r\n--\r\nFooter"), whole.into(), "--\r\nFooter"),
            (format!("{WHOLE}Ig==\r\nFooter"), format!("{whole}\""), "Footer"),
            (format!("SGk=\n{WHOLE}"), format!("Hi{whole}"), ""),
            ("VGlkZSBvZiA3 ignored".into(), String::new(), "VGlkZSBvZiA3 ignored"),
            ("\nVGlkZSBvZg== ignored\nFooter".into(), "Tide of".into(), "ignored\nFooter"),
        ] {
            assert!(is_faulty(faulty.as_bytes()), "{faulty}");
            assert_eq!(read(&faulty), (bytes, rest.to_owned()), "{faulty}");
        }
        assert_eq!(read(&WHOLE.replace("Zhb", "Z hb")).1, "");
        assert_eq!(read("no base 64, but words"), (String::new(), "no base 64, but words".into()));
    }
}
