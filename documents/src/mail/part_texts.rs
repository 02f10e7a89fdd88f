//! The text of a part, decoded again where its header is wrong or the parser failed.

use std::borrow::Cow;

use encoding_rs::{EUC_KR, Encoding, GBK};
use mail_parser::{
    Message, MessagePart, MimeHeaders as _, decoders::quoted_printable::quoted_printable_decode,
};

use super::{base64, uuencode};
use crate::{encoding, html};

/// Returns the text of a part. `parsed` is the text as the parser decoded it.
pub(super) fn part_text<'m>(
    message: &'m Message<'_>,
    part: &'m MessagePart<'_>,
    parsed: &'m str,
) -> Cow<'m, str> {
    let charset = part.content_type().and_then(|kind| kind.attribute("charset"));
    // Old programs state ASCII for any text.
    let charset = charset.filter(|label| !label.to_ascii_lowercase().contains("ascii"));
    let has_seven_bits = charset.and_then(seven_bit_encoding);
    let is_doubtful = parsed.contains(char::REPLACEMENT_CHARACTER)
        || has_seven_bits.is_some()
        || (charset.is_none() && !parsed.is_ascii())
        || (is_base64(part) && base64::is_faulty(raw_part(message, part)));
    if !is_doubtful {
        return Cow::Borrowed(parsed);
    }
    let (bytes, rest) = unpack_part(message, part);
    if let Some((to_eight_bits, encoding)) = has_seven_bits {
        let bytes = to_eight_bits(&bytes);
        let (text, is_damaged) = encoding.decode_without_bom_handling(&bytes);
        if !is_damaged {
            return text.into_owned().into();
        }
    }
    let declared = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let declared = declared.map(|encoding| encoding.decode(&bytes)).filter(|(_, _, bad)| !bad);
    let text = match declared {
        Some((text, ..)) => Ok(text),
        None if part.is_content_type("text", "html") => html::decode_page(&bytes),
        None => encoding::decode(&bytes),
    };
    match (text, encoding::decode(rest)) {
        (Ok(text), Ok(rest)) if !rest.is_empty() => format!("{}\n\n{rest}", text.trim()).into(),
        (Ok(text), _) => text.into_owned().into(),
        (Err(_), _) => Cow::Borrowed(parsed),
    }
}

/// Returns the bytes of an attachment; decoded here if the parser does not know the encoding or
/// failed.
pub(super) fn part_bytes<'m>(message: &'m Message<'_>, part: &'m MessagePart<'_>) -> Cow<'m, [u8]> {
    let is_uuencoded = matches!(&*transfer_encoding(part), "x-uuencode" | "uuencode" | "x-uue");
    if is_uuencoded || (is_base64(part) && base64::is_faulty(raw_part(message, part))) {
        let (bytes, _) = unpack_part(message, part);
        if !bytes.is_empty() {
            return bytes;
        }
    }
    part.contents().into()
}

/// Returns the raw bytes of a part, without the boundary that ends it.
pub(super) fn raw_part<'m>(message: &'m Message<'_>, part: &MessagePart<'_>) -> &'m [u8] {
    let (from, to) = (part.raw_body_offset() as usize, part.raw_end_offset() as usize);
    let raw = message.raw_message.get(from..to).unwrap_or_default().trim_ascii_end();
    let last = raw.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let boundaries =
        message.parts.iter().filter_map(|part| part.content_type()?.attribute("boundary"));
    let is_boundary = raw[last..]
        .strip_prefix(b"--")
        .is_some_and(|line| boundaries.into_iter().any(|known| line.starts_with(known.as_bytes())));
    if is_boundary { &raw[..last] } else { raw }
}

/// Decodes a part's transfer encoding. Returns its bytes, and the text behind base64.
fn unpack_part<'m>(
    message: &'m Message<'_>,
    part: &'m MessagePart<'_>,
) -> (Cow<'m, [u8]>, &'m [u8]) {
    let raw = raw_part(message, part);
    let bytes = match &*transfer_encoding(part) {
        "base64" => {
            let (bytes, rest) = base64::decode_lenient(raw);
            return (bytes.into(), rest);
        }
        "quoted-printable" => quoted_printable_decode(raw),
        "x-uuencode" | "uuencode" | "x-uue" => uuencode::decode(part.contents()),
        _ => None,
    };
    (bytes.map_or(Cow::Borrowed(raw), Cow::Owned), b"")
}

/// Converts bytes from seven bits to eight.
type ToEightBits = fn(&[u8]) -> Vec<u8>;

/// Returns the conversion of an encoding of seven bits to one of eight, by its label.
fn seven_bit_encoding(label: &str) -> Option<(ToEightBits, &'static Encoding)> {
    let known: [(&str, ToEightBits, &'static Encoding); 2] =
        [("iso-2022-kr", iso_2022_kr_to_euc_kr, EUC_KR), ("hz-gb-2312", hz_to_gbk, GBK)];
    let found = known.into_iter().find(|(name, ..)| label.eq_ignore_ascii_case(name));
    found.map(|(_, to_eight_bits, encoding)| (to_eight_bits, encoding))
}

/// Converts HZ (RFC 1843) to GBK: bytes between `~{` and `~}` get the highest bit.
fn hz_to_gbk(bytes: &[u8]) -> Vec<u8> {
    let (mut plain, mut is_chinese, mut rest) = (Vec::with_capacity(bytes.len()), false, bytes);
    while let Some((byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'~', [b'{', behind @ ..]) if !is_chinese => {
                is_chinese = true;
                behind
            }
            (b'~', [b'}', behind @ ..]) if is_chinese => {
                is_chinese = false;
                behind
            }
            (b'~', [b'~', behind @ ..]) if !is_chinese => {
                plain.push(b'~');
                behind
            }
            // A line that goes on in the next.
            (b'~', [b'\n', behind @ ..] | [b'\r', b'\n', behind @ ..]) => behind,
            (b'\n', behind) => {
                is_chinese = false;
                plain.push(b'\n');
                behind
            }
            (byte, behind) => {
                plain.push(byte | if is_chinese { 0x80 } else { 0 });
                behind
            }
        };
    }
    plain
}

/// Converts ISO-2022-KR (RFC 1557) to EUC-KR: bytes between shift-out and shift-in get the highest
/// bit.
fn iso_2022_kr_to_euc_kr(bytes: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"\x1b$)C";
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let (mut plain, mut is_korean) = (Vec::with_capacity(bytes.len()), false);
    for byte in bytes {
        match byte {
            0x0e => is_korean = true,
            0x0f => is_korean = false,
            // Each line begins in ASCII.
            b'\n' => {
                is_korean = false;
                plain.push(b'\n');
            }
            byte => plain.push(byte | if is_korean { 0x80 } else { 0 }),
        }
    }
    plain
}

fn is_base64(part: &MessagePart<'_>) -> bool {
    transfer_encoding(part) == "base64"
}

fn transfer_encoding(part: &MessagePart<'_>) -> String {
    part.content_transfer_encoding().unwrap_or_default().trim().to_ascii_lowercase()
}
