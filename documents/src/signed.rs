//! Signed files (CMS, RFC 5652): S/MIME messages and `.p7m` files, which hold what they sign.

use std::borrow::Cow;

use crate::{format::Format, unreadable::Unreadable};

/// Most signatures around a file.
const MAX_LAYERS: usize = 4;

/// Most elements that are skipped in an element without a length.
const MAX_SKIPPED: usize = 10_000;

const SIGNED: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";

/// Contents that are encrypted: enveloped, encrypted, and authenticated ones.
const ENCRYPTED: [&[u8]; 3] = [
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03",
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06",
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x17",
];

const SEQUENCE: u8 = 0x30;
const IDENTIFIER: u8 = 0x06;
const OCTETS: u8 = 0x04;
/// Octets in several pieces.
const PIECES: u8 = 0x24;
/// The first element whose tag depends on its place.
const FIRST: u8 = 0xa0;

/// Returns what a signed file holds, with its name; other files unchanged.
///
/// # Errors
/// [`Unreadable::Encrypted`] for an encrypted message.
pub(crate) fn unwrap<'a>(
    bytes: &'a [u8],
    name: &'a str,
) -> Result<(Cow<'a, [u8]>, &'a str), Unreadable> {
    let (mut content, mut name) = (Cow::Borrowed(bytes), name);
    for _ in 0..MAX_LAYERS {
        let Some(kind) = kind_of(&content) else { break };
        if ENCRYPTED.contains(&kind) {
            return Err(Unreadable::Encrypted { format: Format::Eml });
        }
        let Some(within) = signed_content(&content) else { break };
        content = Cow::Owned(within);
        // Mail has a name of its own: `smime.p7m`.
        name = name.strip_suffix(".p7m").filter(|name| name.contains('.')).unwrap_or("message.eml");
    }
    Ok((content, name))
}

/// Returns the identifier of a CMS file's content.
fn kind_of(bytes: &[u8]) -> Option<&[u8]> {
    let (tag, kind, _) = split(enter(bytes, SEQUENCE)?)?;
    (tag == IDENTIFIER).then_some(kind)
}

/// Returns the content within signed data. `None` if it is kept elsewhere, or the file is no such one.
fn signed_content(bytes: &[u8]) -> Option<Vec<u8>> {
    let inner = enter(bytes, SEQUENCE)?;
    let (_, kind, rest) = split(inner)?;
    let signed = enter(enter(rest, FIRST).filter(|_| kind == SIGNED)?, SEQUENCE)?;
    // A version, and the algorithms.
    let content = enter(skip(skip(signed)?)?, SEQUENCE)?;
    let octets = enter(skip(content)?, FIRST)?;
    let (tag, whole, _) = split(octets)?;
    if tag == OCTETS {
        return Some(whole.to_vec());
    }
    let (mut rest, mut all) = (enter(octets, PIECES)?, Vec::new());
    // An element without a length has the rest of the file here, and ends with another tag.
    if !whole.is_empty() {
        rest = whole;
    }
    while let Some((OCTETS, piece, behind)) = split(rest) {
        all.extend_from_slice(piece);
        rest = behind;
    }
    Some(all)
}

/// Splits off the first element: its tag, its content, and what is behind it. The content of an element
/// without a length is empty, and what is behind it begins with its first part.
fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0x80 => (0, rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        0x85.. => return None,
        length => (usize::from(*length), rest),
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((*tag, content, behind))
}

/// Returns the bytes from the first part of the first element on, if it has this tag.
fn enter(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let (found, content, behind) = split(bytes)?;
    let start = bytes.len() - behind.len() - content.len();
    (found == tag).then(|| bytes.get(start..))?
}

/// Returns what is behind the first element.
fn skip(bytes: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut open) = (bytes, 0_usize);
    for _ in 0..MAX_SKIPPED {
        let has_no_length = rest.get(1) == Some(&0x80);
        let (tag, _, behind) = split(rest)?;
        rest = behind;
        match tag {
            0 => open = open.saturating_sub(1),
            _ => open += usize::from(has_no_length),
        }
        if open == 0 {
            return Some(rest);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0x82, (content.len() >> 8) as u8, content.len() as u8], content].concat()
    }

    /// Makes an element without a length.
    fn open_element(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0x80], content, &[0, 0]].concat()
    }

    fn signed(element: fn(u8, &[u8]) -> Vec<u8>, octets: &[u8]) -> Vec<u8> {
        let data = super::tests::element(IDENTIFIER, b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01");
        let content = element(SEQUENCE, &[data, element(FIRST, octets)].concat());
        let algorithms = element(0x31, &element(SEQUENCE, b"\x06\x01\x2a"));
        let signed = element(SEQUENCE, &[b"\x02\x01\x01".to_vec(), algorithms, content].concat());
        let kind = super::tests::element(IDENTIFIER, SIGNED);
        element(SEQUENCE, &[kind, element(FIRST, &signed)].concat())
    }

    #[test]
    fn signed_files_hold_what_they_sign() {
        let octets = element(OCTETS, b"words");
        let pieces = [element(OCTETS, b"wo"), element(OCTETS, b"rds")].concat();
        for file in [
            signed(element, &octets),
            signed(open_element, &octets),
            signed(element, &element(PIECES, &pieces)),
            signed(open_element, &open_element(PIECES, &pieces)),
            signed(element, &element(OCTETS, &signed(element, &octets))),
        ] {
            let (content, name) = unwrap(&file, "a.txt.p7m").unwrap();
            assert_eq!(&*content, b"words");
            assert!(["a.txt", "message.eml"].contains(&name), "{name}");
            for end in 0..file.len() {
                drop(unwrap(&file[..end], "a"));
            }
        }
        let name_of = |name| unwrap(&signed(element, &octets), name).unwrap().1.to_owned();
        assert_eq!(
            (name_of("a.pdf.p7m"), name_of("smime.p7m")),
            ("a.pdf".into(), "message.eml".into())
        );
        let without = signed(element, b"");
        assert_eq!(unwrap(&without, "a.p7s").unwrap().0, without);
        let kind = element(IDENTIFIER, ENCRYPTED[0]);
        let encrypted = element(SEQUENCE, &[kind, element(FIRST, b"")].concat());
        let error = unwrap(&encrypted, "smime.p7m").unwrap_err();
        assert_eq!(error, Unreadable::Encrypted { format: Format::Eml });
        assert_eq!(unwrap(b"0 a text", "a").unwrap(), (Cow::Borrowed(&b"0 a text"[..]), "a"));
    }
}
