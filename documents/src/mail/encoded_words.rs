//! Encoded words (RFC 2047) that are joined before they are decoded: programs split a text between
//! two bytes of one character, although the RFC forbids that.

use std::{borrow::Cow, ops::Range};

use encoding_rs::Encoding;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use memchr::memmem;

use super::base64;

/// Escapes bytes that encoded words hold as they are: the words' own encoding applies to them, not that
/// of the header around them.
pub(super) fn escape_bytes(header: &[u8]) -> Cow<'_, [u8]> {
    let (mut escaped, mut copied, mut at) = (Vec::new(), 0, 0);
    while let Some(start) = memmem::find(&header[at..], b"=?") {
        at += start;
        let Some((_, length)) = word_at(&header[at..]) else {
            at += 2;
            continue;
        };
        let word = &header[at..at + length];
        if !word.is_ascii() {
            escaped.extend_from_slice(&header[copied..at]);
            for byte in word {
                match byte.is_ascii() {
                    true => escaped.push(*byte),
                    false => escaped.extend(format!("={byte:02X}").bytes()),
                }
            }
            copied = at + length;
        }
        at += length;
    }
    if copied == 0 {
        return Cow::Borrowed(header);
    }
    escaped.extend_from_slice(&header[copied..]);
    Cow::Owned(escaped)
}

/// Joins adjacent encoded words in the header of a message and those of its parts, if a character
/// is split between them.
pub(super) fn join_split_words(message: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let mut whole = Vec::new();
    let mut copied = 0;
    for header in headers(&message) {
        let mut at = header.start;
        while let Some(start) = memmem::find(&message[at..header.end], b"=?") {
            at += start;
            let Some((run, length)) = run_at(&message[at..header.end]) else {
                at += 2;
                continue;
            };
            if let Some(word) = join_words(&run) {
                whole.extend_from_slice(&message[copied..at]);
                whole.extend(word);
                copied = at + length;
            }
            at += length;
        }
    }
    if copied == 0 {
        return message;
    }
    whole.extend_from_slice(&message[copied..]);
    Cow::Owned(whole)
}

/// Returns the ranges of the message's own header and those of its parts: of a line that begins
/// with two hyphens, up to a blank line.
fn headers(message: &[u8]) -> Vec<Range<usize>> {
    let (mut headers, mut at, mut start) = (Vec::new(), 0, Some(0));
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            headers.extend(start.take().map(|start| start..at));
        } else if line.starts_with(b"--") && start.is_none() {
            start = Some(at);
        }
        at += line.len();
    }
    headers.extend(start.map(|start| start..at));
    headers
}

/// An encoded word: its charset and its bytes.
type Word<'w> = (&'w [u8], Vec<u8>);

/// Returns the encoded words at the start of a text that follow each other, and the length of all.
fn run_at(text: &[u8]) -> Option<(Vec<Word<'_>>, usize)> {
    let (first, mut length) = word_at(text)?;
    let mut run = vec![first];
    loop {
        let rest = text.get(length..)?;
        let gap = rest.len() - rest.trim_ascii_start().len();
        match word_at(&rest[gap..]) {
            Some((word, more)) if gap > 0 => {
                run.push(word);
                length += gap + more;
            }
            _ => return Some((run, length)),
        }
    }
}

/// Returns the encoded word at the start of a text, and its length.
fn word_at(text: &[u8]) -> Option<(Word<'_>, usize)> {
    let mut parts = text.strip_prefix(b"=?")?.splitn(3, |byte| *byte == b'?');
    let (charset, kind, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let end = memmem::find(rest, b"?=")?;
    let payload = &rest[..end];
    if payload.iter().any(u8::is_ascii_whitespace) || charset.iter().any(u8::is_ascii_whitespace) {
        return None;
    }
    let bytes = match kind {
        b"q" | b"Q" => {
            let spaced = |byte: &u8| if *byte == b'_' { b' ' } else { *byte };
            quoted_printable_decode(&payload.iter().map(spaced).collect::<Vec<_>>())?
        }
        b"b" | b"B" => base64::decode_lenient(payload).0,
        _ => return None,
    };
    let charset = charset.split(|byte| *byte == b'*').next()?;
    Some(((charset, bytes), text.len() - rest.len() + end + 2))
}

/// Makes one word of several of one charset. Returns `None` if each is valid by itself.
fn join_words(run: &[Word<'_>]) -> Option<Vec<u8>> {
    let (charset, _) = run.first()?;
    let encoding = Encoding::for_label(charset)?;
    let is_whole = |bytes: &[u8]| !encoding.decode_without_bom_handling(bytes).1;
    let is_of_one = run.iter().all(|(other, _)| other.eq_ignore_ascii_case(charset));
    if !is_of_one || run.iter().all(|(_, bytes)| is_whole(bytes)) {
        return None;
    }
    let mut word = [b"=?", *charset, b"?Q?"].concat();
    for byte in run.iter().flat_map(|(_, bytes)| bytes) {
        word.extend(format!("={byte:02X}").bytes());
    }
    word.extend(b"?=");
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_where_a_character_is_split() {
        let read = |text: &str| {
            String::from_utf8(join_split_words(Cow::Borrowed(text.as_bytes())).into_owned())
                .unwrap()
        };
        assert_eq!(
            read("Subject: a =?utf-8?Q?5=E2=82?=\r\n =?UTF-8?b?rA==?= b\r\n\r\n=?x"),
            "Subject: a =?utf-8?Q?=35=E2=82=AC?= b\r\n\r\n=?x"
        );
        let part = "A: b\n\ntext\n--b\nName: =?utf-8?Q?=C3?= =?utf-8?Q?=A4?=\n\n=?utf-8?Q?=C3?= =?utf-8?Q?=A4?=";
        assert_eq!(read(part), part.replacen("=C3?= =?utf-8?Q?=A4", "=C3=A4", 1));
        for same in [
            "S: =?utf-8?Q?=C3=A4?= =?utf-8?Q?=C3=A4?=",
            "S: =?utf-8?Q?=C3?= =?latin1?Q?=A4?=",
            "S: =?utf-8?Q?=C3?= x =?utf-8?Q?=A4?=",
            "S: =?utf-8?Q?=C3",
            "",
        ] {
            assert_eq!(read(same), same);
        }
    }

    #[test]
    fn bytes_in_a_word_are_in_its_encoding() {
        let header = b"To: =?iso-8859-1?Q?M\xfcller?= =?x \xfc\r\nSubject: =?koi8-r?q?\xc4\xc1?=";
        assert_eq!(
            &*escape_bytes(header),
            b"To: =?iso-8859-1?Q?M=FCller?= =?x \xfc\r\nSubject: =?koi8-r?q?=C4=C1?="
        );
        assert!(matches!(escape_bytes(b"To: =?utf-8?Q?a?="), Cow::Borrowed(_)));
    }
}
